//! Sums with rows, and of rows.

use super::machine::vectorized;
use super::memory::for_pieces;
use super::vectors::update;
use rayon::prelude::*;

/// Adds `bias` to every row, over all cores.
pub fn add_to_rows(rows: &mut [f32], bias: &[f32]) {
    for_pieces(
        rows,
        bias.len(),
        #[inline(always)]
        |_, piece| add_to_piece(piece, bias),
    );
}

/// The same to some of them, on one core.
#[inline(always)]
pub(super) fn add_to_piece(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        update(
            [bias],
            [row],
            #[inline(always)]
            |[bias], [value]| [value + bias],
        );
    }
}

/// The sum of the rows of `values`, each `width` long, always in the same order.
pub fn sum_of_rows(values: &[f32], width: usize) -> Vec<f32> {
    // Pieces of fixed size, added in order: the sum does not depend on the number of threads.
    let partial = |rows: &[f32]| sum_in_order(rows.chunks_exact(width), width);
    let partials: Vec<Vec<f32>> = values.par_chunks(64 * width).map(partial).collect();
    sum_in_order(partials.iter().map(Vec::as_slice), width)
}

/// Columns whose sums stay in registers while rows are read.
const COLUMNS: usize = 64;

/// The sum of rows of `width` elements, one after the other, however many threads have made them.
pub(super) fn sum_in_order<'a>(rows: impl Iterator<Item = &'a [f32]>, width: usize) -> Vec<f32> {
    let rows: Vec<&[f32]> = rows.collect();
    let mut sum = vec![0.0; width];
    vectorized(
        #[inline(always)]
        || {
            let (blocks, rest) = sum.as_chunks_mut::<COLUMNS>();
            for (i, block) in blocks.iter_mut().enumerate() {
                let mut own = [0.0; COLUMNS];
                for row in &rows {
                    let (values, _) = row[i * COLUMNS..].as_chunks::<COLUMNS>();
                    for (own, value) in own.iter_mut().zip(&values[0]) {
                        *own += value;
                    }
                }
                *block = own;
            }
            let start = width - rest.len();
            for row in &rows {
                update(
                    [&row[start..]],
                    [&mut *rest],
                    #[inline(always)]
                    |[value], [sum]| [sum + value],
                );
            }
        },
    );
    sum
}
