//! Loops that the compiler turns into the widest instructions of the machine at hand.

#![allow(clippy::needless_range_loop)]

use super::functions::exp;
use super::machine::vectorized;
use super::memory::TASK;
use rayon::prelude::*;

/// Elements that the compiler may keep side by side.
pub(super) const LANES: usize = 16;

// What stands in the innermost loops here is written with places and arrays that are filled in place. `std::array::from_fn`, `map`, `Zip` and
// `fold` go through functions that the compiler may leave apart: those are compiled for instructions that every machine has, and stay calls
// in the loop.

/// What `make` makes of each place of an array.
#[inline(always)]
pub(super) fn each<T: Copy, const N: usize>(empty: T, make: impl Fn(usize) -> T) -> [T; N] {
    let mut all = [empty; N];
    for (k, element) in all.iter_mut().enumerate() {
        *element = make(k);
    }
    all
}

/// The sum of lanes, by halves: four additions that wait for each other, where one lane after the other would be fifteen.
#[inline(always)]
pub(super) fn total(lanes: [f32; LANES]) -> f32 {
    let eight: [f32; 8] = each(0.0, |i| lanes[i] + lanes[i + 8]);
    let four: [f32; 4] = each(0.0, |i| eight[i] + eight[i + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

// What is left after the last sixteen elements is taken eight and four at a time, and only what is left then one by one: heads of 12 numbers
// and sentences of ten words are nothing but such a rest.

/// The sum of `term` over the elements of vectors of one length, in lanes.
#[inline(always)]
pub(super) fn sum<const N: usize>(mut vectors: [&[f32]; N], term: impl Fn([f32; N]) -> f32) -> f32 {
    // One length for all, which the compiler sees: no test remains inside the loop.
    let mut len = usize::MAX;
    for k in 0..N {
        len = len.min(vectors[k].len());
    }
    for k in 0..N {
        vectors[k] = &vectors[k][..len];
    }
    let mut lanes = [0f32; LANES];
    let mut start = add_chunks::<LANES, 0, N>(&mut lanes, vectors, 0, &term);
    // What is as short as eight is added in its order.
    if start < len && len > 8 {
        start = add_chunks::<8, 0, N>(&mut lanes, vectors, start, &term);
        start = add_chunks::<4, 8, N>(&mut lanes, vectors, start, &term);
    }
    let mut sum = total(lanes);
    for i in start..len {
        sum += term(each(0.0, |k| vectors[k][i]));
    }
    sum
}

/// Adds `term` of every `W` elements from `start` on to as many lanes, from lane `AT` on; where what is left begins.
#[inline(always)]
fn add_chunks<const W: usize, const AT: usize, const N: usize>(
    lanes: &mut [f32; LANES],
    vectors: [&[f32]; N],
    start: usize,
    term: &impl Fn([f32; N]) -> f32,
) -> usize {
    let n = (vectors[0].len() - start) / W;
    let chunks: [&[[f32; W]]; N] = each(&[][..], |k| &vectors[k][start..].as_chunks().0[..n]);
    for i in 0..n {
        let at: [&[f32; W]; N] = each(&[0.0; W], |k| &chunks[k][i]);
        for lane in 0..W {
            lanes[AT + lane] += term(each(0.0, |k| at[k][lane]));
        }
    }
    start + n * W
}

/// Replaces the elements of `outputs` by what `change` makes of those of `inputs` and of their own, all vectors being of one
/// length. Elements are taken up before any is put down, so that the compiler need not ask which vectors overlap.
#[inline(always)]
pub(super) fn update<const I: usize, const O: usize>(
    mut inputs: [&[f32]; I],
    mut outputs: [&mut [f32]; O],
    change: impl Fn([f32; I], [f32; O]) -> [f32; O],
) {
    let mut len = usize::MAX;
    for k in 0..O {
        len = len.min(outputs[k].len());
    }
    for k in 0..I {
        inputs[k] = &inputs[k][..len];
    }
    for k in 0..O {
        outputs[k] = &mut std::mem::take(&mut outputs[k])[..len];
    }
    let mut start = change_chunks::<LANES, I, O>(inputs, &mut outputs, 0, &change);
    if start == len {
        return;
    }
    start = change_chunks::<8, I, O>(inputs, &mut outputs, start, &change);
    start = change_chunks::<4, I, O>(inputs, &mut outputs, start, &change);
    for i in start..len {
        let new = change(each(0.0, |k| inputs[k][i]), each(0.0, |k| outputs[k][i]));
        for k in 0..O {
            outputs[k][i] = new[k];
        }
    }
}

/// The same for every `W` elements from `start` on; where what is left begins.
#[inline(always)]
fn change_chunks<const W: usize, const I: usize, const O: usize>(
    inputs: [&[f32]; I],
    outputs: &mut [&mut [f32]; O],
    start: usize,
    change: &impl Fn([f32; I], [f32; O]) -> [f32; O],
) -> usize {
    let n = (outputs[0].len() - start) / W;
    let chunks: [&[[f32; W]]; I] = each(&[][..], |k| &inputs[k][start..].as_chunks().0[..n]);
    for i in 0..n {
        let from: [[f32; W]; I] = each([0.0; W], |k| chunks[k][i]);
        let mut to: [[f32; W]; O] = each([0.0; W], |k| outputs[k][start..].as_chunks().0[i]);
        for lane in 0..W {
            let new = change(each(0.0, |k| from[k][lane]), each(0.0, |k| to[k][lane]));
            for k in 0..O {
                to[k][lane] = new[k];
            }
        }
        for k in 0..O {
            outputs[k][start..].as_chunks_mut().0[i] = to[k];
        }
    }
    start + n * W
}

/// Adds rows to `out`, each times its weight, in their order; `row` gives them by their places. Four are added at once, so that `out` is
/// read and written for every fourth.
#[inline(always)]
pub(super) fn add_weighted<'a>(out: &mut [f32], weights: &[f32], row: impl Fn(usize) -> &'a [f32]) {
    let n = weights.len();
    for i in 0..n / 4 {
        let i = 4 * i;
        let [a, b, c, d] = [weights[i], weights[i + 1], weights[i + 2], weights[i + 3]];
        update(
            [row(i), row(i + 1), row(i + 2), row(i + 3)],
            [&mut *out],
            #[inline(always)]
            |[u, v, w, x], [out]| [out + a * u + b * v + c * w + d * x],
        );
    }
    for i in n / 4 * 4..n {
        let weight = weights[i];
        update(
            [row(i)],
            [&mut *out],
            #[inline(always)]
            |[value], [out]| [out + weight * value],
        );
    }
}

/// The one of `values` that `better` prefers to all others, or `worst`; `better` gives one of its two.
#[inline(always)]
fn best(values: &[f32], worst: f32, better: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [worst; LANES];
    let rest = prefer_chunks::<LANES>(&mut lanes, values, &better);
    let rest = prefer_chunks::<8>(&mut lanes, rest, &better);
    let rest = prefer_chunks::<4>(&mut lanes, rest, &better);
    let mut found = worst;
    for value in rest {
        found = better(found, *value);
    }
    for lane in lanes {
        found = better(found, lane);
    }
    found
}

/// Leaves the better of each of the first lanes and every `W`-th element; what is left of `values`.
#[inline(always)]
fn prefer_chunks<'a, const W: usize>(
    lanes: &mut [f32; LANES],
    values: &'a [f32],
    better: &impl Fn(f32, f32) -> f32,
) -> &'a [f32] {
    let (chunks, rest) = values.as_chunks::<W>();
    for chunk in chunks {
        for lane in 0..W {
            lanes[lane] = better(lanes[lane], chunk[lane]);
        }
    }
    rest
}

