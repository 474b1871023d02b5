//! Scores of finished output against references: BLEU, chrF, accuracies, error rates, and what is needed to trust them.
//!
//! Everything here works on lines of text and knows nothing of models. Each score is computed from statistics per
//! sentence that add up, so that scores of a corpus, of the sentences of similar length ([`LengthBuckets`]) and of a
//! thousand resamples ([`Bootstrap`]) cost one pass over the text. BLEU and chrF equal sacreBLEU's to the last digits.
//!
//! BLEU and chrF are percentages, from 0 to 100; accuracies and error rates are fractions of 1.

mod accuracy;
mod bleu;
mod by_length;
mod chrf;
mod edit_distance;
mod errors;
mod inference;
mod masked;
mod metric;
mod ngrams;
mod ratio;
mod significance;
mod spans;
mod text;
mod tokenize;

use std::ops::AddAssign;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use accuracy::{sequence_matches, token_matches};
pub use bleu::{BLEU_ORDER, Bleu, BleuScore, BleuStatistics, Smoothing};
pub use by_length::{LengthBucket, LengthBuckets, LengthUnit};
pub use chrf::{CHRF_CHAR_ORDER, CHRF_WORD_ORDER, Chrf, ChrfStatistics, ChrfVariant};
pub use edit_distance::{character_errors, edit_distance, error_rate, phoneme_errors, sentence_errors, word_errors};
pub use errors::{BaselineScores, ErrorScores, ErrorSums, PlaceScores, SeriesScores, SeriesStatistics};
pub use inference::{
    CONFIDENCE, Contrast, LEAST_SENTENCES, LEVEL, Part, Verdict, contrast, contrast_with_level, holm, interval,
    interval_of_fraction, variance,
};
pub use masked::MaskedScores;
pub use metric::Metric;
pub use ratio::{Ratio, Summable};
pub use significance::{Bootstrap, Estimate};
pub use spans::span_matches;
pub use text::{PositionScores, TextScores, TextStatistics};
pub use tokenize::BleuTokenizer;

use crate::error::{Error, Result};

/// The program named at the end of signatures.
const VERSION: &str = concat!("lookback-", env!("CARGO_PKG_VERSION"));

/// The scores of a corpus, in the form in which `evaluate --json` prints them: one object, that of the metrics
/// included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scores {
    /// The scores of all sentences.
    #[serde(flatten)]
    pub metrics: Metrics,
    /// `exp` of the loss in nats per target token, which a model gives and not its output.
    pub perplexity: Option<f64>,
    /// The number of sentences.
    pub sentences: usize,
    /// Hypotheses that were cut at the length cap, where a model wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<usize>,
    /// The signature of the BLEU score.
    pub signature: String,
    /// What source lengths are counted in.
    #[serde(default)]
    pub length_unit: LengthUnit,
    /// The scores of the sentences with similar source lengths, shortest first; empty where there are no sources.
    pub by_length: Vec<BucketScores>,
}

/// The scores of the sentences with similar source lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BucketScores {
    /// The least source length, in [`Scores::length_unit`].
    pub from: usize,
    /// The greatest source length, itself included; none for the last bucket.
    pub to: Option<usize>,
    /// The number of sentences.
    pub sentences: usize,
    /// The scores of these sentences.
    #[serde(flatten)]
    pub metrics: Metrics,
}

/// The scores that depend on nothing but hypotheses and references.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Corpus BLEU, from 0 to 100.
    pub bleu: f64,
    /// Corpus chrF, from 0 to 100.
    pub chrf: f64,
    /// The fraction of tokens that equal the reference's token at the same position.
    pub token_accuracy: f64,
    /// The fraction of lines that equal their reference.
    pub sequence_accuracy: f64,
    /// The fraction of lines that differ from their reference.
    #[serde(default)]
    pub sequence_error: f64,
    /// The error rate of tokens between spaces, as a fraction of the tokens of the references: the word error rate where tokens
    /// are words, the phoneme error rate where they are phones.
    pub wer: f64,
    /// The character error rate, as a fraction of the characters of the references.
    pub cer: f64,
    /// The F1 of named spans in tags; where there are none, absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_f1: Option<f64>,
}

