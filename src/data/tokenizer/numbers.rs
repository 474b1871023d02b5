//! Series of numbers: what is kept of the training data is the scale of each channel.
//!
//! A model of numbers works on channels of mean 0 and standard deviation 1, whatever the units of the data are.

use super::Model;
use super::side::Side;
use crate::data::series::Series;
use crate::error::{Error, Result};

/// Significant digits of a mean or deviation that is kept.
const N_DIGITS: usize = 15;
/// How many significant digits of a channel's deviation the last written digit stands at least for; 32-bit arithmetic has 7.
const WRITTEN_DIGITS: i32 = 6;
/// The most deviations that a number may be away from the mean of training: squares of it, and sums of those, are numbers with 32 bits.
const FARTHEST: f32 = 1e15;

/// The mean and the standard deviation of each channel.
///
/// # Errors
/// If a text is no series, or the numbers are too large for a deviation; `key` is the section of the settings.
pub(super) fn train(texts: &[&str], key: &str) -> Result<Side> {
    // Welford's algorithm, which stays exact where the mean is far larger than the deviation.
    let (mut n, mut mean, mut squares): (f64, Vec<f64>, Vec<f64>) = (0.0, Vec::new(), Vec::new());
    for (i, text) in texts.iter().enumerate() {
        let n_channels = (!mean.is_empty()).then_some(mean.len());
        let series = Series::parse(text, n_channels)
            .map_err(|fault| Error::config(key, format!("training text {}: {fault}", i + 1)))?;
        for step in series.steps() {
            mean.resize(step.len(), 0.0);
            squares.resize(step.len(), 0.0);
            n += 1.0;
            for ((value, mean), squares) in step.iter().zip(&mut mean).zip(&mut squares) {
                let gap = value - *mean;
                *mean += gap / n;
                *squares += gap * (value - *mean);
            }
        }
    }
    let deviation: Vec<f64> = squares.iter().map(|squares| (squares / n).sqrt()).collect();
    if let Some(channel) = mean.iter().zip(&deviation).position(|(m, d)| !m.is_finite() || !d.is_finite()) {
        let message = format!("the numbers of channel {} are too large to be scaled; divide them", channel + 1);
        return Err(Error::config(key, message));
    }
    let stored = |values: Vec<f64>| values.into_iter().map(stored).collect();
    Ok(Side::Numbers { mean: stored(mean), deviation: stored(deviation) })
}

/// The number that a file gives back: serde_json does not read all digits of every number exactly, and a run that goes on has to
/// scale as it did when it began.
fn stored(value: f64) -> f64 {
    const MAX_ROUNDS: usize = 10;
    let rounded: f64 = format!("{value:.*e}", N_DIGITS - 1).parse().expect("a number that was just written");
    let read = |value: f64| -> f64 {
        let text = serde_json::to_string(&value).expect("a finite number is JSON");
        serde_json::from_str(&text).expect("a number that was just written")
    };
    std::iter::successors(Some(rounded), |value| Some(read(*value)))
        .take(MAX_ROUNDS)
        .find(|value| read(*value) == *value)
        .unwrap_or(rounded)
}

/// How the numbers of each channel are scaled: `(x - mean) / deviation`, both of the training data.
///
/// A channel that never changed in training is divided by its size instead, or by 1 where it is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    mean: Vec<f64>,
    divisor: Vec<f64>,
}

impl Scaling {
    /// The scaling of a file.
    ///
    /// # Errors
    /// If there are no channels, or numbers that are none of a mean and a deviation.
    pub(super) fn new(mean: &[f64], deviation: &[f64]) -> Result<Self, String> {
        let are_right = mean.iter().all(|m| m.is_finite()) && deviation.iter().all(|d| d.is_finite() && *d >= 0.0);
        if mean.is_empty() || mean.len() != deviation.len() || !are_right {
            return Err("there is not a mean and a deviation for each channel".to_owned());
        }
        let divisor = mean.iter().zip(deviation).map(|(mean, deviation)| match (*deviation, mean.abs()) {
            (0.0, 0.0) => 1.0,
            (0.0, size) => size,
            (deviation, _) => deviation,
        });
        Ok(Self { mean: mean.to_vec(), divisor: divisor.collect() })
    }

    /// The numbers of one step.
    pub fn n_channels(&self) -> usize {
        self.mean.len()
    }

    /// The mean of each channel in the training data.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// What one scaled unit is in the units of the data, by channel.
    pub fn divisor(&self) -> &[f64] {
        &self.divisor
    }

    /// The scaled numbers of a series, step by step.
    pub fn scale(&self, series: &Series) -> Vec<f32> {
        let channels = self.mean.iter().zip(&self.divisor).cycle();
        series.values().iter().zip(channels).map(|(value, (mean, divisor))| ((value - mean) / divisor) as f32).collect()
    }

    /// The series of scaled numbers, in the units of the data.
    pub fn restore(&self, scaled: &[f32]) -> Series {
        let channels = self.mean.iter().zip(&self.divisor).cycle();
        let values = scaled.iter().zip(channels).map(|(value, (mean, divisor))| mean + f64::from(*value) * divisor);
        Series::new(self.n_channels(), values.collect())
    }

    /// A series to be written: digits below a millionth of a channel's deviation, which the arithmetic of a model does not have,
    /// are rounded away.
    pub fn rounded(&self, series: &Series) -> Series {
        let digits =
            self.divisor.iter().map(|divisor| (WRITTEN_DIGITS - divisor.log10().floor() as i32).max(0) as usize);
        let digits: Vec<usize> = digits.collect();
        let round = |(value, digits): (&f64, &usize)| -> f64 {
            let rounded: f64 = format!("{value:.digits$}").parse().expect("a number that was just written");
            // Without the sign of a zero.
            rounded + 0.0
        };
        Series::new(self.n_channels(), series.values().iter().zip(digits.iter().cycle()).map(round).collect())
    }

    /// Refuses a series that is so far from the training data that the sums and squares of a model would not be finite.
    ///
    /// # Errors
    /// Names the step.
    pub fn check(&self, series: &Series) -> Result<(), String> {
        match self.scale(series).iter().position(|value| value.is_nan() || value.abs() > FARTHEST) {
            Some(i) => {
                Err(format!("step {} is too far from all training data to be scaled", i / self.n_channels() + 1))
            }
            None => Ok(()),
        }
    }
}

/// Where token ids are counted, a step is one.
impl Model for Scaling {
    fn encode(&self, text: &str) -> Vec<Option<u32>> {
        text.split_whitespace().map(|_| None).collect()
    }

    fn unknown(&self, _text: &str) -> Vec<String> {
        Vec::new()
    }

    fn join(&self, tokens: &[&str]) -> String {
        tokens.join(" ")
    }

    fn label(&self, token: &str) -> String {
        token.to_owned()
    }

    fn scaling(&self) -> Option<&Scaling> {
        Some(self)
    }
}
