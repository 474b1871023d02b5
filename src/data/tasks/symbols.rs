//! What copy, reverse and sort share: random sequences over a small alphabet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate_lengths;
use crate::data::Rng;
use crate::error::{Error, Result};

/// The longest sequence that may be asked for, in symbols.
const LONGEST: usize = 100_000;
/// The largest alphabet that may be asked for.
const LARGEST: usize = 1_000_000;

/// Settings of the tasks over plain symbols: copy, reverse and sort.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SymbolsConfig {
    /// Size of the alphabet, at least 2. Up to 26 the symbols are `a`, `b`, ...; beyond that the numbers `0`, `1`, ...
    pub n_symbols: usize,
    /// Shortest source, in symbols, at least 1. Every length up to `max_len` is equally likely.
    pub min_len: usize,
    /// Longest source, in symbols.
    pub max_len: usize,
}

impl Default for SymbolsConfig {
    fn default() -> Self {
        Self { n_symbols: 26, min_len: 3, max_len: 20 }
    }
}

impl SymbolsConfig {
    pub(super) fn validate(&self) -> Result<()> {
        validate_n("n_symbols", self.n_symbols, 2)?;
        validate_lengths(self.min_len, self.max_len, LONGEST, "symbols")
    }

    /// A random sequence of symbol numbers.
    pub(super) fn sequence(&self, rng: &mut Rng) -> Vec<usize> {
        let len = rng.between(self.min_len, self.max_len);
        (0..len).map(|_| rng.below(self.n_symbols as u64) as usize).collect()
    }

    /// The symbols' names, separated by spaces.
    pub(super) fn spell(&self, symbols: &[usize]) -> String {
        symbols.iter().map(|&symbol| name(symbol, self.n_symbols)).collect::<Vec<_>>().join(" ")
    }
}

/// The name of a symbol of an alphabet of `n_symbols`: a letter where letters suffice, else a number.
pub(super) fn name(symbol: usize, n_symbols: usize) -> String {
    if n_symbols <= 26 { char::from(b'a' + symbol as u8).to_string() } else { symbol.to_string() }
}

/// Refuses an alphabet below `least` or absurdly large.
pub(super) fn validate_n(field: &str, n: usize, least: usize) -> Result<()> {
    if (least..=LARGEST).contains(&n) {
        return Ok(());
    }
    Err(Error::config(format!("data.task.{field}"), format!("must lie in {least}..={LARGEST}, got {n}")))
}
