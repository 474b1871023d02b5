//! All steps of a recurrent layer as one operation, with attention between them or after them where the next step needs it.

use super::cell_step::cell_step;
use super::contexts::WrittenSource;
use super::linear::linear_on_gpu;
use super::named::{Array, Arrays, Gradient, Gradients, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::steps::{CellState, Running, unbind_steps};
use crate::backend::gpu;
use crate::kernels::alignment::AlignmentScore;
use crate::kernels::cell::CellKind;
use crate::kernels::matrix::Matrix;
use crate::kernels::recurrence::{self, Kept, Reading, Recurrence, States};
use burn::tensor::Tensor;
use std::sync::Arc;

/// The parameters of a cell beside those that make the input's part of the gates.
#[derive(Debug)]
pub struct CellParameters {
    /// Which cell.
    pub kind: CellKind,
    /// `[d_hidden, n_gates d_hidden]`.
    pub recurrent: Tensor<2>,
    /// Of the GRU's candidate: `[d_hidden]`.
    pub candidate_bias: Option<Tensor<1>>,
}

/// Where a step's attention stands.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Placement {
    /// Before the step, with the last state as its query; `context_input` makes the context's part of the gates: `[d_value, n_gates
    /// d_hidden]`.
    Before {
        /// Makes the context's part of the gates.
        context_input: Tensor<2>,
    },
    /// After the step, with the new state as its query. The attentional vector `tanh(W [c; s] + b)` enters the next step's gates.
    After {
        /// `W`: `[d_value + d_hidden, d_hidden]`.
        attentional: Tensor<2>,
        /// `b`: `[d_hidden]`.
        attentional_bias: Tensor<1>,
        /// Makes the attentional vector's part of the gates: `[d_hidden, n_gates d_hidden]`.
        feeding: Tensor<2>,
    },
}

/// Attention that takes part in the recurrence.
#[derive(Debug)]
pub struct StepAttention {
    /// `[batch, source_len, d_key]`.
    pub keys: Tensor<3>,
    /// `[batch, source_len, d_value]`.
    pub values: Tensor<3>,
    /// Real positions of each source.
    pub lengths: Option<Arc<[usize]>>,
    /// How they are compared.
    pub score: AlignmentScore,
    /// Projects the state to a query, `[d_hidden, d_key]`, and the network's last layer, `[d_key, 1]`.
    pub network: Option<(Tensor<2>, Tensor<2>)>,
    /// Where it stands.
    pub placement: Placement,
}

named! {
    /// What `Layer` takes.
    LayerInputs {
        /// The input's part of the gates: `[batch, len, n_gates d_hidden]`.
        gates: one 3,
        /// `[d_hidden, n_gates d_hidden]`.
        recurrent: one 2,
        /// The states before the first step: `[batch, d_hidden]`.
        start: one 2,
        /// The memories of an LSTM before the first step.
        start_memory: maybe 2,
        /// Of a GRU: `[d_hidden]`.
        candidate_bias: maybe 1,
        /// `[batch, source_len, d_key]`.
        keys: maybe 3,
        /// `[batch, source_len, d_value]`.
        values: maybe 3,
        /// Projects the state to a query: `[d_hidden, d_key]`.
        query: maybe 2,
        /// The last layer of the network that compares: `[d_key, 1]`.
        vector: maybe 2,
        /// What feeds the gates: the context, or the attentional vector of the step before.
        fed: maybe 2,
        /// `[d_value + d_hidden, d_hidden]`.
        attentional: maybe 2,
        /// `[d_hidden]`.
        attentional_bias: maybe 1,
    }
}

named! {
    /// What `Layer` gives.
    LayerOutputs {
        /// The states, or the attentional vectors, at every step: `[batch, len, d_hidden]`, zero on padding.
        states: one 3,
        /// `[batch, len, d_value]`.
        contexts: maybe 3,
        /// The last real states: `[batch, d_hidden]`.
        last: one 2,
        /// The last real memories of an LSTM.
        last_memory: maybe 2,
    }
}

