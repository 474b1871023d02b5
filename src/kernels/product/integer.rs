//! Sums of products of integers in 8 bits.
//!
//! Every sum is exact, so a row comes out the same whatever other rows there are, and the same on every machine. Many processors
//! add four products of bytes in each lane at once (`quads.rs`), four times as many as products of floats; for them, four inputs of
//! an output stand side by side. Others make floats of the bytes: the sums of a thousand products are whole numbers that fit.
//!
//! The `rten-gemm` crate uses AVX-512 VNNI too; with one to five rows, which is what a decoder has, it took up to four times
//! as long.

use super::panel::{self, PanelRow, WIDTH};
use super::quads::{ByteRow, EXCESS, QUAD, QuadInstructions, Sums};
use crate::machine::vectorized;
use crate::matrix::Matrix;
use crate::vectors::largest;

/// How the bytes of a panel stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// The bytes of all outputs for one input, then those for the next.
    Rows,
    /// Four inputs of one output, those of the next output, and after the last the next four inputs.
    Quads,
}

impl Layout {
    /// The one that this machine multiplies fastest.
    pub fn of_machine() -> Self {
        if QuadInstructions::in_use().is_some() { Self::Quads } else { Self::Rows }
    }

    /// The row of a panel, and the place in it, of the byte from `input` to the output in column `column`.
    pub fn place(self, input: usize, column: usize) -> [usize; 2] {
        match self {
            Self::Rows => [input, column],
            Self::Quads => {
                let byte = column * QUAD + input % QUAD;
                [input / QUAD * QUAD + byte / WIDTH, byte % WIDTH]
            }
        }
    }
}

/// Rows rounded to integers from -127 to 127, each with a factor of its own: its largest element becomes 127.
#[derive(Debug)]
pub struct Int8Rows {
    /// The integers plus [`EXCESS`], as the instruction wants them. Zeros fill up the last quad.
    bytes: Vec<[u8; QUAD]>,
    n_quads: usize,
    /// The integers, for machines without the instruction.
    floats: Option<Vec<f32>>,
    scales: Vec<f32>,
}

/// Inputs of which the sum of products, at most 127 squared each, is a whole number that a float holds.
const EXACT: usize = 1024;
const _: () = assert!(127 * 127 * EXACT < 1 << f32::MANTISSA_DIGITS);

impl Int8Rows {
    /// Rounds the rows of `x`, each `n_inputs` long, for matrices in `layout`.
    pub fn round(x: &[f32], n_inputs: usize, layout: Layout) -> Self {
        /// Added to a number that is small beside it, it leaves the nearest integer in the lowest bits.
        const SHIFT: f32 = 12_582_912.0;
        let (n_rows, n_quads) = (x.len() / n_inputs, n_inputs.div_ceil(QUAD));
        let mut bytes = vec![[EXCESS as u8; QUAD]; n_rows * n_quads];
        let mut scales = Vec::with_capacity(n_rows);
        vectorized(
            #[inline(always)]
            || {
                for (x, bytes) in x.chunks_exact(n_inputs).zip(bytes.chunks_exact_mut(n_quads)) {
                    // A row with a number that is not finite has no steps: its factor makes every product NaN.
                    let is_finite = x.iter().fold(true, |all, x| all & x.is_finite());
                    let largest = if is_finite { largest(x) } else { f32::NAN };
                    // So small a row is one of zeros; its factor would be infinite.
                    let steps = if largest > 1e-30 { 127.0 / largest } else { 0.0 };
                    for (byte, x) in bytes.as_flattened_mut().iter_mut().zip(x) {
                        *byte = ((x * steps + SHIFT).to_bits() as u8).wrapping_add(EXCESS as u8);
                    }
                    scales.push(largest / 127.0);
                }
            },
        );
        let float = |byte: &u8| (i32::from(*byte) - EXCESS) as f32;
        let floats = (layout == Layout::Rows).then(|| bytes.as_flattened().iter().map(float).collect());
        Self { bytes, n_quads, floats, scales }
    }

