//! Products of rows with a matrix that is kept in panels.
//!
//! The `gemm` crate reads a large matrix as it lies or copies it together first; with few rows, either costs more than the sums.
//! A panel of 64 columns, input after input, is read from its beginning to its end: memory brings it as fast as it can. Panels
//! are copied together once for all steps of a recurrence or of a search (`packed.rs`), or when they are used, from whatever the
//! matrix is stored as ([`product`]).

use crate::machine::dispatch;
use crate::matrix::Matrix;
use crate::memory::{fetch_ahead, new_columns};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// Columns of a panel.
pub const WIDTH: usize = 64;

/// One row of a panel, or of a product with it.
pub type PanelRow = [f32; WIDTH];

/// Inputs that are loaded at a time: their floats stay in the first cache while all rows are multiplied.
pub const DEPTH: usize = 128;

/// Lines of the cache in a row of a panel.
const LINES: usize = size_of::<PanelRow>() / 64;

/// Rows that are multiplied at a time, at most.
const MOST_ROWS: usize = 6;

/// Multiplications that make a task.
const TASK_PRODUCTS: usize = 1 << 17;

/// Adds `x[r][k] panel[k]` to `sums[r]` for every input, always in their order: a row has the same sums whatever other rows
/// there are. `load(k, rows)` writes the rows of the panel from `k` on as floats.
///
/// # Shapes
/// - x: `[n_rows, n_inputs]`
/// - sums: `[n_rows, WIDTH]`
pub fn multiply(x: Matrix, sums: &mut [PanelRow], load: impl Fn(usize, &mut [PanelRow])) {
    dispatch(Loaded { x, sums, load });
}

struct Loaded<'a, L> {
    x: Matrix<'a>,
    sums: &'a mut [PanelRow],
    load: L,
}

/// A piece of a panel. A vector across two lines of the cache would take two loads.
#[repr(align(64))]
struct Piece([PanelRow; DEPTH]);

impl<L: Fn(usize, &mut [PanelRow])> WithSimd for Loaded<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, sums, load } = self;
        let mut piece = Piece([[0.0; WIDTH]; DEPTH]);
        for start in (0..x.n_columns()).step_by(DEPTH) {
            let n = DEPTH.min(x.n_columns() - start);
            let panel = &mut piece.0[..n];
            load(start, panel);
            add_rows::<S, false>(simd, panel, (x, start), sums);
        }
    }
}

/// Adds the products of all rows with a piece of a panel that begins at input `start`. With `GOES_ON`, the next piece lies behind this one,
/// and memory is asked for it in time.
#[inline(always)]
pub fn add_rows<S: Simd, const GOES_ON: bool>(simd: S, panel: &[PanelRow], x: (Matrix, usize), sums: &mut [PanelRow]) {
    let mut done = 0;
    // So many rows at a time, each with so many vectors of sums, as find room beside the vectors of weights and one factor: there are 16
    // registers with AVX2, and 32 elsewhere. The weights of a single row are used once and come from memory. Few rows wait for memory, which
    // brings long pieces of a panel faster than short ones: they take more vectors, although one finds no room.
    macro_rules! add {
        ($($rows:literal by $vectors:literal),+) => {
            $(done += add_blocks::<S, $rows, $vectors, GOES_ON>(simd, panel, x, done, sums);)+
        };
    }
    if S::F32_LANES == 8 {
        add!(6 by 2, 3 by 4, 2 by 4, 1 by 8);
    } else {
        add!(6 by 4, 5 by 4, 4 by 4, 3 by 4, 2 by 4, 1 by 4);
    }
    debug_assert_eq!(done, sums.len(), "one row at a time is the last");
}

/// Rows from `first` on, `R` at a time with `V` vectors of sums each, as far as there are so many. The number of rows that it has taken.
#[inline(always)]
fn add_blocks<S: Simd, const R: usize, const V: usize, const GOES_ON: bool>(
    simd: S,
    panel: &[PanelRow],
    (x, start): (Matrix, usize),
    first: usize,
    sums: &mut [PanelRow],
) -> usize {
    let n_rows = sums.len();
    let (blocks, _) = sums[first..].as_chunks_mut::<R>();
    // Columns before rows: the weights of a group stay in the first cache.
    for group in 0..WIDTH.div_ceil(V * S::F32_LANES) {
        for (i, sums) in blocks.iter_mut().enumerate() {
            let mut rows = [&[][..]; R];
            for (r, row) in rows.iter_mut().enumerate() {
                *row = &x.row(first + i * R + r)[start..];
            }
            // Every tile asks for its part of the lines, so that memory has the time of all.
            let (tile, n_tiles) = ((first + i * R) / MOST_ROWS, n_rows.div_ceil(MOST_ROWS));
            let ahead = if GOES_ON && group == 0 { LINES * tile / n_tiles..LINES * (tile + 1) / n_tiles } else { 0..0 };
            add_block::<S, R, V>(simd, panel, rows, sums, group, ahead);
        }
    }
    blocks.len() * R
}

