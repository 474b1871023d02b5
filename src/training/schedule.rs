//! The learning rate as a pure function of the update.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the learning rate changes. Every schedule starts with a linear warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Stays where the warm-up ends.
    Constant,
    /// Falls with the inverse square root of the update: at `warmup_updates` it is `learning_rate`.
    InverseSqrt,
    /// `d_model^-0.5 * min(update^-0.5, update * warmup^-1.5)` times `learning_rate`, Vaswani 2017, equation 3; for a model
    /// without `d_model` its hidden width.
    Noam,
    /// Falls along half a cosine to `final_fraction` of the rate at the horizon: `max_updates`, or the update that is expected
    /// when `max_minutes` are over, whichever comes first. Fixed when a run begins; later updates keep the last rate.
    Cosine,
    /// Falls along a straight line, to the same end.
    Linear,
}

/// What a schedule depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleParameters {
    /// The highest rate, except for [`Schedule::Noam`], whose factor it is.
    pub learning_rate: f64,
    /// Updates over which the rate rises from zero.
    pub warmup_updates: u64,
    /// The update at which a falling rate reaches its end.
    pub horizon: u64,
    /// The part of the rate that is left at the end.
    pub final_fraction: f64,
    /// The model's width.
    pub d_model: usize,
}

/// What is known of the speed of a run when its horizon is planned. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Updates made.
    pub updates: u64,
    /// What is left of `max_minutes`.
    pub seconds_left: f64,
    /// An update, the median of those made.
    pub update: f64,
    /// A validation and what belongs to it.
    pub validation: f64,
    /// Updates between two validations.
    pub validate_every: u64,
}

impl Pace {
    /// The update at which the time will be up.
    pub fn horizon(&self) -> u64 {
        let each = self.update + self.validation / self.validate_every as f64;
        self.updates + (self.seconds_left.max(0.0) / each.max(1e-9)) as u64
    }
}

impl Schedule {
    /// Whether the rate falls to an end that has to be known beforehand.
    pub fn has_end(self) -> bool {
        matches!(self, Self::Cosine | Self::Linear)
    }

    /// The learning rate of update `update`, counted from 1.
    pub fn rate(self, update: u64, p: &ScheduleParameters) -> f64 {
        let t = update.max(1) as f64;
        let warmup = p.warmup_updates as f64;
        if self == Self::Noam {
            let warmup = warmup.max(1.0);
            return p.learning_rate * (p.d_model as f64).powf(-0.5) * t.powf(-0.5).min(t * warmup.powf(-1.5));
        }
        if t < warmup {
            return p.learning_rate * t / warmup;
        }
        let progress = ((t - warmup) / (p.horizon as f64 - warmup).max(1.0)).min(1.0);
        p.learning_rate
            * match self {
                Self::Constant | Self::Noam => 1.0,
                Self::InverseSqrt => (warmup.max(1.0) / t).sqrt(),
                Self::Cosine => {
                    p.final_fraction + (1.0 - p.final_fraction) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
                }
                Self::Linear => p.final_fraction + (1.0 - p.final_fraction) * (1.0 - progress),
            }
    }
}
