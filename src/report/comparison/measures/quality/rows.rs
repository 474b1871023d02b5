//! Scores by group of test sentences.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scores of a contestant in a group of test sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quality {
    /// Whose.
    pub contestant: String,
    /// Of which sentences.
    pub group: String,
    /// One for each metric of the comparison.
    pub scores: Vec<Score>,
}

/// A score, how far it depends on the choice of test sentences, and how far on the seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// `bleu` and `chrf` go from 0 to 100; accuracies and error rates are fractions of 1.
    pub metric: String,
    /// The mean over the seeds.
    pub score: f64,
    /// The lower end of the 95 % interval over sentences and seeds.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The score of each seed.
    pub by_seed: Vec<f64>,
    /// The standard deviation over the seeds (n - 1); none for a single seed.
    pub seed_deviation: Option<f64>,
}
