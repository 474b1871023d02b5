//! Sentences and the maps of those who translated them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One source and what every model made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlignedSentence {
    /// What it is, such as `of middle length`.
    pub what: String,
    /// The source.
    pub source: String,
    /// The reference.
    pub reference: String,
    /// Other references, as right as it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_references: Vec<String>,
    /// One for each contestant that has attention.
    pub maps: Vec<Map>,
}

/// The mean of a model's cross-attention while it wrote its own answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Map {
    /// Whose.
    pub contestant: String,
    /// What it wrote, as text: how tokens make words is the tokenizer's business.
    pub text: String,
    /// Source tokens, the end symbol last.
    pub columns: Vec<String>,
    /// Written tokens.
    pub rows: Vec<String>,
    /// Row-major, rounded to three decimals.
    pub weights: Vec<f32>,
}
