//! Copy: the source again. Without attention it measures how much one vector can hold.

use super::symbols::SymbolsConfig;
use crate::data::{Pair, Rng};

/// One random pair.
pub(super) fn draw(config: &SymbolsConfig, rng: &mut Rng) -> Pair {
    let symbols = config.sequence(rng);
    let source = config.spell(&symbols);
    Pair::new(source, config.spell(&symbols))
}
