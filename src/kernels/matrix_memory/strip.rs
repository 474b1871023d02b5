//! A strip of a memory: some columns of its matrix, which know nothing of the others.

use crate::functions::flushed;
use crate::vectors::{each, total};

/// Columns of a strip.
pub(super) use crate::vectors::LANES;
/// A row of a strip, or what belongs to its columns.
pub type Lanes = [f32; LANES];

/// What all columns share at a position: one number for each row of the memory.
///
/// # Shapes
/// - kept, key, query: `[d_key]`
#[derive(Clone, Copy)]
pub(super) struct Shared<'a> {
    pub kept: &'a [f32],
    pub key: &'a [f32],
    pub query: &'a [f32],
    /// Of the delta rule.
    pub rate: Option<f32>,
}

impl<'a> Shared<'a> {
    /// As many rows as the memory has, so that bounds are checked once.
    #[inline(always)]
    fn rows(self, n: usize) -> [&'a [f32]; 3] {
        [&self.kept[..n], &self.key[..n], &self.query[..n]]
    }
}

/// Goes on by a position: what is read, and what of the value was not in the memory.
// Written with places, since zipped iterators do not become wide instructions.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
pub(super) fn advance(memory: &mut [Lanes], shared: Shared, value: &Lanes) -> [Lanes; 2] {
    let n = memory.len();
    let [kept, key, query] = shared.rows(n);
    let mut missing = *value;
    if shared.rate.is_some() {
        for i in 0..n {
            let factor = kept[i] * key[i];
            for lane in 0..LANES {
                missing[lane] -= factor * memory[i][lane];
            }
        }
    }
    let rate = shared.rate.unwrap_or(1.0);
    let written: Lanes = each(0.0, |lane| rate * missing[lane]);
    let mut read = [0.0; LANES];
    for i in 0..n {
        for lane in 0..LANES {
            let new = kept[i] * memory[i][lane] + key[i] * written[lane];
            memory[i][lane] = new;
            read[lane] += query[i] * new;
        }
    }
    [read, missing]
}

/// The sums of gradients over columns, to which each strip adds its own.
pub(super) struct OfShared<'a> {
    /// Of the logarithm of what is kept.
    pub log_kept: &'a mut [f32],
    pub key: &'a mut [f32],
    pub query: &'a mut [f32],
    pub rate: &'a mut f32,
}

/// What a position has made of a strip.
pub(super) struct Step<'a> {
    pub before: &'a [Lanes],
    pub after: &'a [Lanes],
    pub missing: &'a Lanes,
}

/// Goes back by a position: `of_memory` is the gradient of the memory after it and becomes that of the memory before it. Returns the
/// gradient of the value.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
pub(super) fn advance_backward(
    of_memory: &mut [Lanes],
    step: Step,
    shared: Shared,
    of_read: &Lanes,
    of_shared: &mut OfShared,
) -> Lanes {
    let n = of_memory.len();
    let [kept, key, query] = shared.rows(n);
    let (before, after, missing) = (&step.before[..n], &step.after[..n], step.missing);
    let OfShared { log_kept: of_log_kept, key: of_key, query: of_query, rate: of_rate } = of_shared;
    let (of_log_kept, of_key, of_query) = (&mut of_log_kept[..n], &mut of_key[..n], &mut of_query[..n]);
    let rate = shared.rate.unwrap_or(1.0);
    let written: Lanes = each(0.0, |lane| rate * missing[lane]);
    let mut of_written = [0.0; LANES];
    for i in 0..n {
        let [mut for_query, mut for_key] = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            let gradient = of_memory[i][lane] + query[i] * of_read[lane];
            of_memory[i][lane] = gradient;
            for_query[lane] = after[i][lane] * of_read[lane];
            for_key[lane] = gradient * written[lane];
            of_written[lane] += key[i] * gradient;
        }
        of_query[i] += total(for_query);
        of_key[i] += total(for_key);
    }
    let is_delta = shared.rate.is_some();
    let mut of_missing = of_written;
    if is_delta {
        let mut for_rate = [0.0; LANES];
        for lane in 0..LANES {
            for_rate[lane] = of_written[lane] * missing[lane];
            of_missing[lane] *= rate;
        }
        **of_rate += total(for_rate);
    }
    // What was in the memory for the key was taken from the value.
    let of_found = if is_delta { each(0.0, |lane| -of_missing[lane]) } else { [0.0; LANES] };
    for i in 0..n {
        let [mut for_key, mut for_kept] = [[0.0; LANES]; 2];
        for lane in 0..LANES {
            let faded = kept[i] * before[i][lane];
            let of_faded = of_memory[i][lane] + key[i] * of_found[lane];
            for_key[lane] = faded * of_found[lane];
            for_kept[lane] = of_faded * faded;
            of_memory[i][lane] = flushed(kept[i] * of_faded);
        }
        of_key[i] += total(for_key);
        of_log_kept[i] += total(for_kept);
    }
    of_missing
}
