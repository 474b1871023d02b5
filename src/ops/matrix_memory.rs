//! Memories that are matrices, over batch and heads at once.

use super::named::{Array, Arrays, Gradient, Gradients, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::written_memory::{MemoryParameters, written_memory};
use crate::backend::gpu;
use crate::kernels::matrix_memory::{Answers, Kept, Layer, MemoryConfig, Rule};
use crate::kernels::recurrence::Reading;
use burn::tensor::Tensor;

named! {
    /// What `MatrixMemory` takes.
    MemoryInputs {
        /// `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates.
        packed: one 3,
        /// `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`.
        rates: maybe 3,
        /// `A` of the gated delta rule: `[n_heads]`.
        decay: maybe 1,
        /// `[d_head]`.
        norm: maybe 1,
        /// `[rows, n_heads, d_head, d_value]`.
        state: maybe 4,
    }
}

named! {
    /// What `MatrixMemory` gives.
    MemoryOutputs {
        /// `[rows, len, d]`.
        read: one 3,
        /// `[rows, n_heads, d_head, d_value]`.
        state: one 4,
    }
}

/// What is read at every position, and the memory after the last: see [`MatrixMemory`](crate::layers::mixer::MatrixMemory).
///
/// In burn's operations, heads are cut out and turned, positions are read in chunks by products of matrices that grow with the chunk, and
/// the backward pass keeps every step of that; here each head is carried from position to position, and every sixteenth memory is
/// kept. A GPU carries them likewise, and keeps none; where heads are wide, it reads in chunks.
///
/// # Shapes
/// - packed: `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates
/// - state, output's second: `[rows, n_heads, d_head, d_value]`
/// - output's first: `[rows, len, d]`, zero on padding
///
/// # Panics
/// If the rule lacks a parameter, or there is no position.
pub fn matrix_memory(
    config: MemoryConfig,
    packed: Tensor<3>,
    parameters: MemoryParameters,
    state: Option<Tensor<4>>,
    reading: Reading,
    body: Body,
) -> (Tensor<3>, Tensor<4>) {
    let MemoryParameters { rates, decay, norm } = parameters;
    let rule = config.rule;
    assert!(packed.dims()[1] > 0, "a sequence has a position");
    assert_eq!(rates.is_some(), rule.n_rates() > 0, "rates of {rule:?}");
    assert_eq!(decay.is_some(), rule == Rule::GatedDelta, "a decay of {rule:?}");
    assert_eq!(norm.is_some(), rule != Rule::Linear, "a norm of {rule:?}");
    let outputs = run(MatrixMemory { config, reading }, MemoryInputs { packed, rates, decay, norm, state }, body);
    (outputs.read, outputs.state)
}

#[derive(Debug)]
struct MatrixMemory {
    config: MemoryConfig,
    reading: Reading,
}

impl MatrixMemory {
    fn on_slices<'a, 'v: 'a>(&'a self, inputs: &MemoryInputs<Views<'v>>) -> Layer<'a> {
        let [rows, len, _] = inputs.packed.shape;
        Layer {
            rule: self.config.rule,
            reading: &self.reading,
            rows,
            len,
            n_heads: self.config.n_heads,
            most_replaced: self.config.most_replaced as f32,
            epsilon: self.config.epsilon as f32,
            packed: inputs.packed.values,
            rates: inputs.rates.map(|rates| rates.values).unwrap_or_default(),
            decay: inputs.decay.map(|decay| decay.values).unwrap_or_default(),
            norm: inputs.norm.map(|norm| norm.values).unwrap_or_default(),
        }
    }

    fn outputs(&self, answers: Answers, inputs: &MemoryInputs<Views>) -> MemoryOutputs<Arrays> {
        let [rows, len, width] = inputs.packed.shape;
        let MemoryConfig { rule, n_heads, .. } = self.config;
        let d = width / rule.n_packed();
        let d_head = d / n_heads;
        MemoryOutputs {
            read: Array { shape: [rows, len, d], values: answers.read },
            state: Array { shape: [rows, n_heads, d_head, rule.d_value(d_head)], values: answers.state },
        }
    }
}

impl Operation for MatrixMemory {
    type Inputs = MemoryInputs<Tensors>;
    type Outputs = MemoryOutputs<Tensors>;
    type Kept = Kept;

    fn keeps(&self) -> Keeps<Self> {
        let inputs =
            MemoryInputs { packed: true, rates: Some(true), decay: Some(true), norm: Some(true), state: Some(false) };
        Keeps { inputs, outputs: MemoryOutputs { read: false, state: false } }
    }

    fn forward(&self, inputs: MemoryInputs<Views>) -> (MemoryOutputs<Arrays>, Kept) {
        let (answers, kept) = self.on_slices(&inputs).forward(inputs.state.map(|state| state.values));
        (self.outputs(answers, &inputs), kept)
    }

    fn answer(&self, inputs: MemoryInputs<Views>) -> MemoryOutputs<Arrays> {
        self.outputs(self.on_slices(&inputs).answer(inputs.state.map(|state| state.values)), &inputs)
    }

    fn backward(&self, of: Backward<Self>) -> MemoryInputs<Gradients> {
        let (of_read, of_state) = (of.gradients.read.values, of.gradients.state.values);
        let found = self.on_slices(&of.inputs).backward(&of.kept, of_read, of_state);
        let optional = |needed: Option<bool>, values| needed.map(|needed| Gradient::when(needed, || values));
        MemoryInputs {
            packed: Gradient::New(found.packed),
            rates: optional(of.needed.rates, found.rates),
            decay: optional(of.needed.decay, found.decay),
            norm: optional(of.needed.norm, found.norm),
            state: optional(of.needed.state, found.state),
        }
    }

    fn written(&self, inputs: MemoryInputs<Tensors>) -> MemoryOutputs<Tensors> {
        self.in_burn(inputs, Body::Written)
    }

    fn on_gpu(&self, inputs: &MemoryInputs<Tensors>) -> Option<MemoryOutputs<Tensors>> {
        let MemoryInputs { packed, rates, decay, norm, state } = inputs;
        let memory = gpu::Remembered {
            packed,
            rates: rates.as_ref(),
            decay: decay.as_ref(),
            norm: norm.as_ref(),
            state: state.as_ref(),
        };
        if let Some((read, state)) = gpu::matrix_memory(self.config, &memory, &self.reading) {
            return Some(MemoryOutputs { read, state });
        }
        let (rates, decay, norm) = (rates.clone(), decay.clone(), norm.clone());
        let inputs = MemoryInputs { packed: packed.clone(), rates, decay, norm, state: state.clone() };
        Some(self.in_burn(inputs, Body::Fused))
    }
}

impl MatrixMemory {
    /// In burn's operations, but for the products if `body` allows others.
    fn in_burn(&self, inputs: MemoryInputs<Tensors>, body: Body) -> MemoryOutputs<Tensors> {
        let parameters = MemoryParameters { rates: inputs.rates, decay: inputs.decay, norm: inputs.norm };
        let (read, state) = written_memory(self.config, inputs.packed, parameters, inputs.state, &self.reading, body);
        MemoryOutputs { read, state }
    }
}
