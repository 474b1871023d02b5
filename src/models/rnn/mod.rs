//! The recurrent encoder-decoder, with one fixed context vector or with attention.

mod bridge;
mod config;
mod costs;
mod decoder;
mod family;
mod sampled;
mod state;

pub use config::{Bridge, ContextUse, Directions, OutputKind, RnnConfig};
pub use state::{RnnMemory, RnnState};

use super::readout::{Output, Readout, Scores};
use super::{Autoregressive, LengthLimits, Seq2Seq, Vocabularies};
use crate::data::batch::Padded;
use crate::error::Result;
use crate::layers::attention::Attention;
use crate::layers::linear::{embedding, linear_layer};
use crate::layers::mixer::{Encoded, RecurrentEncoder};
use crate::layers::recurrent::{Cell, CellState};
use crate::layers::{Init, Pass};
use bridge::BridgeLayer;
use burn::module::Module;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor};
use decoder::repeat_rows;

impl RnnConfig {
    /// Makes the model.
    pub fn init(&self, vocabularies: Vocabularies, init: &Init) -> Result<RnnModel> {
        let (d, kind) = (self.d_hidden, self.cell);
        let d_encoded = self.n_directions() * d;
        let (readout, d_readout) = self.readout.init(d, self.d_embedding, d_encoded, init);
        let (output_projection, output) = match self.output {
            OutputKind::Similarity => (Some(init.linear(d_readout, self.d_embedding, 1)), Output::tied()),
            OutputKind::Projection => (None, Output::projection(d_readout, vocabularies.target, init)),
        };
        let n_gates = kind.n_gates();
        let source_embedding = init.embedding(vocabularies.source, self.d_embedding);
        let target_embedding = init.embedding(vocabularies.target, self.d_embedding);
        let encoder = RecurrentEncoder::new(self.encoder_shape(), init);
        let bridge = match self.bridge {
            Bridge::Zeros => Vec::new(),
            Bridge::Learned => (0..self.n_layers).map(|_| BridgeLayer::new(kind, d_encoded, d, init)).collect(),
        };
        let attention = self.attention.init(d, d_encoded, n_gates, init);
        let fixed = attention.is_none() && self.context == ContextUse::EveryStep;
        Ok(RnnModel {
            source_embedding,
            target_embedding,
            encoder,
            bridge,
            attention,
            context_input: fixed.then(|| init.linear_without_bias(d_encoded, n_gates * d, n_gates)),
            decoder: (0..self.n_layers)
                .map(|layer| Cell::new(kind, if layer == 0 { self.d_embedding } else { d }, d, init))
                .collect(),
            readout,
            output_projection,
            output,
            reverse_source: self.reverse_source,
            residual: self.residual,
            dropout_rate: self.dropout_rate,
            limits: self.limits(),
        })
    }
}

/// A recurrent encoder-decoder.
///
/// Without attention the context is the encoder's last real state, one vector for the whole sentence; with attention it is
/// made anew at each step, before it or after it.
///
/// # Reference
/// Cho et al. 2014; Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015. **Differs from the papers:** a
/// bidirectional encoder's fixed context is the last state of both directions, and the learned bridge reads both.
#[derive(Module, Debug)]
pub struct RnnModel {
    source_embedding: Embedding,
    target_embedding: Embedding,
    encoder: RecurrentEncoder,
    bridge: Vec<BridgeLayer>,
    attention: Option<Attention>,
    /// The fixed context's part in the gates of the decoder's first layer.
    context_input: Option<Linear>,
    decoder: Vec<Cell>,
    readout: Readout,
    output_projection: Option<Linear>,
    output: Output,
    #[module(skip)]
    reverse_source: bool,
    #[module(skip)]
    residual: bool,
    #[module(skip)]
    dropout_rate: f64,
    #[module(skip)]
    limits: LengthLimits,
}

