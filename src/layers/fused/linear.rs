//! `x W + b` as one operation.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::int8::int8_linear;
use super::matrix::Matrix;
use super::packed::{Slot, slot_product};
use super::pieces::{Threads, for_pieces, sum_of_rows};
use super::product::new_product;
use crate::layers::Pass;
use burn::module::Param;
use burn::nn;
use burn::tensor::Tensor;

/// `x W + b`; with `transposed`, `x W^T + b`.
#[derive(Debug)]
struct Linear {
    transposed: bool,
    slot: Option<Slot>,
}

/// `x W + b`. Burn's layer adds the bias in a second pass and sums its gradient in a third.
///
/// # Shapes
/// - input: `[.., d_input]`
/// - weight: `[d_input, d_output]`, or `[d_output, d_input]` if `transposed`
/// - output: `[.., d_output]`
pub fn linear<const D: usize>(
    input: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    transposed: bool,
) -> Tensor<D> {
    linear_in(None, input, weight, bias, transposed)
}

/// The same; `slot` has the packed weight, or room for it.
fn linear_in<const D: usize>(
    slot: Option<Slot>,
    input: Tensor<D>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    transposed: bool,
) -> Tensor<D> {
    let mut inputs = vec![input.into_dispatch(), weight.into_dispatch()];
    inputs.extend(bias.map(Tensor::into_dispatch));
    apply(Linear { transposed, slot }, inputs)
}

/// The layer `layer`, fused if `pass` says so.
pub fn linear_layer<const D: usize>(layer: &nn::Linear, input: Tensor<D>, pass: &Pass) -> Tensor<D> {
    if !pass.fuses(&input.device()) {
        return layer.forward(input);
    }
    let bias = layer.bias.as_ref().map(|bias| bias.val());
    match pass.int8(layer.weight.id) {
        Some(matrix) => int8_linear(input, matrix, bias),
        None => linear_in(pass.slot(layer.weight.id), input, layer.weight.val(), bias, false),
    }
}

/// `x W` with a parameter that is no layer of its own, fused if `pass` says so.
///
/// # Shapes
/// - input: `[rows, d_input]`
/// - output: `[rows, d_output]`
pub fn linear_parameter(weight: &Param<Tensor<2>>, input: Tensor<2>, pass: &Pass) -> Tensor<2> {
    if !pass.fuses(&input.device()) {
        return input.matmul(weight.val());
    }
    linear_in(pass.slot(weight.id), input, weight.val(), None, false)
}

/// Scores against every row of a table of embeddings, `x E^T`, fused if `pass` says so.
///
/// # Shapes
/// - input: `[batch, len, d_embedding]`
/// - output: `[batch, len, n_embeddings]`
pub fn similarity(input: Tensor<3>, embedding: &nn::Embedding, pass: &Pass) -> Tensor<3> {
    if !pass.fuses(&input.device()) {
        return input.matmul(embedding.weight.val().transpose().unsqueeze());
    }
    match pass.int8(embedding.weight.id) {
        Some(matrix) => int8_linear(input, matrix, None),
        None => linear_in(pass.slot(embedding.weight.id), input, embedding.weight.val(), None, true),
    }
}

/// The rows of a tensor as a matrix.
pub(super) fn rows<'a>(input: &Input<'a>) -> Matrix<'a> {
    let width = *input.shape.last().expect("a tensor has axes");
    Matrix::new(input.values, input.values.len() / width, width)
}

/// `x W + b` in new memory.
pub(super) fn affine(x: Matrix, weight: Matrix, bias: Option<&[f32]>, slot: Option<&Slot>) -> Vec<f32> {
    let mut out = slot_product(x, weight, slot);
    if let Some(bias) = bias {
        for_pieces(
            &mut out,
            bias.len(),
            #[inline(always)]
            |_, piece| add_to_rows(piece, bias),
        );
    }
    out
}

/// The gradients of `x W`, or of `x W^T` if `transposed`, with respect to `x` and `W`.
pub(super) fn gradients_of_product(
    x: Matrix,
    weight: Matrix,
    transposed: bool,
    gradient: Matrix,
    wanted: [bool; 2],
) -> [Gradient; 2] {
    let of_x = || new_product(gradient, if transposed { weight } else { weight.transposed() }, Threads::All);
    let of_weight = || match transposed {
        true => new_product(gradient.transposed(), x, Threads::All),
        false => new_product(x.transposed(), gradient, Threads::All),
    };
    // Side by side, so that no core waits at the end of each.
    let (of_x, of_weight) = rayon::join(|| Gradient::when(wanted[0], of_x), || Gradient::when(wanted[1], of_weight));
    [of_x, of_weight]
}

/// Adds `bias` to every row.
#[inline(always)]
pub(super) fn add_to_rows(rows: &mut [f32], bias: &[f32]) {
    for row in rows.chunks_exact_mut(bias.len()) {
        row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
    }
}

impl Function for Linear {
    fn forward(&self, inputs: &[Input]) -> Output {
        let weight = rows(&inputs[1]);
        let weight = if self.transposed { weight.transposed() } else { weight };
        let d_output = inputs[1].shape[if self.transposed { 0 } else { 1 }];
        let values = affine(rows(&inputs[0]), weight, inputs.get(2).map(|bias| bias.values), self.slot.as_ref());
        let mut shape = inputs[0].shape.to_vec();
        *shape.last_mut().expect("a tensor has axes") = d_output;
        Output { shape, values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let (x, weight) = (rows(&of.inputs[0]), rows(&of.inputs[1]));
        let d_output = of.inputs[1].shape[if self.transposed { 0 } else { 1 }];
        let gradient = Matrix::new(of.gradient, of.gradient.len() / d_output, d_output);
        let wanted = [of.wanted[0], of.wanted[1]];
        let [of_input, of_weight] = gradients_of_product(x, weight, self.transposed, gradient, wanted);
        let mut gradients = vec![of_input, of_weight];
        if let Some(wanted) = of.wanted.get(2) {
            gradients.push(Gradient::when(*wanted, || sum_of_rows(of.gradient, d_output)));
        }
        gradients
    }
}
