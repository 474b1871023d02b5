//! Matrices inside slices.

use super::memory::{Start, new_pieces, task_rows};
use std::ops::Range;

/// A matrix inside a slice.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    pub(super) values: &'a [f32],
    pub(super) n_rows: usize,
    pub(super) n_columns: usize,
    pub(super) row_stride: usize,
    pub(super) column_stride: usize,
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

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Some of the rows.
    #[inline(always)]
    pub fn rows(&self, rows: Range<usize>) -> Self {
        assert!(rows.start <= rows.end && rows.end <= self.n_rows, "rows {rows:?} of {}", self.n_rows);
        Self { values: &self.values[rows.start * self.row_stride..], n_rows: rows.len(), ..*self }
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

    /// The elements, if they lie one after the other.
    pub fn contiguous(&self) -> Option<&'a [f32]> {
        let is_dense = self.column_stride == 1 && (self.row_stride == self.n_columns || self.n_rows <= 1);
        is_dense.then(|| &self.values[..self.n_rows * self.n_columns])
    }

    /// The elements, row after row.
    pub fn to_vec(self) -> Vec<f32> {
        let Self { values, n_rows, n_columns, row_stride, column_stride } = self;
        let copy = |start: usize, rows: &mut [f32]| {
            for (i, row) in rows.chunks_exact_mut(n_columns).enumerate() {
                let first = (start / n_columns + i) * row_stride;
                row.iter_mut().enumerate().for_each(|(j, value)| *value = values[first + j * column_stride]);
            }
        };
        new_pieces(Start::Zeros(n_rows * n_columns), task_rows(n_columns) * n_columns, copy).0
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
    let needed = match n_rows == 0 || n_columns == 0 {
        true => Some(0),
        false => (n_rows - 1).checked_mul(row_stride).and_then(|last| last.checked_add(n_columns)),
    };
    assert!(needed.is_some_and(|needed| needed <= len), "{n_rows} x {n_columns} matrix in {len} elements");
}

/// Where a product goes.
#[derive(Debug)]
pub struct MatrixMut<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) n_rows: usize,
    pub(super) n_columns: usize,
    pub(super) row_stride: usize,
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

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Row `i`.
    #[inline(always)]
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        &mut self.values[i * self.row_stride..][..self.n_columns]
    }

    /// The first row.
    pub fn into_row(self) -> &'a mut [f32] {
        &mut self.values[..self.n_columns]
    }
}
