//! Matrices in 8 bits, for decoders that write a few sentences at a time.
//!
//! Such a decoder reads every weight of the model for each word and multiplies it with a handful of rows: what it waits for
//! is memory, and a weight of one byte comes four times as fast as one of four. Only weights are rounded; sums are made in
//! 32-bit floats.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::product::{Matrix, Threads, new_product};
use super::simd::vectorized;
use burn::module::ParamId;
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// The most rows that a matrix in 8 bits is multiplied with. With more, turning bytes into floats for each of them takes
/// longer than reading the floats.
pub const MAX_ROWS: usize = 12;

/// Outputs that a task computes.
const OUTPUTS: usize = 128;

/// Elements side by side in a sum.
const LANES: usize = 16;

/// A matrix of integers from -127 to 127, with a factor for each output.
///
/// # Reference
/// Symmetric, by output and for weights only; Wu et al., Google's Neural Machine Translation System, 2016, section 6, round
/// activations too and learn with the rounding.
#[derive(Clone, Debug)]
pub struct Int8Matrix {
    /// Output after output, whatever the layout of the floats was.
    values: Vec<i8>,
    scales: Vec<f32>,
    n_inputs: usize,
}

impl Int8Matrix {
    /// Rounds the weights of `x W`, given row by row as `[n_inputs, n_outputs]`; or, with `transposed`, of `x W^T`, given as
    /// `[n_outputs, n_inputs]`.
    pub fn round(weights: &[f32], [n_rows, n_columns]: [usize; 2], transposed: bool) -> Self {
        let [n_inputs, n_outputs] = if transposed { [n_columns, n_rows] } else { [n_rows, n_columns] };
        let at = |output: usize, input: usize| weights[place([n_rows, n_columns], transposed, output, input)];
        let mut values = vec![0; n_inputs * n_outputs];
        let mut scales = vec![0.0; n_outputs];
        let outputs = values.par_chunks_mut(n_inputs.max(1)).zip(&mut scales).enumerate();
        outputs.for_each(|(output, (values, scale))| {
            let largest = (0..n_inputs).fold(0.0, |largest: f32, input| largest.max(at(output, input).abs()));
            // Of an output that is all zeros, any factor will do.
            *scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
            for (input, value) in values.iter_mut().enumerate() {
                *value = (at(output, input) / *scale).round() as i8;
            }
        });
        Self { values, scales, n_inputs }
    }

    /// The rounded weights as floats, in the layout that they were given in.
    pub fn to_floats(&self, transposed: bool) -> Vec<f32> {
        let n_outputs = self.scales.len();
        let shape = if transposed { [n_outputs, self.n_inputs] } else { [self.n_inputs, n_outputs] };
        let mut weights = vec![0.0; self.values.len()];
        for (output, scale) in self.scales.iter().enumerate() {
            for input in 0..self.n_inputs {
                let value = f32::from(self.values[output * self.n_inputs + input]);
                weights[place(shape, transposed, output, input)] = scale * value;
            }
        }
        weights
    }

    /// The product with the rows of `x`, plus `bias`.
    ///
    /// # Shapes
    /// - x: `[n_rows, n_inputs]`
    /// - output: `[n_rows, n_outputs]`
    fn product(&self, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let n_outputs = self.scales.len();
        let rows: Vec<&[f32]> = x.chunks_exact(self.n_inputs).collect();
        // Output after output, so that each weight is read once.
        let mut columns = vec![0.0; rows.len() * n_outputs];
        columns.par_chunks_mut(rows.len() * OUTPUTS).enumerate().for_each(|(task, columns)| {
            vectorized(
                #[inline(always)]
                || {
                    for (i, column) in columns.chunks_exact_mut(rows.len()).enumerate() {
                        let output = task * OUTPUTS + i;
                        let weights = &self.values[output * self.n_inputs..][..self.n_inputs];
                        sums_of_products(weights, &rows, column);
                        let added = bias.map_or(0.0, |bias| bias[output]);
                        column.iter_mut().for_each(|sum| *sum = self.scales[output] * *sum + added);
                    }
                },
            );
        });
        if rows.len() == 1 {
            return columns;
        }
        Matrix::new(&columns, n_outputs, rows.len()).transposed().to_vec()
    }
}

/// Where the weight from `input` to `output` stands.
fn place([_, n_columns]: [usize; 2], transposed: bool, output: usize, input: usize) -> usize {
    if transposed { output * n_columns + input } else { input * n_columns + output }
}

/// `sums[r] = weights . rows[r]`, four rows at a time.
#[inline(always)]
fn sums_of_products(weights: &[i8], rows: &[&[f32]], sums: &mut [f32]) {
    let (fours, rest) = rows.as_chunks::<4>();
    let (sums_of_fours, sums_of_rest) = sums.as_chunks_mut::<4>();
    for (rows, sums) in fours.iter().zip(sums_of_fours) {
        *sums = dot_products(weights, *rows);
    }
    match *rest {
        [a] => sums_of_rest.copy_from_slice(&dot_products(weights, [a])),
        [a, b] => sums_of_rest.copy_from_slice(&dot_products(weights, [a, b])),
        [a, b, c] => sums_of_rest.copy_from_slice(&dot_products(weights, [a, b, c])),
        _ => {}
    }
}

