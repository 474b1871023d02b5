//! What a run wrote down while it learnt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// Whose.
    pub contestant: String,
    /// With which seed.
    pub seed: u64,
    /// Means of groups of updates.
    pub train: Vec<CurvePoint>,
    /// Validations.
    pub valid: Vec<CurvePoint>,
}

/// A point of a learning curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// The update.
    pub update: u64,
    /// Seconds of training by then.
    pub seconds: f64,
    /// Cross-entropy in nats per target token.
    pub loss: f64,
    /// The score of the validation sample, in percent; none in training.
    pub score: Option<f64>,
}