/// The highest of `values`, which are numbers.
#[inline(always)]
pub(super) fn max(values: &[f32]) -> f32 {
    best(values, f32::NEG_INFINITY, |a, b| if b > a { b } else { a })
}

/// The largest absolute value, of `values` that are numbers; 0 of none.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    best(values, 0.0, |a, b| if b.abs() > a { b.abs() } else { a })
}

/// Replaces values by `e^(value - max)`; their sum.
#[inline(always)]
pub(super) fn exponentials(values: &mut [f32], max: f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let rest = exponential_chunks::<LANES, 0>(&mut lanes, values, max);
    let rest = exponential_chunks::<8, 0>(&mut lanes, rest, max);
    let rest = exponential_chunks::<4, 8>(&mut lanes, rest, max);
    for (i, value) in rest.iter_mut().enumerate() {
        *value = exp(*value - max);
        lanes[12 + i] += *value;
    }
    total(lanes)
}

/// The same for every `W` values, which are added to as many lanes, from lane `AT` on; what is left.
#[inline(always)]
fn exponential_chunks<'a, const W: usize, const AT: usize>(
    lanes: &mut [f32; LANES],
    values: &'a mut [f32],
    max: f32,
) -> &'a mut [f32] {
    let (chunks, rest) = values.as_chunks_mut::<W>();
    for chunk in chunks {
        for lane in 0..W {
            chunk[lane] = exp(chunk[lane] - max);
            lanes[AT + lane] += chunk[lane];
        }
    }
    rest
}