/// The products of one vector with `R` others, all of one length.
// Elements are copied before they are used and rows are the inner loop: written otherwise, this does not become wide
// instructions.
#[allow(clippy::needless_range_loop)]
#[inline(always)]
fn dot_products<const R: usize>(weights: &[i8], rows: [&[f32]; R]) -> [f32; R] {
    let (whole, rest) = weights.as_chunks::<LANES>();
    let n = whole.len();
    let pieces = rows.map(|row| &row.as_chunks::<LANES>().0[..n]);
    let mut sums = [[0f32; LANES]; R];
    for i in 0..n {
        let x: [[f32; LANES]; R] = std::array::from_fn(|r| pieces[r][i]);
        let weights = whole[i];
        for lane in 0..LANES {
            let weight = f32::from(weights[lane]);
            for r in 0..R {
                sums[r][lane] += weight * x[r][lane];
            }
        }
    }
    std::array::from_fn(|r| {
        let tail = &rows[r][LANES * n..];
        sums[r].iter().sum::<f32>() + rest.iter().zip(tail).map(|(w, x)| f32::from(*w) * x).sum::<f32>()
    })
}

/// The matrices of a model that are there in 8 bits.
#[derive(Clone, Debug, Default)]
pub struct Int8Weights {
    matrices: HashMap<ParamId, Arc<Int8Matrix>>,
}

impl Int8Weights {
    /// Adds the matrix of a parameter.
    pub fn insert(&mut self, id: ParamId, matrix: Int8Matrix) {
        self.matrices.insert(id, Arc::new(matrix));
    }

    /// The matrix of a parameter, where multiplying `n_rows` rows with it pays.
    pub fn get(&self, id: ParamId, n_rows: usize) -> Option<Arc<Int8Matrix>> {
        if n_rows <= MAX_ROWS { self.matrices.get(&id).cloned() } else { None }
    }
}

/// `x W + b` with `W` in 8 bits.
#[derive(Debug)]
struct Int8Linear {
    matrix: Arc<Int8Matrix>,
}

/// `x W + b` with `W` in 8 bits. Nothing learns through it.
///
/// # Shapes
/// - input: `[.., n_inputs]`
/// - output: `[.., n_outputs]`
pub fn int8_linear<const D: usize>(input: Tensor<D>, matrix: Arc<Int8Matrix>, bias: Option<Tensor<1>>) -> Tensor<D> {
    let mut inputs = vec![input.into_dispatch()];
    inputs.extend(bias.map(Tensor::into_dispatch));
    apply(Int8Linear { matrix }, inputs)
}

impl Function for Int8Linear {
    fn forward(&self, inputs: &[Input]) -> Output {
        let values = self.matrix.product(inputs[0].values, inputs.get(1).map(|bias| bias.values));
        let mut shape = inputs[0].shape.to_vec();
        *shape.last_mut().expect("a tensor has axes") = self.matrix.scales.len();
        Output { shape, values, saved: Vec::new() }
    }

    /// With respect to the input and the bias; the weights are constants.
    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let weights = self.matrix.to_floats(true);
        let n_outputs = self.matrix.scales.len();
        let gradient = Matrix::new(of.gradient, of.gradient.len() / n_outputs, n_outputs);
        let weights = Matrix::new(&weights, n_outputs, self.matrix.n_inputs);
        let mut gradients = vec![Gradient::when(of.wanted[0], || new_product(gradient, weights, Threads::All))];
        if let Some(wanted) = of.wanted.get(1) {
            gradients.push(Gradient::when(*wanted, || super::simd::sum_of_rows(of.gradient, n_outputs)));
        }
        gradients
    }
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
            assert_eq!(again.values, matrix.values);
        }
        let zeros = Int8Matrix::round(&[0.0; 6], [2, 3], false);
        assert_eq!(zeros.to_floats(false), [0.0; 6]);
    }

    #[test]
    fn products_are_those_of_the_rounded_weights() {
        for (n_rows, n_inputs, n_outputs) in [(1, 5, 3), (1, 64, 300), (4, 33, 130), (7, 96, 129), (8, 70, 1)] {
            let x = numbers(n_rows * n_inputs, 11);
            let bias = numbers(n_outputs, 5);
            let matrix = Int8Matrix::round(&numbers(n_inputs * n_outputs, 1), [n_inputs, n_outputs], false);
            let weights = matrix.to_floats(false);
            let found = matrix.product(&x, Some(&bias));
            for row in 0..n_rows {
                for output in 0..n_outputs {
                    let exact: f64 = (0..n_inputs)
                        .map(|k| f64::from(x[row * n_inputs + k]) * f64::from(weights[k * n_outputs + output]))
                        .sum::<f64>()
                        + f64::from(bias[output]);
                    let found = f64::from(found[row * n_outputs + output]);
                    assert!((found - exact).abs() < 1e-4 * (1.0 + exact.abs()), "{row} {output}: {found} {exact}");
                }
            }
        }
    }
}
