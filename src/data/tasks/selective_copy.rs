//! Selective copying: a few symbols somewhere among blanks; write them in their order.
//!
//! # Reference
//!
//! Gu and Dao, *Mamba: Linear-Time Sequence Modeling with Selective State Spaces*, 2023, section 3.1 and table 1: 16 symbols of an
//! alphabet of 16 among 4096 places; what does not choose by content what it takes up fails, minGRU reaches 99.5 % (Feng et al.,
//! 2024, table 1). **Differs from the paper:** the length varies, and by default 8 symbols lie among 32 to 64 places.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BLANK, symbols, validate_lengths};
use crate::data::{Pair, Rng};
use crate::error::{Error, Result};

/// The longest allowed source, in symbols.
const LONGEST: usize = 100_000;

/// Settings of selective copying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SelectiveCopyConfig {
    /// Size of the alphabet, at least 2. Up to 26 the symbols are `a`, `b`, ...; beyond that the numbers `0`, `1`, ...
    pub n_symbols: usize,
    /// The number of symbols in a source, at least 1 and at most `min_len`; all other positions are `.`.
    pub n_copied: usize,
    /// Shortest source, in symbols and blanks. Every length up to `max_len` is equally likely.
    pub min_len: usize,
    /// Longest source, in symbols and blanks.
    pub max_len: usize,
}

impl Default for SelectiveCopyConfig {
    fn default() -> Self {
        Self { n_symbols: 16, n_copied: 8, min_len: 32, max_len: 64 }
    }
}

impl SelectiveCopyConfig {
    pub(super) fn validate(&self) -> Result<()> {
        symbols::validate_n("n_symbols", self.n_symbols, 2)?;
        validate_lengths(self.min_len, self.max_len, LONGEST, "symbols and blanks")?;
        if (1..=self.min_len).contains(&self.n_copied) {
            return Ok(());
        }
        let message = format!("must lie in 1..={}, the shortest source, got {}", self.min_len, self.n_copied);
        Err(Error::config("data.task.n_copied", message))
    }
}

/// One random pair.
pub(super) fn draw(config: &SelectiveCopyConfig, rng: &mut Rng) -> Pair {
    let len = rng.between(config.min_len, config.max_len);
    let mut places = rng.distinct(config.n_copied, len);
    places.sort_unstable();
    let mut source = vec![BLANK.to_owned(); len];
    let mut target = Vec::with_capacity(places.len());
    for place in places {
        let symbol = symbols::name(rng.below(config.n_symbols as u64) as usize, config.n_symbols);
        source[place].clone_from(&symbol);
        target.push(symbol);
    }
    Pair::new(source.join(" "), target.join(" "))
}
