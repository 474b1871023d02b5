//! The n-grams of one sequence, packed into integers and sorted, for counting matches without hashing.
//!
//! One sort serves every order: sequences sorted by their longest n-grams are sorted by all shorter ones too.

use std::collections::HashMap;

/// All n-grams of the orders 1 to `ORDER` of a sequence of symbols below 2^21 - 1 (characters) or, where `ORDER` is at
/// most 4, below 2^32 - 1 (interned tokens).
pub(crate) struct Ngrams<const ORDER: usize> {
    /// For each position the `ORDER` symbols from there on, the first in the highest bits. Each symbol is stored plus
    /// one, so that zero means that the sequence has ended. Sorted.
    windows: Vec<u128>,
}

impl<const ORDER: usize> Ngrams<ORDER> {
    /// The width of one symbol in bits: 32 for four words, 21 for six characters.
    const BITS: u32 = 128 / ORDER as u32;

    /// The n-grams of `symbols`.
    pub(crate) fn new(symbols: &[u32]) -> Self {
        let mut window = 0;
        let mut windows = Vec::with_capacity(symbols.len());
        for &symbol in symbols.iter().rev() {
            window = (window >> Self::BITS) | ((u128::from(symbol) + 1) << (Self::BITS * (ORDER as u32 - 1)));
            windows.push(window);
        }
        windows.sort_unstable();
        Self { windows }
    }

    /// The number of n-grams of `order`.
    pub(crate) fn count(&self, order: usize) -> u64 {
        (self.windows.len() + 1).saturating_sub(order) as u64
    }

    /// The number of n-grams of `order` found in `references` as well. A repeated n-gram counts at most as often as it
    /// occurs in the one reference that has most of it.
    pub(crate) fn matches(&self, references: &[Self], order: usize) -> u64 {
        let shift = Self::BITS * (ORDER - order) as u32;
        let last_symbol = (1 << Self::BITS) - 1;
        let mut unread: Vec<&[u128]> = references.iter().map(|reference| reference.windows.as_slice()).collect();
        let mut matches = 0;
        for run in self.windows.chunk_by(|left, right| left >> shift == right >> shift) {
            let ngram = run[0] >> shift;
            // The sequence ended before this n-gram was complete.
            if ngram & last_symbol == 0 {
                continue;
            }
            let most = unread.iter_mut().map(|windows| take_run(windows, ngram, shift)).max().unwrap_or(0);
            matches += run.len().min(most);
        }
        matches as u64
    }
}

/// Drops the windows up to and including the n-gram `ngram`; returns how many of them were that n-gram.
fn take_run(windows: &mut &[u128], ngram: u128, shift: u32) -> usize {
    let smaller = windows.iter().take_while(|&&window| window >> shift < ngram).count();
    *windows = &windows[smaller..];
    let equal = windows.iter().take_while(|&&window| window >> shift == ngram).count();
    *windows = &windows[equal..];
    equal
}

/// Gives equal tokens equal numbers, counted from 0.
#[derive(Default)]
pub(crate) struct Interner<'a> {
    ids: HashMap<&'a str, u32>,
}

impl<'a> Interner<'a> {
    /// The numbers of `tokens`.
    pub(crate) fn intern(&mut self, tokens: impl IntoIterator<Item = &'a str>) -> Vec<u32> {
        let mut ids = Vec::new();
        for token in tokens {
            let next = self.ids.len() as u32;
            ids.push(*self.ids.entry(token).or_insert(next));
        }
        ids
    }
}
