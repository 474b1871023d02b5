//! Matrix products on slices.
//!
//! One of the modules of kernels with `unsafe`, besides `memory.rs`: the `gemm` crate, which burn's flex uses too, takes
//! pointers. Every pointer here comes from a slice whose length has just been checked against the sizes and strides, and outputs
//! are borrowed mutably.
#![allow(unsafe_code)]

mod by_gemm;
mod int8;
mod integer;
mod one_row;
mod packed;
mod panel;
mod quads;

pub use int8::Int8Matrix;
pub use packed::Packed;

use crate::machine::Threads;
use crate::matrix::{Matrix, MatrixMut};
use crate::memory::new_columns;
use by_gemm::by_gemm;
use panel::WIDTH;

/// Multiplications from which on a product is spread over all cores.
const PARALLEL_FROM: usize = 1 << 20;

/// Rows up to which a product with a transposed matrix is made column by column.
const FEW_ROWS: usize = 128;

/// Rows for which `gemm` waits for a matrix of [`PANEL_COLUMNS`] or more, whose rows are as far apart in memory. It copies the matrix together
/// itself from 128 rows on.
const PANEL_ROWS: std::ops::RangeInclusive<usize> = 8..=127;
// A transposed matrix has its own way for as many rows.
const _: () = assert!(*PANEL_ROWS.end() <= FEW_ROWS);

/// Columns from which on a matrix is copied together in panels for so many rows.
const PANEL_COLUMNS: usize = 1024;

/// `out = scale * a b`.
pub fn product(out: MatrixMut, a: Matrix, b: Matrix, scale: f32, threads: Threads) {
    if out.n_rows == 1 {
        check_sizes([out.n_rows, out.n_columns], a, b);
        return one_row::product(out, a, b, scale, false, threads);
    }
    // Every element is written.
    let MatrixMut { values, n_rows, n_columns, row_stride } = out;
    // SAFETY: `MatrixMut` has checked that the slice holds the matrix.
    unsafe { multiply(values.as_mut_ptr(), [n_rows, n_columns], [row_stride, 1], a, b, scale, false, threads) }
}

/// `out = out + scale * a b`.
pub fn add_product(out: MatrixMut, a: Matrix, b: Matrix, scale: f32, threads: Threads) {
    if out.n_rows == 1 {
        check_sizes([out.n_rows, out.n_columns], a, b);
        return one_row::product(out, a, b, scale, true, threads);
    }
    let MatrixMut { values, n_rows, n_columns, row_stride } = out;
    // SAFETY: `MatrixMut` has checked that the slice holds the matrix.
    unsafe { multiply(values.as_mut_ptr(), [n_rows, n_columns], [row_stride, 1], a, b, scale, true, threads) }
}

/// `a b` in new memory, which is not cleared first.
pub fn new_product(a: Matrix, b: Matrix, threads: Threads) -> Vec<f32> {
    let (n_rows, n_columns) = (a.n_rows, b.n_columns);
    if a.n_columns == 0 || n_rows == 1 {
        let mut values = vec![0.0; n_rows * n_columns];
        product(MatrixMut::new(&mut values, n_rows, n_columns), a, b, 1.0, threads);
        return values;
    }
    if n_rows <= FEW_ROWS && b.columns().is_some() {
        return by_columns(a, b, threads);
    }
    if PANEL_ROWS.contains(&n_rows) && n_columns >= PANEL_COLUMNS && threads == Threads::All {
        return by_panels(a, b);
    }
    let mut values = Vec::with_capacity(n_rows * n_columns);
    // SAFETY: the capacity is that of the matrix, and the product writes every element of it before the length is set.
    unsafe {
        multiply(values.as_mut_ptr(), [n_rows, n_columns], [n_columns, 1], a, b, 1.0, false, threads);
        values.set_len(n_rows * n_columns);
    }
    values
}

/// `a b` with a wide matrix, of which 64 columns at a time are copied together before they are used.
fn by_panels(a: Matrix, b: Matrix) -> Vec<f32> {
    check_sizes([a.n_rows, b.n_columns], a, b);
    let rows = a.columns().map(|_| a.to_vec());
    panel::product(
        rows.as_ref().map_or(a, |rows| Matrix::new(rows, a.n_rows, a.n_columns)),
        b.n_columns,
        #[inline(always)]
        |panel, start, floats| {
            let columns = panel * WIDTH..b.n_columns.min((panel + 1) * WIDTH);
            for (i, floats) in floats.iter_mut().enumerate() {
                floats[..columns.len()].copy_from_slice(&b.row(start + i)[columns.clone()]);
            }
        },
    )
}

/// `a b` with few rows and a transposed matrix, such as a table of embeddings: made column by column, so that the matrix, by
/// far the larger operand, need not be gathered.
fn by_columns(a: Matrix, b: Matrix, threads: Threads) -> Vec<f32> {
    const COLUMNS: usize = 1024;
    let (n_rows, n_columns) = (a.n_rows, b.n_columns);
    let mut columns = Vec::with_capacity(n_rows * n_columns);
    // SAFETY: the capacity is that of the matrix, and the product writes every element of it before the length is set.
    unsafe {
        multiply(columns.as_mut_ptr(), [n_rows, n_columns], [1, n_rows], a, b, 1.0, false, threads);
        columns.set_len(n_rows * n_columns);
    }
    new_columns(n_rows, n_columns, COLUMNS, |first, out| {
        for (j, column) in columns[first * n_rows..].chunks_exact(n_rows).take(out[0].len()).enumerate() {
            out.iter_mut().zip(column).for_each(|(row, value)| row[j] = *value);
        }
    })
}

