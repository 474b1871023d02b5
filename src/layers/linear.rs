//! Linear layers, and parameters that are multiplied like one.

use super::Pass;
use crate::ops::{self, Weight};
use burn::module::Param;
use burn::nn;
use burn::tensor::{Int, Tensor};

/// The matrix of a parameter in the form in which `pass` multiplies it.
///
/// # Shapes
/// - weight: `[d_input, d_output]`, or `[d_output, d_input]` if `is_transposed`
pub fn weight_of(weight: &Param<Tensor<2>>, is_transposed: bool, pass: &Pass) -> Weight {
    Weight { matrix: weight.val(), is_transposed, prepared: pass.prepared(weight.id) }
}

/// `x W + b`.
///
/// # Shapes
/// - input: `[.., d_input]`
/// - output: `[.., d_output]`
pub fn linear_layer<const D: usize>(layer: &nn::Linear, input: Tensor<D>, pass: &Pass) -> Tensor<D> {
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    ops::linear(input, weight_of(&layer.weight, false, pass), bias, pass.body())
}

/// `x W` with a parameter that is no layer of its own.
///
/// # Shapes
/// - input: `[rows, d_input]`
/// - output: `[rows, d_output]`
pub fn linear_parameter(weight: &Param<Tensor<2>>, input: Tensor<2>, pass: &Pass) -> Tensor<2> {
    ops::linear(input, weight_of(weight, false, pass), None, pass.body())
}

/// Scores against every row of a table of embeddings, `x E^T`.
///
/// # Shapes
/// - input: `[batch, len, d_embedding]`
/// - output: `[batch, len, n_embeddings]`
pub fn similarity(input: Tensor<3>, embedding: &nn::Embedding, pass: &Pass) -> Tensor<3> {
    ops::linear(input, weight_of(&embedding.weight, true, pass), None, pass.body())
}

/// `scale E[id]` for every id.
///
/// # Shapes
/// - ids: `[batch, len]`
/// - output: `[batch, len, d_embedding]`
pub fn embedding(ids: Tensor<2, Int>, layer: &nn::Embedding, scale: f64, pass: &Pass) -> Tensor<3> {
    ops::embedding(ids, layer.weight.val(), scale, pass.body())
}
