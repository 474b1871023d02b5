//! One step of a recurrent cell, where steps are not one operation ([`recurrence`](super::recurrence)): as in decoding, and in
//! decoders of several layers.

use super::named::{Array, Arrays, Flags, Gradient, Gradients, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::steps::CellState;
use crate::backend::gpu;
use crate::kernels::cell::{self, CellKind};
use crate::kernels::rows::sum_of_rows;
use burn::tensor::{Tensor, activation};

named! {
    /// What `CellStep` takes.
    CellStepInputs {
        /// The product with the input: `[rows, n_gates d_hidden]`.
        projected: one 2,
        /// The product with the state: `[rows, n_gates d_hidden]`.
        recurrent: one 2,
        /// The state before: `[rows, d_hidden]`.
        hidden: one 2,
        /// The memory of an LSTM before: `[rows, d_hidden]`.
        memory: maybe 2,
        /// Of a GRU: `[d_hidden]`.
        candidate_bias: maybe 1,
    }
}

named! {
    /// What `CellStep` gives.
    CellStepOutputs {
        /// The state after: `[rows, d_hidden]`.
        hidden: one 2,
        /// The memory of an LSTM after.
        memory: maybe 2,
    }
}

/// The state that follows, from the gates' input part and recurrent part. See [`Cell`](crate::layers::recurrent::Cell).
#[derive(Debug)]
struct CellStep {
    kind: CellKind,
}

/// The state after a step. See [`Cell`](crate::layers::recurrent::Cell) for the equations.
///
/// # Shapes
/// - projected, recurrent: `[rows, n_gates * d_hidden]`, the products with input and state
/// - candidate_bias: `[d_hidden]`, of a GRU
pub fn cell_step(
    kind: CellKind,
    projected: Tensor<2>,
    recurrent: Tensor<2>,
    CellState { hidden, memory }: CellState,
    candidate_bias: Option<Tensor<1>>,
    body: Body,
) -> CellState {
    let inputs = CellStepInputs { projected, recurrent, hidden, memory, candidate_bias };
    let CellStepOutputs { hidden, memory } = run(CellStep { kind }, inputs, body);
    CellState { hidden, memory }
}

impl CellStep {
    fn on_slices<'a>(&self, inputs: &CellStepInputs<Views<'a>>) -> cell::Step<'a> {
        cell::Step {
            kind: self.kind,
            input: inputs.projected.values,
            recurrent: inputs.recurrent.values,
            hidden: inputs.hidden.values,
            memory: inputs.memory.map(|memory| memory.values).unwrap_or_default(),
            candidate_bias: inputs.candidate_bias.map(|bias| bias.values),
            d: inputs.hidden.shape[1],
        }
    }
}

impl Operation for CellStep {
    type Inputs = CellStepInputs<Tensors>;
    type Outputs = CellStepOutputs<Tensors>;
    /// What the cell keeps of every row.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: CellStepInputs { hidden: true, ..CellStepInputs::none() },
            outputs: CellStepOutputs::<Flags>::none(),
        }
    }

    fn forward(&self, inputs: CellStepInputs<Views>) -> (CellStepOutputs<Arrays>, Vec<f32>) {
        let [hidden, memory, saved] = self.on_slices(&inputs).forward();
        let array = |values| Array { shape: inputs.hidden.shape, values };
        let memory = inputs.memory.map(|_| array(memory));
        (CellStepOutputs { hidden: array(hidden), memory }, saved)
    }

    fn backward(&self, of: Backward<Self>) -> CellStepInputs<Gradients> {
        let of_memory = of.gradients.memory.map(|memory| memory.values).unwrap_or_default();
        let found = self.on_slices(&of.inputs).backward(&of.kept, of.gradients.hidden.values, of_memory);
        let [[_, width], [_, d]] = [of.inputs.projected.shape, of.inputs.hidden.shape];
        let of_bias = |needed| Gradient::when(needed, || sum_of_rows(&found.recurrent, width)[2 * d..].to_vec());
        CellStepInputs {
            candidate_bias: of.needed.candidate_bias.map(of_bias),
            memory: of.needed.memory.map(|_| Gradient::New(found.memory)),
            projected: Gradient::New(found.input),
            recurrent: Gradient::New(found.recurrent),
            hidden: Gradient::New(found.hidden),
        }
    }

    fn written(&self, inputs: CellStepInputs<Tensors>) -> CellStepOutputs<Tensors> {
        let CellStepInputs { projected, recurrent, hidden, memory, candidate_bias } = inputs;
        let state = CellState { hidden, memory };
        let CellState { hidden, memory } = written_step(self.kind, projected, recurrent, state, candidate_bias);
        CellStepOutputs { hidden, memory }
    }

    fn on_gpu(&self, inputs: &CellStepInputs<Tensors>) -> Option<CellStepOutputs<Tensors>> {
        let CellStepInputs { projected, recurrent, hidden, memory, candidate_bias } = inputs;
        let tensors = [projected, recurrent, hidden];
        let (hidden, memory) = gpu::cell_step(self.kind, tensors, memory.as_ref(), candidate_bias.as_ref())?;
        Some(CellStepOutputs { hidden, memory })
    }
}

/// The state after a step in burn's operations.
fn written_step(
    kind: CellKind,
    projected: Tensor<2>,
    recurrent: Tensor<2>,
    state: CellState,
    candidate_bias: Option<Tensor<1>>,
) -> CellState {
    let d = state.hidden.dims()[1];
    match kind {
        CellKind::Vanilla => CellState { hidden: (projected + recurrent).tanh(), memory: None },
        CellKind::Gru => {
            let bias = candidate_bias.expect("a GRU has a candidate bias");
            let gates =
                activation::sigmoid(projected.clone().narrow(1, 0, 2 * d) + recurrent.clone().narrow(1, 0, 2 * d));
            let reset = gates.clone().narrow(1, 0, d);
            let update = gates.narrow(1, d, d);
            let inner = recurrent.narrow(1, 2 * d, d) + bias.unsqueeze();
            let candidate = (projected.narrow(1, 2 * d, d) + reset * inner).tanh();
            let hidden = candidate.clone() + update * (state.hidden - candidate);
            CellState { hidden, memory: None }
        }
        CellKind::Lstm => {
            let memory = state.memory.expect("an LSTM state has a memory");
            let gates = projected + recurrent;
            let sigmoids = activation::sigmoid(gates.clone().narrow(1, 0, 3 * d));
            let [input, forget, output] = [0, 1, 2].map(|gate| sigmoids.clone().narrow(1, gate * d, d));
            let memory = forget * memory + input * gates.narrow(1, 3 * d, d).tanh();
            CellState { hidden: output * memory.clone().tanh(), memory: Some(memory) }
        }
    }
}
