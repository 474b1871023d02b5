//! The recurrent encoder-decoder, with one fixed context vector or with attention.

mod config;

pub use config::{Bridge, ContextUse, Directions, OutputKind, RnnConfig};

use super::readout::{Output, Readout};
use super::{Rows, Seq2Seq, Vocabularies};
use crate::data::batch::Padded;
use crate::error::Result;
use crate::layers::attention::{Attention, AttentionMemory};
use crate::layers::recurrent::{Cell, CellKind, CellState, Encoded, RecurrentEncoder, unbind_steps};
use crate::layers::{Init, Mask, Pass};
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor};

impl RnnConfig {
    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<RnnModel> {
        let d = self.d_hidden;
        let d_encoded = self.n_directions() * d;
        let rate = self.dropout_rate;
        let (readout, d_readout) = self.readout.init(d, self.d_embedding, d_encoded, init);
        let (output_projection, output) = match self.output {
            OutputKind::Similarity => (Some(init.linear(d_readout, self.d_embedding, 1)), Output::tied()),
            OutputKind::Projection => (None, Output::projection(d_readout, vocabularies.target, init)),
        };
        let n_gates = self.cell.n_gates();
        let is_lstm = self.cell == CellKind::Lstm;
        let bridge = || BridgeLayer {
            hidden: init.linear(d_encoded, d, 1),
            memory: is_lstm.then(|| init.linear(d_encoded, d, 1)),
        };
        Ok(RnnModel {
            source_embedding: init.embedding(vocabularies.source, self.d_embedding),
            target_embedding: init.embedding(vocabularies.target, self.d_embedding),
            encoder: RecurrentEncoder::new(
                self.cell,
                [self.d_embedding, d],
                self.n_layers,
                self.n_directions(),
                rate,
                init,
            ),
            bridge: match self.bridge {
                Bridge::Zeros => Vec::new(),
                Bridge::Learned => (0..self.n_layers).map(|_| bridge()).collect(),
            },
            attention: self.attention.init(d, d_encoded, init),
            context_input: (self.context == ContextUse::EveryStep)
                .then(|| init.linear_without_bias(d_encoded, n_gates * d, n_gates)),
            decoder: (0..self.n_layers)
                .map(|layer| Cell::new(self.cell, if layer == 0 { self.d_embedding } else { d }, d, init))
                .collect(),
            readout,
            output_projection,
            output,
            reverse_source: self.reverse_source,
            dropout_rate: rate,
        })
    }
}

/// `s_0 = tanh(W h + b)` for one layer; the LSTM's memory has a matrix of its own.
#[derive(Module, Debug)]
struct BridgeLayer {
    hidden: Linear,
    memory: Option<Linear>,
}

/// A recurrent encoder-decoder.
///
/// Without attention the context is the encoder's last real state, one vector for the whole sentence; with attention it is
/// made anew at each step from the state before the step.
///
/// # Reference
/// Cho et al. 2014; Sutskever et al. 2014; Bahdanau et al. 2015. **Differs from the papers:** a bidirectional encoder's fixed
/// context is the last state of both directions, and the learned bridge reads both.
#[derive(Module, Debug)]
pub struct RnnModel {
    source_embedding: Embedding,
    target_embedding: Embedding,
    encoder: RecurrentEncoder,
    bridge: Vec<BridgeLayer>,
    attention: Option<Attention>,
    /// The context's part in the gates of the decoder's first layer.
    context_input: Option<Linear>,
    decoder: Vec<Cell>,
    readout: Readout,
    output_projection: Option<Linear>,
    output: Output,
    #[module(skip)]
    reverse_source: bool,
    #[module(skip)]
    dropout_rate: f64,
}

/// The sources as the decoder sees them.
///
/// # Shapes
/// - context: `[batch, d_encoded]`
#[derive(Clone, Debug)]
pub struct RnnMemory {
    /// The fixed context: the last real state of the top layer.
    pub context: Tensor<2>,
    start: Vec<CellState>,
    attention: Option<AttentionMemory>,
}

