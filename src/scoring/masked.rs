//! How well a model predicts hidden words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scores of a text, in the form in which `evaluate --json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MaskedScores {
    /// The mean of `-log p` over the hidden tokens, in nats.
    pub loss: f64,
    /// `exp(loss)`.
    pub perplexity: f64,
    /// The part of hidden tokens that had the highest probability.
    pub masked_accuracy: f64,
    /// Hidden tokens.
    pub masked: usize,
    /// Tokens, ends of lines included.
    pub tokens: usize,
    /// Tokens that the vocabulary does not hold; they are never hidden.
    pub unknown: usize,
    /// The part of the tokens that was hidden.
    pub masked_rate: f64,
    /// The most tokens that are seen at once.
    pub context: usize,
}
