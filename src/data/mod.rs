//! Everything between text and numbers: reading corpora, generating tasks, tokenizing, batching, fetching public data.
//!
//! This part knows no model. A corpus or a generated task gives [`Pair`]s, [`Tokenizers`] turn them into token ids, and
//! [`batch`] pads ids into what a model reads.

pub mod batch;
mod config;
pub mod corpus;
#[cfg(feature = "fetch")]
pub mod fetch;
pub mod growing_text;
pub mod masking;
pub mod random;
pub mod series;
pub mod shards;
pub mod tasks;
pub mod text;
pub mod tokenizer;

pub use config::DataConfig;
pub use corpus::{
    LengthFilter, Lines, SplitFiles, add_references, for_each_line, read_lines, read_pairs, sha256_of_file,
    sha256_of_file_with,
};
pub use growing_text::GrowingText;
pub use random::{Rng, stream};
pub use series::{Series, SeriesPair};
pub use tasks::TaskConfig;
pub use text::{TextConfig, TokenStream};
pub use tokenizer::{BOS, EOS, MASK, PAD, Scaling, Tokenizer, TokenizerConfig, Tokenizers, TokenizersConfig, UNK};

/// One example: a source text and the target text that a model should produce for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// What the model reads.
    pub source: String,
    /// What the model should write.
    pub target: String,
}

impl Pair {
    /// A pair of the two texts as they are.
    pub fn new(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self { source: source.into(), target: target.into() }
    }

    /// Whether one of its sides has no word.
    pub fn is_blank(&self) -> bool {
        self.source.trim().is_empty() || self.target.trim().is_empty()
    }
}

/// A source text and every target text that is right for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// What the model reads.
    pub source: String,
    /// What it may write; at least one.
    pub references: Vec<String>,
}

impl From<Pair> for Sentence {
    fn from(pair: Pair) -> Self {
        Self { source: pair.source, references: vec![pair.target] }
    }
}

impl Sentence {
    /// The sentence with the references that have words; nothing if there are none, or the source has no word.
    pub fn without_blanks(mut self) -> Option<Self> {
        self.references.retain(|reference| !reference.trim().is_empty());
        (!self.source.trim().is_empty() && !self.references.is_empty()).then_some(self)
    }

    /// Makes one sentence of all that have the same source, in the order in which the sources first appear.
    pub fn merge_by_source(sentences: Vec<Self>) -> Vec<Self> {
        let mut places = std::collections::HashMap::new();
        let mut merged: Vec<Self> = Vec::new();
        for sentence in sentences {
            match places.get(&sentence.source) {
                None => {
                    places.insert(sentence.source.clone(), merged.len());
                    merged.push(sentence);
                }
                Some(&place) => {
                    let known: &mut Vec<String> = &mut merged[place].references;
                    let new: Vec<String> =
                        sentence.references.into_iter().filter(|reference| !known.contains(reference)).collect();
                    known.extend(new);
                }
            }
        }
        merged
    }
}

/// Which part of the data a pair belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// What the model learns from.
    Train,
    /// What training is watched with.
    Valid,
    /// What is looked at once, at the end.
    Test,
}

impl Split {
    /// All splits, in the order in which they are written.
    pub const ALL: [Self; 3] = [Self::Train, Self::Valid, Self::Test];

    /// The name used in files and on the command line: `train`, `valid` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }

    /// The split that a source text belongs to when `per_mille` thousandths of all texts go to each of valid and test.
    ///
    /// It depends on the text alone (a hash of its bytes), never on a seed, an order or other texts, so that the same
    /// source can never be trained on in one run and tested on in another.
    pub fn of_source(source: &str, per_mille: u64) -> Self {
        Self::of_bucket(random::hash(source.as_bytes()) % 1000, per_mille)
    }

    /// As [`Split::of_source`], which it is for seed 0. Under another seed the splits of a text are unrelated: training files that were made by
    /// the rule of seed 0 have nothing left that it would hold out.
    pub fn held_out(source: &str, per_mille: u64, seed: u64) -> Self {
        match seed {
            0 => Self::of_source(source, per_mille),
            _ => Self::of_bucket(random::stream(seed, source, 0).next_u64() % 1000, per_mille),
        }
    }

    fn of_bucket(bucket: u64, per_mille: u64) -> Self {
        if bucket < per_mille {
            Self::Valid
        } else if bucket < 2 * per_mille {
            Self::Test
        } else {
            Self::Train
        }
    }
}

impl std::fmt::Display for Split {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
