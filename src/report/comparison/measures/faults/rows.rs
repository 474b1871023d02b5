//! What went wrong in a group of test sentences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What goes wrong in a group of sentences; means over the seeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Faults {
    /// Whose.
    pub contestant: String,
    /// In which sentences.
    pub group: String,
    /// Written words for each word of the references.
    pub length_ratio: f64,
    /// The part of the written 4-grams that occurred before in the same sentence.
    pub repetition: f64,
    /// The same in the references.
    pub reference_repetition: f64,
    /// The part of sentences that the model ended with less than 90 % of the reference's words.
    pub early_stop: f64,
    /// The part of sentences that the model did not end, so that they were cut.
    pub cut: f64,
    /// The part of source words that got a total weight below 0.1 from the words written, the mean of all heads; none where there
    /// is no attention.
    pub omission: Option<f64>,
}
