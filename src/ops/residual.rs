//! Dropout, sums and norms of vectors.

use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu;
use crate::kernels::dropout::Dropout;
use crate::kernels::memory::{Start, mapped, new_pieces, sum_of_rows, task_rows};
use crate::kernels::vectors::{sum, update};
use burn::tensor::{Tensor, TensorData, module};

named! {
    /// What `Drop` takes.
    DropInputs[D] {
        /// Any tensor.
        input: one D,
    }
}

/// `x` with elements dropped.
#[derive(Debug)]
struct Drop<const D: usize>(Dropout);

/// `x` with elements set to zero at random, and the others scaled so that the mean stays.
///
/// # Reference
/// Srivastava et al., Dropout, 2014.
pub fn dropout<const D: usize>(input: Tensor<D>, dropout: Dropout, body: Body) -> Tensor<D> {
    run(Drop(dropout), DropInputs { input }, body).output
}

fn dropped(values: &[f32], dropout: &Dropout) -> Vec<f32> {
    mapped(
        values,
        1,
        #[inline(always)]
        |start, piece| dropout.apply(start, piece),
    )
}

/// The same in burn's operations; `x` itself without dropout.
pub(super) fn written_dropout<const D: usize>(input: Tensor<D>, dropout: Option<&Dropout>) -> Tensor<D> {
    let Some(dropout) = dropout else { return input };
    if let Some(output) = gpu::dropout(&input, *dropout) {
        return output;
    }
    let shape = input.dims();
    let mask = TensorData::new(dropout.mask(shape.iter().product()), shape);
    let mask = Tensor::from_data(mask, &input.device());
    input * mask
}

impl<const D: usize> Operation for Drop<D> {
    type Inputs = DropInputs<D, Tensors>;
    type Outputs = Output<D, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: DropInputs::<D, Flags>::none(), outputs: Output::<D, Flags>::none() }
    }

    fn forward(&self, inputs: DropInputs<D, Views>) -> (Output<D, Arrays>, ()) {
        (Output::new(inputs.input.shape, dropped(inputs.input.values, &self.0)), ())
    }

    fn backward(&self, of: Backward<Self>) -> DropInputs<D, Gradients> {
        let gradient = of.gradients.output.values;
        DropInputs { input: Gradient::when(of.needed.input, || dropped(gradient, &self.0)) }
    }

    fn written(&self, inputs: DropInputs<D, Tensors>) -> Output<D, Tensors> {
        Output { output: written_dropout(inputs.input, Some(&self.0)) }
    }
}

named! {
    /// What `AddDropped` takes.
    AddDroppedInputs[D] {
        /// What goes by the layer.
        around: one D,
        /// What the layer makes, of the same shape.
        through: one D,
    }
}

/// `x + dropout(y)`.
#[derive(Debug)]
struct AddDropped<const D: usize>(Option<Dropout>);

/// `x + dropout(y)`, what a residual connection makes of `x` that goes around a layer and `y` that has gone through it.
///
/// # Shapes
/// - around, through, output: the same
pub fn add_dropped<const D: usize>(
    around: Tensor<D>,
    through: Tensor<D>,
    dropout: Option<Dropout>,
    body: Body,
) -> Tensor<D> {
    run(AddDropped(dropout), AddDroppedInputs { around, through }, body).output
}

