//! Sort: the symbols in ascending order, alphabetical for letters and by value for numbers.

use super::symbols::SymbolsConfig;
use crate::data::{Pair, Rng};

/// One random pair.
pub(super) fn draw(config: &SymbolsConfig, rng: &mut Rng) -> Pair {
    let mut symbols = config.sequence(rng);
    let source = config.spell(&symbols);
    symbols.sort_unstable();
    Pair::new(source, config.spell(&symbols))
}
