//! Matrices of floats that are copied together in panels once and used often.

use super::panel::{DEPTH, PanelRow, WIDTH, add_rows, in_panels};
use crate::machine::dispatch;
use crate::matrix::{Matrix, MatrixMut};
use crate::memory::{Start, new_pieces};
use pulp::{Simd, WithSimd};

/// A matrix of floats in panels, for products at every step of a recurrence or of a search.
#[derive(Debug)]
pub struct Packed {
    /// Panels of columns, each of them input after input; zeros fill up the last.
    panels: Vec<f32>,
    n_inputs: usize,
    n_columns: usize,
}

/// Rows that are multiplied at a time.
const ROWS: usize = 16;

impl Packed {
    /// Copies a matrix.
    pub fn new(matrix: Matrix) -> Self {
        let [n_inputs, n_columns] = [matrix.n_rows(), matrix.n_columns()];
        let copy = |first: usize, panel: &mut [f32]| {
            let (panel, first) = (panel.as_chunks_mut::<WIDTH>().0, first / n_inputs);
            let columns = first..n_columns.min(first + WIDTH);
            if let Some(column) = matrix.columns() {
                for (j, column) in columns.map(column).enumerate() {
                    panel.iter_mut().zip(column).for_each(|(row, value)| row[j] = *value);
                }
            } else {
                for (input, row) in panel.iter_mut().enumerate() {
                    row[..columns.len()].copy_from_slice(&matrix.row(input)[columns.clone()]);
                }
            }
        };
        let len = n_columns.div_ceil(WIDTH) * WIDTH * n_inputs;
        Self { panels: new_pieces(Start::Zeros(len), WIDTH * n_inputs, copy).0, n_inputs, n_columns }
    }

    /// The panels.
    fn panels(&self) -> impl Iterator<Item = &[PanelRow]> {
        self.panels.as_chunks().0.chunks_exact(self.n_inputs)
    }

    /// `x W` in new memory, over all cores. A row comes out the same whatever other rows there are.
    pub fn new_product(&self, x: Matrix) -> Vec<f32> {
        let n_inputs = self.n_inputs;
        assert_eq!(x.n_columns(), n_inputs, "inputs");
        in_panels(x, self.n_columns, |panel, sums| {
            let panel = &self.panels[panel * WIDTH * n_inputs..][..WIDTH * n_inputs];
            dispatch(PanelProduct { panel: panel.as_chunks().0, x, sums });
        })
    }

    /// `out = x W` on this thread.
    pub fn product(&self, out: MatrixMut, x: Matrix) {
        dispatch(PackedProduct { packed: self, out, x, adds: false });
    }

    /// `out = out + x W` on this thread.
    pub fn add_product(&self, out: MatrixMut, x: Matrix) {
        dispatch(PackedProduct { packed: self, out, x, adds: true });
    }
}

/// The products of all rows with a panel.
struct PanelProduct<'a> {
    panel: &'a [PanelRow],
    x: Matrix<'a>,
    sums: &'a mut [PanelRow],
}

impl WithSimd for PanelProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (piece, weights) in self.panel.chunks(DEPTH).enumerate() {
            add_rows::<S, true>(simd, weights, (self.x, piece * DEPTH), self.sums);
        }
    }
}

struct PackedProduct<'a> {
    packed: &'a Packed,
    out: MatrixMut<'a>,
    x: Matrix<'a>,
    adds: bool,
}

impl WithSimd for PackedProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { packed, mut out, x, adds } = self;
        assert_eq!([x.n_rows(), x.n_columns()], [out.n_rows(), packed.n_inputs], "rows and inputs");
        assert_eq!(out.n_columns(), packed.n_columns, "columns");
        assert!(x.columns().is_none() && packed.n_inputs > 0, "rows of inputs");
        let mut sums = [[0.0; WIDTH]; ROWS];
        for (panel, weights) in packed.panels().enumerate() {
            let columns = panel * WIDTH..packed.n_columns.min((panel + 1) * WIDTH);
            for first in (0..x.n_rows()).step_by(ROWS) {
                let rows = first..x.n_rows().min(first + ROWS);
                let sums = &mut sums[..rows.len()];
                sums.iter_mut().for_each(|sums| sums.fill(0.0));
                PanelProduct { panel: weights, x: x.rows(rows.clone()), sums }.with_simd(simd);
                for (row, sums) in rows.zip(sums) {
                    let out = &mut out.row_mut(row)[columns.clone()];
                    match adds {
                        true => out.iter_mut().zip(sums).for_each(|(out, sum)| *out += *sum),
                        false => out.copy_from_slice(&sums[..out.len()]),
                    }
                }
            }
        }
    }
}