impl RnnModel {
    fn start_states(&self, encoded: &Encoded) -> Vec<CellState> {
        if self.bridge.is_empty() {
            let [batch, _, _] = encoded.states.dims();
            return self.decoder.iter().map(|cell| cell.start(batch, &encoded.states.device())).collect();
        }
        self.bridge.iter().zip(&encoded.finals).map(|(bridge, finals)| bridge.forward(finals)).collect()
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

impl RnnModel {
    /// Whether words are scored by the target embeddings.
    pub fn has_tied_output(&self) -> bool {
        self.output.is_tied()
    }
}

impl RnnModel {
    /// The scores of every target position after the true words, as [`Seq2Seq::forward`] has them unless the pass replaces some.
    pub fn scores(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Scores<'_> {
        let memory = self.encode(source, pass);
        let len = target_input.len();
        let embedded = embedding(target_input.ids.clone(), &self.target_embedding, 1.0, pass);
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let mut gates = self.decoder[0].project(embedded.clone(), pass);
        if let Some(fixed) = &memory.fixed {
            gates = gates + fixed.clone().unsqueeze_dim(1);
        }
        let (states, contexts) = match self.advance_at_once(gates.clone(), &memory, pass) {
            Some(read) => read,
            None => self.advance_in_steps(gates, &memory, pass),
        };
        let steps: Vec<usize> = (0..len).collect();
        let (contexts, states) = match (self.attend_late(states.clone(), &steps, &memory, pass), contexts) {
            (Some((contexts, attentional)), _) => (contexts, attentional),
            (None, Some(contexts)) => (contexts, states),
            (None, None) => (memory.context.unsqueeze_dim::<3>(1).repeat_dim(1, len), states),
        };
        self.scores_of(states, embedded, contexts, pass)
    }
}

impl Autoregressive for RnnModel {
    type Memory = RnnMemory;
    type State = RnnState;

    fn start(&self, memory: &RnnMemory, n_beams: usize) -> RnnState {
        let repeat = |state: &CellState| CellState {
            hidden: repeat_rows(state.hidden.clone(), n_beams),
            memory: state.memory.clone().map(|memory| repeat_rows(memory, n_beams)),
        };
        let layers: Vec<CellState> = memory.start.iter().map(repeat).collect();
        let output = layers.last().expect("at least one layer").hidden.clone();
        let feeds_input = matches!(&self.attention, Some(Attention::Luong(attention)) if attention.feeds_input());
        RnnState { attentional: feeds_input.then(|| output.zeros_like()), layers, output, step: 0 }
    }

    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: RnnState,
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> (Tensor<2>, RnnState) {
        let embedded = embedding(previous.unsqueeze_dim(1), &self.target_embedding, 1.0, pass);
        pass.record("decoder.embedded", || embedded.clone());
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let mut gates = self.decoder[0].project(embedded.clone(), pass).squeeze_dim::<2>(1);
        let n_beams = gates.dims()[0] / memory.context.dims()[0];
        if let Some(fixed) = &memory.fixed {
            gates = gates + repeat_rows(fixed.clone(), n_beams);
        }
        let step = state.step;
        let (state, read) = self.advance(gates, state, memory, pass);
        let read = self.attend_late_in_step(read, step, memory, pass);
        let context = read.context.unwrap_or_else(|| repeat_rows(memory.context.clone(), n_beams));
        let scores = self.scores_of(read.state.unsqueeze_dim(1), embedded, context.unsqueeze_dim(1), pass);
        (scores.logits(pass).squeeze_dim(1), state)
    }

    fn limits(&self) -> LengthLimits {
        self.limits
    }

    fn device(&self) -> Device {
        self.target_embedding.weight.val().device()
    }
}

impl Seq2Seq for RnnModel {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> RnnMemory {
        let embedded = embedding(source.ids.clone(), &self.source_embedding, 1.0, pass);
        let embedded = pass.watch_input(embedded);
        pass.record("encoder.embedded", || embedded.clone());
        let embedded = if self.reverse_source { reversed(embedded, &source.lengths) } else { embedded };
        let embedded = pass.dropout(embedded, self.dropout_rate);
        let encoded = self.encoder.forward(embedded, &source.lengths, pass);
        pass.record("encoder.output", || match self.reverse_source {
            true => reversed(encoded.states.clone(), &source.lengths),
            false => encoded.states.clone(),
        });
        let top = encoded.finals.last().expect("at least one layer");
        let context = Tensor::cat(top.iter().map(|state| state.hidden.clone()).collect(), 1);
        pass.record("encoder.context", || context.clone());
        let start = self.start_states(&encoded);
        let attention = self.attention.as_ref().map(|attention| {
            // Attention sees the states in the order of the words, whatever the order of reading.
            let states = if self.reverse_source { reversed(encoded.states, &source.lengths) } else { encoded.states };
            let attended = attention.prepare(states, &source.lengths, pass);
            attended.record(pass);
            attended
        });
        let fixed = self.context_input.as_ref().map(|linear| linear_layer(linear, context.clone(), pass));
        RnnMemory { context, fixed, start, attention }
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        if pass.replaces_inputs() {
            return self.forward_sampled(source, target_input, pass);
        }
        self.scores(source, target_input, pass).logits(pass)
    }
}
