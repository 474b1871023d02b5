//! Series of numbers, for models that read and answer numbers.
//!
//! A line of text is a series: its steps are separated by spaces, the channels of a step by commas, as in `0.5,1.2 0.6,1.1`.

use super::{Pair, Scaling};
use std::fmt;

/// Numbers in steps of one or more channels, in the units of the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    n_channels: usize,
    /// Step by step.
    values: Vec<f64>,
}

impl Series {
    /// The series of `values`, step by step.
    ///
    /// # Panics
    /// If `values` do not make whole steps of `n_channels`, at least one.
    pub fn new(n_channels: usize, values: Vec<f64>) -> Self {
        assert!(n_channels > 0 && values.len().is_multiple_of(n_channels), "a series has whole steps");
        Self { n_channels, values }
    }

    /// The series of a line of text. Without `n_channels`, the first step says how many channels there are.
    ///
    /// # Errors
    /// Names the step, counted from 1, and what is wrong with it.
    pub fn parse(text: &str, n_channels: Option<usize>) -> Result<Self, String> {
        let mut values = Vec::new();
        let mut expected = n_channels;
        for (i, step) in text.split_whitespace().enumerate() {
            let found = step.split(',').count();
            let n_channels = *expected.get_or_insert(found);
            if found != n_channels {
                return Err(format!("step {} has {} where {} expected", i + 1, channels(found), are(n_channels)));
            }
            for (channel, number) in step.split(',').enumerate() {
                let place = match n_channels {
                    1 => format!("step {}", i + 1),
                    _ => format!("step {}, channel {}", i + 1, channel + 1),
                };
                match number.parse::<f64>() {
                    Ok(value) if value.is_finite() => values.push(value),
                    Ok(_) => return Err(format!("{place}: \"{number}\" is not finite; every number has to be")),
                    Err(_) => {
                        let form = "steps are separated by spaces, the channels of a step by commas: 0.5,1.2 0.6,1.1";
                        return Err(format!("{place}: \"{number}\" is not a number; {form}"));
                    }
                }
            }
        }
        Ok(Self { n_channels: expected.unwrap_or(1), values })
    }

    /// The numbers of one step.
    pub fn n_channels(&self) -> usize {
        self.n_channels
    }

    /// The number of steps.
    pub fn n_steps(&self) -> usize {
        self.values.len() / self.n_channels
    }

    /// The numbers, step by step.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The channels of each step.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_channels)
    }
}

/// "1 channel", "2 channels".
fn channels(n: usize) -> String {
    format!("{n} channel{}", if n == 1 { "" } else { "s" })
}

fn are(n: usize) -> String {
    format!("{} {}", channels(n), if n == 1 { "is" } else { "are" })
}

impl fmt::Display for Series {
    /// As [`Series::parse`] reads it: every number in the fewest digits that give it back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            for (channel, value) in step.iter().enumerate() {
                if channel > 0 {
                    f.write_str(",")?;
                }
                match value.abs() {
                    size if size != 0.0 && !(1e-5..1e16).contains(&size) => write!(f, "{value:e}")?,
                    _ => write!(f, "{value}")?,
                }
            }
        }
        Ok(())
    }
}

/// A series and the numbers that a model shall answer, one step for each of the source's.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPair {
    /// What is read.
    pub source: Series,
    /// What shall be answered.
    pub target: Series,
}

impl SeriesPair {
    /// The series of a pair of lines; `n_channels` are those of source and target, where they are known.
    ///
    /// # Errors
    /// Names the side, the step and what is wrong.
    pub fn parse(pair: &Pair, n_channels: [Option<usize>; 2]) -> Result<Self, SeriesFault> {
        let source = Series::parse(&pair.source, n_channels[0]).map_err(SeriesFault::of_source)?;
        let target = Series::parse(&pair.target, n_channels[1]).map_err(SeriesFault::of_target)?;
        let (n_source, n_target) = (source.n_steps(), target.n_steps());
        if n_source != n_target {
            let rule = "a target has a step for each of the source";
            let message = format!("the source has {n_source} steps and the target {n_target}; {rule}");
            return Err(SeriesFault { is_target: true, message });
        }
        Ok(Self { source, target })
    }

    /// Refuses series whose scaled numbers are not finite.
    ///
    /// # Errors
    /// Names the side and the step.
    pub fn check(&self, source: &Scaling, target: &Scaling) -> Result<(), SeriesFault> {
        source.check(&self.source).map_err(SeriesFault::of_source)?;
        target.check(&self.target).map_err(SeriesFault::of_target)
    }

    /// The steps of source and target.
    pub fn lengths(&self) -> (usize, usize) {
        (self.source.n_steps(), self.target.n_steps())
    }
}

/// What is wrong with a pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesFault {
    /// Whether it is the target.
    pub is_target: bool,
    /// Which side, which step, and what.
    pub message: String,
}

impl SeriesFault {
    fn of_source(message: String) -> Self {
        Self { is_target: false, message: format!("source, {message}") }
    }

    fn of_target(message: String) -> Self {
        Self { is_target: true, message: format!("target, {message}") }
    }
}
