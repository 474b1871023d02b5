//! How well a language model predicts a text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The scores of a text, in the form in which `evaluate --json` prints them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextScores {
    /// The mean of `-log p` over all tokens, ends of lines included, in nats.
    pub loss: f64,
    /// `exp(loss)`.
    pub perplexity: f64,
    /// The sum of `-log2 p` over all tokens, for each character of the text, ends of lines included. Unlike perplexity it can be
    /// compared between tokenizers.
    pub bits_per_character: f64,
    /// The same for each byte of UTF-8.
    pub bits_per_byte: f64,
    /// The part of tokens that had the highest probability.
    pub token_accuracy: f64,
    /// Tokens, ends of lines included.
    pub tokens: usize,
    /// Tokens that the vocabulary does not hold: their loss is that of being unknown, whatever they are.
    pub unknown: usize,
    /// Characters, ends of lines included.
    pub characters: usize,
    /// Bytes of UTF-8, ends of lines included.
    pub bytes: usize,
    /// The most tokens that are looked back at.
    pub context: usize,
    /// The loss of tokens that have a like number of tokens before them in sight, fewest first.
    pub by_position: Vec<PositionScores>,
}

/// The loss of tokens by how much of the text before them is in sight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PositionScores {
    /// The fewest tokens in sight.
    pub from: usize,
    /// The most, itself included.
    pub to: usize,
    /// Tokens.
    pub tokens: usize,
    /// The mean of `-log p`, in nats.
    pub loss: f64,
}

/// The sums that [`TextScores`] are made of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextStatistics {
    loss: f64,
    n_correct: usize,
    n_tokens: usize,
    /// Losses and tokens by the number of tokens in sight, less one.
    by_position: Vec<(f64, usize)>,
}

impl TextStatistics {
    /// Adds a token that has `n_seen` tokens before it in sight, at least one.
    ///
    /// Windows overlap, so that a token is predicted more than once: it counts once, where `counts` says so, and every time for
    /// its position.
    pub fn add(&mut self, n_seen: usize, counts: bool, loss: f64, is_correct: bool) {
        if counts {
            self.loss += loss;
            self.n_correct += is_correct as usize;
            self.n_tokens += 1;
        }
        if self.by_position.len() < n_seen {
            self.by_position.resize(n_seen, (0.0, 0));
        }
        let (sum, n) = &mut self.by_position[n_seen - 1];
        *sum += loss;
        *n += 1;
    }

    /// The scores of a text of so many characters and bytes, `unknown` of whose tokens the vocabulary does not hold.
    pub fn scores(&self, characters: usize, bytes: usize, unknown: usize, context: usize) -> TextScores {
        let loss = self.loss / self.n_tokens.max(1) as f64;
        let bits = self.loss / std::f64::consts::LN_2;
        TextScores {
            loss,
            perplexity: loss.exp(),
            bits_per_character: bits / characters.max(1) as f64,
            bits_per_byte: bits / bytes.max(1) as f64,
            token_accuracy: self.n_correct as f64 / self.n_tokens.max(1) as f64,
            tokens: self.n_tokens,
            unknown,
            characters,
            bytes,
            context,
            by_position: self.by_position(),
        }
    }

    /// In ranges that end at powers of two: what one more token in sight is worth shrinks.
    fn by_position(&self) -> Vec<PositionScores> {
        let scores = |(from, to): (usize, usize)| {
            let range = &self.by_position[from - 1..to];
            let tokens = range.iter().map(|(_, n)| n).sum();
            let loss = range.iter().map(|(sum, _)| sum).sum::<f64>() / f64::max(1.0, tokens as f64);
            PositionScores { from, to, tokens, loss }
        };
        doubling_ranges(self.by_position.len()).map(scores).collect()
    }
}

/// The numbers 1 to `len` in ranges that end at powers of two, first and last of each.
pub(super) fn doubling_ranges(len: usize) -> impl Iterator<Item = (usize, usize)> {
    let range = move |from: usize| (from <= len).then(|| (from, from.next_power_of_two().min(len)));
    std::iter::successors(range(1), move |(_, to)| range(to + 1))
}