/// The states of a layer at every step, and its last state.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_hidden]`, the input's part
/// - output: `[batch, len, d_hidden]`, zero on padding
pub fn recurrent_layer(
    gates: Tensor<3>,
    start: CellState,
    parameters: CellParameters,
    reading: Reading,
    body: Body,
) -> (Tensor<3>, CellState) {
    let (layer, inputs) = Layer::new(gates, start, parameters, reading);
    let outputs = run(layer, inputs, body);
    (outputs.states, CellState { hidden: outputs.last, memory: outputs.last_memory })
}

/// The states, or the attentional vectors, of a decoder at every step, and the contexts.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_hidden]`, the words' part
/// - output: `[batch, len, d_hidden]` and `[batch, len, d_value]`
///
/// # Reference
/// Bahdanau 2015, A.2.2, equations 7 to 9; Luong 2015, equations 5 and 6, and section 3.3 for input feeding.
pub fn attentive_layer(
    gates: Tensor<3>,
    start: CellState,
    parameters: CellParameters,
    attention: StepAttention,
    body: Body,
) -> (Tensor<3>, Tensor<3>) {
    let (mut layer, mut inputs) = Layer::new(gates, start, parameters, Reading::default());
    let is_late = matches!(attention.placement, Placement::After { .. });
    layer.attention = Some(AttentionKind { score: attention.score, lengths: attention.lengths, is_late });
    (inputs.keys, inputs.values) = (Some(attention.keys), Some(attention.values));
    (inputs.query, inputs.vector) = attention.network.unzip();
    match attention.placement {
        Placement::Before { context_input } => inputs.fed = Some(context_input),
        Placement::After { attentional, attentional_bias, feeding } => {
            (inputs.attentional, inputs.attentional_bias) = (Some(attentional), Some(attentional_bias));
            inputs.fed = Some(feeding);
        }
    }
    let outputs = run(layer, inputs, body);
    (outputs.states, outputs.contexts.expect("attention makes contexts"))
}

#[derive(Debug)]
struct Layer {
    kind: CellKind,
    reading: Reading,
    attention: Option<AttentionKind>,
}

#[derive(Debug)]
struct AttentionKind {
    score: AlignmentScore,
    lengths: Option<Arc<[usize]>>,
    /// Whether it stands after the step.
    is_late: bool,
}

impl Layer {
    fn new(
        gates: Tensor<3>,
        start: CellState,
        parameters: CellParameters,
        reading: Reading,
    ) -> (Self, LayerInputs<Tensors>) {
        let CellParameters { kind, recurrent, candidate_bias } = parameters;
        let inputs = LayerInputs {
            gates,
            recurrent,
            start: start.hidden,
            start_memory: start.memory,
            candidate_bias,
            keys: None,
            values: None,
            query: None,
            vector: None,
            fed: None,
            attentional: None,
            attentional_bias: None,
        };
        (Self { kind, reading, attention: None }, inputs)
    }

    fn on_slices<'a, 'v: 'a>(&'a self, inputs: &LayerInputs<Views<'v>>) -> Recurrence<'a> {
        let matrix = |view: View<'v, 2>| Matrix::new(view.values, view.shape[0], view.shape[1]);
        let attention = self.attention.as_ref().map(|kind| {
            let present = "attention has them";
            let (keys, values) = (inputs.keys.expect(present), inputs.values.expect(present));
            recurrence::StepAttention {
                score: kind.score,
                lengths: kind.lengths.as_deref(),
                keys: keys.values,
                values: values.values,
                network: inputs.query.map(matrix).zip(inputs.vector.map(|vector| vector.values)),
                fed: matrix(inputs.fed.expect(present)),
                attentional: inputs.attentional.map(matrix).zip(inputs.attentional_bias.map(|bias| bias.values)),
                source_len: keys.shape[1],
                d_key: keys.shape[2],
                d_value: values.shape[2],
            }
        });
        let [batch, len, _] = inputs.gates.shape;
        Recurrence {
            kind: self.kind,
            reading: &self.reading,
            gates: inputs.gates.values,
            recurrent: matrix(inputs.recurrent),
            start: inputs.start.values,
            start_memory: inputs.start_memory.map_or(&[][..], |memory| memory.values),
            candidate_bias: inputs.candidate_bias.map(|bias| bias.values),
            attention,
            batch,
            len,
            d: inputs.start.shape[1],
        }
    }

