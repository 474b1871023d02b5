//! Associative recall: some key-value pairs, then one of the keys; the answer is its value.
//!
//! # Reference
//!
//! The task of Ba et al., *Using Fast Weights to Attend to the Recent Past*, 2016, section 4.1. **Differs from the
//! paper:** symbols are separated by spaces, one `?` stands before the asked key, and the number of pairs varies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{symbols, validate_lengths};
use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// Settings of associative recall.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallConfig {
    /// How many keys there are, at least 2. Up to 26 they are `a`, `b`, ...; beyond that `k0`, `k1`, ...
    pub n_keys: usize,
    /// How many values there are, at least 2: the numbers `0`, `1`, ...
    pub n_values: usize,
    /// Fewest key-value pairs in a source, at least 1. Every number up to `max_len` is equally likely.
    pub min_len: usize,
    /// Most key-value pairs in a source, at most `n_keys`, as no key occurs twice. A source of n pairs has 2n + 2
    /// symbols.
    pub max_len: usize,
}

impl Default for RecallConfig {
    fn default() -> Self {
        Self { n_keys: 26, n_values: 10, min_len: 2, max_len: 8 }
    }
}

impl RecallConfig {
    pub(super) fn validate(&self) -> Result<()> {
        symbols::validate_n("n_keys", self.n_keys, 2)?;
        symbols::validate_n("n_values", self.n_values, 2)?;
        if self.max_len > self.n_keys {
            let message = format!(
                "must be at most n_keys = {}, as no key occurs twice in a source, got {}",
                self.n_keys, self.max_len
            );
            return Err(Error::config("data.task.max_len", message));
        }
        validate_lengths(self.min_len, self.max_len, self.n_keys, "key-value pairs")
    }

    fn key(&self, key: usize) -> String {
        if self.n_keys <= 26 { symbols::name(key, self.n_keys) } else { format!("k{key}") }
    }
}

/// One random pair.
pub(super) fn draw(config: &RecallConfig, rng: &mut Rng) -> Pair {
    let n_pairs = rng.between(config.min_len, config.max_len);
    let keys = distinct(n_pairs, config.n_keys, rng);
    let mut source = Vec::with_capacity(2 * n_pairs + 2);
    let mut values = Vec::with_capacity(n_pairs);
    for &key in &keys {
        let value = rng.below(config.n_values as u64).to_string();
        source.push(config.key(key));
        source.push(value.clone());
        values.push(value);
    }
    let asked = rng.below(n_pairs as u64) as usize;
    source.push("?".to_owned());
    source.push(config.key(keys[asked]));
    Pair::new(source.join(" "), values.swap_remove(asked))
}

/// `n` different numbers below `bound`, every selection and order equally likely (Floyd's algorithm, then a shuffle).
fn distinct(n: usize, bound: usize, rng: &mut Rng) -> Vec<usize> {
    let mut chosen = std::collections::BTreeSet::new();
    for top in bound - n..bound {
        let candidate = rng.between(0, top);
        if !chosen.insert(candidate) {
            chosen.insert(top);
        }
    }
    let mut chosen: Vec<usize> = chosen.into_iter().collect();
    rng.shuffle(&mut chosen);
    chosen
}
