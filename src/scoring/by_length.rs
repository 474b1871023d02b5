//! Groups of sentences by the length of their sources: the view in which attention first showed what it is good for.

use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the length of a source is counted in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LengthUnit {
    /// Words: what stands between white space.
    #[default]
    Words,
    /// Letters: characters, spaces included; for sources that are read letter by letter.
    Letters,
}

impl LengthUnit {
    /// The plural, for headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Letters => "letters",
        }
    }

    /// The length of a source line.
    pub fn count(self, source: &str) -> usize {
        match self {
            Self::Words => source.split_whitespace().count(),
            Self::Letters => source.trim().chars().count(),
        }
    }
}

/// The limits between groups of sentences, by source length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthBuckets {
    upper_bounds: Vec<usize>,
    /// What lengths are counted in.
    pub unit: LengthUnit,
}

impl Default for LengthBuckets {
    /// 1 to 10, 11 to 20 and so on to 60, and all that are longer. The limits do not depend on the corpus, so that the
    /// results of several can be drawn over each other.
    fn default() -> Self {
        Self { upper_bounds: (1..=6).map(|tens| 10 * tens).collect(), unit: LengthUnit::default() }
    }
}

/// The sentences of a corpus whose sources have similar lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LengthBucket {
    /// The least length. Empty sources are in the first bucket all the same.
    pub from: usize,
    /// The greatest length, itself included; none for the last bucket.
    pub to: Option<usize>,
    /// The indices of the sentences in the corpus, from 0.
    pub indices: Vec<usize>,
}

impl LengthBuckets {
    /// Buckets that end at `upper_bounds`, each included, and one more for all that is longer.
    ///
    /// # Errors
    /// Where the bounds do not increase, or start at 0.
    pub fn new(upper_bounds: Vec<usize>) -> Result<Self> {
        if upper_bounds.first() == Some(&0) || !upper_bounds.is_sorted_by(|left, right| left < right) {
            return Err(Error::message(format!(
                "the limits between source lengths have to be above 0 and to increase, got {upper_bounds:?}"
            )));
        }
        Ok(Self { upper_bounds, unit: LengthUnit::default() })
    }

    /// The same limits, with lengths counted in `unit`.
    pub fn counted_in(self, unit: LengthUnit) -> Self {
        Self { unit, ..self }
    }

    /// The buckets of a corpus with these source lines, shortest first; those without a sentence are left out.
    pub fn group<S: AsRef<str>>(&self, sources: &[S]) -> Vec<LengthBucket> {
        let lower_bounds = std::iter::once(1).chain(self.upper_bounds.iter().map(|&bound| bound.saturating_add(1)));
        let upper_bounds = self.upper_bounds.iter().copied().map(Some).chain([None]);
        let mut buckets: Vec<LengthBucket> =
            lower_bounds.zip(upper_bounds).map(|(from, to)| LengthBucket { from, to, indices: Vec::new() }).collect();
        for (index, source) in sources.iter().enumerate() {
            let length = self.unit.count(source.as_ref());
            buckets[self.upper_bounds.partition_point(|&bound| bound < length)].indices.push(index);
        }
        buckets.retain(|bucket| !bucket.indices.is_empty());
        buckets
    }
}
