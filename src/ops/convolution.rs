//! A short causal convolution, channel by channel.

use super::named::{Array, Arrays, Gradient, Gradients, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu;
use crate::kernels::convolution;
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

impl Convolution {
    fn on_slices<'a>(inputs: &ConvolutionInputs<Views<'a>>) -> convolution::Convolution<'a> {
        let ConvolutionInputs { input, weight, past } = inputs;
        let [_, len, d] = input.shape;
        convolution::Convolution { input: input.values, past: past.values, weight: weight.values, len, d }
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
        let [output, past] = Self::on_slices(&inputs).forward();
        let outputs = ConvolutionOutputs {
            output: Array { shape: inputs.input.shape, values: output },
            past: Array { shape: inputs.past.shape, values: past },
        };
        (outputs, ())
    }

    fn backward(&self, of: Backward<Self>) -> ConvolutionInputs<Gradients> {
        let (of_output, of_next) = (of.gradients.output.values, of.gradients.past.values);
        let found = Self::on_slices(&of.inputs).backward(of_output, of_next);
        ConvolutionInputs {
            input: Gradient::New(found.input),
            weight: Gradient::New(found.weight),
            past: Gradient::New(found.past),
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

    fn on_gpu(&self, inputs: &ConvolutionInputs<Tensors>) -> Option<ConvolutionOutputs<Tensors>> {
        let ConvolutionInputs { input, weight, past } = inputs;
        let output = gpu::convolution(input, weight, past)?;
        let (len, n_past) = (input.dims()[1], past.dims()[1]);
        // The last positions of both: in a step of a decoder more than the input, in a sentence less.
        let next = match n_past.checked_sub(len) {
            None | Some(0) => input.clone().narrow(1, len - n_past, n_past),
            Some(rest) => Tensor::cat(vec![past.clone().narrow(1, len, rest), input.clone()], 1),
        };
        Some(ConvolutionOutputs { output, past: next })
    }
}
