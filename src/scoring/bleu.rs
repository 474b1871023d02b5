//! BLEU as sacreBLEU computes it, over the corpus or for one sentence, from sufficient statistics that add up.

use std::fmt::{self, Display, Formatter};
use std::ops::AddAssign;
use std::str::FromStr;

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ngrams::{Interner, Ngrams};
use super::tokenize::words;
use super::{BleuTokenizer, Summable, VERSION, check_corpus, reference_lines};
use crate::error::{Error, Result};

/// The longest n-grams that BLEU counts, in tokens.
pub const BLEU_ORDER: usize = 4;

/// What stands in for the precision of an n-gram order without a single match.
///
/// # Reference
/// Chen and Cherry, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", 2014,
/// <https://aclanthology.org/W14-3346>; as in sacreBLEU.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Smoothing {
    /// Half a match for the first order without matches, a quarter for the next, and so on: NIST's method.
    #[default]
    Exp,
    /// This many matches; sacreBLEU takes 0.1.
    Floor(f64),
    /// This many matches more, and n-grams more, for all orders above the first; sacreBLEU takes 1.
    AddK(f64),
    /// None: a single order without matches makes the score 0.
    None,
}

impl Smoothing {
    /// The name and value in the form of sacreBLEU's signatures, which show two decimals: `floor[0.10]`.
    fn signature(self) -> String {
        match self {
            Self::Floor(value) => format!("floor[{value:.2}]"),
            Self::AddK(value) => format!("add-k[{value:.2}]"),
            Self::Exp | Self::None => self.to_string(),
        }
    }
}

impl Display for Smoothing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exp => formatter.write_str("exp"),
            Self::Floor(value) => write!(formatter, "floor[{value}]"),
            Self::AddK(value) => write!(formatter, "add-k[{value}]"),
            Self::None => formatter.write_str("none"),
        }
    }
}

impl FromStr for Smoothing {
    type Err = Error;

    /// Reads `exp`, `none`, `floor` and `add-k`, the last two also with a value: `floor[0.25]`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, value) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let value_or = |default: f64| match value.map_or(Ok(default), f64::from_str) {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            _ => Err(Error::message(format!("the value of the BLEU smoothing `{text}` is not a number of at least 0"))),
        };
        match (name, value) {
            ("exp", None) => Ok(Self::Exp),
            ("none", None) => Ok(Self::None),
            ("floor", _) => value_or(0.1).map(Self::Floor),
            ("add-k", _) => value_or(1.0).map(Self::AddK),
            _ => Err(Error::message(format!(
                "no BLEU smoothing is called `{text}`; there are exp, floor, floor[0.1], add-k, add-k[1] and none"
            ))),
        }
    }
}

/// What BLEU needs to know of a sentence, or of many after adding them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BleuStatistics {
    /// The length of the hypothesis, in tokens.
    pub sys_len: u64,
    /// The length of the reference, in tokens: that of the closest one where there are several.
    pub ref_len: u64,
    /// The n-grams of the hypothesis that a reference has too, for the orders 1 to 4.
    pub counts: [u64; BLEU_ORDER],
    /// The n-grams of the hypothesis, for the orders 1 to 4.
    pub totals: [u64; BLEU_ORDER],
}

impl AddAssign<&BleuStatistics> for BleuStatistics {
    fn add_assign(&mut self, other: &Self) {
        self.sys_len += other.sys_len;
        self.ref_len += other.ref_len;
        for order in 0..BLEU_ORDER {
            self.counts[order] += other.counts[order];
            self.totals[order] += other.totals[order];
        }
    }
}

/// A BLEU score and what it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BleuScore {
    /// BLEU, from 0 to 100.
    pub score: f64,
    /// The smoothed precisions of the orders 1 to 4, from 0 to 100; all 0 where nothing matches.
    pub precisions: [f64; BLEU_ORDER],
    /// The brevity penalty, from 0 (nothing was written) to 1 (not shorter than the references).
    pub bp: f64,
    /// The length of the hypotheses, in tokens.
    pub sys_len: u64,
    /// The length of the references, in tokens.
    pub ref_len: u64,
    /// Matching n-grams of the orders 1 to 4, before smoothing.
    pub counts: [u64; BLEU_ORDER],
    /// N-grams of the orders 1 to 4, before smoothing.
    pub totals: [u64; BLEU_ORDER],
}

/// BLEU with its choices: `bp * exp(mean over n of ln precision_n)`, with `bp = exp(1 - ref_len / sys_len)` for
/// hypotheses shorter than their references and 1 for others.
///
/// # Reference
/// Papineni, Roukos, Ward and Zhu, "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002,
/// <https://aclanthology.org/P02-1040>. **Differs from the paper:** several references give the length of the closest,
/// the shorter of two that are equally close; smoothing. Both as in sacreBLEU 2.6.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bleu {
    /// How lines are split into tokens.
    pub tokenizer: BleuTokenizer,
    /// What is done about orders without matches.
    pub smoothing: Smoothing,
    /// Whether all text is lower-cased first.
    pub lowercase: bool,
    /// Whether orders longer than the hypotheses are left out of the mean instead of making the score 0.
    pub effective_order: bool,
}

