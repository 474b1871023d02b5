//! Products with a single row: one pass over the right-hand matrix, as fast as memory gives it.
//!
//! A decoder that writes one sentence multiplies one row with every matrix of the model at each step; the `gemm` crate does
//! that on one core. From two rows on other ways are faster (`product.rs`).

use crate::machine::{Threads, vectorized};
use crate::matrix::{Matrix, MatrixMut};
use crate::vectors::sum;
use rayon::prelude::*;

/// Columns that a task computes.
const COLUMNS: usize = 512;

/// Elements of the right-hand matrix from which on the work is spread over all cores.
const PARALLEL_FROM: usize = 1 << 17;

/// `out = scale * a b`, or added to it, where `a` is a row.
pub fn product(out: MatrixMut, a: Matrix, b: Matrix, scale: f32, add: bool, threads: Threads) {
    let depth = a.n_columns();
    let row: Vec<f32> = (0..depth).map(|k| scale * a.at(0, k)).collect();
    let out = out.into_row();
    let task = |(task, out): (usize, &mut [f32])| {
        vectorized(
            #[inline(always)]
            || columns(out, &row, b, task * COLUMNS, add),
        )
    };
    if threads == Threads::All && depth * out.len() >= PARALLEL_FROM {
        out.par_chunks_mut(COLUMNS).enumerate().for_each(task);
    } else {
        out.chunks_mut(COLUMNS).enumerate().for_each(task);
    }
}

/// Some columns of a row, from column `first` on.
#[inline(always)]
fn columns(out: &mut [f32], row: &[f32], b: Matrix, first: usize, add: bool) {
    if !add {
        out.fill(0.0);
    }
    if let Some(column) = b.columns() {
        for (j, out) in out.iter_mut().enumerate() {
            *out += sum(
                [row, column(first + j)],
                #[inline(always)]
                |[x, w]| x * w,
            );
        }
        return;
    }
    // Four rows of the matrix at once, so that the sums are read and written a quarter as often.
    let len = out.len();
    let piece = |k: usize| &b.row(k)[first..first + len];
    let (fours, rest) = row.as_chunks::<4>();
    for (i, x) in fours.iter().enumerate() {
        let [a, b, c, d] = [piece(4 * i), piece(4 * i + 1), piece(4 * i + 2), piece(4 * i + 3)];
        for ((out, (a, b)), (c, d)) in out.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
            *out += x[0] * a + x[1] * b + x[2] * c + x[3] * d;
        }
    }
    for (i, x) in rest.iter().enumerate() {
        let from = piece(4 * fours.len() + i);
        out.iter_mut().zip(from).for_each(|(out, w)| *out += x * w);
    }
}
