//! Matrices of floats that are copied together in panels once and used often.

use super::matrix::{Matrix, MatrixMut};
use super::panel::{DEPTH, PanelRow, WIDTH, add_rows, in_panels};
use super::pieces::{Start, Threads, new_pieces};
use super::product::new_product;
use burn::module::ParamId;
use pulp::{Arch, Simd, WithSimd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
            Arch::new().dispatch(PanelProduct { panel: panel.as_chunks().0, x, sums });
        })
    }

    /// `out = x W` on this thread.
    pub fn product(&self, out: MatrixMut, x: Matrix) {
        Arch::new().dispatch(PackedProduct { packed: self, out, x, adds: false });
    }

    /// `out = out + x W` on this thread.
    pub fn add_product(&self, out: MatrixMut, x: Matrix) {
        Arch::new().dispatch(PackedProduct { packed: self, out, x, adds: true });
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
            add_rows(simd, weights, (self.x, piece * DEPTH), self.sums);
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

/// The matrices of a model that a search has packed so far: they do not change while it lasts.
#[derive(Debug, Default)]
pub struct PackedWeights {
    slots: Mutex<HashMap<ParamId, Slot>>,
}

/// Room for the packed matrix of a parameter.
pub type Slot = Arc<OnceLock<Packed>>;

impl PackedWeights {
    /// That of a parameter.
    pub fn slot(&self, id: ParamId) -> Slot {
        // A panic elsewhere leaves the map as it was.
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.entry(id).or_default().clone()
    }
}

/// Rows from which on a search packs matrices: one row is multiplied as fast with a matrix as it lies.
const SEARCH_ROWS: usize = 2;

/// `x W`, packed into `slot` where there is one.
pub fn slot_product(x: Matrix, weight: Matrix, slot: Option<&Slot>) -> Vec<f32> {
    match slot {
        Some(slot) if x.n_rows() >= SEARCH_ROWS => packed(slot, weight).new_product(x),
        _ => new_product(x, weight, Threads::All),
    }
}

/// The matrix of a slot, packed if it is not yet.
///
/// Not in the slot's `get_or_init`: packing waits for other threads of the pool, and a thread that waits takes up other work, such as
/// another search that needs this very matrix, which would then wait for itself. That two searches may both pack it costs a moment.
fn packed<'a>(slot: &'a Slot, weight: Matrix) -> &'a Packed {
    if slot.get().is_none() {
        let _ = slot.set(Packed::new(weight));
    }
    slot.get().expect("it has just been set")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A search that comes while another packs a matrix of both: a thread that waits for a part of its packing takes it up.
    #[test]
    fn searches_that_need_the_same_matrix_all_end() {
        let (sender, done) = mpsc::channel();
        std::thread::spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            let (x, weight) = (vec![1.0; 2 * 512], vec![1.0; 512 * 8192]);
            for _ in 0..30 {
                let slot = Slot::default();
                let search = || slot_product(Matrix::new(&x, 2, 512), Matrix::new(&weight, 512, 8192), Some(&slot));
                pool.in_place_scope(|scope| {
                    scope.spawn(|_| assert_eq!(search()[0], 512.0));
                    std::thread::sleep(Duration::from_micros(300));
                    (0..8).for_each(|_| scope.spawn(|_| assert_eq!(search()[0], 512.0)));
                });
            }
            sender.send(()).unwrap();
        });
        done.recv_timeout(Duration::from_secs(60)).expect("no search waits for itself");
    }
}
