//! The part of a large text that vocabularies are made of.

use crate::random::{Purpose, Stream};
use std::borrow::Cow;

/// Pairs, or lines, above which vocabularies are made of so many drawn by the seed: more take memory and time, and teach next to
/// nothing of which tokens are frequent.
pub const LARGEST_SAMPLE: usize = 2_000_000;

/// So many of what is shown to it one after the other, each as likely to be among them as any other: a reservoir (Vitter 1985,
/// algorithm R), which need not know how many there will be.
#[derive(Debug)]
pub struct Sample<T> {
    stream: Stream,
    size: usize,
    seen: usize,
    kept: Vec<(usize, T)>,
}

impl<T> Sample<T> {
    /// At most `size` of them, drawn by `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { stream: Stream::new(seed, Purpose::TokenizerSample, &[]), size, seen: 0, kept: Vec::new() }
    }

    /// Shows it the next, which `make` makes if it is taken.
    pub fn offer(&mut self, make: impl FnOnce() -> T) {
        let i = self.seen;
        self.seen += 1;
        if i < self.size {
            return self.kept.push((i, make()));
        }
        let place = (self.stream.bits(i as u64) % (i as u64 + 1)) as usize;
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = (i, make());
        }
    }

    /// Whether some of what was shown has been left out.
    pub fn is_part(&self) -> bool {
        self.seen > self.size
    }

    /// What it has taken, in the order in which it was shown.
    pub fn finish(mut self) -> Vec<T> {
        self.kept.sort_unstable_by_key(|(i, _)| *i);
        self.kept.into_iter().map(|(_, kept)| kept).collect()
    }
}

/// What vocabularies are made of: `items`, or a sample of [`LARGEST_SAMPLE`] of them.
pub fn sampled<T: Clone>(items: &[T], seed: u64) -> Cow<'_, [T]> {
    sampled_to(items, LARGEST_SAMPLE, seed)
}

/// The same with a sample of `size`.
pub fn sampled_to<T: Clone>(items: &[T], size: usize, seed: u64) -> Cow<'_, [T]> {
    if items.len() <= size {
        return Cow::Borrowed(items);
    }
    let mut sample = Sample::new(size, seed);
    items.iter().for_each(|item| sample.offer(|| item));
    Cow::Owned(sample.finish().into_iter().cloned().collect())
}
