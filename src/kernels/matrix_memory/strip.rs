//! A strip of a memory: some columns of its matrix, which know nothing of the others.
// Written with places, since zipped iterators do not become wide instructions.
#![allow(clippy::needless_range_loop)]

use crate::functions::flushed;
use crate::vectors::each;
use std::cell::Cell;

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

/// Goes on by a position, from the memory before it to the one after it, which may lie in the same place: what is read, and what of the
/// value was not in the memory.
#[inline(always)]
pub(super) fn advance(before: &[Cell<Lanes>], after: &[Cell<Lanes>], shared: Shared, value: &Lanes) -> [Lanes; 2] {
    let n = before.len();
    let ([kept, key, query], after) = (shared.rows(n), &after[..n]);
    let mut missing = *value;
    if shared.rate.is_some() {
        for i in 0..n {
            let (factor, old) = (kept[i] * key[i], before[i].get());
            for lane in 0..LANES {
                missing[lane] -= factor * old[lane];
            }
        }
    }
    let rate = shared.rate.unwrap_or(1.0);
    let written: Lanes = each(0.0, |lane| rate * missing[lane]);
    let mut read = [0.0; LANES];
    for i in 0..n {
        let mut row = before[i].get();
        for lane in 0..LANES {
            row[lane] = kept[i] * row[lane] + key[i] * written[lane];
            read[lane] += query[i] * row[lane];
        }
        after[i].set(row);
    }
    [read, missing]
}

/// The gradients of what all columns of a head share. The first strip writes its own and others add theirs lane by lane, so that lanes are
/// summed once for a head and not once for each strip.
///
/// # Shapes
/// - key, query: `[d_key]`
/// - log_kept: `[d_key]`, or `[1]` where all rows keep the same
///
/// Rows of zeros fill up each to a multiple of sixteen, as [`totals`] takes them.
pub(super) struct OfShared {
    pub key: Vec<Lanes>,
    pub query: Vec<Lanes>,
    /// Of the logarithm of what is kept.
    pub log_kept: Vec<Lanes>,
    pub rate: Lanes,
}

/// What a position has made of a strip.
pub(super) struct Step<'a> {
    pub before: &'a [Lanes],
    pub after: &'a [Lanes],
    pub missing: &'a Lanes,
}

/// Goes back by a position: `of_memory` is the gradient of the memory after it and becomes that of the memory before it. Returns the
/// gradient of the value. Where `EACH` is false, all rows keep the same; where `FIRST` is true, what `of_shared` has is of another head and
/// is written over.
#[inline(always)]
pub(super) fn advance_backward<const EACH: bool, const FIRST: bool>(
    of_memory: &mut [Lanes],
    step: Step,
    shared: Shared,
    of_read: &Lanes,
    of_shared: &mut OfShared,
) -> Lanes {
    let n = of_memory.len();
    let [kept, key, query] = shared.rows(n);
    let (before, after, missing) = (&step.before[..n], &step.after[..n], step.missing);
    let (of_key, of_query) = (&mut of_shared.key[..n], &mut of_shared.query[..n]);
    let rate = shared.rate.unwrap_or(1.0);
    let written: Lanes = each(0.0, |lane| rate * missing[lane]);
    let mut of_written = [0.0; LANES];
    // Whole rows are taken and put back: what a loop over lanes writes to in between does not stay in registers.
    for i in 0..n {
        let (mut gradient, mut for_query) = (of_memory[i], so_far::<FIRST>(of_query[i]));
        for lane in 0..LANES {
            gradient[lane] += query[i] * of_read[lane];
            for_query[lane] += after[i][lane] * of_read[lane];
            of_written[lane] += key[i] * gradient[lane];
        }
        (of_memory[i], of_query[i]) = (gradient, for_query);
    }
    let is_delta = shared.rate.is_some();
    let mut of_missing = of_written;
    if is_delta {
        of_shared.rate = so_far::<FIRST>(of_shared.rate);
        for lane in 0..LANES {
            of_shared.rate[lane] += of_written[lane] * missing[lane];
            of_missing[lane] *= rate;
        }
    }
    // What was in the memory for the key was taken from the value.
    let of_found = if is_delta { each(0.0, |lane| -of_missing[lane]) } else { [0.0; LANES] };
    let mut of_all = [0.0; LANES];
    for i in 0..n {
        let (mut gradient, mut for_key) = (of_memory[i], so_far::<FIRST>(of_key[i]));
        let mut for_kept = [0.0; LANES];
        for lane in 0..LANES {
            let faded = kept[i] * before[i][lane];
            let of_faded = gradient[lane] + key[i] * of_found[lane];
            for_key[lane] += gradient[lane] * written[lane] + faded * of_found[lane];
            for_kept[lane] = of_faded * faded;
            gradient[lane] = flushed(kept[i] * of_faded);
        }
        (of_memory[i], of_key[i]) = (gradient, for_key);
        let of_kept = if EACH { &mut of_shared.log_kept[i] } else { &mut of_all };
        if EACH && FIRST {
            *of_kept = for_kept;
        } else {
            for lane in 0..LANES {
                of_kept[lane] += for_kept[lane];
            }
        }
    }
    if !EACH {
        let sum = so_far::<FIRST>(of_shared.log_kept[0]);
        of_shared.log_kept[0] = each(0.0, |lane| sum[lane] + of_all[lane]);
    }
    of_missing
}

/// What a strip adds to: zeros if it is the first.
#[inline(always)]
fn so_far<const FIRST: bool>(sum: Lanes) -> Lanes {
    if FIRST { [0.0; LANES] } else { sum }
}

/// The sums of as many rows as `out` has places. Sixteen rows are folded into one another, which takes a third of the instructions of
/// sixteen sums; rows of zeros fill up the last of them.
#[inline(always)]
pub(super) fn totals(rows: &[Lanes], out: &mut [f32]) {
    for (rows, out) in rows.as_chunks::<LANES>().0.iter().zip(out.chunks_mut(LANES)) {
        let halves: [Lanes; 8] = each([0.0; LANES], |i| folded::<8>(&rows[2 * i], &rows[2 * i + 1]));
        let quarters: [Lanes; 4] = each([0.0; LANES], |i| folded::<4>(&halves[2 * i], &halves[2 * i + 1]));
        let eighths: [Lanes; 2] = each([0.0; LANES], |i| folded::<2>(&quarters[2 * i], &quarters[2 * i + 1]));
        let sums = folded::<1>(&eighths[0], &eighths[1]);
        match <&mut Lanes>::try_from(&mut *out) {
            Ok(out) => *out = sums,
            Err(_) => out.copy_from_slice(&sums[..out.len()]),
        }
    }
}

/// The partial sums of some rows side by side, `2 N` lanes for each, those of `a` before those of `b`: with half as many lanes for each.
#[inline(always)]
fn folded<const N: usize>(a: &Lanes, b: &Lanes) -> Lanes {
    let first = |lane: usize| lane / N * 2 * N + lane % N;
    each(0.0, |lane| {
        let (rows, lane) = if lane < LANES / 2 { (a, lane) } else { (b, lane - LANES / 2) };
        rows[first(lane)] + rows[first(lane) + N]
    })
}
