//! Vectors that all cores fill, piece by piece.
//!
//! `unsafe` because new memory is written once, by the core that goes on to use it, instead of being cleared by one core first, and because
//! memory is fetched ahead by pointer.
#![allow(unsafe_code)]

use super::machine::vectorized;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// What a new vector begins as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Start<'a> {
    /// So many zeros.
    Zeros(usize),
    /// A copy.
    Copy(&'a [f32]),
}

/// A new vector made over all cores in pieces of `piece_len` elements, and what `work` says of each. `work` gets the place at
/// which a piece begins, and the piece as it starts, still in the cache of its core.
pub(crate) fn new_pieces<T: Send>(
    start: Start,
    piece_len: usize,
    work: impl Fn(usize, &mut [f32]) -> T + Sync,
) -> (Vec<f32>, Vec<T>) {
    let len = match start {
        Start::Zeros(len) => len,
        Start::Copy(values) => values.len(),
    };
    let mut values = Vec::with_capacity(len);
    let make = |(i, piece): (usize, &mut [MaybeUninit<f32>])| {
        let place = i * piece_len;
        let piece = match start {
            Start::Zeros(_) => {
                piece.iter_mut().for_each(|value| _ = value.write(0.0));
                // SAFETY: every element has just been written.
                unsafe { piece.assume_init_mut() }
            }
            Start::Copy(values) => piece.write_copy_of_slice(&values[place..place + piece.len()]),
        };
        vectorized(
            #[inline(always)]
            || work(place, piece),
        )
    };
    let pieces = &mut values.spare_capacity_mut()[..len];
    let results = if len <= piece_len {
        pieces.chunks_mut(piece_len.max(1)).enumerate().map(make).collect()
    } else {
        pieces.par_chunks_mut(piece_len).enumerate().map(make).collect()
    };
    // SAFETY: the pieces are all of the first `len` elements, and each has been written.
    unsafe { values.set_len(len) };
    (values, results)
}

/// Zeros, written by all cores.
pub fn zeros(len: usize) -> Vec<f32> {
    new_pieces(Start::Zeros(len), TASK, |_, _| ()).0
}

/// A copy, written by all cores.
pub fn copied(values: &[f32]) -> Vec<f32> {
    new_pieces(Start::Copy(values), TASK, |_, _| ()).0
}

/// A new matrix, row after row, made over all cores in blocks of `block` columns. `work` gets the first column of a block and, of every
/// row, the piece inside the block, cleared.
pub(crate) fn new_columns(
    n_rows: usize,
    n_columns: usize,
    block: usize,
    work: impl Fn(usize, &mut [&mut [f32]]) + Sync,
) -> Vec<f32> {
    let len = n_rows * n_columns;
    let mut values: Vec<f32> = Vec::with_capacity(len);
    let n_blocks = if len == 0 { 0 } else { n_columns.div_ceil(block) };
    let mut blocks: Vec<Vec<&mut [MaybeUninit<f32>]>> = (0..n_blocks).map(|_| Vec::with_capacity(n_rows)).collect();
    for row in values.spare_capacity_mut()[..len].chunks_mut(n_columns.max(1)) {
        row.chunks_mut(block).zip(&mut blocks).for_each(|(piece, block)| block.push(piece));
    }
    let make = |(i, pieces): (usize, Vec<&mut [MaybeUninit<f32>]>)| {
        let clear = |piece: &mut [MaybeUninit<f32>]| piece.iter_mut().for_each(|value| _ = value.write(0.0));
        let mut pieces: Vec<&mut [f32]> = pieces
            .into_iter()
            .map(|piece| {
                clear(piece);
                // SAFETY: every element has just been written.
                unsafe { piece.assume_init_mut() }
            })
            .collect();
        work(i * block, &mut pieces);
    };
    if n_blocks <= 1 {
        blocks.into_iter().enumerate().for_each(make);
    } else {
        blocks.into_par_iter().enumerate().for_each(make);
    }
    // SAFETY: the pieces are all of the first `len` elements, and each has been written.
    unsafe { values.set_len(len) };
    values
}

/// Tasks that the columns of each of `n_rows` rows are cut into, where rows alone are too few for all cores: a power of two that divides
/// `n_columns`, as long as `is_enough` says that so many tasks have enough to do.
pub(crate) fn column_groups(n_rows: usize, n_columns: usize, is_enough: impl Fn(usize) -> bool) -> usize {
    let mut groups = 1;
    while n_rows * groups < 2 * rayon::current_num_threads()
        && n_columns.is_multiple_of(2 * groups)
        && is_enough(2 * groups)
    {
        groups *= 2;
    }
    groups
}

/// Groups of columns side by side: `[n_matrices, n_groups, n_rows, width]` becomes `[n_matrices, n_rows, n_groups * width]`.
pub(crate) fn side_by_side(values: Vec<f32>, n_rows: usize, width: usize, n_groups: usize) -> Vec<f32> {
    if n_groups == 1 || values.is_empty() {
        return values;
    }
    let mut whole = vec![0.0; values.len()];
    whole.par_chunks_mut(n_groups * width).enumerate().for_each(|(i, out)| {
        let (matrix, row) = (i / n_rows, i % n_rows);
        for (group, out) in out.chunks_exact_mut(width).enumerate() {
            out.copy_from_slice(&values[((matrix * n_groups + group) * n_rows + row) * width..][..width]);
        }
    });
    whole
}

/// Asks for the line of memory that is `distance` elements from `at`, whether there is one or not; nothing on processors other than x86.
#[inline(always)]
pub(crate) fn fetch_ahead(at: &[f32], distance: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: nothing is read: the processor drops what it cannot fetch.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.as_ptr().wrapping_add(distance).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, distance);
}

/// Elements that one task works on: enough to outweigh starting it, and little enough for the cache.
pub const TASK: usize = 1 << 14;

/// Rows of `width` elements that make a task.
pub fn task_rows(width: usize) -> usize {
    (TASK / width.max(1)).max(1)
}

/// Calls `work` on pieces of `out` over all cores, with the place at which each begins. Pieces have whole rows of `width`.
pub(crate) fn for_pieces(out: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let len = task_rows(width) * width;
    if out.len() <= len {
        return vectorized(
            #[inline(always)]
            || work(0, out),
        );
    }
    out.par_chunks_mut(len).enumerate().for_each(|(i, piece)| {
        vectorized(
            #[inline(always)]
            || work(i * len, piece),
        )
    });
}

/// A copy of `values` on which `work` has been called as by [`for_pieces`].
pub(crate) fn mapped(values: &[f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    new_pieces(Start::Copy(values), task_rows(width) * width, work).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_new_vector_once_in_order() {
        for len in [0, 1, 10, 31, 100] {
            let (values, starts) = new_pieces(Start::Zeros(len), 10, |start, piece| {
                piece.iter_mut().for_each(|value| *value += 1.0);
                (start, piece.len())
            });
            assert_eq!(values, vec![1.0; len]);
            assert_eq!(starts, (0..len).step_by(10).map(|i| (i, 10.min(len - i))).collect::<Vec<_>>());
            let from: Vec<f32> = (0..len).map(|i| 0.5 * i as f32 - 3.0).collect();
            let (doubled, _) = new_pieces(Start::Copy(&from), 10, |_, piece| piece.iter_mut().for_each(|v| *v *= 2.0));
            assert_eq!(doubled, from.iter().map(|value| 2.0 * value).collect::<Vec<_>>());
        }
    }
}
