//! Loops that the compiler turns into the widest instructions of the machine at hand.

use crate::random::Stream;

/// Runs `work`, compiled for the instructions that this machine has. What it calls has to be inlined into it.
#[inline(always)]
pub fn vectorized<T>(work: impl FnOnce() -> T) -> T {
    pulp::Arch::new().dispatch(work)
}

/// Elements that the compiler may keep side by side.
const LANES: usize = 16;

/// The sum of `term` over the elements of vectors of one length, in lanes.
// Written with places, since zipped iterators over several arrays do not become wide instructions.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
pub fn sum<const N: usize>(vectors: [&[f32]; N], term: impl Fn([f32; N]) -> f32) -> f32 {
    let chunks = vectors.map(|vector| vector.as_chunks::<LANES>());
    // One length for all, which the compiler sees: no test remains inside the loop.
    let n = chunks.iter().map(|(chunks, _)| chunks.len()).min().unwrap_or(0);
    let whole = chunks.map(|(chunks, _)| &chunks[..n]);
    let mut lanes = [0f32; LANES];
    for i in 0..n {
        let at: [&[f32; LANES]; N] = std::array::from_fn(|k| &whole[k][i]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(std::array::from_fn(|k| at[k][lane]));
        }
    }
    let rest = chunks.map(|(_, rest)| rest);
    let n_rest = rest.iter().map(|rest| rest.len()).min().unwrap_or(0);
    (0..n_rest).fold(lanes.iter().sum::<f32>(), |sum, i| sum + term(std::array::from_fn(|k| rest[k][i])))
}

/// Replaces the elements of `outputs` by what `change` makes of those of `inputs` and of their own, all vectors being of one
/// length. Elements are taken up before any is put down, so that the compiler need not ask which vectors overlap.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
pub fn update<const I: usize, const O: usize>(
    inputs: [&[f32]; I],
    outputs: [&mut [f32]; O],
    change: impl Fn([f32; I], [f32; O]) -> [f32; O],
) {
    let inputs = inputs.map(|vector| vector.as_chunks::<LANES>());
    let outputs = outputs.map(|vector| vector.as_chunks_mut::<LANES>());
    let n = outputs.iter().map(|(chunks, _)| chunks.len()).min().unwrap_or(0);
    let whole = inputs.map(|(chunks, _)| &chunks[..n]);
    for i in 0..n {
        let from: [[f32; LANES]; I] = std::array::from_fn(|k| whole[k][i]);
        let mut to: [[f32; LANES]; O] = std::array::from_fn(|k| outputs[k].0[i]);
        for lane in 0..LANES {
            let new = change(std::array::from_fn(|k| from[k][lane]), std::array::from_fn(|k| to[k][lane]));
            for k in 0..O {
                to[k][lane] = new[k];
            }
        }
        for k in 0..O {
            outputs[k].0[i] = to[k];
        }
    }
    let n_rest = outputs.iter().map(|(_, rest)| rest.len()).min().unwrap_or(0);
    for i in 0..n_rest {
        let new = change(std::array::from_fn(|k| inputs[k].1[i]), std::array::from_fn(|k| outputs[k].1[i]));
        for k in 0..O {
            outputs[k].1[i] = new[k];
        }
    }
}

/// The highest of `values`, which are numbers.
#[inline(always)]
pub fn max(values: &[f32]) -> f32 {
    let highest = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    let rest = rest.iter().copied().fold(f32::NEG_INFINITY, highest);
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = highest(*lane, *value);
        }
    }
    lanes.into_iter().fold(rest, highest)
}

/// The largest absolute value, of `values` that are numbers; 0 of none.
#[inline(always)]
pub fn largest(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b.abs() > a { b.abs() } else { a };
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    let rest = rest.iter().copied().fold(0.0, larger);
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *value);
        }
    }
    lanes.into_iter().fold(rest, larger)
}

/// Replaces values by `e^(value - max)`; their sum.
#[inline(always)]
pub fn exponentials(values: &mut [f32], max: f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for (value, lane) in chunk.iter_mut().zip(&mut lanes) {
            *value = exp(*value - max);
            *lane += *value;
        }
    }
    for (value, lane) in rest.iter_mut().zip(&mut lanes) {
        *value = exp(*value - max);
        *lane += *value;
    }
    lanes.iter().sum()
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