impl<const D: usize> Operation for AddDropped<D> {
    type Inputs = AddDroppedInputs<D, Tensors>;
    type Outputs = Output<D, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: AddDroppedInputs::<D, Flags>::none(), outputs: Output::<D, Flags>::none() }
    }

    fn forward(&self, inputs: AddDroppedInputs<D, Views>) -> (Output<D, Arrays>, ()) {
        let (x, y) = (inputs.around.values, inputs.through.values);
        let values = mapped(
            x,
            1,
            #[inline(always)]
            |start, piece| match &self.0 {
                Some(dropout) => dropout.each(
                    start,
                    piece,
                    #[inline(always)]
                    |i, value, factor| *value += y[start + i] * factor,
                ),
                None => update(
                    [&y[start..start + piece.len()]],
                    [piece],
                    #[inline(always)]
                    |[y], [value]| [value + y],
                ),
            },
        );
        (Output::new(inputs.around.shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> AddDroppedInputs<D, Gradients> {
        let through = match &self.0 {
            _ if !of.needed.through => Gradient::None,
            Some(dropout) => Gradient::New(dropped(of.gradients.output.values, dropout)),
            None => Gradient::OfOutput,
        };
        AddDroppedInputs { around: Gradient::OfOutput, through }
    }

    fn written(&self, inputs: AddDroppedInputs<D, Tensors>) -> Output<D, Tensors> {
        Output { output: inputs.around + written_dropout(inputs.through, self.0.as_ref()) }
    }

    fn on_gpu(&self, inputs: &AddDroppedInputs<D, Tensors>) -> Option<Output<D, Tensors>> {
        Some(Output { output: gpu::add_dropped(&inputs.around, &inputs.through, self.0?)? })
    }
}

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

/// The mean of a row, and one over its deviation.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum(
        [row],
        #[inline(always)]
        |[value]| value,
    ) / n;
    let variance = sum(
        [row],
        #[inline(always)]
        |[value]| (value - mean) * (value - mean),
    ) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
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
        let width = gamma.values.len();
        let values = mapped(
            input.values,
            width,
            #[inline(always)]
            |_, piece| {
                for row in piece.chunks_exact_mut(width) {
                    let (mean, scale) = moments(row, self.epsilon as f32);
                    update(
                        [gamma.values, beta.values],
                        [row],
                        #[inline(always)]
                        |[gamma, beta], [value]| [(value - mean) * scale * gamma + beta],
                    );
                }
            },
        );
        (Output::new(input.shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> LayerNormInputs<D, Gradients> {
        let LayerNormInputs { input, gamma, .. } = of.inputs;
        let gradient = of.gradients.output.values;
        let width = gamma.values.len();
        let rows = task_rows(width) * width;
        // Pieces of fixed size, added in order: the sum does not depend on the number of threads.
        let (of_input, of_gamma) = new_pieces(
            Start::Zeros(input.values.len()),
            rows,
            #[inline(always)]
            |start, out| {
                let (x, gradient) = (&input.values[start..][..out.len()], &gradient[start..][..out.len()]);
                backward_rows(out, x, gradient, gamma.values, self.epsilon as f32)
            },
        );
        LayerNormInputs {
            input: Gradient::New(of_input),
            gamma: Gradient::when(of.needed.gamma, || sum_of_rows(&of_gamma.concat(), width)),
            beta: Gradient::when(of.needed.beta, || sum_of_rows(gradient, width)),
        }
    }

    fn written(&self, inputs: LayerNormInputs<D, Tensors>) -> Output<D, Tensors> {
        Output { output: module::layer_norm(inputs.input, inputs.gamma, Some(inputs.beta), self.epsilon) }
    }

    fn on_gpu(&self, inputs: &LayerNormInputs<D, Tensors>) -> Option<Output<D, Tensors>> {
        Some(Output { output: gpu::layer_norm(&inputs.input, &inputs.gamma, &inputs.beta, self.epsilon)? })
    }
}

/// The gradients of some rows, and their part of that of gamma.
#[inline(always)]
fn backward_rows(out: &mut [f32], x: &[f32], gradient: &[f32], gamma: &[f32], epsilon: f32) -> Vec<f32> {
    let width = gamma.len();
    let n = width as f32;
    let mut of_gamma = vec![0.0; width];
    for (out, (x, gradient)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width).zip(gradient.chunks_exact(width)))
    {
        let (mean, scale) = moments(x, epsilon);
        let of_normal = sum(
            [gradient, gamma],
            #[inline(always)]
            |[g, gamma]| g * gamma,
        ) / n;
        let along = sum(
            [gradient, gamma, x],
            #[inline(always)]
            |[g, gamma, x]| g * gamma * (x - mean),
        ) * scale
            / n;
        update(
            [x, gradient, gamma],
            [out, &mut of_gamma],
            #[inline(always)]
            |[x, gradient, gamma], [_, of_gamma]| {
                let normal = (x - mean) * scale;
                [scale * (gradient * gamma - of_normal - normal * along), of_gamma + gradient * normal]
            },
        );
    }
    of_gamma
}
