//! What a model learns from, behind one trait: the update loop knows neither pairs of text nor tokenizers.

mod masked;
mod pairs;
mod series;
mod text;

pub(super) use masked::MaskedLessons;
pub use masked::sample_of_masked;
pub(super) use pairs::PairLessons;
pub(super) use series::SeriesLessons;
pub(super) use text::TextLessons;
pub use text::sample_of_text;

use super::metrics::{Scalar, Shown, Stats};
use crate::data::Tokenizers;
use crate::data::batch::Batch;
use crate::error::Result;
use crate::models::{LengthLimits, Model};
use burn::tensor::Device;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a model learns from, and what it is watched with.
pub(super) trait Lessons: Send {
    /// The micro-batches of an epoch, in training order, as numbers of what they hold.
    fn plan(&self, epoch: u64) -> Vec<Vec<usize>>;

    /// One of them.
    fn batch(&self, epoch: u64, numbers: &[usize], device: &Device) -> Batch;

    /// The text of one of them, for whoever looks for a fault in it.
    fn text(&self, epoch: u64, numbers: &[usize]) -> String;

    /// Refuses a model that cannot take the longest of what there is.
    fn check_lengths(&self, limits: LengthLimits) -> Result<()>;

    /// How much of the validation data the vocabularies do not hold; nothing where they hold all.
    fn unknown(&self) -> Option<String>;

    /// How good a model is on what it has not learnt from.
    fn measure(&self, model: &Model) -> Result<Measured>;

    /// What is shown of that beside the loss and what goes with it.
    fn metric(&self) -> Option<Scalar>;

    /// What is shown of the loss.
    fn shown(&self) -> Shown {
        Shown::of_words()
    }
}

/// What a validation comes to.
pub(super) struct Measured {
    /// The numbers.
    pub(super) stats: Stats,
    /// What the model wrote, for people.
    pub(super) sample: String,
}

/// Lessons with what belongs to them in a run folder.
pub(super) struct Prepared {
    pub(super) lessons: Box<dyn Lessons>,
    pub(super) tokenizers: Arc<Tokenizers>,
    /// The SHA-256 of the data.
    pub(super) sha256: BTreeMap<String, String>,
    /// What there is to learn from, in words.
    pub(super) said: String,
}