/// The decoder's state, one for each layer.
#[derive(Clone, Debug)]
pub struct RnnState {
    layers: Vec<CellState>,
}

impl Rows for RnnMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            context: self.context.clone().select(0, rows.clone()),
            start: self.start.iter().map(|state| state.select(rows)).collect(),
            attention: self.attention.as_ref().map(|attention| attention.select(rows)),
        }
    }
}

impl Rows for RnnState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { layers: self.layers.iter().map(|layer| layer.select(rows)).collect() }
    }
}

impl RnnModel {
    fn start_states(&self, encoded: &Encoded) -> Vec<CellState> {
        let finals = |layer: &[CellState], memory: bool| {
            let parts = layer
                .iter()
                .map(|state| if memory { state.memory.clone().expect("LSTM") } else { state.hidden.clone() });
            Tensor::cat(parts.collect(), 1)
        };
        if self.bridge.is_empty() {
            let [batch, _, _] = encoded.states.dims();
            return self.decoder.iter().map(|cell| cell.start(batch, &encoded.states.device())).collect();
        }
        self.bridge
            .iter()
            .zip(&encoded.finals)
            .map(|(bridge, layer)| CellState {
                hidden: bridge.hidden.forward(finals(layer, false)).tanh(),
                memory: bridge.memory.as_ref().map(|memory| memory.forward(finals(layer, true)).tanh()),
            })
            .collect()
    }

    /// The fixed context's part in the gates, or nothing if attention makes a context at each step.
    fn fixed_input(&self, memory: &RnnMemory) -> Option<Tensor<2>> {
        match (&self.attention, &self.context_input) {
            (None, Some(linear)) => Some(linear.forward(memory.context.clone())),
            _ => None,
        }
    }

    /// One decoder step from the projected word: the new state and the context that entered it.
    fn advance(
        &self,
        mut projected: Tensor<2>,
        state: &RnnState,
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> (RnnState, Option<Tensor<2>>) {
        pass.record("decoder.previous_state", || state.layers.last().expect("at least one layer").hidden.clone());
        let context = match (&self.attention, &memory.attention) {
            (Some(attention), Some(attended)) => {
                let query = state.layers.last().expect("at least one layer").hidden.clone();
                let context = attention.forward(query, attended, pass);
                let linear = self.context_input.as_ref().expect("attention enters every step");
                projected = projected + linear.forward(context.clone());
                Some(context)
            }
            _ => None,
        };
        let mut layers: Vec<CellState> = Vec::with_capacity(self.decoder.len());
        for (cell, previous) in self.decoder.iter().zip(&state.layers) {
            if let Some(below) = layers.last() {
                let input = pass.dropout(below.hidden.clone(), self.dropout_rate);
                projected = cell.project(input.unsqueeze_dim(1)).squeeze_dim(1);
            }
            layers.push(cell.step(projected.clone(), previous));
        }
        pass.record("decoder.state", || layers.last().expect("at least one layer").hidden.clone());
        (RnnState { layers }, context)
    }

    fn logits(&self, states: Tensor<3>, embedded: Tensor<3>, contexts: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let mut read = self.readout.forward(states, embedded, contexts, pass, self.dropout_rate);
        if let Some(projection) = &self.output_projection {
            read = projection.forward(read);
        }
        pass.record("decoder.readout", || read.clone());
        let logits = self.output.forward(read, &self.target_embedding);
        pass.record("decoder.logits", || logits.clone());
        logits
    }
}

/// The words of each sentence in reverse, the end symbol and the padding where they were.
///
/// # Shapes
/// - input, output: `[batch, len, width]`
fn reversed(input: Tensor<3>, lengths: &[usize]) -> Tensor<3> {
    let [batch, len, width] = input.dims();
    let order: Vec<i32> = (0..batch)
        .flat_map(|row| {
            let words = lengths[row].saturating_sub(1);
            (0..len).map(move |i| (row * len + if i < words { words - 1 - i } else { i }) as i32)
        })
        .collect();
    let order = Tensor::from_data(burn::tensor::TensorData::new(order, [batch * len]), &input.device());
    input.reshape([batch * len, width]).select(0, order).reshape([batch, len, width])
}

/// Each row `n` times in a row.
fn repeat_rows(tensor: Tensor<2>, n: usize) -> Tensor<2> {
    let [rows, width] = tensor.dims();
    if n == 1 {
        return tensor;
    }
    tensor.unsqueeze_dim::<3>(1).repeat_dim(1, n).reshape([rows * n, width])
}

impl Seq2Seq for RnnModel {
    type Memory = RnnMemory;
    type State = RnnState;

