//! Matrix products on slices.
//!
//! The only file with `unsafe`: the `gemm` crate, which burn's flex uses too, takes pointers. Every pointer here comes from a
//! slice whose length has just been checked against the sizes and strides, and outputs are borrowed mutably.
#![allow(unsafe_code)]

use super::one_row;
use rayon::prelude::*;

/// A matrix inside a slice.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    values: &'a [f32],
    n_rows: usize,
    n_columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    pub fn new(values: &'a [f32], n_rows: usize, n_columns: usize) -> Self {
        Self::strided(values, n_rows, n_columns, n_columns)
    }

    /// Rows that begin `row_stride` elements apart.
    pub fn strided(values: &'a [f32], n_rows: usize, n_columns: usize, row_stride: usize) -> Self {
        check(values.len(), n_rows, n_columns, row_stride);
        Self { values, n_rows, n_columns, row_stride, column_stride: 1 }
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The element in row `i` and column `j`.
    #[inline(always)]
    pub fn at(&self, i: usize, j: usize) -> f32 {
        self.values[i * self.row_stride + j * self.column_stride]
    }

    /// Row `i`, in a matrix whose rows are contiguous.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &'a [f32] {
        debug_assert!(self.column_stride == 1, "rows of a transposed matrix are not contiguous");
        &self.values[i * self.row_stride..][..self.n_columns]
    }

    /// The columns, in a matrix in which they are contiguous and rows are not.
    #[inline(always)]
    pub fn columns(&self) -> Option<impl Fn(usize) -> &'a [f32]> {
        let Self { values, n_rows, column_stride, .. } = *self;
        (self.column_stride != 1).then_some(move |j: usize| &values[j * column_stride..][..n_rows])
    }

    /// The elements, row after row.
    pub fn to_vec(self) -> Vec<f32> {
        let Self { values, n_rows, n_columns, row_stride, column_stride } = self;
        let row = |i: usize| (0..n_columns).map(move |j| values[i * row_stride + j * column_stride]);
        (0..n_rows).flat_map(row).collect()
    }

    /// Rows become columns; nothing moves.
    pub fn transposed(self) -> Self {
        Self {
            n_rows: self.n_columns,
            n_columns: self.n_rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

fn check(len: usize, n_rows: usize, n_columns: usize, row_stride: usize) {
    let needed = if n_rows == 0 || n_columns == 0 { 0 } else { (n_rows - 1) * row_stride + n_columns };
    assert!(needed <= len && n_columns <= row_stride.max(n_columns), "{n_rows} x {n_columns} matrix in {len} elements");
}

/// Where a product goes.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    values: &'a mut [f32],
    n_rows: usize,
    n_columns: usize,
    row_stride: usize,
}

impl<'a> MatrixMut<'a> {
    /// Rows one after the other.
    pub fn new(values: &'a mut [f32], n_rows: usize, n_columns: usize) -> Self {
        Self::strided(values, n_rows, n_columns, n_columns)
    }

    /// Rows that begin `row_stride` elements apart.
    pub fn strided(values: &'a mut [f32], n_rows: usize, n_columns: usize, row_stride: usize) -> Self {
        check(values.len(), n_rows, n_columns, row_stride);
        assert!(n_rows <= 1 || n_columns <= row_stride, "rows of an output may not overlap");
        Self { values, n_rows, n_columns, row_stride }
    }
}

impl<'a> MatrixMut<'a> {
    /// The first row.
    pub fn into_row(self) -> &'a mut [f32] {
        &mut self.values[..self.n_columns]
    }
}

/// Who computes a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threads {
    /// The calling thread.
    One,
    /// All cores, where the product is large enough to be worth it.
    All,
}

/// Multiplications from which on a product is spread over all cores.
const PARALLEL_FROM: usize = 1 << 20;

/// Rows up to which a product with a transposed matrix is made column by column.
const FEW_ROWS: usize = 128;

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
    let mut values = Vec::with_capacity(n_rows * n_columns);
    // SAFETY: the capacity is that of the matrix, and the product writes every element of it before the length is set.
    unsafe {
        multiply(values.as_mut_ptr(), [n_rows, n_columns], [n_columns, 1], a, b, 1.0, false, threads);
        values.set_len(n_rows * n_columns);
    }
    values
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
    let mut values = vec![0.0; n_rows * n_columns];
    let mut blocks: Vec<Vec<&mut [f32]>> = (0..n_columns.div_ceil(COLUMNS)).map(|_| Vec::new()).collect();
    for row in values.chunks_mut(n_columns) {
        row.chunks_mut(COLUMNS).zip(&mut blocks).for_each(|(piece, block)| block.push(piece));
    }
    blocks.into_par_iter().zip(columns.par_chunks(COLUMNS * n_rows)).for_each(|(mut rows, columns)| {
        for (j, column) in columns.chunks_exact(n_rows).enumerate() {
            rows.iter_mut().zip(column).for_each(|(row, value)| row[j] = *value);
        }
    });
    values
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
        gemm::gemm(
            n_rows,
            n_columns,
            depth,
            out,
            column_stride as isize,
            row_stride as isize,
            add,
            a.values.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}