impl Bleu {
    /// The BLEU of a corpus. `references` has one or more lists of lines, each as long as `hypotheses`.
    ///
    /// # Errors
    /// Where the lists differ in length, or have no lines.
    pub fn corpus<H, R>(&self, hypotheses: &[H], references: &[&[R]]) -> Result<BleuScore>
    where
        H: AsRef<str> + Sync,
        R: AsRef<str> + Sync,
    {
        Ok(self.score(&BleuStatistics::total(&self.statistics(hypotheses, references)?)))
    }

    /// The BLEU of one sentence with its references, always with `effective_order`, as sacreBLEU's `sentence_bleu`.
    pub fn sentence<R: AsRef<str>>(&self, hypothesis: &str, references: &[R]) -> BleuScore {
        Self { effective_order: true, ..*self }.score(&self.sentence_statistics(hypothesis, references))
    }

    /// The statistics of every sentence of a corpus, in its order; computed in parallel.
    ///
    /// # Errors
    /// Where the lists differ in length, or have no lines.
    pub fn statistics<H, R>(&self, hypotheses: &[H], references: &[&[R]]) -> Result<Vec<BleuStatistics>>
    where
        H: AsRef<str> + Sync,
        R: AsRef<str> + Sync,
    {
        check_corpus(hypotheses, references)?;
        let sentence = |(index, hypothesis): (usize, &H)| {
            self.sentence_statistics(hypothesis.as_ref(), &reference_lines(references, index))
        };
        Ok(hypotheses.par_iter().enumerate().map(sentence).collect())
    }

    /// The statistics of one sentence.
    pub fn sentence_statistics<R: AsRef<str>>(&self, hypothesis: &str, references: &[R]) -> BleuStatistics {
        let hypothesis = self.prepare(hypothesis);
        let references: Vec<String> = references.iter().map(|reference| self.prepare(reference.as_ref())).collect();
        let mut interner = Interner::default();
        let mut ngrams = |line| Ngrams::<BLEU_ORDER>::new(&interner.intern(words(line)));
        let hypothesis = ngrams(&hypothesis);
        let references: Vec<_> = references.iter().map(|reference| ngrams(reference)).collect();
        let sys_len = hypothesis.count(1);
        let ref_lens = references.iter().map(|reference| reference.count(1));
        BleuStatistics {
            sys_len,
            ref_len: ref_lens.min_by_key(|&length| (length.abs_diff(sys_len), length)).unwrap_or(0),
            counts: std::array::from_fn(|index| hypothesis.matches(&references, index + 1)),
            totals: std::array::from_fn(|index| hypothesis.count(index + 1)),
        }
    }

    /// The score of statistics, of a sentence or added up.
    pub fn score(&self, statistics: &BleuStatistics) -> BleuScore {
        let BleuStatistics { sys_len, ref_len, counts, totals } = *statistics;
        let bp = match (sys_len, ref_len) {
            _ if sys_len >= ref_len => 1.0,
            (0, _) => 0.0,
            _ => (1.0 - ref_len as f64 / sys_len as f64).exp(),
        };
        let (precisions, n_orders) = self.precisions(&counts, &totals);
        // The logarithm of a precision of 0 is minus infinity, and the score then 0.
        let log_precision =
            precisions[..n_orders].iter().map(|precision| precision.ln()).sum::<f64>() / n_orders as f64;
        BleuScore { score: bp * log_precision.exp(), precisions, bp, sys_len, ref_len, counts, totals }
    }

    /// The smoothed precisions in percent, and how many of them the mean takes in.
    fn precisions(&self, counts: &[u64; BLEU_ORDER], totals: &[u64; BLEU_ORDER]) -> ([f64; BLEU_ORDER], usize) {
        let mut precisions = [0.0; BLEU_ORDER];
        let mut n_orders = BLEU_ORDER;
        // Without any match, smoothing would still give a score above 0.
        if counts.iter().all(|&count| count == 0) {
            return (precisions, n_orders);
        }
        let mut stand_in = 1.0;
        for order in 0..BLEU_ORDER {
            let added = if let (Smoothing::AddK(k), 1..) = (self.smoothing, order) { k } else { 0.0 };
            let count = counts[order] as f64 + added;
            let total = totals[order] as f64 + added;
            if total == 0.0 {
                break;
            }
            if self.effective_order {
                n_orders = order + 1;
            }
            let count = match self.smoothing {
                _ if count > 0.0 => count,
                Smoothing::Exp => {
                    stand_in /= 2.0;
                    stand_in
                }
                Smoothing::Floor(value) => value,
                Smoothing::AddK(_) | Smoothing::None => 0.0,
            };
            precisions[order] = 100.0 * count / total;
        }
        (precisions, n_orders)
    }

    /// Every choice that the score depends on, in the form of sacreBLEU's signatures. Without a number of references it
    /// varies from sentence to sentence.
    pub fn signature(&self, n_references: impl Into<Option<usize>>) -> String {
        let n_references = n_references.into().map_or("var".to_string(), |n| n.to_string());
        format!(
            "nrefs:{n_references}|case:{}|eff:{}|tok:{}|smooth:{}|version:{VERSION}",
            if self.lowercase { "lc" } else { "mixed" },
            if self.effective_order { "yes" } else { "no" },
            self.tokenizer,
            self.smoothing.signature(),
        )
    }

    /// `line` lower-cased, where that is wanted, and tokenized.
    fn prepare(&self, line: &str) -> String {
        if self.lowercase { self.tokenizer.tokenize(&line.to_lowercase()) } else { self.tokenizer.tokenize(line) }
    }
}
