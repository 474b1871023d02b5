//! Dropout whose decisions are computed where they are needed.

use super::memory::{Start, TASK, mapped, new_pieces};
use super::random::Stream;
use super::vectors::update;

/// Which elements are dropped, computed wherever it is needed and never stored.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    stream: Stream,
    threshold: u32,
    /// What an element that stays is multiplied by.
    kept: f32,
}

impl Dropout {
    /// Elements are zero with probability `rate`; each 64 random bits decide two elements.
    pub fn new(stream: Stream, rate: f64) -> Self {
        Self { stream, threshold: (rate * 2f64.powi(32)) as u32, kept: (1.0 / (1.0 - rate)) as f32 }
    }

    /// What an element that stays is multiplied by.
    pub fn kept(&self) -> f32 {
        self.kept
    }

    /// An element is dropped if its 32 bits are below this.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// What the random bits are a function of, beside the place.
    pub fn key(&self) -> u64 {
        self.stream.key()
    }

    /// What the element at `place` is multiplied by.
    #[inline(always)]
    pub(super) fn factor(&self, place: usize) -> f32 {
        let bits = self.stream.bits(place as u64 / 2);
        let half = if place.is_multiple_of(2) { bits as u32 } else { (bits >> 32) as u32 };
        if half < self.threshold { 0.0 } else { self.kept }
    }

    /// Calls `work` with every element and its factor; `values` begins at place `start`.
    #[inline(always)]
    pub(super) fn each(&self, start: usize, values: &mut [f32], mut work: impl FnMut(usize, &mut f32, f32)) {
        let odd = (start % 2).min(values.len());
        if odd == 1 {
            work(0, &mut values[0], self.factor(start));
        }
        let first = (start + odd) as u64 / 2;
        let mut factors = [0.0; 128];
        for (block, piece) in values[odd..].chunks_mut(128).enumerate() {
            for (i, pair) in factors.chunks_exact_mut(2).enumerate() {
                let bits = self.stream.bits(first + (64 * block + i) as u64);
                pair[0] = if (bits as u32) < self.threshold { 0.0 } else { self.kept };
                pair[1] = if ((bits >> 32) as u32) < self.threshold { 0.0 } else { self.kept };
            }
            for (i, value) in piece.iter_mut().enumerate() {
                work(odd + 128 * block + i, value, factors[i]);
            }
        }
    }

    /// Multiplies the elements, of which the first is at place `start`.
    #[inline(always)]
    pub(super) fn apply(&self, start: usize, values: &mut [f32]) {
        self.each(start, values, |_, value, factor| *value *= factor);
    }

    /// The elements multiplied, over all cores.
    pub fn dropped(&self, values: &[f32]) -> Vec<f32> {
        mapped(
            values,
            1,
            #[inline(always)]
            |start, piece| self.apply(start, piece),
        )
    }

    /// The factors of the first `len` elements, made over all cores.
    pub fn mask(&self, len: usize) -> Vec<f32> {
        let fill = |start: usize, piece: &mut [f32]| self.each(start, piece, |_, value, factor| *value = factor);
        new_pieces(Start::Zeros(len), TASK, fill).0
    }
}

/// `x + dropout(y)`.
pub fn add_dropped(x: &[f32], y: &[f32], dropout: Option<&Dropout>) -> Vec<f32> {
    mapped(
        x,
        1,
        #[inline(always)]
        |start, piece| match dropout {
            Some(dropout) => dropout.each(
                start,
                piece,
                #[inline(always)]
                |i, value, factor| *value += y[start + i] * factor,
            ),
            None => update(
                [&y[start..start + piece.len()]],
                [piece],
                #[inline(always)]
                |[y], [value]| [value + y],
            ),
        },
    )
}
