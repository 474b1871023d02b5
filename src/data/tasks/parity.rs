//! Parity: is the number of ones odd? Asked at the end, or after every bit, which is far easier to learn.
//!
//! # Reference
//!
//! Delétang et al., *Neural Networks and the Chomsky Hierarchy*, 2023, section 4.1 (a regular language). There, trained to length
//! 40 and tested from 41 to 500, recurrent networks answer all of it and a Transformer half, which is chance; Grazzi et al.,
//! 2025, table 1: of linear recurrences the delta rule with negative eigenvalues alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate_lengths;
use crate::data::{Pair, Rng};
use crate::error::Result;

/// The longest source that may be asked for, in symbols.
const LONGEST: usize = 100_000;

/// Settings of parity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParityConfig {
    /// Shortest source, in bits, at least 1. Every length up to `max_len` is equally likely.
    pub min_len: usize,
    /// Longest source, in bits.
    pub max_len: usize,
    /// Ask after every bit instead of at the end: the answers are as many as the bits.
    pub asks_all: bool,
}

impl Default for ParityConfig {
    fn default() -> Self {
        Self { min_len: 8, max_len: 40, asks_all: false }
    }
}

impl ParityConfig {
    pub(super) fn validate(&self) -> Result<()> {
        validate_lengths(self.min_len, self.max_len, LONGEST, "bits")
    }
}

/// One random pair.
pub(super) fn draw(config: &ParityConfig, rng: &mut Rng) -> Pair {
    let len = rng.between(config.min_len, config.max_len);
    let bits: Vec<u64> = (0..len).map(|_| rng.below(2)).collect();
    let text: Vec<String> = bits.iter().map(u64::to_string).collect();
    let mut is_odd = false;
    let answers = bits.iter().map(|bit| {
        is_odd ^= *bit == 1;
        if is_odd { "odd" } else { "even" }
    });
    let answers: Vec<&str> = answers.collect();
    let last = answers.len() - 1;
    Pair::new(text.join(" "), if config.asks_all { answers.join(" ") } else { answers[last].to_string() })
}
