//! What the models of this crate learn from: pairs of text, plain text, text with hidden words, and series of numbers.

mod masked;
mod pairs;
mod series;
mod text;

pub(super) use masked::MaskedLessons;
pub use masked::{check_can_hide, sample_of_masked};
pub(super) use pairs::PairLessons;
pub(super) use series::SeriesLessons;
pub(super) use text::TextLessons;
pub use text::sample_of_text;

use crate::data::Tokenizers;
use crate::error::Result;
use crate::models::{LengthLimits, Model};
use crate::training::Lessons;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Lessons of a model that reads and writes sequences.
pub(super) trait SequenceLessons: Lessons<Model> {
    /// Refuses a model that cannot take the longest of what there is.
    fn check_lengths(&self, limits: LengthLimits) -> Result<()>;

    /// How much of the validation data the vocabularies do not hold; nothing where they hold all.
    fn unknown(&self) -> Option<String> {
        None
    }
}

/// Lessons with what belongs to them in a run folder.
pub(super) struct Prepared {
    pub(super) lessons: Arc<dyn SequenceLessons>,
    pub(super) tokenizers: Arc<Tokenizers>,
    /// The SHA-256 of the data.
    pub(super) sha256: BTreeMap<String, String>,
    /// What there is to learn from, in words.
    pub(super) said: String,
}
