//! The likeliest words of a step on a GPU: one launch, where burn's operations take a dozen.

use super::cube::{cube_for_each, max_of_cube, sum_of_cube};
use super::{computed_plain, new_like};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Units that share a row: a power of two, and no more than every GPU has.
const UNITS: u32 = 256;
/// Words up to which a float holds every number.
const MOST_WORDS: usize = 1 << 24;

/// Backends that choose words.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait LikeliestKernels: Backend {
    /// The log-probability and the number of the `n` likeliest words of each row, of those from `first` on: `[rows, 2 n]`.
    #[fusion(meta = |logits, _first, n| {
        burn::backend::fusion::custom::TensorSpec::new([logits.shape[0], 2 * n].into(), logits.dtype)
    })]
    fn likeliest_words(logits: FloatTensor<Self>, first: usize, n: usize) -> FloatTensor<Self>;
}

/// The log-probability and the number of the `n` likeliest words of each row, of those from `first` on, best first; of equals those with
/// the lowest numbers. None where the tensor has a graph or is not one of 32-bit floats on a device that has this kernel, and where a float
/// does not hold the number of every word.
///
/// # Shapes
/// - logits: `[rows, n_words]`
/// - output: `[rows, 2 n]`
pub fn likeliest(logits: &Tensor<2>, first: usize, n: usize) -> Option<Tensor<2>> {
    let n_words = logits.dims()[1];
    assert!(first + n <= n_words, "{n} words from {first} on, of {n_words}");
    if n_words > MOST_WORDS {
        return None;
    }
    Some(Tensor::from_dispatch(Dispatch::likeliest_words(computed_plain(logits)?, first, n)))
}

impl LikeliestKernels for CubeBackend {
    fn likeliest_words(logits: FloatTensor<Self>, first: usize, n: usize) -> FloatTensor<Self> {
        let logits = into_contiguous(logits);
        let [rows, n_words] = [0, 1].map(|axis| logits.meta.shape()[axis]);
        let found = new_like(&logits, [rows, 2 * n].into());
        choose::launch(
            &logits.client.clone(),
            cube_for_each(rows),
            CubeDim::new_1d(UNITS),
            logits.into_buffer_arg(),
            found.clone().into_buffer_arg(),
            rows,
            n_words,
            first,
            n,
        );
        found
    }
}

/// Each cube a row, which it goes through for the largest logit, for the sum of the exponentials, and once for each word that is chosen; each
/// unit every so-many-th word.
#[cube(launch)]
fn choose(logits: &[f32], found: &mut [f32], n_rows: usize, n_words: usize, first: usize, n: usize) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * n_words;
        let unit = UNIT_POS as usize;
        let step = comptime!(UNITS as usize).runtime();
        let mut own = f32::min_value();
        let mut word = unit;
        while word < n_words {
            own = max(own, logits[start + word]);
            word += step;
        }
        let highest = max_of_cube(own, UNITS);
        own = 0.0f32;
        word = unit;
        while word < n_words {
            own += (logits[start + word] - highest).exp();
            word += step;
        }
        let log_sum = highest + sum_of_cube(own, UNITS).ln();

        let mut values = Shared::<[f32]>::new_slice(comptime!(UNITS as usize));
        let mut words = Shared::<[u32]>::new_slice(comptime!(UNITS as usize));
        let mut last_value = 0.0f32;
        let mut last_word = 0usize;
        for i in 0..n {
            let mut best = 0.0f32;
            let mut best_word = n_words;
            word = first + unit;
            while word < n_words {
                let value = logits[start + word];
                // What comes behind the last one found, in the order of words.
                let is_left = i == 0 || value < last_value || (value == last_value && word > last_word);
                if is_left && (best_word == n_words || value > best) {
                    best = value;
                    best_word = word;
                }
                word += step;
            }
            values[unit] = best;
            words[unit] = best_word as u32;
            sync_cube();
            let mut half = comptime!(UNITS / 2).runtime();
            while half > 0 {
                if UNIT_POS < half {
                    let other = (UNIT_POS + half) as usize;
                    let (value, other_value) = (values[unit], values[other]);
                    let (own_word, other_word) = (words[unit], words[other]);
                    let is_there = (other_word as usize) < n_words;
                    let is_better = own_word as usize == n_words
                        || other_value > value
                        || (other_value == value && other_word < own_word);
                    if is_there && is_better {
                        values[unit] = other_value;
                        words[unit] = other_word;
                    }
                }
                sync_cube();
                half /= 2;
            }
            last_value = values[0];
            last_word = words[0] as usize;
            if UNIT_POS == 0 {
                let at = (row * n + i) * 2;
                found[at] = last_value - log_sum;
                // Where no number can be compared there is none left.
                found[at + 1] = f32::cast_from(min(last_word, n_words - 1));
            }
            // Every unit has read what the next word overwrites.
            sync_cube();
        }
    }
}
