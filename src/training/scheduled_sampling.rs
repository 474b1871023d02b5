//! Scheduled sampling: the probability with which the decoder gets the true previous word.

use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probability of reading the true last word, as a function of the update `i`; otherwise the decoder reads its own.
///
/// # Reference
/// Bengio et al., Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks, 2015, section 2.4. As in the
/// paper; the linear decay is given by its length instead of its slope, and starts at one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduledSampling {
    /// Always the true word: teacher forcing.
    None {},
    /// From 1 down to `floor` along a straight line.
    Linear {
        /// Updates until `floor` is reached.
        updates: u64,
        /// The probability that is left.
        floor: f64,
    },
    /// `k^i`.
    Exponential {
        /// Less than 1, and near to it.
        k: f64,
    },
    /// `k / (k + exp(i / k))`.
    InverseSigmoid {
        /// At least 1; the larger, the later the fall.
        k: f64,
    },
}

impl Default for ScheduledSampling {
    fn default() -> Self {
        Self::None {}
    }
}

impl ScheduledSampling {
    /// The probability of reading the true word at update `update`, counted from 1.
    pub fn truth(self, update: u64) -> f64 {
        let i = update as f64;
        match self {
            Self::None {} => 1.0,
            Self::Linear { updates, floor } => 1.0 - (1.0 - floor) * (i / updates as f64).min(1.0),
            Self::Exponential { k } => k.powf(i),
            Self::InverseSigmoid { k } => k / (k + (i / k).exp()),
        }
    }

    pub(super) fn validate(self) -> Result<()> {
        let (key, rule) = match self {
            Self::Linear { updates: 0, .. } => ("updates", "must be at least 1, got 0".to_string()),
            Self::Linear { floor, .. } if !(0.0..=1.0).contains(&floor) => {
                ("floor", format!("must be between 0 and 1, got {floor}"))
            }
            Self::Exponential { k } if !(k > 0.0 && k < 1.0) => ("k", format!("must be above 0 and below 1, got {k}")),
            Self::InverseSigmoid { k } if !(k >= 1.0 && k.is_finite()) => {
                ("k", format!("must be at least 1 and finite, got {k}"))
            }
            _ => return Ok(()),
        };
        Err(Error::config(format!("training.scheduled_sampling.{key}"), rule))
    }
}
