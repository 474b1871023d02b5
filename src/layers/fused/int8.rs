//! Matrices in 8 bits, for decoders.
//!
//! A decoder reads every weight of the model for each word and multiplies it with a few rows: what it waits for is memory, and
//! a weight of one byte comes four times as fast as one of four. Only weights are rounded; sums are made in 32-bit floats.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::panel::{self, WIDTH};
use super::product::{Matrix, Threads, new_product};
use burn::module::ParamId;
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A matrix of integers from -127 to 127, with a factor for each output.
///
/// # Reference
/// Symmetric, by output and for weights only; Wu et al., Google's Neural Machine Translation System, 2016, section 6, round
/// activations too and learn with the rounding.
#[derive(Clone, Debug)]
pub struct Int8Matrix {
    /// Panels of outputs, each of them input after input; zeros fill up the last.
    panels: Vec<[i8; WIDTH]>,
    scales: Vec<f32>,
    n_inputs: usize,
}

impl Int8Matrix {
    /// Rounds the weights of `x W`, given row by row as `[n_inputs, n_outputs]`; or, with `transposed`, of `x W^T`, given as
    /// `[n_outputs, n_inputs]`.
    pub fn round(weights: &[f32], [n_rows, n_columns]: [usize; 2], transposed: bool) -> Self {
        let [n_inputs, n_outputs] = if transposed { [n_columns, n_rows] } else { [n_rows, n_columns] };
        let at = |output: usize, input: usize| weights[place([n_rows, n_columns], transposed, output, input)];
        let scale = |output: usize| {
            let largest = (0..n_inputs).fold(0.0, |largest: f32, input| largest.max(at(output, input).abs()));
            // Of an output that is all zeros, any factor will do.
            if largest > 0.0 { largest / 127.0 } else { 1.0 }
        };
        let scales: Vec<f32> = (0..n_outputs).into_par_iter().map(scale).collect();
        let mut panels = vec![[0; WIDTH]; n_outputs.div_ceil(WIDTH) * n_inputs];
        panels.par_chunks_mut(n_inputs.max(1)).enumerate().for_each(|(panel, rows)| {
            let first = panel * WIDTH;
            for (input, row) in rows.iter_mut().enumerate() {
                for (i, (value, scale)) in row.iter_mut().zip(&scales[first..]).enumerate() {
                    *value = (at(first + i, input) / scale).round() as i8;
                }
            }
        });
        Self { panels, scales, n_inputs }
    }

    /// The rounded weights as floats, in the layout that they were given in.
    pub fn to_floats(&self, transposed: bool) -> Vec<f32> {
        let n_outputs = self.scales.len();
        let shape = if transposed { [n_outputs, self.n_inputs] } else { [self.n_inputs, n_outputs] };
        let mut weights = vec![0.0; n_outputs * self.n_inputs];
        for (output, scale) in self.scales.iter().enumerate() {
            let panel = &self.panels[output / WIDTH * self.n_inputs..][..self.n_inputs];
            for (input, row) in panel.iter().enumerate() {
                weights[place(shape, transposed, output, input)] = scale * f32::from(row[output % WIDTH]);
            }
        }
        weights
    }

    /// The product with the rows of `x`, plus `bias`. A row comes out the same whatever other rows there are.
    ///
    /// # Shapes
    /// - x: `[n_rows, n_inputs]`
    /// - output: `[n_rows, n_outputs]`
    fn product(&self, x: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
        let outputs = |panel: usize| panel * WIDTH..self.scales.len().min((panel + 1) * WIDTH);
        panel::product(
            Matrix::new(x, x.len() / self.n_inputs, self.n_inputs),
            self.scales.len(),
            #[inline(always)]
            |panel, start, floats| {
                let weights = &self.panels[panel * self.n_inputs + start..];
                for (floats, weights) in floats.iter_mut().zip(weights) {
                    floats.iter_mut().zip(weights).for_each(|(float, weight)| *float = f32::from(*weight));
                }
            },
            |panel, sums| {
                for sums in sums {
                    sums.iter_mut().zip(&self.scales[outputs(panel)]).for_each(|(sum, scale)| *sum *= scale);
                    if let Some(bias) = bias {
                        sums.iter_mut().zip(&bias[outputs(panel)]).for_each(|(sum, bias)| *sum += bias);
                    }
                }
            },
        )
    }
}

/// Where the weight from `input` to `output` stands.
fn place([_, n_columns]: [usize; 2], transposed: bool, output: usize, input: usize) -> usize {
    if transposed { output * n_columns + input } else { input * n_columns + output }
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

    /// The matrix of a parameter.
    pub fn get(&self, id: ParamId) -> Option<Arc<Int8Matrix>> {
        self.matrices.get(&id).cloned()
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
            assert_eq!(again.panels, matrix.panels);
        }
        let zeros = Int8Matrix::round(&[0.0; 6], [2, 3], false);
        assert_eq!(zeros.to_floats(false), [0.0; 6]);
    }

    #[test]
    fn products_are_those_of_the_rounded_weights() {
        for (n_rows, n_inputs, n_outputs) in
            [(1, 5, 3), (1, 64, 300), (2, 300, 64), (4, 33, 130), (7, 96, 129), (8, 70, 1), (71, 257, 65)]
        {
            let x = numbers(n_rows * n_inputs, 11);
            let bias = numbers(n_outputs, 5);
            let matrix = Int8Matrix::round(&numbers(n_inputs * n_outputs, 1), [n_inputs, n_outputs], false);
            let weights = matrix.to_floats(false);
            let found = matrix.product(&x, Some(&bias));
            let alone: Vec<f32> = x.chunks_exact(n_inputs).flat_map(|x| matrix.product(x, Some(&bias))).collect();
            assert_eq!(found, alone, "a row is multiplied the same among {n_rows}");
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
