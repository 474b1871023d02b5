//! Word alignments: reading gold ones, making them of attention weights, and how far apart the two are.

use crate::data::Tokenizer;
use crate::error::{Error, Result};
use crate::report::attention::AttentionMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// A link: source word, target word, both counted from 0.
pub type Link = (usize, usize);

/// The right alignment of one sentence pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gold {
    /// Links that have to be there.
    pub sure: BTreeSet<Link>,
    /// Links that may be there; the sure ones are among them.
    pub possible: BTreeSet<Link>,
}

impl Gold {
    /// Sure links only.
    pub fn sure(links: impl IntoIterator<Item = Link>) -> Self {
        let sure: BTreeSet<Link> = links.into_iter().collect();
        Self { possible: sure.clone(), sure }
    }

    /// A line in Pharaoh format: `0-0 1-2 2?1`, source word first, counted from 0. `-` is a sure link; `?` or `p` is a
    /// possible one.
    ///
    /// # Errors
    /// Names the first item that is no link.
    pub fn parse(line: &str) -> std::result::Result<Self, String> {
        let mut gold = Self::default();
        for item in line.split_whitespace() {
            let cut = item.find(|c: char| !c.is_ascii_digit());
            let link = cut.and_then(|at| {
                let (source, rest) = item.split_at(at);
                let mark = rest.chars().next()?;
                let target = rest[mark.len_utf8()..].parse().ok()?;
                Some((source.parse().ok()?, mark, target))
            });
            match link {
                Some((source, '-', target)) => {
                    gold.sure.insert((source, target));
                    gold.possible.insert((source, target));
                }
                Some((source, '?' | 'p', target)) => {
                    gold.possible.insert((source, target));
                }
                _ => {
                    return Err(format!(
                        "\"{item}\" is no link; write SOURCE-TARGET for a sure one and SOURCE?TARGET for a possible one, \
                         words counted from 0"
                    ));
                }
            }
        }
        Ok(gold)
    }

    /// The first link to a word that is not there.
    pub fn beyond(&self, n_source: usize, n_target: usize) -> Option<Link> {
        self.possible.iter().copied().find(|(source, target)| *source >= n_source || *target >= n_target)
    }
}

/// Reads a file of [`Gold::parse`] lines.
///
/// # Errors
/// If the file cannot be read, or a line is not in Pharaoh format.
pub fn read(path: &Path) -> Result<Vec<Gold>> {
    let lines = crate::data::read_lines(path)?;
    let parsed = lines
        .iter()
        .enumerate()
        .map(|(i, line)| Gold::parse(line).map_err(|message| Error::line(path, i + 1, message)));
    parsed.collect()
}

/// Counts from which the alignment error rate of a corpus is made.
///
/// `AER = 1 - (|A n S| + |A n P|) / (|A| + |S|)` for links `A`, sure links `S` and possible links `P`.
///
/// # Reference
/// Och and Ney, A Systematic Comparison of Various Statistical Alignment Models, 2003, section 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AlignmentCounts {
    /// `|A|`.
    pub links: usize,
    /// `|S|`.
    pub sure: usize,
    /// `|A n S|`.
    pub links_sure: usize,
    /// `|A n P|`.
    pub links_possible: usize,
}

impl AlignmentCounts {
    /// Adds a sentence pair.
    pub fn add(&mut self, found: &BTreeSet<Link>, gold: &Gold) {
        self.links += found.len();
        self.sure += gold.sure.len();
        self.links_sure += found.intersection(&gold.sure).count();
        self.links_possible += found.intersection(&gold.possible).count();
    }

    /// The alignment error rate; 0 is perfect. Without any link on either side there is no error.
    pub fn error_rate(&self) -> f64 {
        let total = self.links + self.sure;
        if total == 0 { 0.0 } else { 1.0 - (self.links_sure + self.links_possible) as f64 / total as f64 }
    }
}

/// Which word each token belongs to; words are what stands between spaces. The end symbol is not among the tokens.
///
/// The tokens of the first `k` words are those of the text up to the end of word `k`, which holds for every tokenizer here,
/// since none makes a token of parts of two words. In a character tokenizer a space counts to the word after it.
pub fn words_of_tokens(text: &str, tokenizer: &Tokenizer) -> Vec<usize> {
    let mut words = Vec::new();
    let mut end = 0;
    for (k, word) in text.split_whitespace().enumerate() {
        let start = end + text[end..].find(word).expect("a word of the text");
        end = start + word.len();
        words.resize(tokenizer.encode(&text[..end]).len(), k);
    }
    words
}

/// The same of tokens that a model has written, whose text others might have too: an unknown word is one token, and its text `<unk>`
/// would be cut into several.
pub fn words_of_ids(ids: &[u32], tokenizer: &Tokenizer) -> Vec<usize> {
    let texts: Vec<String> = (0..=ids.len()).map(|n| tokenizer.decode(&ids[..n])).collect();
    let n_words = |text: &str| text.split_whitespace().count();
    let Some(last) = n_words(&texts[ids.len()]).checked_sub(1) else { return Vec::new() };
    // A token that shows nothing yet belongs to what comes.
    let shows = |pair: &[String]| pair[0].trim_end() != pair[1].trim_end();
    let word = |pair: &[String]| n_words(&pair[1]).saturating_sub(usize::from(shows(pair))).min(last);
    texts.windows(2).map(word).collect()
}

/// The links of a cross-attention map: for each target word the source word with the most weight.
///
/// Tokens are pooled to words first: a source word's weight is the sum over its tokens, a target word's the mean over its
/// tokens. End symbols take no part. Of equal weights the first counts.
pub fn links(map: &AttentionMap, source_words: &[usize], target_words: &[usize]) -> BTreeSet<Link> {
    let n_source = source_words.iter().max().map_or(0, |last| last + 1);
    let n_target = target_words.iter().max().map_or(0, |last| last + 1);
    let mut pooled = vec![0.0_f32; n_source * n_target];
    for (i, target) in target_words.iter().enumerate().take(map.n_rows) {
        for (weight, source) in map.row(i).iter().zip(source_words) {
            pooled[target * n_source + source] += weight;
        }
    }
    let best = |row: &[f32]| {
        let best = row.iter().enumerate().reduce(|a, b| if b.1 > a.1 { b } else { a });
        best.map(|(source, _)| source)
    };
    let rows = pooled.chunks(n_source.max(1)).enumerate();
    rows.filter_map(|(target, row)| best(row).map(|source| (source, target))).collect()
}
