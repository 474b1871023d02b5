//! Rises: for each symbol, whether the next one is greater. What is asked lies to the right.
//!
//! Who has read only the symbols so far can do no better than to guess from the symbol itself: with `n` equally likely symbols the
//! best guess is right `(3 n / 4)` times in `n` for even `n`, 75 %, and always at the end of a sequence, where nothing follows. Who
//! sees the next symbol is right always.
//!
//! # Reference
//!
//! Graves and Schmidhuber, *Framewise phoneme classification with bidirectional LSTM*, 2005, for tagging that needs both sides; the
//! task is our own.

use super::symbols::SymbolsConfig;
use crate::data::{Pair, Rng};

/// One random pair: `<` where the next symbol is greater, `>` where it is not or there is none.
pub(super) fn draw(config: &SymbolsConfig, rng: &mut Rng) -> Pair {
    let symbols = config.sequence(rng);
    let next = symbols.iter().skip(1).map(Some).chain([None]);
    let tags =
        symbols.iter().zip(next).map(|(symbol, next)| if next.is_some_and(|next| next > symbol) { "<" } else { ">" });
    Pair::new(config.spell(&symbols), tags.collect::<Vec<_>>().join(" "))
}