    /// What the integers of each row are to be multiplied by.
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// The sums of products of every row with a panel, in the layout that the rows were rounded for. `excess` is [`EXCESS`] times
    /// the sum of every column.
    pub fn multiply(&self, panel: &[ByteRow], excess: &Sums, sums: &mut [Sums]) {
        let Some(floats) = &self.floats else {
            // Rows that were rounded under another cap of the instructions stay as they are.
            let instructions = QuadInstructions::in_use().or_else(|| QuadInstructions::available().next());
            let instructions = instructions.expect("quads are for processors that have the instructions");
            return instructions.multiply(panel.as_chunks().0, excess, &self.bytes, sums);
        };
        sums.as_flattened_mut().fill(0);
        let mut part: Vec<PanelRow> = vec![[0.0; WIDTH]; sums.len()];
        for (piece, bytes) in panel.chunks(EXACT).enumerate() {
            let x = Matrix::strided(&floats[piece * EXACT..], sums.len(), bytes.len(), QUAD * self.n_quads);
            part.as_flattened_mut().fill(0.0);
            panel::multiply(
                x,
                &mut part,
                #[inline(always)]
                |input, rows| {
                    for (floats, bytes) in rows.iter_mut().zip(&bytes[input..]) {
                        floats.iter_mut().zip(bytes).for_each(|(float, byte)| *float = f32::from(*byte));
                    }
                },
            );
            sums.as_flattened_mut().iter_mut().zip(part.as_flattened()).for_each(|(sum, part)| *sum += *part as i32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layouts that this machine can multiply.
    fn layouts() -> Vec<Layout> {
        [Layout::Rows].into_iter().chain((Layout::of_machine() == Layout::Quads).then_some(Layout::Quads)).collect()
    }

    #[test]
    fn sums_are_exact_in_every_layout() {
        for (n_rows, n_inputs) in [(1, 4), (1, 5), (2, 2050), (5, 33), (6, 512), (7, 516), (13, 1029), (40, 260)] {
            // The largest integers that there are, so that sums overflow a float unless they are cut in time.
            let x: Vec<f32> = (0..n_rows * n_inputs).map(|i| if i % 7 == 0 { -127.0 } else { 127.0 }).collect();
            let weight = |k: usize, j: usize| if (k * 5 + j).is_multiple_of(11) { (j % 100) as i8 } else { 127 };
            let exact = |row: usize, j: usize| -> i32 {
                (0..n_inputs).map(|k| x[row * n_inputs + k] as i32 * i32::from(weight(k, j))).sum()
            };
            for layout in layouts() {
                let rows = Int8Rows::round(&x, n_inputs, layout);
                assert_eq!(rows.scales(), vec![1.0; n_rows]);
                let mut panel = vec![[0; WIDTH]; n_inputs.next_multiple_of(QUAD)];
                let mut excess = [0; WIDTH];
                for k in 0..n_inputs {
                    for (j, excess) in excess.iter_mut().enumerate() {
                        let [row, place] = layout.place(k, j);
                        panel[row][place] = weight(k, j);
                        *excess += EXCESS * i32::from(weight(k, j));
                    }
                }
                let mut sums = vec![[7; WIDTH]; n_rows];
                rows.multiply(&panel, &excess, &mut sums);
                for (row, sums) in sums.iter().enumerate() {
                    for (j, sum) in sums.iter().enumerate() {
                        assert_eq!(*sum, exact(row, j), "{layout:?}, row {row} of {n_rows} x {n_inputs}, column {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_rounded_to_the_nearest_step_of_their_own_largest_element() {
        for layout in layouts() {
            let x = [0.5, -2.0, 1.0, 0.004, 0.0, 0.0, 0.0, 0.0, 1e-35, 0.0, 0.0, -1e-35, 3e30, -1e30, 0.0, 1e28];
            let rows = Int8Rows::round(&x, 4, layout);
            let integers: Vec<i32> = rows.bytes.as_flattened().iter().map(|byte| i32::from(*byte) - EXCESS).collect();
            assert_eq!(integers, [32, -127, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, -42, 0, 0]);
            assert_eq!(rows.scales()[0], 2.0 / 127.0);
            assert!(rows.scales().iter().all(|scale| scale.is_finite()));
        }
    }
}
