//! Accuracy by place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How often a token is right, by the place in the source of what it needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionAccuracy {
    /// Whose.
    pub contestant: String,
    /// On which sentences.
    pub group: String,
    /// What the position is that of: `source` where the task says which source token is needed, else `target`.
    pub of: String,
    /// The tenth of the sentence, from 1.
    pub tenth: usize,
    /// Tokens, over all seeds.
    pub tokens: usize,
    /// The part of them that had the highest probability when all tokens before them were given.
    pub accuracy: f64,
}
