//! `[training]`.

use super::optimizer::AdamConfig;
use super::schedule::Schedule;
use super::scheduled_sampling::ScheduledSampling;
use crate::error::{Error, Result};
use crate::scoring::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What decides which checkpoint is the best and when to stop early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// Cross-entropy on the validation data, in nats per target token; less is better.
    Loss,
    /// The score of the greedy translations of the validation sample; of errors less is better, of all else more.
    Score,
}

/// `[training]`: how a model learns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// Updates after which training ends.
    pub max_updates: u64,
    /// Minutes after which training ends, those before an interruption included; without it, only updates count.
    pub max_minutes: Option<f64>,
    /// Most tokens on either side of one micro-batch, padding included.
    pub batch_tokens: usize,
    /// Micro-batches whose gradients make one update; where several ranks train together, of each of them.
    pub accumulation: usize,
    /// The highest learning rate, per update.
    pub learning_rate: f64,
    /// How the learning rate changes.
    pub schedule: Schedule,
    /// Updates over which the learning rate rises from zero.
    pub warmup_updates: u64,
    /// The part of the learning rate that is left at the end of a cosine or linear schedule.
    pub final_fraction: f64,
    /// Adam's settings.
    pub optimizer: AdamConfig,
    /// Probability mass taken from the right word and spread over the vocabulary.
    pub label_smoothing: f64,
    /// How often a recurrent decoder reads its own last word in training.
    pub scheduled_sampling: ScheduledSampling,
    /// Gradients longer than this, all parameters together, are shortened to it; 0 switches it off.
    pub clip_norm: f64,
    /// Updates between two validations.
    pub validate_every: u64,
    /// Whether layers are fused, into loops on a CPU and into kernels on a GPU: the same numbers up to rounding, sooner.
    pub fused: bool,
    /// Validation sentences that are translated at every validation.
    pub sample_size: usize,
    /// The score of the sample, and the first one of `evaluate` and `compare`. Where none is named, token accuracy for models that
    /// answer with tags, and sequence accuracy for classes.
    pub score: Metric,
    /// What decides which checkpoint is the best.
    pub criterion: Criterion,
    /// Validations without a new best after which training ends; 0 switches it off.
    pub patience: usize,
    /// Updates between two checkpoints; every validation makes one too.
    pub save_every: u64,
    /// Checkpoints that are kept besides the best.
    pub keep_checkpoints: usize,
    /// Checkpoints of the last validations whose mean is tried as the final model; 0 or 1 switches it off.
    pub average_checkpoints: usize,
    /// Updates between two lines of the plain renderer.
    pub log_every: u64,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            max_updates: 10_000,
            max_minutes: None,
            batch_tokens: 4096,
            accumulation: 1,
            learning_rate: 1e-3,
            schedule: Schedule::InverseSqrt,
            warmup_updates: 1000,
            final_fraction: 0.1,
            optimizer: AdamConfig::default(),
            label_smoothing: 0.1,
            scheduled_sampling: ScheduledSampling::None {},
            clip_norm: 1.0,
            fused: true,
            validate_every: 500,
            sample_size: 100,
            score: Metric::Bleu,
            criterion: Criterion::Loss,
            patience: 10,
            save_every: 500,
            keep_checkpoints: 3,
            average_checkpoints: 0,
            log_every: 50,
        }
    }
}

impl TrainingConfig {
    /// Checks every value against its rule.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("max_updates", self.max_updates),
            ("batch_tokens", self.batch_tokens as u64),
            ("accumulation", self.accumulation as u64),
            ("validate_every", self.validate_every),
            ("sample_size", self.sample_size as u64),
            ("save_every", self.save_every),
            ("keep_checkpoints", self.keep_checkpoints as u64),
            ("log_every", self.log_every),
        ] {
            if value == 0 {
                return Err(Error::config(format!("training.{key}"), "must be at least 1, got 0"));
            }
        }
        self.scheduled_sampling.validate()?;
        let rules = [
            (
                "learning_rate",
                self.learning_rate,
                self.learning_rate > 0.0 && self.learning_rate.is_finite(),
                "above 0 and finite",
            ),
            (
                "label_smoothing",
                self.label_smoothing,
                (0.0..1.0).contains(&self.label_smoothing),
                "at least 0 and below 1",
            ),
            ("clip_norm", self.clip_norm, self.clip_norm >= 0.0 && self.clip_norm.is_finite(), "at least 0 and finite"),
            ("final_fraction", self.final_fraction, (0.0..=1.0).contains(&self.final_fraction), "between 0 and 1"),
            (
                "max_minutes",
                self.max_minutes.unwrap_or(1.0),
                self.max_minutes.is_none_or(|m| m > 0.0 && m.is_finite()),
                "above 0 and finite",
            ),
            (
                "optimizer.beta_1",
                self.optimizer.beta_1,
                (0.0..1.0).contains(&self.optimizer.beta_1),
                "at least 0 and below 1",
            ),
            (
                "optimizer.beta_2",
                self.optimizer.beta_2,
                (0.0..1.0).contains(&self.optimizer.beta_2),
                "at least 0 and below 1",
            ),
            (
                "optimizer.epsilon",
                self.optimizer.epsilon,
                self.optimizer.epsilon as f32 > 0.0 && self.optimizer.epsilon.is_finite(),
                "above 0 and finite, also as a 32-bit number",
            ),
            (
                "optimizer.weight_decay",
                self.optimizer.weight_decay,
                self.optimizer.weight_decay >= 0.0 && self.optimizer.weight_decay.is_finite(),
                "at least 0 and finite",
            ),
        ];
        for (key, value, is_right, rule) in rules {
            if !is_right {
                return Err(Error::config(format!("training.{key}"), format!("must be {rule}, got {value}")));
            }
        }
        Ok(())
    }
}
