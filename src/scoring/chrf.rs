//! chrF and chrF++ as sacreBLEU computes them, from sufficient statistics that add up.

use std::ops::AddAssign;

use rayon::prelude::*;

use super::ngrams::{Interner, Ngrams};
use super::tokenize::{is_space, words};
use super::{Summable, VERSION, check_corpus, reference_lines};
use crate::error::Result;

/// The longest n-grams that chrF counts, in characters.
pub const CHRF_CHAR_ORDER: usize = 6;
/// The longest n-grams that chrF++ counts besides, in words.
pub const CHRF_WORD_ORDER: usize = 2;
/// How many times as much as precision recall weighs.
const BETA: f64 = 2.0;
const N_ORDERS: usize = CHRF_CHAR_ORDER + CHRF_WORD_ORDER;

/// Which n-grams are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChrfVariant {
    /// chrF: characters, up to six.
    #[default]
    Chrf,
    /// chrF++: words, up to two, besides the characters.
    ChrfPlusPlus,
}

/// The n-gram counts of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct OrderCounts {
    hypothesis: u64,
    reference: u64,
    matches: u64,
}

/// What chrF needs to know of a sentence, or of many after adding them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChrfStatistics {
    /// First the character orders, then the word orders, which stay zero for plain chrF.
    orders: [OrderCounts; N_ORDERS],
}

impl AddAssign<&ChrfStatistics> for ChrfStatistics {
    fn add_assign(&mut self, other: &Self) {
        for (order, added) in self.orders.iter_mut().zip(&other.orders) {
            order.hypothesis += added.hypothesis;
            order.reference += added.reference;
            order.matches += added.matches;
        }
    }
}

impl ChrfStatistics {
    /// `(1 + beta^2) * P * R / (beta^2 * P + R)` in percent, with the precision P and recall R averaged over the orders
    /// for which both sides have n-grams.
    pub fn score(&self) -> f64 {
        let present = self.orders.iter().filter(|order| order.hypothesis > 0 && order.reference > 0);
        let (mut precision, mut recall, mut n_orders) = (0.0, 0.0, 0.0);
        for order in present {
            precision += order.matches as f64 / order.hypothesis as f64;
            recall += order.matches as f64 / order.reference as f64;
            n_orders += 1.0;
        }
        if precision + recall == 0.0 {
            return 0.0;
        }
        let (precision, recall) = (precision / n_orders, recall / n_orders);
        let weight = BETA * BETA;
        100.0 * (1.0 + weight) * precision * recall / (weight * precision + recall)
    }
}

/// chrF or chrF++ with its choices. Scores are from 0 to 100.
///
/// # Reference
/// Popović, "chrF: character n-gram F-score for automatic MT evaluation", 2015, <https://aclanthology.org/W15-3049>,
/// and "chrF++: words helping character n-grams", 2017, <https://aclanthology.org/W17-4770>. **Differs from the
/// papers:** as sacreBLEU 2.6 by default, orders without n-grams on either side are left out of the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Chrf {
    /// Which n-grams are counted.
    pub variant: ChrfVariant,
    /// Whether all text is lower-cased first.
    pub lowercase: bool,
}

/// One line as chrF sees it.
struct Line {
    characters: Ngrams<CHRF_CHAR_ORDER>,
    words: Ngrams<CHRF_WORD_ORDER>,
}

impl Chrf {
    /// The score of a corpus. `references` has one or more lists of lines, each as long as `hypotheses`.
    ///
    /// # Errors
    /// Where the lists differ in length, or have no lines.
    pub fn corpus<H, R>(&self, hypotheses: &[H], references: &[&[R]]) -> Result<f64>
    where
        H: AsRef<str> + Sync,
        R: AsRef<str> + Sync,
    {
        Ok(ChrfStatistics::total(&self.statistics(hypotheses, references)?).score())
    }

    /// The score of one sentence with its references.
    pub fn sentence<R: AsRef<str>>(&self, hypothesis: &str, references: &[R]) -> f64 {
        self.sentence_statistics(hypothesis, references).score()
    }

