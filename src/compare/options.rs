//! What a comparison is asked for.

use super::sweep::Sweep;
use crate::backend::Backend;
use crate::training::{Observer, Silent};
use crate::trust::Check;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// What `compare` is asked for. With neither configs nor runs, the built-in comparison is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Configs to train.
    pub configs: Vec<PathBuf>,
    /// Of these, by name, those that are made, if not all. The others count for what all have in common: their width, and the longest
    /// source of training.
    pub only: Vec<String>,
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
    /// Which device of that backend; without it, the best.
    pub device: Option<usize>,
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
    /// How many processes share the work, this one among them: what the others do is reckoned with in the time that is left.
    pub processes: usize,
    /// The command line, to be written down.
    pub command: String,
    /// Who hears of it besides, and may stop it.
    pub observer: Arc<dyn Observer>,
}

/// The shortest sentence whose time and memory are measured, in tokens.
pub const SHORTEST_COST: usize = 16;
/// The longest, unless the user says otherwise.
pub const LONGEST_COST: usize = 4096;
/// Seconds after which the measurement of one length is given up, unless the user says otherwise.
pub const CELL_SECONDS: f64 = 20.0;

impl Options {
    /// Of nothing yet, in the folder `out`: one seed, as the configs say, with times and memory at all lengths.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self {
            configs: Vec::new(),
            only: Vec::new(),
            set: Vec::new(),
            sweeps: Vec::new(),
            runs: Vec::new(),
            out: out.into(),
            backend: None,
            device: None,
            check: Check::default(),
            seeds: 1,
            budget: None,
            trials: 0,
            match_parameters: false,
            lengths: None,
            per_length: None,
            cost_lengths: Self::cost_lengths(LONGEST_COST),
            cell_seconds: CELL_SECONDS,
            beam: None,
            processes: 1,
            command: String::new(),
            observer: Arc::new(Silent),
        }
    }

    /// The lengths up to `longest` at which time and memory are measured: powers of two.
    pub fn cost_lengths(longest: usize) -> Vec<usize> {
        let lengths = std::iter::successors(Some(SHORTEST_COST), |length| length.checked_mul(2));
        lengths.take_while(|length| *length <= longest).collect()
    }
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
