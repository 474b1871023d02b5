//! What a training is made of, and what it leads to.

use super::checkpoint::TrainingState;
use super::config::TrainingConfig;
use super::folder::RunFolder;
use super::lessons::{Lessons, Trainable};
use super::observer::Observer;
use crate::ranks::Ranks;
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stop {
    /// All updates were made.
    Updates,
    /// The time was up.
    Minutes,
    /// Validation had not become better for as long as `patience` allows.
    Patience,
    /// A signal or the dashboard asked for it.
    Interrupted,
}

/// What training leads to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub stop: Stop,
    /// Where it stands.
    pub state: TrainingState,
    /// Seconds that this process spent in updates, validations excluded.
    pub update_seconds: f64,
    /// Target tokens that this process learnt from.
    pub tokens: u64,
    /// Sentences of the validation sample that the last validation cut at the length cap.
    pub cut: usize,
}

impl Outcome {
    /// Whether everything had been trained before.
    pub fn is_of_before(&self) -> bool {
        self.tokens == 0 && self.stop != Stop::Interrupted
    }
}

/// What a training is made of.
pub struct Setup<M: Trainable> {
    /// How it learns.
    pub training: TrainingConfig,
    /// Seed of dropout.
    pub seed: u64,
    /// The width of the model, which the schedule of the Transformer's paper divides by.
    pub width: usize,
    /// What learns.
    pub model: M,
    /// Where it is.
    pub device: Device,
    /// What it learns from.
    pub lessons: Arc<dyn Lessons<M>>,
    /// What is written, and gone on from if there are checkpoints.
    pub folder: RunFolder,
    /// The end of the learning rate's schedule for a run that has none written down.
    pub horizon: Option<u64>,
    /// The observer.
    pub observer: Arc<dyn Observer>,
    /// Who trains besides: [`Alone`](crate::ranks::Alone), unless parts of updates are shared out. Rank 0 alone writes into the
    /// folder; the others read checkpoints there.
    pub ranks: Arc<dyn Ranks>,
}