    /// The statistics of every sentence of a corpus, in its order; computed in parallel.
    ///
    /// # Errors
    /// Where the lists differ in length, or have no lines.
    pub fn statistics<H, R>(&self, hypotheses: &[H], references: &[&[R]]) -> Result<Vec<ChrfStatistics>>
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

    /// The statistics of one sentence, against the reference with the best score: the first of equally good ones.
    pub fn sentence_statistics<R: AsRef<str>>(&self, hypothesis: &str, references: &[R]) -> ChrfStatistics {
        let hypothesis = self.prepare(hypothesis);
        let references: Vec<String> = references.iter().map(|reference| self.prepare(reference.as_ref())).collect();
        let mut interner = Interner::default();
        let hypothesis = self.line(&hypothesis, &mut interner);
        let mut best: Option<(f64, ChrfStatistics)> = None;
        for reference in &references {
            let statistics = compare(&hypothesis, &self.line(reference, &mut interner));
            let score = statistics.score();
            if best.is_none_or(|(best_score, _)| score > best_score) {
                best = Some((score, statistics));
            }
        }
        best.unwrap_or_default().1
    }

    /// Every choice that the score depends on, in the form of sacreBLEU's signatures.
    pub fn signature(&self, n_references: usize) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        let word_order = match self.variant {
            ChrfVariant::Chrf => 0,
            ChrfVariant::ChrfPlusPlus => CHRF_WORD_ORDER,
        };
        format!(
            "nrefs:{n_references}|case:{case}|eff:yes|nc:{CHRF_CHAR_ORDER}|nw:{word_order}|space:no|version:{VERSION}"
        )
    }

    fn prepare(&self, line: &str) -> String {
        if self.lowercase { line.to_lowercase() } else { line.to_owned() }
    }

    fn line<'a>(&self, line: &'a str, interner: &mut Interner<'a>) -> Line {
        let characters: Vec<u32> = line.chars().filter(|&character| !is_space(character)).map(u32::from).collect();
        let words = match self.variant {
            ChrfVariant::Chrf => Vec::new(),
            ChrfVariant::ChrfPlusPlus => interner.intern(words(line).flat_map(split_punctuation)),
        };
        Line { characters: Ngrams::new(&characters), words: Ngrams::new(&words) }
    }
}

/// `word` and the punctuation mark at its end or, failing that, at its start; never more than one mark.
fn split_punctuation(word: &str) -> impl Iterator<Item = &str> {
    let is_mark = |character: char| character.is_ascii_punctuation();
    // Marks are ASCII, so they are one byte; a word that is nothing but one mark yields an empty part, left out below.
    let cut = if word.ends_with(is_mark) { word.len() - 1 } else { usize::from(word.starts_with(is_mark)) };
    let (left, right) = word.split_at(cut);
    [left, right].into_iter().filter(|part| !part.is_empty())
}

/// The counts of every order.
fn compare(hypothesis: &Line, reference: &Line) -> ChrfStatistics {
    let mut orders = [OrderCounts::default(); N_ORDERS];
    let (characters, words) = orders.split_at_mut(CHRF_CHAR_ORDER);
    compare_orders(&hypothesis.characters, &reference.characters, characters);
    compare_orders(&hypothesis.words, &reference.words, words);
    ChrfStatistics { orders }
}

/// Fills `orders`, which stands for the n-gram orders from 1 on.
fn compare_orders<const ORDER: usize>(
    hypothesis: &Ngrams<ORDER>,
    reference: &Ngrams<ORDER>,
    orders: &mut [OrderCounts],
) {
    for (index, counts) in orders.iter_mut().enumerate() {
        let order = index + 1;
        counts.reference = reference.count(order);
        // Where the reference is too short for an order, the hypothesis is not blamed for having n-grams of it.
        if counts.reference > 0 {
            counts.hypothesis = hypothesis.count(order);
            counts.matches = hypothesis.matches(std::slice::from_ref(reference), order);
        }
    }
}
