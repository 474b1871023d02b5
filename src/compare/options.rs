//! What a comparison is asked for.

use super::sweep::Sweep;
use crate::backend::Backend;
use crate::trust::Check;
use std::path::PathBuf;
use std::str::FromStr;

/// What `compare` is asked for. With neither configs nor runs, the built-in comparison is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Configs to train.
    pub configs: Vec<PathBuf>,
    /// Keys of all configs that are set, as `key.path=value`.
    pub set: Vec<String>,
    /// Keys that take several values, each in a contestant of its own.
    pub sweeps: Vec<Sweep>,
    /// Finished runs.
    pub runs: Vec<PathBuf>,
    /// The folder of the comparison.
    pub out: PathBuf,
    /// Where the tensors live; without it, as the first config says.
    pub backend: Option<Backend>,
    /// Whether the backend's driver is checked before it is trusted.
    pub check: Check,
    /// How many seeds each config is trained with.
    pub seeds: usize,
    /// What every model may spend; without it, as the configs say.
    pub budget: Option<Budget>,
    /// Trials of the search for a learning rate and dropout; 0 is no search.
    pub trials: usize,
    /// Whether widths are changed until every model has as many parameters as the first.
    pub match_parameters: bool,
    /// Lengths of generated sources, in the unit of the task; without it, the longest of training and 1.5, 2 and 4 times that.
    pub lengths: Option<Vec<usize>>,
    /// Sentences of each of these lengths; without it, [`PER_LENGTH`](super::test_set::PER_LENGTH).
    pub per_length: Option<usize>,
    /// Lengths at which time and memory are measured, in tokens.
    pub cost_lengths: Vec<usize>,
    /// Seconds after which the measurement of one length is given up.
    pub cell_seconds: f64,
    /// The beam size of all models; without it, as the first config says.
    pub beam: Option<usize>,
    /// The command line, to be written down.
    pub command: String,
}

/// What every model may spend on training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So many updates.
    Updates(u64),
    /// So many minutes.
    Minutes(f64),
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no budget; write updates=2000 or minutes=5");
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        match key {
            "updates" => match value.parse() {
                Ok(n) if n > 0 => Ok(Self::Updates(n)),
                _ => Err(wrong()),
            },
            "minutes" => match value.parse::<f64>() {
                Ok(minutes) if minutes > 0.0 && minutes.is_finite() => Ok(Self::Minutes(minutes)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }
}