/// What [`Scores`] are computed from: the statistics of one sentence, or of many after adding them up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SentenceStatistics {
    /// For BLEU.
    pub bleu: BleuStatistics,
    /// For chrF.
    pub chrf: ChrfStatistics,
    /// For token accuracy.
    pub tokens: Ratio,
    /// For sequence accuracy.
    pub sequences: Ratio,
    /// For the word error rate.
    pub word_errors: Ratio,
    /// For the character error rate.
    pub character_errors: Ratio,
    /// For the F1 of spans.
    pub spans: Ratio,
}

impl AddAssign<&SentenceStatistics> for SentenceStatistics {
    fn add_assign(&mut self, other: &Self) {
        self.bleu += &other.bleu;
        self.chrf += &other.chrf;
        self.tokens += &other.tokens;
        self.sequences += &other.sequences;
        self.word_errors += &other.word_errors;
        self.character_errors += &other.character_errors;
        self.spans += &other.spans;
    }
}

/// How a corpus is scored.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scorer {
    /// The choices of BLEU.
    pub bleu: Bleu,
    /// The choices of chrF.
    pub chrf: Chrf,
    /// The limits between source lengths.
    pub buckets: LengthBuckets,
}

impl Scorer {
    /// All scores of `hypotheses` against `references`, line by line, without the perplexity. `sources` is for the
    /// scores by source length.
    ///
    /// # Errors
    /// Where the numbers of lines differ, or there are none.
    pub fn score<S: AsRef<str> + Sync>(
        &self,
        hypotheses: &[S],
        references: &[S],
        sources: Option<&[S]>,
    ) -> Result<Scores> {
        let references: Vec<[&str; 1]> = references.iter().map(|reference| [reference.as_ref()]).collect();
        self.score_any(hypotheses, &references, sources)
    }

    /// [`Self::score`] where each sentence has one or more references, any of which is right. BLEU and chrF treat several
    /// references as sacreBLEU does; the other scores take the reference that the hypothesis is closest to.
    ///
    /// # Errors
    /// As [`Self::score`].
    pub fn score_any<S, R, L>(&self, hypotheses: &[S], references: &[L], sources: Option<&[S]>) -> Result<Scores>
    where
        S: AsRef<str> + Sync,
        R: AsRef<str>,
        L: AsRef<[R]> + Sync,
    {
        let statistics = self.statistics_any(hypotheses, references)?;
        if let Some(sources) = sources {
            check_lines(hypotheses.len(), "source", sources.len())?;
        }
        let buckets = sources.map(|sources| self.buckets.group(sources)).unwrap_or_default();
        let bucket_scores = |bucket: LengthBucket| BucketScores {
            from: bucket.from,
            to: bucket.to,
            sentences: bucket.indices.len(),
            metrics: self.metrics(bucket.indices.iter().map(|&index| &statistics[index])),
        };
        let fewest = references.iter().map(|list| list.as_ref().len()).min().unwrap_or(1);
        let most = references.iter().map(|list| list.as_ref().len()).max().unwrap_or(1);
        Ok(Scores {
            metrics: self.metrics(&statistics),
            perplexity: None,
            sentences: statistics.len(),
            cut: None,
            signature: self.bleu.signature((fewest == most).then_some(fewest)),
            length_unit: self.buckets.unit,
            by_length: buckets.into_iter().map(bucket_scores).collect(),
        })
    }

    /// The statistics of every sentence, in the order of the corpus; computed in parallel.
    ///
    /// # Errors
    /// Where the numbers of lines differ, or there are none.
    pub fn statistics<S>(&self, hypotheses: &[S], references: &[S]) -> Result<Vec<SentenceStatistics>>
    where
        S: AsRef<str> + Sync,
    {
        let references: Vec<[&str; 1]> = references.iter().map(|reference| [reference.as_ref()]).collect();
        self.statistics_any(hypotheses, &references)
    }