    /// The outputs step by step, each made of operations of that body.
    fn in_steps(&self, inputs: &LayerInputs<Tensors>, body: Body) -> LayerOutputs<Tensors> {
        let [batch, len, _] = inputs.gates.dims();
        let device = inputs.gates.device();
        let d = inputs.start.dims()[1];
        let running = match &self.reading.lengths {
            Some(lengths) => Running::new(lengths, len, &device),
            None => Running::new(&vec![len; batch], len, &device),
        };
        let source = self.attention.as_ref().map(|kind| {
            let present = "attention has them";
            let (keys, values) = (inputs.keys.clone().expect(present), inputs.values.clone().expect(present));
            (kind.score, WrittenSource::new(keys, values, inputs.vector.clone(), kind.lengths.as_deref()))
        });
        let attend = |hidden: &Tensor<2>| {
            let (score, source) = source.as_ref()?;
            let mut query = hidden.clone().unsqueeze_dim::<3>(1);
            if let Some(matrix) = &inputs.query {
                query = linear_on_gpu(query, matrix.clone(), false, None, body);
            }
            Some(source.contexts(*score, query, body))
        };
        let late = inputs.attentional.clone().zip(inputs.attentional_bias.clone());
        let projected = unbind_steps(inputs.gates.clone());
        let mut state = CellState { hidden: inputs.start.clone(), memory: inputs.start_memory.clone() };
        // Zero before the first step, so that what feeds it has a gradient even if there is no second.
        let mut vector = late.is_some().then(|| Tensor::<2>::zeros([batch, d], &device));
        let mut states: Vec<Option<Tensor<2>>> = vec![None; len];
        let mut contexts: Vec<Option<Tensor<3>>> = vec![None; len];
        for step in self.reading.steps(len) {
            let mut gates = projected[step].clone();
            if late.is_none() {
                contexts[step] = attend(&state.hidden);
            }
            // In the shapes in which a decoder makes its steps one by one, so that both have the same bits.
            if let Some(matrix) = &inputs.fed {
                let fed = match (&vector, &contexts[step]) {
                    (Some(vector), _) => linear_on_gpu(vector.clone(), matrix.clone(), false, None, body),
                    (None, Some(context)) => {
                        linear_on_gpu(context.clone(), matrix.clone(), false, None, body).squeeze_dim(1)
                    }
                    (None, None) => unreachable!("what feeds the gates is there"),
                };
                gates = gates + fed;
            }
            let recurrent = linear_on_gpu(state.hidden.clone(), inputs.recurrent.clone(), false, None, body);
            let next = cell_step(self.kind, gates, recurrent, state.clone(), inputs.candidate_bias.clone(), body);
            let mut shown = next.hidden.clone();
            if let Some((matrix, bias)) = &late {
                let context = attend(&next.hidden).expect("attention makes contexts");
                let both = Tensor::cat(vec![context.clone(), next.hidden.clone().unsqueeze_dim(1)], 2);
                shown = linear_on_gpu(both, matrix.clone(), false, Some(bias.clone()), body).tanh().squeeze_dim(1);
                (contexts[step], vector) = (Some(context), Some(shown.clone()));
            }
            let real = running.at(step);
            // What others see of a padded step is zero; what the cell carries on is its last real state.
            states[step] = Some(match real {
                Some(real) => shown * real.clone(),
                None => shown,
            });
            state = next.where_running(real, &state);
        }
        let stacked = |steps: Vec<Option<Tensor<2>>>| {
            let steps: Option<Vec<Tensor<2>>> = steps.into_iter().collect();
            steps.filter(|steps| !steps.is_empty()).map(|steps| Tensor::stack::<3>(steps, 1))
        };
        let states = stacked(states).unwrap_or_else(|| Tensor::zeros([batch, 0, d], &device));
        let contexts: Option<Vec<Tensor<3>>> = contexts.into_iter().collect();
        let contexts = contexts.filter(|contexts| !contexts.is_empty()).map(|contexts| Tensor::cat(contexts, 1));
        LayerOutputs { states, contexts, last: state.hidden, last_memory: state.memory }
    }
}

