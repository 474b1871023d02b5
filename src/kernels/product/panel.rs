//! Products of rows with a matrix that is kept in panels.
//!
//! The `gemm` crate reads a large matrix as it lies or copies it together first; with few rows, either costs more than the sums.
//! A panel of 64 columns, input after input, is read from its beginning to its end: memory brings it as fast as it can. Panels
//! are copied together once for all steps of a recurrence or of a search (`packed.rs`), or when they are used, from whatever the
//! matrix is stored as ([`product`]).

use crate::kernels::machine::dispatch;
use crate::kernels::matrix::Matrix;
use crate::kernels::memory::new_columns;
use pulp::{Simd, WithSimd};

/// Columns of a panel.
pub const WIDTH: usize = 64;

/// One row of a panel, or of a product with it.
pub type PanelRow = [f32; WIDTH];

/// Inputs that are loaded at a time: their floats stay in the first cache while all rows are multiplied.
pub const DEPTH: usize = 128;

/// Multiplications that make a task.
const TASK_PRODUCTS: usize = 1 << 17;

/// Vectors of the machine that a row of sums takes up.
const VECTORS: usize = 4;

/// Adds `x[r][k] panel[k]` to `sums[r]` for every input, always in their order: a row has the same sums whatever other rows
/// there are. `load(k, rows)` writes the rows of the panel from `k` on as floats.
///
/// # Shapes
/// - x: `[n_rows, n_inputs]`
/// - sums: `[n_rows, WIDTH]`
pub fn multiply(x: Matrix, sums: &mut [PanelRow], scratch: &mut [PanelRow], load: impl Fn(usize, &mut [PanelRow])) {
    dispatch(Loaded { x, sums, scratch, load });
}

struct Loaded<'a, L> {
    x: Matrix<'a>,
    sums: &'a mut [PanelRow],
    scratch: &'a mut [PanelRow],
    load: L,
}

impl<L: Fn(usize, &mut [PanelRow])> WithSimd for Loaded<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, sums, scratch, load } = self;
        for start in (0..x.n_columns()).step_by(scratch.len()) {
            let n = scratch.len().min(x.n_columns() - start);
            let panel = &mut scratch[..n];
            load(start, panel);
            add_rows(simd, panel, (x, start), sums);
        }
    }
}

/// Adds the products of all rows with a piece of a panel that begins at input `start`.
#[inline(always)]
pub fn add_rows<S: Simd>(simd: S, panel: &[PanelRow], (x, start): (Matrix, usize), sums: &mut [PanelRow]) {
    // With 16 registers, as AVX2 has, the sums of three rows find room; elsewhere there are 32.
    if S::F32_LANES == 8 {
        add_blocks::<S, 3>(simd, panel, (x, start), sums);
    } else {
        add_blocks::<S, 6>(simd, panel, (x, start), sums);
    }
}

/// The same, `MOST` rows at a time.
#[inline(always)]
fn add_blocks<S: Simd, const MOST: usize>(
    simd: S,
    panel: &[PanelRow],
    (x, start): (Matrix, usize),
    sums: &mut [PanelRow],
) {
    let n = panel.len();
    let row = |r: usize| &x.row(r)[start..start + n];
    for group in 0..WIDTH.div_ceil(VECTORS * S::F32_LANES) {
        let (whole, rest) = sums.as_chunks_mut::<MOST>();
        for (i, sums) in whole.iter_mut().enumerate() {
            add_block(simd, panel, std::array::from_fn(|r| row(i * MOST + r)), sums, group);
        }
        let first = whole.len() * MOST;
        macro_rules! rest {
            ($($n:literal)+) => {
                match rest.len() {
                    $($n => {
                        let sums: &mut [PanelRow; $n] = rest.try_into().expect("the length has been matched");
                        add_block(simd, panel, std::array::from_fn(|r| row(first + r)), sums, group);
                    })+
                    _ => {}
                }
            };
        }
        rest!(1 2 3 4 5);
    }
}

/// Adds the products of `R` rows with a piece of a panel, in the columns of one group of vectors; the sums are in registers.
#[inline(always)]
fn add_block<S: Simd, const R: usize>(
    simd: S,
    panel: &[PanelRow],
    x: [&[f32]; R],
    sums: &mut [PanelRow; R],
    group: usize,
) {
    // Lengths that the compiler sees: no test remains inside the loop.
    let x = x.map(|x| &x[..panel.len()]);
    let vectors = |row: &PanelRow| -> [S::f32s; VECTORS] {
        let row = S::as_simd_f32s(row).0;
        std::array::from_fn(|i| row[VECTORS * group + i])
    };
    let mut totals: [[S::f32s; VECTORS]; R] = std::array::from_fn(|r| vectors(&sums[r]));
    for (k, weights) in panel.iter().enumerate() {
        let weights = vectors(weights);
        for r in 0..R {
            let factor = simd.splat_f32s(x[r][k]);
            for i in 0..VECTORS {
                totals[r][i] = simd.mul_add_e_f32s(factor, weights[i], totals[r][i]);
            }
        }
    }
    for (sums, totals) in sums.iter_mut().zip(totals) {
        let sums = S::as_mut_simd_f32s(sums).0;
        for (i, total) in totals.into_iter().enumerate() {
            sums[VECTORS * group + i] = total;
        }
    }
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
            &mut [[0.0; WIDTH]; DEPTH],
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
                add_rows(simd, &panel, (x, start), &mut sums);
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
