//! Errors of numbers: squared and absolute.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Sums over predicted numbers, each with its true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorSums {
    /// Of `(prediction - truth)^2`.
    pub squared: f64,
    /// Of `|prediction - truth|`.
    pub absolute: f64,
    /// Numbers.
    pub n: usize,
}

impl ErrorSums {
    /// Adds a number that is off by `error`.
    pub fn add(&mut self, error: f64) {
        *self += Self { squared: error * error, absolute: error.abs(), n: 1 };
    }

    /// The means.
    pub fn scores(&self) -> ErrorScores {
        let n = self.n.max(1) as f64;
        let mse = self.squared / n;
        ErrorScores { mse, rmse: mse.sqrt(), mae: self.absolute / n }
    }
}

impl AddAssign for ErrorSums {
    fn add_assign(&mut self, other: Self) {
        self.squared += other.squared;
        self.absolute += other.absolute;
        self.n += other.n;
    }
}

/// How far predicted numbers are from the true ones, in the units of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ErrorScores {
    /// Mean squared error.
    pub mse: f64,
    /// Its root.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

/// Errors of series, in the form in which `evaluate --json` prints them. All are means over steps and channels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SeriesScores {
    /// Of the model.
    #[serde(flatten)]
    pub errors: ErrorScores,
    /// Series.
    pub sequences: usize,
    /// Steps of all of them.
    pub steps: usize,
    /// What a forecast without a model comes to.
    pub baselines: BaselineScores,
    /// By channel of the target.
    pub by_channel: Vec<ErrorScores>,
    /// By place in the series, the first steps first, in ranges that end at powers of two.
    pub by_position: Vec<PlaceScores>,
}

/// Errors of forecasts without a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BaselineScores {
    /// Of the source's value at the same step; nothing where source and target have other numbers of channels.
    pub last_value: Option<ErrorScores>,
    /// Of the mean of each channel in the training data.
    pub training_mean: ErrorScores,
}

/// Errors at some steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PlaceScores {
    /// The first step, counted from 1.
    pub from: usize,
    /// The last.
    pub to: usize,
    /// How many series have them, each counted for each of its steps.
    pub steps: usize,
    /// Their errors.
    #[serde(flatten)]
    pub errors: ErrorScores,
}

/// The sums that [`SeriesScores`] are made of.
#[derive(Clone, Debug, Default)]
pub struct SeriesStatistics {
    all: ErrorSums,
    last_value: Option<ErrorSums>,
    training_mean: ErrorSums,
    by_channel: Vec<ErrorSums>,
    by_position: Vec<(usize, ErrorSums)>,
    sequences: usize,
}

impl SeriesStatistics {
    /// Adds a series: prediction and truth, and the source where it has as many channels, step by step. `mean` is that of each
    /// channel in the training data.
    pub fn add(&mut self, prediction: &[f64], truth: &[f64], source: Option<&[f64]>, mean: &[f64]) {
        self.sequences += 1;
        self.by_channel.resize(mean.len(), ErrorSums::default());
        for (i, (prediction, truth)) in prediction.iter().zip(truth).enumerate() {
            let (place, channel) = (i / mean.len(), i % mean.len());
            if self.by_position.len() <= place {
                self.by_position.push((0, ErrorSums::default()));
            }
            let (n_steps, at) = &mut self.by_position[place];
            *n_steps += usize::from(channel == 0);
            let error = prediction - truth;
            at.add(error);
            self.all.add(error);
            self.by_channel[channel].add(error);
            self.training_mean.add(mean[channel] - truth);
            if let Some(source) = source {
                self.last_value.get_or_insert_default().add(source[i] - truth);
            }
        }
    }

    /// The scores.
    pub fn scores(&self) -> SeriesScores {
        let place = |(from, to): (usize, usize)| {
            let mut found = PlaceScores { from, to, ..PlaceScores::default() };
            let mut sums = ErrorSums::default();
            for (steps, errors) in &self.by_position[from - 1..to] {
                found.steps += steps;
                sums += *errors;
            }
            PlaceScores { errors: sums.scores(), ..found }
        };
        SeriesScores {
            errors: self.all.scores(),
            sequences: self.sequences,
            steps: self.by_position.iter().map(|(steps, _)| steps).sum(),
            baselines: BaselineScores {
                last_value: self.last_value.map(|sums| sums.scores()),
                training_mean: self.training_mean.scores(),
            },
            by_channel: self.by_channel.iter().map(ErrorSums::scores).collect(),
            by_position: super::text::doubling_ranges(self.by_position.len()).map(place).collect(),
        }
    }
}