/// The sum of the squares, in 64 bits, over all cores.
pub fn sum_of_squares(values: &[f32]) -> f64 {
    let of_chunk = |values: &[f32]| {
        vectorized(
            #[inline(always)]
            || {
                let mut lanes = [0f64; LANES];
                for chunk in values.chunks(LANES) {
                    for lane in 0..chunk.len() {
                        lanes[lane] += chunk[lane] as f64 * chunk[lane] as f64;
                    }
                }
                lanes.iter().sum::<f64>()
            },
        )
    };
    // Chunks of fixed size, added in order: the sum does not depend on the number of threads.
    let chunks: Vec<f64> = values.par_chunks(TASK).map(of_chunk).collect();
    chunks.iter().sum()
}

/// The logarithm of the sum of the exponentials of `values`, which are numbers.
pub fn log_sum_exp(values: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || {
            let highest = max(values);
            let mut piece = [0f32; 256];
            // Sums of a few hundred in 32 bits, the sum of those in 64. A loop: adapters of iterators are compiled apart, for
            // instructions that every machine has.
            let mut sum = 0f64;
            for chunk in values.chunks(piece.len()) {
                let piece = &mut piece[..chunk.len()];
                piece.copy_from_slice(chunk);
                sum += exponentials(piece, highest) as f64;
            }
            highest + sum.ln() as f32
        },
    )
}

/// The `n` highest of `values`, which are numbers, with their places, highest first; of equals those with the lowest places.
pub fn highest(values: &[f32], n: usize) -> Vec<(usize, f32)> {
    /// Values that are passed over at once if none is high enough.
    const CHUNK: usize = 128;
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(n + 1);
    vectorized(
        #[inline(always)]
        || {
            for (i, chunk) in values.chunks(CHUNK).enumerate() {
                if best.len() == n && max(chunk) <= best[n - 1].1 {
                    continue;
                }
                for (j, value) in chunk.iter().enumerate() {
                    if best.len() == n && *value <= best[n - 1].1 {
                        continue;
                    }
                    let place = best.partition_point(|(_, other)| other >= value);
                    best.insert(place, (i * CHUNK + j, *value));
                    best.truncate(n);
                }
            }
        },
    );
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equally_high_values_the_first_are_taken() {
        let values: Vec<f32> = (0..1000).map(|i| (i * 37 % 10) as f32).collect();
        let nines: Vec<(usize, f32)> = values.iter().copied().enumerate().filter(|(_, value)| *value == 9.0).collect();
        assert_eq!(highest(&values, 7), nines[..7]);
        assert_eq!(
            highest(&values, 101).last(),
            values.iter().position(|value| *value == 8.0).map(|i| (i, 8.0)).as_ref()
        );
        assert_eq!(highest(&[], 2), []);
        assert_eq!(highest(&[f32::NEG_INFINITY; 2], 2).len(), 2);
    }

    #[test]
    fn a_total_takes_every_lane_once() {
        // Powers of two, which any lane left out or taken twice would show.
        assert_eq!(total(std::array::from_fn(|i| (1 << i) as f32)), 65535.0);
    }

    #[test]
    fn every_row_is_added_with_its_weight() {
        for n in 0..10 {
            let rows: Vec<Vec<f32>> = (0..n).map(|i| (0..21).map(|j| (100 * i + j) as f32).collect()).collect();
            let weights: Vec<f32> = (1..=n).map(|i| i as f32).collect();
            let mut out = vec![1.0; 21];
            add_weighted(&mut out, &weights, |i| &rows[i]);
            for (j, found) in out.iter().enumerate() {
                let expected: f32 = 1.0 + rows.iter().zip(&weights).map(|(row, weight)| weight * row[j]).sum::<f32>();
                assert_eq!(*found, expected, "element {j} of {n} rows");
            }
        }
    }

    #[test]
    fn sums_and_updates_take_every_element_once() {
        for len in [0, 1, 4, 7, 8, 12, 15, 16, 17, 28, 47, 64] {
            let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
            assert_eq!(sum([&values, &values], |[a, b]| a + b), (len * len.max(1) - len) as f32, "{len}");
            let mut out = vec![1.0; len];
            update([&values], [&mut out], |[x], [old]| [2.0 * x + old]);
            assert!(out.iter().enumerate().all(|(i, value)| *value == 2.0 * i as f32 + 1.0), "{len}");
            let found = highest(&values, 3);
            assert_eq!(found, (0..len).rev().take(3).map(|i| (i, i as f32)).collect::<Vec<_>>());
            assert_eq!(largest(&values.iter().map(|value| -value).collect::<Vec<_>>()), (len as f32 - 1.0).max(0.0));
            assert_eq!(max(&values), if len == 0 { f32::NEG_INFINITY } else { len as f32 - 1.0 });
        }
    }
}
