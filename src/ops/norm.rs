//! Norms of vectors.

use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::residual::add_dropped;
use crate::backend::gpu;
use crate::kernels::dropout::Dropout;
use crate::kernels::norm;
use crate::kernels::rows::sum_of_rows;
use burn::tensor::{Tensor, module};

named! {
    /// What `LayerNorm` takes.
    LayerNormInputs[D] {
        /// `[.., width]`.
        input: one D,
        /// `[width]`.
        gamma: one 1,
        /// `[width]`.
        beta: one 1,
    }
}

/// `gamma (x - mean) / sqrt(var + epsilon) + beta` along the last axis.
#[derive(Debug)]
struct LayerNorm<const D: usize> {
    epsilon: f64,
}

/// `gamma (x - mean) / sqrt(var + epsilon) + beta` along the last axis.
///
/// # Shapes
/// - input, output: `[.., width]`
/// - gamma, beta: `[width]`
///
/// # Reference
/// Ba, Kiros and Hinton, Layer Normalization, 2016.
pub fn layer_norm<const D: usize>(
    input: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
    body: Body,
) -> Tensor<D> {
    run(LayerNorm { epsilon }, LayerNormInputs { input, gamma, beta }, body).output
}

/// The norm of `x + dropout(y)`, what a residual connection with its norm behind makes of `x` that goes around a layer and `y` that has gone
/// through it: layer normalization with `beta`, that by the root mean square without. On a GPU, both are one launch,
/// and two operations elsewhere.
///
/// # Shapes
/// - around, through, output: `[.., width]`
/// - gamma, beta: `[width]`
pub fn norm_of_sum<const D: usize>(
    both: [Tensor<D>; 2],
    dropout: Option<Dropout>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
    body: Body,
) -> Tensor<D> {
    if body == Body::Fused
        && let Some(output) = gpu::norm_of_sum(both.each_ref(), dropout, &gamma, beta.as_ref(), epsilon)
    {
        return output;
    }
    let [_, output] = apart(both, dropout, gamma, beta, epsilon, body);
    output
}

/// `x + dropout(y)`, and its norm, likewise: what residual connections with their norms in front make of `x` that goes around the layers and
/// `y` that has gone through the last of them.
///
/// # Shapes
/// - around, through, outputs: `[.., width]`
/// - gamma, beta: `[width]`
pub fn norm_with_sum<const D: usize>(
    both: [Tensor<D>; 2],
    dropout: Option<Dropout>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
    body: Body,
) -> [Tensor<D>; 2] {
    if body == Body::Fused
        && let Some(outputs) = gpu::norm_with_sum(both.each_ref(), dropout, &gamma, beta.as_ref(), epsilon)
    {
        return outputs;
    }
    apart(both, dropout, gamma, beta, epsilon, body)
}

/// The sum and its norm as two operations.
fn apart<const D: usize>(
    [around, through]: [Tensor<D>; 2],
    dropout: Option<Dropout>,
    gamma: Tensor<1>,
    beta: Option<Tensor<1>>,
    epsilon: f64,
    body: Body,
) -> [Tensor<D>; 2] {
    let sum = add_dropped(around, through, dropout, body);
    let normalized = match beta {
        Some(beta) => layer_norm(sum.clone(), gamma, beta, epsilon, body),
        None => rms_norm(sum.clone(), gamma, epsilon, body),
    };
    [sum, normalized]
}

impl<const D: usize> Operation for LayerNorm<D> {
    type Inputs = LayerNormInputs<D, Tensors>;
    type Outputs = Output<D, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: LayerNormInputs { input: true, gamma: true, beta: false }, outputs: Output::<D, Flags>::none() }
    }

    fn forward(&self, inputs: LayerNormInputs<D, Views>) -> (Output<D, Arrays>, ()) {
        let LayerNormInputs { input, gamma, beta } = inputs;
        let values = norm::layer_norm(input.values, gamma.values, beta.values, self.epsilon as f32);
        (Output::new(input.shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> LayerNormInputs<D, Gradients> {
        let LayerNormInputs { input, gamma, .. } = of.inputs;
        let gradient = of.gradients.output.values;
        let [of_input, of_gamma] = norm::layer_back(input.values, gamma.values, gradient, self.epsilon as f32);
        LayerNormInputs {
            input: Gradient::New(of_input),
            gamma: Gradient::New(of_gamma),
            beta: Gradient::when(of.needed.beta, || sum_of_rows(gradient, gamma.values.len())),
        }
    }

    fn written(&self, inputs: LayerNormInputs<D, Tensors>) -> Output<D, Tensors> {
        Output { output: module::layer_norm(inputs.input, inputs.gamma, Some(inputs.beta), self.epsilon) }
    }

    fn on_gpu(&self, inputs: &LayerNormInputs<D, Tensors>) -> Option<Output<D, Tensors>> {
        Some(Output { output: gpu::layer_norm(&inputs.input, &inputs.gamma, &inputs.beta, self.epsilon)? })
    }
}

named! {
    /// What `RmsNorm` takes.
    RmsNormInputs[D] {
        /// `[.., width]`.
        input: one D,
        /// `[width]`.
        gamma: one 1,
    }
}

/// `gamma x / sqrt(mean(x^2) + epsilon)` along the last axis.
#[derive(Debug)]
struct RmsNorm<const D: usize> {
    epsilon: f64,
}

/// `gamma x / sqrt(mean(x^2) + epsilon)` along the last axis.
///
/// # Shapes
/// - input, output: `[.., width]`
/// - gamma: `[width]`
///
/// # Reference
/// Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, equation 4.
pub fn rms_norm<const D: usize>(input: Tensor<D>, gamma: Tensor<1>, epsilon: f64, body: Body) -> Tensor<D> {
    run(RmsNorm { epsilon }, RmsNormInputs { input, gamma }, body).output
}

impl<const D: usize> Operation for RmsNorm<D> {
    type Inputs = RmsNormInputs<D, Tensors>;
    type Outputs = Output<D, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: RmsNormInputs { input: true, gamma: true }, outputs: Output::<D, Flags>::none() }
    }

    fn forward(&self, inputs: RmsNormInputs<D, Views>) -> (Output<D, Arrays>, ()) {
        let RmsNormInputs { input, gamma } = inputs;
        (Output::new(input.shape, norm::rms_norm(input.values, gamma.values, self.epsilon as f32)), ())
    }

    fn backward(&self, of: Backward<Self>) -> RmsNormInputs<D, Gradients> {
        let RmsNormInputs { input, gamma } = of.inputs;
        let gradient = of.gradients.output.values;
        let [of_input, of_gamma] = norm::rms_back(input.values, gamma.values, gradient, self.epsilon as f32);
        RmsNormInputs { input: Gradient::New(of_input), gamma: Gradient::New(of_gamma) }
    }

    fn written(&self, inputs: RmsNormInputs<D, Tensors>) -> Output<D, Tensors> {
        let RmsNormInputs { input, gamma } = inputs;
        let scale = (input.clone().square().mean_dim(D - 1) + self.epsilon).sqrt();
        Output { output: input / scale * gamma.unsqueeze() }
    }

    fn on_gpu(&self, inputs: &RmsNormInputs<D, Tensors>) -> Option<Output<D, Tensors>> {
        Some(Output { output: gpu::rms_norm(&inputs.input, &inputs.gamma, self.epsilon)? })
    }
}