fn outputs(states: States, layer: &Recurrence) -> LayerOutputs<Arrays> {
    let [batch, len, d] = [layer.batch, layer.len, layer.d];
    let States { states, contexts, last, last_memory } = states;
    let contexts =
        layer.attention.as_ref().map(|attention| Array { shape: [batch, len, attention.d_value], values: contexts });
    LayerOutputs {
        states: Array { shape: [batch, len, d], values: states },
        contexts,
        last: Array { shape: [batch, d], values: last },
        last_memory: (!last_memory.is_empty()).then_some(Array { shape: [batch, d], values: last_memory }),
    }
}

impl Operation for Layer {
    type Inputs = LayerInputs<Tensors>;
    type Outputs = LayerOutputs<Tensors>;
    type Kept = Kept;

    fn keeps(&self) -> Keeps<Self> {
        let is_late = self.attention.as_ref().is_some_and(|attention| attention.is_late);
        Keeps {
            inputs: LayerInputs {
                recurrent: true,
                start_memory: Some(true),
                keys: Some(true),
                values: Some(true),
                query: Some(true),
                vector: Some(true),
                fed: Some(true),
                attentional: Some(true),
                attentional_bias: Some(true),
                ..LayerInputs::none()
            },
            outputs: LayerOutputs { states: is_late, contexts: Some(true), last: false, last_memory: None },
        }
    }

    fn forward(&self, inputs: LayerInputs<Views>) -> (LayerOutputs<Arrays>, Kept) {
        let layer = self.on_slices(&inputs);
        let (states, kept) = layer.forward();
        (outputs(states, &layer), kept)
    }

    fn answer(&self, inputs: LayerInputs<Views>) -> LayerOutputs<Arrays> {
        let layer = self.on_slices(&inputs);
        outputs(layer.answer(), &layer)
    }

    fn backward(&self, of: Backward<Self>) -> LayerInputs<Gradients> {
        let incoming = recurrence::Incoming {
            states: of.gradients.states.values,
            contexts: of.gradients.contexts.map_or(&[][..], |contexts| contexts.values),
            last: of.gradients.last.values,
            last_memory: of.gradients.last_memory.map_or(&[][..], |memory| memory.values),
            made_states: of.outputs.states.values,
            made_contexts: of.outputs.contexts.map_or(&[][..], |contexts| contexts.values),
        };
        let found = self.on_slices(&of.inputs).backward(&of.kept, &incoming);
        let needed = of.needed;
        let optional = |needed: Option<bool>, values| needed.map(|needed| Gradient::when(needed, || values));
        LayerInputs {
            gates: Gradient::New(found.gates),
            recurrent: Gradient::New(found.recurrent),
            start: Gradient::New(found.start),
            start_memory: optional(needed.start_memory, found.start_memory),
            candidate_bias: optional(needed.candidate_bias, found.candidate_bias),
            keys: optional(needed.keys, found.keys),
            values: optional(needed.values, found.values),
            query: optional(needed.query, found.query),
            vector: optional(needed.vector, found.vector),
            fed: optional(needed.fed, found.fed),
            attentional: optional(needed.attentional, found.attentional),
            attentional_bias: optional(needed.attentional_bias, found.attentional_bias),
        }
    }

    fn written(&self, inputs: LayerInputs<Tensors>) -> LayerOutputs<Tensors> {
        self.in_steps(&inputs, Body::Written)
    }

    fn on_gpu(&self, inputs: &LayerInputs<Tensors>) -> Option<LayerOutputs<Tensors>> {
        if self.attention.is_some() {
            return Some(self.in_steps(inputs, Body::Fused));
        }
        let layer = gpu::Recurrent {
            gates: &inputs.gates,
            recurrent: &inputs.recurrent,
            start: &inputs.start,
            start_memory: inputs.start_memory.as_ref(),
            candidate_bias: inputs.candidate_bias.as_ref(),
        };
        let gpu::Unrolled { states, last, last_memory } = gpu::recurrent_layer(layer, self.kind, &self.reading)?;
        Some(LayerOutputs { states, contexts: None, last, last_memory })
    }
}
