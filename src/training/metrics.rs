//! What is measured while a model learns, in the form that burn-train's dashboard takes.

use super::loss::LossSums;
use crate::scoring::{ErrorScores, Metric as Score};
use burn::tensor::TensorReadError;
use burn_train::ItemLazy;
use burn_train::metric::state::{FormatOptions, NumericMetricState};
use burn_train::metric::{
    Adaptor, Metric, MetricAttributes, MetricMetadata, MetricName, Numeric, NumericAttributes, NumericEntry,
    SerializedEntry,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the learning rate is called.
pub(super) const LEARNING_RATE: &str = "Learning rate";

/// One update, or one validation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Cross-entropy in nats per target token, without label smoothing; of numbers, the mean squared error of the scaled ones.
    pub loss: f64,
    /// What is minimised where answers are words, in nats per target token: with label smoothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smoothed_loss: Option<f64>,
    /// `exp(loss)` of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perplexity: Option<f64>,
    /// The part of target tokens that had the highest probability, teacher forced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_accuracy: Option<f64>,
    /// The mean squared error of numbers, in the units of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mse: Option<f64>,
    /// Their mean absolute error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mae: Option<f64>,
    /// Target tokens, end symbols included; of numbers, steps.
    pub tokens: usize,
    /// The learning rate of the update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// The norm of all gradients together, before clipping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_norm: Option<f64>,
    /// Target tokens per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<f64>,
    /// Seconds that this rank waited for the sum of the gradients of all ranks, having computed its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_seconds: Option<f64>,
    /// The score of the greedily translated sample, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The cross-entropy of plain text in bits, for each character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_character: Option<f64>,
    /// Sentences of the sample whose translations were cut at the length cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<usize>,
}

impl Stats {
    /// The means of `sums`.
    pub fn new(sums: LossSums) -> Self {
        let n = sums.n_tokens.max(1) as f64;
        if let Some(errors) = sums.errors {
            let ErrorScores { mse, mae, .. } = errors.scores();
            let loss = sums.smoothed / n;
            return Self { loss, mse: Some(mse), mae: Some(mae), tokens: sums.n_tokens, ..Self::default() };
        }
        let loss = sums.cross_entropy / n;
        Self {
            loss,
            smoothed_loss: Some(sums.smoothed / n),
            perplexity: Some(loss.exp()),
            token_accuracy: Some(sums.n_correct as f64 / n),
            tokens: sums.n_tokens,
            ..Self::default()
        }
    }
}

impl ItemLazy for Stats {
    fn sync(self) -> Result<Self, burn::backend::ExecutionError> {
        Ok(self)
    }
}

impl Adaptor<Stats> for Stats {
    fn adapt(&self) -> Stats {
        self.clone()
    }
}

/// One number of [`Stats`] as a metric of burn-train.
#[derive(Clone)]
pub struct Scalar {
    name: MetricName,
    unit: Option<&'static str>,
    higher_is_better: bool,
    precision: usize,
    pick: fn(&Stats) -> Option<f64>,
    state: NumericMetricState,
}

impl Scalar {
    fn new(name: &str, higher_is_better: bool, precision: usize, pick: fn(&Stats) -> Option<f64>) -> Self {
        let name = Arc::new(name.to_string());
        Self { name, unit: None, higher_is_better, precision, pick, state: NumericMetricState::new() }
    }

    fn with_unit(self, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..self }
    }

    fn learning_rate() -> Self {
        Self::new(LEARNING_RATE, true, 6, |stats| stats.learning_rate)
    }

    fn gradient_norm() -> Self {
        Self::new("Gradient norm", false, 3, |stats| stats.gradient_norm)
    }

    /// The root of the mean squared error, which has the unit of the data.
    pub fn root_mse() -> Self {
        Self::new("Root MSE", false, 4, |stats| stats.mse.map(f64::sqrt))
    }

    /// The score of the validation sample; its unit tells it from what is measured teacher forced.
    pub fn score(metric: Score) -> Self {
        Self::new(&metric.title(), !metric.lower_is_better(), 2, |stats| stats.score)
    }

    /// How well plain text is predicted, whatever its tokens are.
    pub fn bits_per_character() -> Self {
        Self::new("Bits per character", false, 3, |stats| stats.bits_per_character)
    }

    fn format(&self) -> FormatOptions {
        let options = FormatOptions::new(self.name.clone()).precision(self.precision);
        match self.unit {
            Some(unit) => options.unit(unit),
            None => options,
        }
    }
}

/// What is shown while a model learns.
pub struct Shown {
    /// In training and validation.
    pub shared: Vec<Scalar>,
    /// In training alone.
    pub of_training: Vec<Scalar>,
}

impl Shown {
    /// Of a model that answers with words.
    pub fn of_words() -> Self {
        Self {
            shared: vec![
                Scalar::new("Loss", false, 4, |stats| Some(stats.loss)).with_unit("nats"),
                Scalar::new("Perplexity", false, 3, |stats| stats.perplexity),
                Scalar::new("Token accuracy", true, 2, |stats| Some(100.0 * stats.token_accuracy?)).with_unit("%"),
            ],
            of_training: vec![
                Scalar::new("Smoothed loss", false, 4, |stats| stats.smoothed_loss).with_unit("nats"),
                Scalar::learning_rate(),
                Scalar::new("Target tokens/s", true, 0, |stats| stats.tokens_per_second),
                Scalar::gradient_norm(),
            ],
        }
    }

    /// Of a model that answers with numbers.
    pub fn of_numbers() -> Self {
        Self {
            shared: vec![
                Scalar::new("Loss", false, 4, |stats| Some(stats.loss)),
                Scalar::new("MSE", false, 4, |stats| stats.mse),
                Scalar::new("MAE", false, 4, |stats| stats.mae),
            ],
            of_training: vec![
                Scalar::learning_rate(),
                Scalar::new("Steps/s", true, 0, |stats| stats.tokens_per_second),
                Scalar::gradient_norm(),
            ],
        }
    }
}

impl Metric for Scalar {
    type Input = Stats;

    fn name(&self) -> MetricName {
        self.name.clone()
    }

    fn attributes(&self) -> MetricAttributes {
        NumericAttributes { unit: self.unit.map(String::from), higher_is_better: self.higher_is_better }.into()
    }

    fn update(&mut self, item: &Stats, _metadata: &MetricMetadata) -> Result<SerializedEntry, TensorReadError> {
        if let Some(value) = (self.pick)(item) {
            self.state.update(value, item.tokens.max(1));
        }
        Ok(self.state.compute_update(self.format()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(self.state.compute_final(self.format()))
    }

    fn clear(&mut self) {
        self.state.reset();
    }
}

impl Numeric for Scalar {
    fn value(&self) -> Option<NumericEntry> {
        Some(self.state.current_value())
    }

    fn running_value(&self) -> Option<NumericEntry> {
        Some(self.state.running_value())
    }

    fn final_value(&self) -> NumericEntry {
        self.state.final_value()
    }
}
