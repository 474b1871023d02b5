//! Rows of a table by their numbers.

use super::machine::vectorized;
use super::memory::{Start, new_pieces, task_rows, zeros};
use super::vectors::update;

/// `scale E[id]` for every id, one after the other.
///
/// # Panics
/// If the table, rows of `width`, has no row for an id.
pub fn embed(table: &[f32], width: usize, ids: &[usize], scale: f32) -> Vec<f32> {
    let pieces = new_pieces(
        Start::Zeros(ids.len() * width),
        task_rows(width) * width,
        #[inline(always)]
        |start, out| {
            for (out, id) in out.chunks_exact_mut(width).zip(&ids[start / width..]) {
                update(
                    [&table[id * width..][..width]],
                    [out],
                    #[inline(always)]
                    |[value], _| [scale * value],
                );
            }
        },
    );
    pieces.0
}

/// The gradient of a table of `n_words` rows, from that of [`embed`].
pub fn back(gradient: &[f32], [n_words, width]: [usize; 2], ids: &[usize], scale: f32) -> Vec<f32> {
    let mut out = zeros(n_words * width);
    // Row after row: a word that occurs twice has both gradients, always added in this order.
    vectorized(
        #[inline(always)]
        || {
            for (gradient, id) in gradient.chunks_exact(width).zip(ids) {
                update(
                    [gradient],
                    [&mut out[id * width..][..width]],
                    #[inline(always)]
                    |[gradient], [sum]| [sum + scale * gradient],
                );
            }
        },
    );
    out
}
