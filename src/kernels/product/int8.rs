//! Matrices in 8 bits, for decoders.
//!
//! A decoder reads every weight of the model for each word: with a few rows to multiply it waits for memory, and a weight of one
//! byte comes four times as fast as one of four; with many it waits for the sums, and processors add four products of bytes in
//! the time of one of floats (`integer.rs`).

use super::integer::{Int8Rows, Layout};
use super::panel::{WIDTH, columns_of_task};
use super::quads::{ByteRow, EXCESS, QUAD, Sums};
use crate::machine::vectorized;
use crate::memory::new_columns;
use rayon::prelude::*;

/// A matrix of integers from -127 to 127, with a factor for each output.
///
/// Rows that it is multiplied with are rounded too, each by its own largest element, as they come.
///
/// # Reference
/// Symmetric, by output and by row; Wu et al., Google's Neural Machine Translation System, 2016, section 6, let a model learn
/// with the rounding.
#[derive(Clone, Debug)]
pub struct Int8Matrix {
    /// Panels of outputs; zeros fill up the last, and the last inputs of each.
    panels: Vec<ByteRow>,
    layout: Layout,
    /// [`EXCESS`] times the sum of every column, for each panel.
    excess: Vec<Sums>,
    scales: Vec<f32>,
    n_inputs: usize,
}

impl Int8Matrix {
    /// Rounds the weights of `x W`, given row by row as `[n_inputs, n_outputs]`; or, with `transposed`, of `x W^T`, given as
    /// `[n_outputs, n_inputs]`.
    pub fn round(weights: &[f32], shape: [usize; 2], transposed: bool) -> Self {
        Self::round_in(Layout::of_machine(), weights, shape, transposed)
    }