fn check_sizes([n_rows, n_columns]: [usize; 2], a: Matrix, b: Matrix) {
    assert!(
        a.n_rows == n_rows && b.n_columns == n_columns && a.n_columns == b.n_rows,
        "a product of {} x {} and {} x {} into {n_rows} x {n_columns}",
        a.n_rows,
        a.n_columns,
        b.n_rows,
        b.n_columns
    );
}

/// # Safety
/// `out` has to hold a matrix of that shape and those strides, which nobody else uses.
#[allow(clippy::too_many_arguments)]
unsafe fn multiply(
    out: *mut f32,
    [n_rows, n_columns]: [usize; 2],
    [row_stride, column_stride]: [usize; 2],
    a: Matrix,
    b: Matrix,
    scale: f32,
    add: bool,
    threads: Threads,
) {
    check_sizes([n_rows, n_columns], a, b);
    let depth = a.n_columns;
    let parallel = threads == Threads::All && n_rows * n_columns * depth >= PARALLEL_FROM;
    let parallelism = if parallel { gemm::Parallelism::Rayon(0) } else { gemm::Parallelism::None };
    // SAFETY: `Matrix` has checked that sizes and strides stay inside its slice, the caller answers for `out`, and a product
    // that does not add reads nothing of it.
    unsafe {
        by_gemm(
            [n_rows, n_columns, depth],
            (out, column_stride as isize, row_stride as isize),
            add,
            (a.values.as_ptr(), a.column_stride as isize, a.row_stride as isize),
            (b.values.as_ptr(), b.column_stride as isize, b.row_stride as isize),
            scale,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i + seed) * 7919 % 1009) as f32 / 504.5 - 1.0).collect()
    }

    #[test]
    fn products_in_panels_are_the_same_for_a_row_whatever_other_rows_there_are() {
        for [n_rows, depth, n_columns] in [[1, 5, 3], [6, 128, 64], [16, 129, 65], [17, 300, 130], [40, 7, 200]] {
            let (a, b) = (numbers(n_rows * depth, 3), numbers(depth * n_columns, 11));
            let a = Matrix::new(&a, n_rows, depth);
            let turned = Matrix::new(&b, depth, n_columns).transposed().to_vec();
            let packed = Packed::new(Matrix::new(&b, depth, n_columns));
            let from_turned = Packed::new(Matrix::new(&turned, n_columns, depth).transposed());
            // Rows of the output have others' elements between them, which stay as they are.
            let stride = n_columns + 3;
            let mut out = vec![-1.0; n_rows * stride];
            packed.product(MatrixMut::strided(&mut out, n_rows, n_columns, stride), a);
            from_turned.add_product(MatrixMut::strided(&mut out, n_rows, n_columns, stride), a);
            let whole = packed.new_product(a);
            for (i, out) in out.chunks_exact(stride).enumerate() {
                assert_eq!(whole[i * n_columns..][..n_columns], packed.new_product(a.rows(i..i + 1)), "row {i}");
                let mut alone = vec![0.0; n_columns];
                packed.product(MatrixMut::new(&mut alone, 1, n_columns), a.rows(i..i + 1));
                for (j, alone) in alone.into_iter().enumerate() {
                    let exact: f64 = (0..depth).map(|k| f64::from(a.at(i, k)) * f64::from(b[k * n_columns + j])).sum();
                    assert!((f64::from(alone) - exact).abs() < 1e-4, "{n_rows} rows, {i} {j}: {alone}, not {exact}");
                    assert_eq!(whole[i * n_columns + j], alone, "row {i} of {n_rows}, column {j}");
                    assert_eq!(out[j], 2.0 * alone, "row {i} of {n_rows}, column {j}");
                }
                assert_eq!(out[n_columns..], [-1.0; 3]);
            }
        }
    }

    /// Every way of multiplying has some shape here: one row, few rows with a wide matrix and with a turned one, many rows.
    #[test]
    fn products_are_sums_of_products_whichever_way_is_taken() {
        let few = [*PANEL_ROWS.start(), *PANEL_ROWS.end()];
        let shapes =
            [1, 3, few[0], few[1] - 1, few[1] + 1, FEW_ROWS + 1].map(|n_rows| [n_rows, 140, PANEL_COLUMNS + 7]);
        for [n_rows, depth, n_columns] in shapes.into_iter().chain([[9, 300, PANEL_COLUMNS], [5, 1, 3], [8, 7, 2000]]) {
            let (a, b) = (numbers(n_rows * depth, 3), numbers(depth * n_columns, 11));
            let a = Matrix::new(&a, n_rows, depth);
            let turned = Matrix::new(&b, depth, n_columns).transposed().to_vec();
            let plain = new_product(a, Matrix::new(&b, depth, n_columns), Threads::All);
            let from_turned = new_product(a, Matrix::new(&turned, n_columns, depth).transposed(), Threads::All);
            assert_eq!([plain.len(), from_turned.len()], [n_rows * n_columns; 2]);
            for i in 0..n_rows {
                for j in 0..n_columns {
                    let exact: f64 = (0..depth).map(|k| f64::from(a.at(i, k)) * f64::from(b[k * n_columns + j])).sum();
                    for found in [plain[i * n_columns + j], from_turned[i * n_columns + j]] {
                        assert!(
                            (f64::from(found) - exact).abs() < 1e-4,
                            "{n_rows} rows, {i} {j}: {found}, not {exact}"
                        );
                    }
                }
            }
        }
    }
}