    fn encode(&self, source: &Padded, pass: &mut Pass) -> RnnMemory {
        let embedded = self.source_embedding.forward(source.ids.clone());
        pass.record("encoder.embedded", || embedded.clone());
        let embedded = if self.reverse_source { reversed(embedded, &source.lengths) } else { embedded };
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let encoded = self.encoder.forward(embedded, &source.lengths, pass);
        let top = encoded.finals.last().expect("at least one layer");
        let context = Tensor::cat(top.iter().map(|state| state.hidden.clone()).collect(), 1);
        pass.record("encoder.context", || context.clone());
        let start = self.start_states(&encoded);
        let attention = self.attention.as_ref().map(|attention| {
            let mask = Mask::padding(&source.lengths, source.len(), &context.device());
            // Attention sees the states in the order of the words, whatever the order of reading.
            let states = if self.reverse_source { reversed(encoded.states, &source.lengths) } else { encoded.states };
            let attended = attention.prepare(states, mask);
            attended.record(pass);
            attended
        });
        RnnMemory { context, start, attention }
    }

    fn start(&self, memory: &RnnMemory, n_beams: usize) -> RnnState {
        let repeat = |state: &CellState| CellState {
            hidden: repeat_rows(state.hidden.clone(), n_beams),
            memory: state.memory.clone().map(|memory| repeat_rows(memory, n_beams)),
        };
        RnnState { layers: memory.start.iter().map(repeat).collect() }
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: RnnState,
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, RnnState) {
        let embedded = self.target_embedding.forward(previous.unsqueeze_dim(1));
        pass.record("decoder.embedded", || embedded.clone());
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let mut projected = self.decoder[0].project(embedded.clone()).squeeze_dim::<2>(1);
        let n_beams = projected.dims()[0] / memory.context.dims()[0];
        if let Some(fixed) = self.fixed_input(memory) {
            projected = projected + repeat_rows(fixed, n_beams);
        }
        let (state, context) = self.advance(projected, &state, memory, pass);
        let context = context.unwrap_or_else(|| repeat_rows(memory.context.clone(), n_beams));
        let top = state.layers.last().expect("at least one layer").hidden.clone();
        let logits = self.logits(top.unsqueeze_dim(1), embedded, context.unsqueeze_dim(1), pass);
        (logits.squeeze_dim(1), state)
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        let memory = self.encode(source, pass);
        let len = target_input.len();
        let embedded = self.target_embedding.forward(target_input.ids.clone());
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let mut projected = self.decoder[0].project(embedded.clone());
        if let Some(fixed) = self.fixed_input(&memory) {
            projected = projected + fixed.unsqueeze_dim(1);
        }
        let mut state = self.start(&memory, 1);
        let mut states = Vec::with_capacity(len);
        let mut contexts = Vec::with_capacity(len);
        for projected in unbind_steps(projected) {
            let (next, context) = self.advance(projected, &state, &memory, pass);
            state = next;
            states.push(state.layers.last().expect("at least one layer").hidden.clone());
            contexts.extend(context);
        }
        let contexts = if contexts.is_empty() {
            memory.context.unsqueeze_dim::<3>(1).repeat_dim(1, len)
        } else {
            Tensor::stack(contexts, 1)
        };
        self.logits(Tensor::stack(states, 1), embedded, contexts, pass)
    }

    fn device(&self) -> Device {
        self.target_embedding.weight.val().device()
    }
}