    /// [`Self::statistics`] where each sentence has one or more references.
    ///
    /// # Errors
    /// As [`Self::statistics`]; also where a sentence has no reference.
    pub fn statistics_any<S, R, L>(&self, hypotheses: &[S], references: &[L]) -> Result<Vec<SentenceStatistics>>
    where
        S: AsRef<str> + Sync,
        R: AsRef<str>,
        L: AsRef<[R]> + Sync,
    {
        check_lines(hypotheses.len(), "reference", references.len())?;
        if hypotheses.is_empty() {
            return Err(Error::message("there are no sentences to score"));
        }
        if let Some(index) = references.iter().position(|list| list.as_ref().is_empty()) {
            return Err(Error::message(format!("sentence {} has no reference", index + 1)));
        }
        let sentence = |(hypothesis, references): (&S, &L)| {
            let hypothesis = hypothesis.as_ref();
            let references: Vec<&str> = references.as_ref().iter().map(AsRef::as_ref).collect();
            let best = |of: fn(&str, &str) -> Ratio| references.iter().map(move |reference| of(hypothesis, reference));
            let most = |of| best(of).reduce(|a, b| if b.value_or(1.0) > a.value_or(1.0) { b } else { a });
            let fewest = |of| best(of).reduce(|a, b| if b.numerator < a.numerator { b } else { a });
            SentenceStatistics {
                bleu: self.bleu.sentence_statistics(hypothesis, &references),
                chrf: self.chrf.sentence_statistics(hypothesis, &references),
                tokens: most(token_matches).unwrap_or_default(),
                sequences: most(sequence_matches).unwrap_or_default(),
                word_errors: fewest(word_errors).unwrap_or_default(),
                character_errors: fewest(character_errors).unwrap_or_default(),
                spans: most(span_matches).unwrap_or_default(),
            }
        };
        Ok(hypotheses.par_iter().zip(references).map(sentence).collect())
    }

    /// The scores of some sentences.
    fn metrics<'a>(&self, statistics: impl IntoIterator<Item = &'a SentenceStatistics>) -> Metrics {
        let total = SentenceStatistics::total(statistics);
        Metrics {
            bleu: self.bleu.score(&total.bleu).score,
            chrf: total.chrf.score(),
            // Lines that are all empty, and rightly so, have no wrong token.
            token_accuracy: total.tokens.value_or(1.0),
            sequence_accuracy: total.sequences.value_or(1.0),
            sequence_error: 1.0 - total.sequences.value_or(1.0),
            wer: error_rate(total.word_errors),
            cer: error_rate(total.character_errors),
            span_f1: (total.spans.denominator > 0.0).then(|| total.spans.value_or(0.0)),
        }
    }
}

/// Fails for hypotheses that cannot be scored against `references`.
fn check_corpus<H, R>(hypotheses: &[H], references: &[&[R]]) -> Result<()> {
    if references.is_empty() {
        return Err(Error::message("there are no references to score against"));
    }
    for lines in references {
        check_lines(hypotheses.len(), "reference", lines.len())?;
    }
    if hypotheses.is_empty() {
        return Err(Error::message("there are no sentences to score"));
    }
    Ok(())
}

/// Fails where a file does not have a line for each hypothesis.
fn check_lines(n_hypotheses: usize, what: &str, n_lines: usize) -> Result<()> {
    if n_lines == n_hypotheses {
        return Ok(());
    }
    Err(Error::message(format!(
        "there are {n_hypotheses} hypothesis lines but {n_lines} {what} lines; each line needs its counterpart"
    )))
}

/// The references of sentence `index`.
fn reference_lines<'a, R: AsRef<str>>(references: &[&'a [R]], index: usize) -> Vec<&'a str> {
    references.iter().map(|lines| lines[index].as_ref()).collect()
}
