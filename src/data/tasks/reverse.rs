//! Reverse: the source backwards. Attention has to run against the order of time.

use super::symbols::SymbolsConfig;
use crate::data::{Pair, Rng};

/// One random pair.
pub(super) fn draw(config: &SymbolsConfig, rng: &mut Rng) -> Pair {
    let mut symbols = config.sequence(rng);
    let source = config.spell(&symbols);
    symbols.reverse();
    Pair::new(source, config.spell(&symbols))
}