    fn round_in(layout: Layout, weights: &[f32], [n_rows, n_columns]: [usize; 2], transposed: bool) -> Self {
        let [n_inputs, n_outputs] = if transposed { [n_columns, n_rows] } else { [n_rows, n_columns] };
        let at = |output: usize, input: usize| weights[place([n_rows, n_columns], transposed, output, input)];
        let scale = |output: usize| {
            let largest = (0..n_inputs).fold(0.0, |largest: f32, input| largest.max(at(output, input).abs()));
            // Of an output that is all zeros, any factor will do.
            if largest > 0.0 { largest / 127.0 } else { 1.0 }
        };
        let scales: Vec<f32> = (0..n_outputs).into_par_iter().map(scale).collect();
        let len = n_inputs.next_multiple_of(QUAD);
        let mut panels = vec![[0; WIDTH]; n_outputs.div_ceil(WIDTH) * len];
        let fill = |(panel, rows): (usize, &mut [ByteRow])| {
            let first = panel * WIDTH;
            let mut excess = [0; WIDTH];
            for input in 0..n_inputs {
                for (column, (scale, excess)) in scales[first..].iter().zip(&mut excess).enumerate() {
                    let value = (at(first + column, input) / scale).round() as i8;
                    let [row, place] = layout.place(input, column);
                    rows[row][place] = value;
                    *excess += EXCESS * i32::from(value);
                }
            }
            excess
        };
        let excess = panels.par_chunks_mut(len.max(1)).enumerate().map(fill).collect();
        Self { panels, layout, excess, scales, n_inputs }
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The factor of each output.
    pub fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// One of the panels.
    fn panel(&self, panel: usize) -> &[ByteRow] {
        let len = self.n_inputs.next_multiple_of(QUAD);
        &self.panels[panel * len..][..len]
    }

    /// The rounded weights as floats, in the layout that they were given in.
    pub fn to_floats(&self, transposed: bool) -> Vec<f32> {
        let n_outputs = self.scales.len();
        let shape = if transposed { [n_outputs, self.n_inputs] } else { [self.n_inputs, n_outputs] };
        let mut weights = vec![0.0; n_outputs * self.n_inputs];
        for (output, scale) in self.scales.iter().enumerate() {
            let panel = self.panel(output / WIDTH);
            for input in 0..self.n_inputs {
                let [row, byte] = self.layout.place(input, output % WIDTH);
                weights[place(shape, transposed, output, input)] = scale * f32::from(panel[row][byte]);
            }
        }
        weights
    }

    /// The product with the rows of `x`, rounded, plus `bias`. A row comes out the same whatever other rows there are.
    ///
    /// # Shapes
    /// - x: `[n_rows, n_inputs]`
    /// - output: `[n_rows, n_outputs]`
    pub fn product(&self, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let x = Int8Rows::round(x, self.n_inputs, self.layout);
        let n_rows = x.scales().len();
        let block = columns_of_task(n_rows * self.n_inputs, self.scales.len(), TASK_PRODUCTS);
        new_columns(n_rows, self.scales.len(), block, |first, out| {
            let mut sums = vec![[0; WIDTH]; n_rows];
            for start in (0..out[0].len()).step_by(WIDTH) {
                let panel = (first + start) / WIDTH;
                x.multiply(self.panel(panel), &self.excess[panel], &mut sums);
                let scales = &self.scales[first + start..];
                let bias = bias.map(|bias| &bias[first + start..]);
                vectorized(
                    #[inline(always)]
                    || {
                        for (out, (sums, row_scale)) in out.iter_mut().zip(sums.iter().zip(x.scales())) {
                            let out = &mut out[start..];
                            for (out, (sum, scale)) in out.iter_mut().zip(sums.iter().zip(scales)) {
                                *out = *sum as f32 * (row_scale * scale);
                            }
                            if let Some(bias) = bias {
                                out.iter_mut().zip(bias).take(WIDTH).for_each(|(out, bias)| *out += bias);
                            }
                        }
                    },
                );
            }
        })
    }
}

/// Multiplications that make a task.
const TASK_PRODUCTS: usize = 1 << 19;

/// Where the weight from `input` to `output` stands.
fn place([_, n_columns]: [usize; 2], transposed: bool, output: usize, input: usize) -> usize {
    if transposed { output * n_columns + input } else { input * n_columns + output }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| (((i + seed) * 7919 % 1009) as f32 / 504.5 - 1.0) * ((i % 5) as f32 + 0.1)).collect()
    }

    #[test]
    fn rounding_moves_a_weight_by_half_a_step_at_most_and_only_once() {
        for transposed in [false, true] {
            let shape = [7, 45];
            let weights = numbers(7 * 45, 3);
            let matrix = Int8Matrix::round(&weights, shape, transposed);
            let rounded = matrix.to_floats(transposed);
            assert_eq!(Int8Matrix::round_in(Layout::Rows, &weights, shape, transposed).to_floats(transposed), rounded);
            for output in 0..matrix.scales.len() {
                let places: Vec<usize> =
                    (0..matrix.n_inputs).map(|input| place(shape, transposed, output, input)).collect();
                let largest = places.iter().fold(0f32, |largest, i| largest.max(weights[*i].abs()));
                assert!((matrix.scales[output] * 127.0 - largest).abs() < 1e-5, "the largest weight becomes 127");
                for i in places {
                    assert!((weights[i] - rounded[i]).abs() <= 0.5001 * matrix.scales[output], "{transposed} {i}");
                }
            }
            let again = Int8Matrix::round(&rounded, shape, transposed);
            assert_eq!(again.panels, matrix.panels);
        }
        let zeros = Int8Matrix::round(&[0.0; 6], [2, 3], false);
        assert_eq!(zeros.to_floats(false), [0.0; 6]);
    }

    #[test]
    fn products_are_those_of_the_rounded_numbers() {
        for (n_rows, n_inputs, n_outputs) in
            [(1, 5, 3), (1, 64, 300), (2, 300, 64), (4, 33, 130), (7, 96, 129), (8, 70, 1), (71, 257, 65)]
        {
            let x = numbers(n_rows * n_inputs, 11);
            let bias = numbers(n_outputs, 5);
            let weights = numbers(n_inputs * n_outputs, 1);
            let rounded =
                |layout| Int8Matrix::round_in(layout, &weights, [n_inputs, n_outputs], false).product(&x, Some(&bias));
            let found = rounded(Layout::of_machine());
            assert_eq!(found, rounded(Layout::Rows), "every machine finds the same");
            let matrix = Int8Matrix::round(&weights, [n_inputs, n_outputs], false);
            let alone: Vec<f32> = x.chunks_exact(n_inputs).flat_map(|x| matrix.product(x, Some(&bias))).collect();
            assert_eq!(found, alone, "a row is multiplied the same among {n_rows}");
            let weights = matrix.to_floats(false);
            for (row, x) in x.chunks_exact(n_inputs).enumerate() {
                let step = x.iter().fold(0f32, |largest, x| largest.max(x.abs())) / 127.0;
                for output in 0..n_outputs {
                    let product =
                        |k: usize| f64::from((x[k] / step).round() * step) * f64::from(weights[k * n_outputs + output]);
                    let exact = (0..n_inputs).map(product).sum::<f64>() + f64::from(bias[output]);
                    let found = f64::from(found[row * n_outputs + output]);
                    assert!((found - exact).abs() < 1e-4 * (1.0 + exact.abs()), "{row} {output}: {found} {exact}");
                }
            }
        }
    }
}
