//! A short causal convolution, channel by channel.

use super::named::{Array, Arrays, Gradient, Gradients, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::kernels::memory::{Start, new_pieces, sum_in_order};
use crate::kernels::vectors::update;
use burn::tensor::Tensor;

named! {
    /// What `Convolution` takes.
    ConvolutionInputs {
        /// `[rows, len, d]`.
        input: one 3,
        /// `[width, d]`; row `j` is for the position `j` before.
        weight: one 2,
        /// `[rows, width - 1, d]`.
        past: one 3,
    }
}

named! {
    /// What `Convolution` gives.
    ConvolutionOutputs {
        /// `[rows, len, d]`.
        output: one 3,
        /// `[rows, width - 1, d]`.
        past: one 3,
    }
}

/// `y_t = sum_j w_j * x_(t-j)`, of an input that follows `past`; and what comes before the next. The width is above 1.
///
/// In burn's operations, each distance is a copy, a product and a sum through memory of its own.
///
/// # Shapes
/// - input, output's first: `[rows, len, d]`
/// - weight: `[width, d]`; row `j` is for the position `j` before
/// - past, output's second: `[rows, width - 1, d]`
///
/// # Panics
/// If there is no position.
pub fn convolution(input: Tensor<3>, weight: Tensor<2>, past: Tensor<3>, body: Body) -> (Tensor<3>, Tensor<3>) {
    assert!(input.dims()[1] > 0, "a sequence has a position");
    let outputs = run(Convolution, ConvolutionInputs { input, weight, past }, body);
    (outputs.output, outputs.past)
}

#[derive(Debug)]
struct Convolution;

/// The past and the input, one after the other.
#[derive(Clone, Copy)]
struct Joined<'a> {
    past: View<'a, 3>,
    input: View<'a, 3>,
}

impl<'a> Joined<'a> {
    /// The vector of a row at a position, counted from the beginning of the past.
    #[inline(always)]
    fn at(&self, row: usize, position: usize) -> &'a [f32] {
        let ([_, len, d], n_past) = (self.input.shape, self.past.shape[1]);
        match position.checked_sub(n_past) {
            None => &self.past.values[(row * n_past + position) * d..][..d],
            Some(position) => &self.input.values[(row * len + position) * d..][..d],
        }
    }
}

impl Operation for Convolution {
    type Inputs = ConvolutionInputs<Tensors>;
    type Outputs = ConvolutionOutputs<Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        let inputs = ConvolutionInputs { input: true, weight: true, past: true };
        Keeps { inputs, outputs: ConvolutionOutputs { output: false, past: false } }
    }

    fn forward(&self, inputs: ConvolutionInputs<Views>) -> (ConvolutionOutputs<Arrays>, ()) {
        let [rows, len, d] = inputs.input.shape;
        let (weight, n_past) = (inputs.weight.values, inputs.past.shape[1]);
        let joined = Joined { past: inputs.past, input: inputs.input };
        let (values, next) = new_pieces(
            Start::Zeros(rows * len * d),
            len * d,
            #[inline(always)]
            |place, out| {
                let row = place / (len * d);
                for (t, out) in out.chunks_exact_mut(d).enumerate() {
                    for (j, weight) in weight.chunks_exact(d).enumerate() {
                        update([joined.at(row, t + n_past - j), weight], [&mut *out], |[x, w], [sum]| [sum + x * w]);
                    }
                }
                let mut next = Vec::with_capacity(n_past * d);
                for position in len..len + n_past {
                    next.extend_from_slice(joined.at(row, position));
                }
                next
            },
        );
        let past = Array { shape: [rows, n_past, d], values: next.concat() };
        (ConvolutionOutputs { output: Array { shape: [rows, len, d], values }, past }, ())
    }

    fn backward(&self, of: Backward<Self>) -> ConvolutionInputs<Gradients> {
        let [rows, len, d] = of.inputs.input.shape;
        let (weight, n_past) = (of.inputs.weight.values, of.inputs.past.shape[1]);
        let (of_output, of_next) = (of.gradients.output.values, of.gradients.past.values);
        let joined = Joined { past: of.inputs.past, input: of.inputs.input };
        // Each row's past and input side by side.
        let (of_all, of_weights) = new_pieces(
            Start::Zeros(rows * (n_past + len) * d),
            (n_past + len) * d,
            #[inline(always)]
            |place, out| {
                let row = place / ((n_past + len) * d);
                out[len * d..].copy_from_slice(&of_next[row * n_past * d..][..n_past * d]);
                let mut of_weight = vec![0.0; weight.len()];
                for (t, of_output) in of_output[row * len * d..][..len * d].chunks_exact(d).enumerate() {
                    let weights = weight.chunks_exact(d).zip(of_weight.chunks_exact_mut(d));
                    for (j, (weight, of_weight)) in weights.enumerate() {
                        let position = t + n_past - j;
                        update(
                            [of_output, weight, joined.at(row, position)],
                            [&mut out[position * d..][..d], of_weight],
                            |[g, w, x], [of_x, of_w]| [of_x + g * w, of_w + g * x],
                        );
                    }
                }
                of_weight
            },
        );
        let of_weight = || sum_in_order(of_weights.iter().map(Vec::as_slice), weight.len());
        let part = |start: usize, n: usize| {
            let rows = of_all.chunks_exact((n_past + len) * d);
            rows.flat_map(|row| &row[start * d..][..n * d]).copied().collect()
        };
        ConvolutionInputs {
            input: Gradient::when(of.needed.input, || part(n_past, len)),
            weight: Gradient::when(of.needed.weight, of_weight),
            past: Gradient::when(of.needed.past, || part(0, n_past)),
        }
    }

    fn written(&self, inputs: ConvolutionInputs<Tensors>) -> ConvolutionOutputs<Tensors> {
        let ([_, len, _], n_past) = (inputs.input.dims(), inputs.past.dims()[1]);
        let all = Tensor::cat(vec![inputs.past, inputs.input], 1);
        let past = all.clone().narrow(1, len, n_past);
        let weight = |j: usize| inputs.weight.clone().narrow(0, j, 1).unsqueeze();
        let term = |j: usize| all.clone().narrow(1, n_past - j, len) * weight(j);
        let output = (1..=n_past).fold(term(0), |sum, j| sum + term(j));
        ConvolutionOutputs { output, past }
    }
}
