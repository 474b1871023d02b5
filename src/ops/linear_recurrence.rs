//! Recurrences without a product at each step, over batch and channels at once.

use super::named::{Arrays, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::scan::{coefficients, scan};
use crate::backend::gpu;
use crate::kernels::linear_recurrence::{Gating, Layer};
use crate::kernels::recurrence::Reading;
use burn::tensor::Tensor;

named! {
    /// What `Recurrence` takes.
    LinearRecurrenceInputs {
        /// `[batch, len, n_gates d_state]`.
        gates: one 3,
        /// `[batch, d_state]`.
        start: one 2,
        /// `L` of RG-LRU: `[d_state]`.
        decay: maybe 1,
    }
}

/// The state after every position: see [`LinearRecurrence`](crate::layers::mixer::LinearRecurrence).
///
/// In burn's operations, the gates and the scan are some thirty passes over memory; here the gates of a channel are computed beside its
/// state, and again in the backward pass, so that only the states are kept.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_state]`
/// - start: `[batch, d_state]`
/// - decay: `[d_state]`, of RG-LRU
/// - output: `[batch, len, d_state]`, zero on padding
pub fn linear_recurrence(
    gating: Gating,
    gates: Tensor<3>,
    start: Tensor<2>,
    decay: Option<Tensor<1>>,
    reading: Reading,
    body: Body,
) -> Tensor<3> {
    run(Recurrence { gating, reading }, LinearRecurrenceInputs { gates, start, decay }, body).output
}

#[derive(Debug)]
struct Recurrence {
    gating: Gating,
    reading: Reading,
}

impl Recurrence {
    fn on_slices<'a, 'v: 'a>(&'a self, inputs: &LinearRecurrenceInputs<Views<'v>>) -> Layer<'a> {
        let ([batch, len, _], [_, d]) = (inputs.gates.shape, inputs.start.shape);
        Layer {
            gating: self.gating,
            reading: &self.reading,
            batch,
            len,
            d,
            gates: inputs.gates.values,
            start: inputs.start.values,
            decay: inputs.decay.map(|decay| decay.values).unwrap_or_default(),
        }
    }
}

impl Operation for Recurrence {
    type Inputs = LinearRecurrenceInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        let inputs = LinearRecurrenceInputs { gates: true, start: true, decay: Some(true) };
        Keeps { inputs, outputs: Output { output: true } }
    }

    fn forward(&self, inputs: LinearRecurrenceInputs<Views>) -> (Output<3, Arrays>, ()) {
        let ([batch, len, _], [_, d]) = (inputs.gates.shape, inputs.start.shape);
        (Output::new([batch, len, d], self.on_slices(&inputs).forward()), ())
    }

    fn backward(&self, of: Backward<Self>) -> LinearRecurrenceInputs<Gradients> {
        let found = self.on_slices(&of.inputs).backward(of.outputs.output.values, of.gradients.output.values);
        LinearRecurrenceInputs {
            gates: Gradient::New(found.gates),
            start: Gradient::New(found.start),
            decay: of.needed.decay.map(|_| Gradient::New(found.decay)),
        }
    }

    fn written(&self, inputs: LinearRecurrenceInputs<Tensors>) -> Output<3, Tensors> {
        let [a, b] = coefficients(self.gating, inputs.gates, inputs.decay);
        Output { output: scan(a, b, inputs.start, &self.reading) }
    }

    fn on_gpu(&self, inputs: &LinearRecurrenceInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let LinearRecurrenceInputs { gates, start, decay } = inputs;
        let output = gpu::linear_recurrence(self.gating, gates, start, decay.as_ref(), &self.reading)?;
        Some(Output { output })
    }
}
