//! Dropout, and the sum of what goes by a layer and what goes through it.

use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu;
use crate::kernels::dropout::{self, Dropout};
use burn::tensor::{Tensor, TensorData};

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
        (Output::new(inputs.input.shape, self.0.dropped(inputs.input.values)), ())
    }

    fn backward(&self, of: Backward<Self>) -> DropInputs<D, Gradients> {
        let gradient = of.gradients.output.values;
        DropInputs { input: Gradient::when(of.needed.input, || self.0.dropped(gradient)) }
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
        let values = dropout::add_dropped(inputs.around.values, inputs.through.values, self.0.as_ref());
        (Output::new(inputs.around.shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> AddDroppedInputs<D, Gradients> {
        let through = match &self.0 {
            _ if !of.needed.through => Gradient::None,
            Some(dropout) => Gradient::New(dropout.dropped(of.gradients.output.values)),
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
