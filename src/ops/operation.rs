//! What an operation is: names for what it takes and gives, two passes on slices, and the same in burn's operations.

use super::bridge::{self, Erased};
use super::named::{AnyArray, AnyView, Arrays, Flags, Gradient, Gradients, Named, Of, Tensors, Views};
use crate::backend::gpu;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// Which of its forms an operation takes. The one place that chooses is [`run`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// On slices where the tensors lie in this process's memory; elsewhere by kernels of ours, or in burn's operations.
    Fused,
    /// In burn's operations everywhere: with `training.fused = false`, and where a trace is wanted.
    #[default]
    Written,
}

/// What the backward pass of an operation reads of its inputs and outputs. The others may be freed when the forward pass is over.
pub struct Keeps<O: Operation + ?Sized> {
    /// Inputs whose elements are read.
    pub inputs: Of<O::Inputs, Flags>,
    /// Outputs whose elements are read.
    pub outputs: Of<O::Outputs, Flags>,
}

/// What a backward pass starts from. Shapes are all there; elements are where [`Operation::keeps`] says so.
pub struct Backward<'a, O: Operation + ?Sized> {
    /// The inputs of the forward pass.
    pub inputs: Of<O::Inputs, Views<'a>>,
    /// Its outputs.
    pub outputs: Of<O::Outputs, Views<'a>>,
    /// What it has kept beside them.
    pub kept: O::Kept,
    /// The gradients of the loss with respect to the outputs.
    pub gradients: Of<O::Outputs, Views<'a>>,
    /// For each input whether its gradient is needed.
    pub needed: Of<O::Inputs, Flags>,
}

/// An operation with its own backward pass, and the same in burn's operations.
pub trait Operation: Debug + Send + Sync + 'static {
    /// What it takes.
    type Inputs: Named;
    /// What it gives.
    type Outputs: Named;
    /// What its backward pass needs beside inputs and outputs.
    type Kept: Send + 'static;

    /// What its backward pass reads of inputs and outputs.
    fn keeps(&self) -> Keeps<Self>;

    /// The outputs, and what the backward pass needs.
    fn forward(&self, inputs: Of<Self::Inputs, Views>) -> (Of<Self::Outputs, Arrays>, Self::Kept);

    /// The outputs where there will be no backward pass. An operation that makes much for it alone leaves that out here; the outputs
    /// are the same to the bit.
    fn answer(&self, inputs: Of<Self::Inputs, Views>) -> Of<Self::Outputs, Arrays> {
        self.forward(inputs).0
    }

    /// The gradients of the inputs.
    fn backward(&self, of: Backward<Self>) -> Of<Self::Inputs, Gradients>;

    /// The outputs in burn's operations, which have gradients of their own. Other devices than the host compute this where there is
    /// nothing better, and tests compare the other forms with it.
    fn written(&self, inputs: Of<Self::Inputs, Tensors>) -> Of<Self::Outputs, Tensors>;

    /// The outputs by kernels of ours for a GPU, which have gradients of their own too. They take every input; none where there are no
    /// kernels for what is asked, or where burn's operations are as good.
    fn on_gpu(&self, _inputs: &Of<Self::Inputs, Tensors>) -> Option<Of<Self::Outputs, Tensors>> {
        None
    }
}

/// Runs `operation`. If `body` allows it, that is on slices where every tensor is one of 32-bit floats in this process's memory, and by
/// kernels of ours where they lie on a GPU; else in burn's operations.
pub fn run<O: Operation>(operation: O, inputs: Of<O::Inputs, Tensors>, body: Body) -> Of<O::Outputs, Tensors> {
    if body == Body::Written {
        return operation.written(inputs);
    }
    let inputs = O::Inputs::to_list::<Tensors>(inputs);
    match inputs.iter().flatten().all(bridge::is_on_host) {
        true => O::Outputs::from_list::<Tensors>(bridge::run(Arc::new(operation), inputs)),
        false => {
            let is_taken = inputs.iter().flatten().all(gpu::takes);
            let inputs = O::Inputs::from_list::<Tensors>(inputs);
            let found = if is_taken { operation.on_gpu(&inputs) } else { None };
            found.unwrap_or_else(|| operation.written(inputs))
        }
    }
}

impl<O: Operation> Erased for O {
    fn kept(&self) -> [Vec<bool>; 2] {
        let Keeps { inputs, outputs } = self.keeps();
        let flat = |flags: Vec<Option<bool>>| flags.into_iter().map(|flag| flag.unwrap_or(false)).collect();
        [flat(O::Inputs::to_list::<Flags>(inputs)), flat(O::Outputs::to_list::<Flags>(outputs))]
    }

    fn forward(&self, inputs: Vec<Option<AnyView>>) -> (Vec<Option<AnyArray>>, Box<dyn Any + Send>) {
        let (outputs, kept) = Operation::forward(self, O::Inputs::from_list::<Views>(inputs));
        (O::Outputs::to_list::<Arrays>(outputs), Box::new(kept))
    }

    fn answer(&self, inputs: Vec<Option<AnyView>>) -> Vec<Option<AnyArray>> {
        O::Outputs::to_list::<Arrays>(Operation::answer(self, O::Inputs::from_list::<Views>(inputs)))
    }

    fn backward(&self, of: bridge::AnyBackward) -> Vec<Option<Gradient>> {
        let gradients = Operation::backward(
            self,
            Backward {
                inputs: O::Inputs::from_list::<Views>(of.inputs),
                outputs: O::Outputs::from_list::<Views>(of.outputs),
                kept: *of.kept.downcast().expect("what the forward pass of this operation has kept"),
                gradients: O::Outputs::from_list::<Views>(of.gradients),
                needed: O::Inputs::from_list::<Flags>(of.needed),
            },
        );
        O::Inputs::to_list::<Gradients>(gradients)
    }
}