/// Adds the products of `R` rows with a piece of a panel, in the columns of one group of vectors; the sums are in registers.
#[inline(always)]
fn add_block<S: Simd, const R: usize, const V: usize>(
    simd: S,
    panel: &[PanelRow],
    mut x: [&[f32]; R],
    sums: &mut [PanelRow; R],
    group: usize,
    ahead: Range<usize>,
) {
    // Lengths that the compiler sees, which it does not inside a closure: no test remains inside the loop.
    for x in &mut x {
        *x = &x[..panel.len()];
    }
    let mut totals = [[simd.splat_f32s(0.0); V]; R];
    for (r, totals) in totals.iter_mut().enumerate() {
        *totals = vectors_of::<S, V>(simd, &sums[r], group);
    }
    for (k, weights) in panel.iter().enumerate() {
        for line in ahead.clone() {
            fetch_ahead(weights, DEPTH * WIDTH + line * WIDTH / LINES);
        }
        let weights = vectors_of::<S, V>(simd, weights, group);
        for r in 0..R {
            let factor = simd.splat_f32s(x[r][k]);
            for i in 0..V {
                totals[r][i] = simd.mul_add_e_f32s(factor, weights[i], totals[r][i]);
            }
        }
    }
    for (sums, totals) in sums.iter_mut().zip(totals) {
        let sums = S::as_mut_simd_f32s(sums).0;
        for (i, total) in totals.into_iter().enumerate() {
            sums[V * group + i] = total;
        }
    }
}

/// The vectors of a group. As a closure this stayed a call in the loops of one and two rows, and eight rows took longer than sixteen.
#[inline(always)]
fn vectors_of<S: Simd, const V: usize>(simd: S, row: &PanelRow, group: usize) -> [S::f32s; V] {
    let row = S::as_simd_f32s(row).0;
    let mut vectors = [simd.splat_f32s(0.0); V];
    for (i, vector) in vectors.iter_mut().enumerate() {
        *vector = row[V * group + i];
    }
    vectors
}

/// The product of the rows of `x` with a matrix of `n_columns` that is loaded panel by panel, over all cores: `load(panel, k,
/// rows)` writes the rows of a panel from input `k` on as floats.
///
/// # Shapes
/// - output: `[n_rows, n_columns]`
pub fn product(x: Matrix, n_columns: usize, load: impl Fn(usize, usize, &mut [PanelRow]) + Sync) -> Vec<f32> {
    in_panels(x, n_columns, |panel, sums| {
        multiply(
            x,
            sums,
            #[inline(always)]
            |k, rows| load(panel, k, rows),
        );
    })
}

/// A product with a matrix of `n_columns`, over all cores; `add(panel, sums)` adds the products of the rows of `x` with a panel.
pub fn in_panels(x: Matrix, n_columns: usize, add: impl Fn(usize, &mut [PanelRow]) + Sync) -> Vec<f32> {
    let n_rows = x.n_rows();
    let block = columns_of_task(n_rows * x.n_columns(), n_columns, TASK_PRODUCTS);
    new_columns(n_rows, n_columns, block, |first, out| {
        let mut sums = vec![[0.0; WIDTH]; n_rows];
        for start in (0..out[0].len()).step_by(WIDTH) {
            sums.as_flattened_mut().fill(0.0);
            add((first + start) / WIDTH, &mut sums);
            for (out, sums) in out.iter_mut().zip(&sums) {
                let out = &mut out[start..];
                let n = out.len().min(WIDTH);
                out[..n].copy_from_slice(&sums[..n]);
            }
        }
    })
}

/// The columns of a product that make a task, in whole panels: `least` multiplications or more, but no more than leaves every
/// core several tasks of a large product. Each column takes `products` multiplications.
pub fn columns_of_task(products: usize, n_columns: usize, least: usize) -> usize {
    /// Tasks for each core, so that none waits long for the last.
    const TASKS: usize = 4;
    /// Panels beyond which a task gains nothing.
    const MOST: usize = 16;
    let panels = n_columns.div_ceil(WIDTH);
    let enough = least.div_ceil((products * WIDTH).max(1));
    WIDTH * (panels / (TASKS * rayon::current_num_threads())).clamp(1, MOST).max(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widths of vectors that this machine may not have.
    #[test]
    fn every_width_of_vectors_adds_the_same_products() {
        fn check<S: Simd>(simd: S) {
            for [n_rows, n_inputs, start] in [[1, 7, 0], [5, 9, 2], [6, 20, 3], [13, 40, 1]] {
                let x: Vec<f32> = (0..n_rows * n_inputs).map(|i| (i * 31 % 17) as f32 - 8.0).collect();
                let x = Matrix::new(&x, n_rows, n_inputs);
                let value = |k: usize, j: usize| ((k * 7 + j) % 13) as f32 - 6.0;
                let panel: Vec<PanelRow> = (start..n_inputs).map(|k| std::array::from_fn(|j| value(k, j))).collect();
                let mut sums = vec![[1.0; WIDTH]; n_rows];
                add_rows::<S, false>(simd, &panel, (x, start), &mut sums);
                for (row, sums) in sums.iter().enumerate() {
                    for (j, sum) in sums.iter().enumerate() {
                        // Whole numbers: exact in any order.
                        let exact: f32 = (start..n_inputs).map(|k| x.at(row, k) * value(k, j)).sum();
                        assert_eq!(*sum, 1.0 + exact, "{} lanes, row {row} of {n_rows}, column {j}", S::F32_LANES);
                    }
                }
            }
        }
        check(pulp::Scalar);
        check(pulp::Scalar128b);
        check(pulp::Scalar256b);
        check(pulp::Scalar512b);
    }
}
