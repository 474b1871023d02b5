//! `x W + b` as one operation.

use super::named::{Arrays, Flags, Gradient, Gradients, Of, Output, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::weights::{PreparedWeight, prepared_product};
use crate::backend::gpu;
use crate::kernels::machine::Threads;
use crate::kernels::matrix::Matrix;
use crate::kernels::product::new_product;
use crate::kernels::rows::{add_to_rows, sum_of_rows};
use burn::tensor::{Tensor, module};

named! {
    /// What `Linear` takes.
    LinearInputs[D] {
        /// `[.., d_input]`.
        input: one D,
        /// `[d_input, d_output]`, or `[d_output, d_input]` if it is transposed.
        weight: one 2,
        /// `[d_output]`.
        bias: maybe 1,
    }
}

/// `x W + b`; with `is_transposed`, `x W^T + b`.
#[derive(Debug)]
struct Linear<const D: usize> {
    is_transposed: bool,
    prepared: Option<PreparedWeight>,
}

/// A matrix, which way round it is taken, and the form in which decoding multiplies it.
#[derive(Debug)]
pub struct Weight {
    /// `[d_input, d_output]`, or `[d_output, d_input]` if it is transposed.
    pub matrix: Tensor<2>,
    /// Whether outputs are rows, as in a table of embeddings.
    pub is_transposed: bool,
    /// The same numbers in another form, which has no gradient of its own.
    pub prepared: Option<PreparedWeight>,
}

impl Weight {
    /// A matrix as it is: `[d_input, d_output]`.
    pub fn plain(matrix: Tensor<2>) -> Self {
        Self { matrix, is_transposed: false, prepared: None }
    }
}

/// `x W + b`. burn's layer adds the bias in a second pass over memory, sums its gradient in a third, and copies operands of products
/// that are transposed.
///
/// # Shapes
/// - input: `[.., d_input]`
/// - bias: `[d_output]`
/// - output: `[.., d_output]`
pub fn linear<const D: usize>(input: Tensor<D>, weight: Weight, bias: Option<Tensor<1>>, body: Body) -> Tensor<D> {
    let Weight { matrix, is_transposed, prepared } = weight;
    run(Linear { is_transposed, prepared }, LinearInputs { input, weight: matrix, bias }, body).output
}

/// The rows of a tensor as a matrix: all axes but the last are one.
pub(super) fn rows<'a, const D: usize>(view: &View<'a, D>) -> Matrix<'a> {
    let width = view.shape[D - 1];
    Matrix::new(view.values, view.shape[..D - 1].iter().product(), width)
}

/// `x W + b` in new memory.
pub(super) fn affine(x: Matrix, weight: Matrix, bias: Option<&[f32]>, prepared: Option<&PreparedWeight>) -> Vec<f32> {
    let mut out = prepared_product(x, weight, prepared);
    if let Some(bias) = bias {
        add_to_rows(&mut out, bias);
    }
    out
}

/// The gradients of `x W`, or of `x W^T` if `is_transposed`, with respect to `x` and `W`.
pub(super) fn gradients_of_product(
    x: Matrix,
    weight: Matrix,
    is_transposed: bool,
    gradient: Matrix,
    needed: [bool; 2],
) -> [Gradient; 2] {
    let of_x = || new_product(gradient, if is_transposed { weight } else { weight.transposed() }, Threads::All);
    let of_weight = || match is_transposed {
        true => new_product(gradient.transposed(), x, Threads::All),
        false => new_product(x.transposed(), gradient, Threads::All),
    };
    // Side by side, so that no core waits at the end of each.
    let (of_x, of_weight) = rayon::join(|| Gradient::when(needed[0], of_x), || Gradient::when(needed[1], of_weight));
    [of_x, of_weight]
}

/// `input W + b`, or with `W^T`, in burn's operations.
pub(super) fn written_linear<const D: usize>(
    input: Tensor<D>,
    weight: Tensor<2>,
    is_transposed: bool,
    bias: Option<Tensor<1>>,
) -> Tensor<D> {
    module::linear(input, if is_transposed { weight.transpose() } else { weight }, bias)
}

/// [`written_linear`] as it is computed on a GPU: if `body` allows it, by kernels of ours.
pub(super) fn linear_on_gpu<const D: usize>(
    input: Tensor<D>,
    weight: Tensor<2>,
    is_transposed: bool,
    bias: Option<Tensor<1>>,
    body: Body,
) -> Tensor<D> {
    let by_kernel = match body {
        Body::Fused => gpu::linear(&input, &weight, is_transposed, bias.as_ref()),
        Body::Written => None,
    };
    by_kernel.unwrap_or_else(|| written_linear(input, weight, is_transposed, bias))
}

/// Matrix times matrix on a GPU: if `body` allows it, by kernels of ours.
pub(super) fn product_on_gpu<const D: usize>(left: Tensor<D>, right: Tensor<D>, body: Body) -> Tensor<D> {
    let by_kernel = match body {
        Body::Fused => gpu::product(&left, &right),
        Body::Written => None,
    };
    by_kernel.unwrap_or_else(|| left.matmul(right))
}

impl<const D: usize> Linear<D> {
    fn d_output(&self, weight: &View<2>) -> usize {
        weight.shape[if self.is_transposed { 0 } else { 1 }]
    }
}

impl<const D: usize> Operation for Linear<D> {
    type Inputs = LinearInputs<D, Tensors>;
    type Outputs = Output<D, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: LinearInputs { input: true, weight: true, ..LinearInputs::<D, Flags>::none() },
            outputs: Output::<D, Flags>::none(),
        }
    }

    fn forward(&self, inputs: Of<Self::Inputs, Views>) -> (Output<D, Arrays>, ()) {
        let LinearInputs { input, weight, bias } = inputs;
        let mut shape = input.shape;
        shape[D - 1] = self.d_output(&weight);
        let matrix = if self.is_transposed { rows(&weight).transposed() } else { rows(&weight) };
        let values = affine(rows(&input), matrix, bias.map(|bias| bias.values), self.prepared.as_ref());
        (Output::new(shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> Of<Self::Inputs, Gradients> {
        let LinearInputs { input, weight, .. } = of.inputs;
        let gradient = rows(&of.gradients.output);
        let rounded = match &self.prepared {
            // The product was with the rounded weights, which are constants.
            Some(PreparedWeight::Int8(matrix)) => Some(matrix.to_floats(self.is_transposed)),
            _ => None,
        };
        let matrix = match &rounded {
            Some(values) => Matrix::new(values, weight.shape[0], weight.shape[1]),
            None => rows(&weight),
        };
        let needed = [of.needed.input, of.needed.weight && rounded.is_none()];
        let [input, weight] = gradients_of_product(rows(&input), matrix, self.is_transposed, gradient, needed);
        let of_bias = |needed| Gradient::when(needed, || sum_of_rows(of.gradients.output.values, gradient.n_columns()));
        LinearInputs { input, weight, bias: of.needed.bias.map(of_bias) }
    }

    fn written(&self, inputs: LinearInputs<D, Tensors>) -> Output<D, Tensors> {
        Output { output: written_linear(inputs.input, inputs.weight, self.is_transposed, inputs.bias) }
    }

    fn on_gpu(&self, inputs: &LinearInputs<D, Tensors>) -> Option<Output<D, Tensors>> {
        let LinearInputs { input, weight, bias } = inputs;
        Some(Output { output: gpu::linear(input, weight, self.is_transposed, bias.as_ref())? })
    }
}
