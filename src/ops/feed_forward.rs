//! A feed-forward network as one operation.

use super::activation::written_activation;
use super::linear::{Weight, affine, linear_on_gpu, rows, written_linear};
use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::residual::written_dropout;
use super::weights::{PreparedWeight, prepared_product};
use crate::backend::gpu;
use crate::kernels::activation::{Activation, activated, inactivated, rectify, unrectify};
use crate::kernels::dropout::Dropout;
use crate::kernels::machine::Threads;
use crate::kernels::matrix::Matrix;
use crate::kernels::product::new_product;
use crate::kernels::rows::{add_to_rows, sum_of_rows};
use burn::tensor::Tensor;

named! {
    /// What `FeedForward` takes.
    FeedForwardInputs {
        /// `[batch, len, d_model]`.
        input: one 3,
        /// `[d_model, n_packed d_inner]`.
        inner: one 2,
        /// `[n_packed d_inner]`.
        inner_bias: one 1,
        /// `[d_inner, d_model]`.
        outer: one 2,
        /// `[d_model]`.
        outer_bias: one 1,
    }
}

/// `dropout(f(x W_1 + b_1)) W_2 + b_2`.
#[derive(Debug)]
struct FeedForward {
    activation: Activation,
    dropout: Option<Dropout>,
    /// Of the two matrices.
    prepared: [Option<PreparedWeight>; 2],
}

/// `dropout(f(x W_1 + b_1)) W_2 + b_2`. With `max(0, x)`, what lies between the products is made in place and kept once: where it
/// is zero, the unit was either negative or dropped, so the backward pass needs neither the sums nor the mask. With the others
/// both sums and units are kept.
///
/// # Shapes
/// - input, output: `[batch, len, d_model]`
///
/// # Reference
/// Vaswani et al. 2017, equation 2; Shazeer, GLU Variants Improve Transformer, 2020, for the gated form.
pub fn feed_forward(
    input: Tensor<3>,
    [inner, outer]: [(Weight, Tensor<1>); 2],
    activation: Activation,
    dropout: Option<Dropout>,
    body: Body,
) -> Tensor<3> {
    let ((inner, inner_bias), (outer, outer_bias)) = (inner, outer);
    let operation = FeedForward { activation, dropout, prepared: [inner.prepared, outer.prepared] };
    let inputs = FeedForwardInputs { input, inner: inner.matrix, inner_bias, outer: outer.matrix, outer_bias };
    run(operation, inputs, body).output
}

/// What lies between the products.
pub struct Between {
    /// `dropout(f(sums))`.
    active: Vec<f32>,
    /// `x W_1 + b_1`, where the units alone do not tell its gradient.
    sums: Option<Vec<f32>>,
}

impl Operation for FeedForward {
    type Inputs = FeedForwardInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    type Kept = Between;

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: FeedForwardInputs { input: true, inner: true, outer: true, ..FeedForwardInputs::none() },
            outputs: Output::<3, Flags>::none(),
        }
    }

    fn forward(&self, inputs: FeedForwardInputs<Views>) -> (Output<3, Arrays>, Between) {
        let FeedForwardInputs { input, inner, inner_bias, outer, outer_bias } = inputs;
        let d_inner = outer.shape[0];
        let [of_inner, of_outer] = self.prepared.each_ref().map(Option::as_ref);
        let mut sums = prepared_product(rows(&input), rows(&inner), of_inner);
        let dropout = self.dropout.as_ref();
        let between = if self.activation == Activation::Relu {
            rectify(&mut sums, inner_bias.values, dropout);
            Between { active: sums, sums: None }
        } else {
            add_to_rows(&mut sums, inner_bias.values);
            Between { active: activated(self.activation, &sums, d_inner, dropout), sums: Some(sums) }
        };
        let active = Matrix::new(&between.active, between.active.len() / d_inner, d_inner);
        let values = affine(active, rows(&outer), Some(outer_bias.values), of_outer);
        (Output::new(input.shape, values), between)
    }

    fn backward(&self, of: Backward<Self>) -> FeedForwardInputs<Gradients> {
        let FeedForwardInputs { input, inner, outer, .. } = of.inputs;
        let [d_model, d_sums, d_inner] = [inner.shape[0], inner.shape[1], outer.shape[0]];
        let Between { active, sums } = of.kept;
        let gradient = rows(&of.gradients.output);
        let n_rows = gradient.n_rows();
        let of_active = || new_product(gradient, rows(&outer).transposed(), Threads::All);
        let of_outer = || new_product(Matrix::new(&active, n_rows, d_inner).transposed(), gradient, Threads::All);
        // Side by side, so that no core waits at the end of each.
        let (mut of_sums, of_outer) = rayon::join(of_active, || Gradient::when(of.needed.outer, of_outer));
        match sums {
            Some(sums) => of_sums = inactivated(self.activation, &sums, of_sums, d_inner, self.dropout.as_ref()),
            None => unrectify(&mut of_sums, &active, self.dropout.as_ref()),
        }
        // As large as the gradient of the sums, and of no more use.
        drop(active);
        let matrix = Matrix::new(&of_sums, n_rows, d_sums);
        let of_input = || new_product(matrix, rows(&inner).transposed(), Threads::All);
        let of_inner = || new_product(rows(&input).transposed(), matrix, Threads::All);
        let (of_input, of_inner) =
            rayon::join(|| Gradient::when(of.needed.input, of_input), || Gradient::when(of.needed.inner, of_inner));
        FeedForwardInputs {
            input: of_input,
            inner: of_inner,
            inner_bias: Gradient::when(of.needed.inner_bias, || sum_of_rows(&of_sums, d_sums)),
            outer: of_outer,
            outer_bias: Gradient::when(of.needed.outer_bias, || sum_of_rows(of.gradients.output.values, d_model)),
        }
    }

    fn written(&self, inputs: FeedForwardInputs<Tensors>) -> Output<3, Tensors> {
        let sums = written_linear(inputs.input, inputs.inner, false, Some(inputs.inner_bias));
        let active = written_dropout(written_activation(self.activation, sums), self.dropout.as_ref());
        Output { output: written_linear(active, inputs.outer, false, Some(inputs.outer_bias)) }
    }

    fn on_gpu(&self, inputs: &FeedForwardInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let FeedForwardInputs { input, inner, inner_bias, outer, outer_bias } = inputs;
        let is_rectified = self.activation == Activation::Relu;
        // Without a graph, the product is rectified before it is written.
        let at_once = (is_rectified && self.dropout.is_none()).then(|| gpu::rectified_linear(input, inner, inner_bias));
        let active = match at_once.flatten() {
            Some(active) => active,
            None if is_rectified => {
                let sums = linear_on_gpu(input.clone(), inner.clone(), false, None, Body::Fused);
                gpu::rectify(&sums, inner_bias, self.dropout)?
            }
            None => {
                let inner_bias = Some(inner_bias.clone());
                let sums = linear_on_gpu(input.clone(), inner.clone(), false, inner_bias, Body::Fused);
                written_dropout(written_activation(self.activation, sums), self.dropout.as_ref())
            }
        };
        let outer_bias = Some(outer_bias.clone());
        Some(Output { output: linear_on_gpu(active, outer.clone(), false, outer_bias, Body::Fused) })
    }
}