/// `e^x` for `x <= 88` to about one unit in the last place, zero below -87, in instructions that work on many elements at once.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // e^x = 2^n e^r with |r| <= ln(2) / 2; adding 1.5 * 2^23 leaves the integer n in the lowest bits.
    let clamped = if x < -87.0 { -87.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + 12_582_912.0;
    let n = shifted - 12_582_912.0;
    let r = (clamped - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p =
        1.0 + r * (1.0 + r * (0.5 + r * (0.166_666_67 + r * (0.041_666_54 + r * (0.008_333_95 + r * 0.001_394_4)))));
    let value = p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { value }
}

/// Zero for what is below 1e-30. A gradient that goes back over hundreds of steps fades through numbers that are too small to be
/// stored as others are, and arithmetic with those takes a hundred times as long.
#[inline(always)]
pub fn flushed(x: f32) -> f32 {
    if x.abs() < 1e-30 { 0.0 } else { x }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    // Beyond 88 on the negative side the sum would overflow.
    1.0 / (1.0 + exp(if x < -88.0 { 88.0 } else { -x }))
}

/// The hyperbolic tangent, to about 1e-7 of itself.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp(-2.0 * x.abs());
    let far = ((1.0 - e) / (1.0 + e)).copysign(x);
    // Near zero the difference above has few digits left; the series has all of them.
    let y = x * x;
    let near = x * (1.0 + y * (-1.0 / 3.0 + y * (2.0 / 15.0 + y * (-17.0 / 315.0 + y * (62.0 / 2835.0)))));
    if x.abs() < 0.25 { near } else { far }
}

/// Which elements are dropped, computed wherever it is needed and never stored.
#[derive(Clone, Copy, Debug)]
pub struct Dropout {
    stream: Stream,
    threshold: u32,
    /// What an element that stays is multiplied by.
    kept: f32,
}

impl Dropout {
    /// Elements are zero with probability `rate`; the numbers are those of [`Stream::dropout_mask`].
    pub fn new(stream: Stream, rate: f64) -> Self {
        Self { stream, threshold: Stream::dropout_threshold(rate), kept: Stream::dropout_scale(rate) }
    }

    /// What an element that stays is multiplied by.
    pub fn kept(&self) -> f32 {
        self.kept
    }

    /// What the element at `place` is multiplied by.
    #[inline(always)]
    pub fn factor(&self, place: usize) -> f32 {
        let bits = self.stream.bits(place as u64 / 2);
        let half = if place.is_multiple_of(2) { bits as u32 } else { (bits >> 32) as u32 };
        if half < self.threshold { 0.0 } else { self.kept }
    }

    /// Calls `work` with every element and its factor; `values` begins at place `start`.
    #[inline(always)]
    pub fn each(&self, start: usize, values: &mut [f32], mut work: impl FnMut(usize, &mut f32, f32)) {
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
            for (i, (value, factor)) in piece.iter_mut().zip(&factors).enumerate() {
                work(odd + 128 * block + i, value, *factor);
            }
        }
    }

    /// Multiplies the elements, of which the first is at place `start`.
    #[inline(always)]
    pub fn apply(&self, start: usize, values: &mut [f32]) {
        self.each(start, values, |_, value, factor| *value *= factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error relative to `f64`, and where.
    fn worst(values: impl Iterator<Item = f32>, found: fn(f32) -> f32, expected: fn(f64) -> f64) -> (f64, f32) {
        let error = |x: f32| ((found(x) as f64 / expected(x as f64) - 1.0).abs(), x);
        values.map(error).fold((0.0, 0.0), |worst, here| if here.0 > worst.0 { here } else { worst })
    }

    fn between(low: f32, high: f32) -> impl Iterator<Item = f32> {
        (0..=200_000).map(move |i| low + (high - low) * (i as f32 / 200_000.0))
    }

    #[test]
    fn functions_are_those_of_the_standard_library_to_a_few_units_in_the_last_place() {
        let (error, x) = worst(between(-86.9, 87.9), exp, f64::exp);
        assert!(error < 2e-6, "exp({x}) is {error:.1e} off");
        let (error, x) = worst(between(-20.0, 20.0).chain(between(-1.0, 1.0)).filter(|x| *x != 0.0), tanh, f64::tanh);
        assert!(error < 5e-7, "tanh({x}) is {error:.1e} off");
        let (error, x) = worst(between(-20.0, 88.0), sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
        assert!(error < 5e-6, "sigmoid({x}) is {error:.1e} off");
    }

    #[test]
    fn the_ends_of_the_line_are_exact() {
        assert_eq!([exp(0.0), exp(-1e4), exp(f32::NEG_INFINITY)], [1.0, 0.0, 0.0]);
        assert_eq!([tanh(0.0), tanh(50.0), tanh(-50.0), tanh(f32::INFINITY)], [0.0, 1.0, -1.0, 1.0]);
        assert_eq!([sigmoid(0.0), sigmoid(200.0), sigmoid(f32::INFINITY)], [0.5, 1.0, 1.0]);
        assert!(sigmoid(-200.0) < 1e-37 && sigmoid(f32::NEG_INFINITY) < 1e-37);
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
    }

    #[test]
    fn only_what_is_too_small_to_matter_is_flushed() {
        assert_eq!([flushed(1e-31), flushed(-1e-40), flushed(f32::MIN_POSITIVE)], [0.0; 3]);
        assert_eq!([flushed(1e-29), flushed(-2.0), flushed(f32::INFINITY)], [1e-29, -2.0, f32::INFINITY]);
        assert!(flushed(f32::NAN).is_nan());
    }

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
    fn sums_and_updates_take_every_element_once() {
        for len in [0, 1, 15, 16, 17, 47, 64] {
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
