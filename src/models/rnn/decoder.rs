//! One step of the recurrent decoder, and what the readout makes of it.

use super::{RnnMemory, RnnModel, RnnState};
use crate::kernels::recurrence::Reading;
use crate::layers::Pass;
use crate::layers::attention::{Attention, AttentionMemory};
use crate::layers::linear::linear_layer;
use crate::layers::recurrent::{CellState, unbind_steps};
use crate::models::Autoregressive;
use crate::models::readout::Scores;
use crate::ops;
use burn::tensor::Tensor;

/// What a step hands to the readout.
///
/// # Shapes
/// - state: `[rows, d_hidden]`, the new state or the attentional vector
/// - context: `[rows, d_encoded]`, if one was made at this step
pub(super) struct Read {
    pub(super) state: Tensor<2>,
    pub(super) context: Option<Tensor<2>>,
}

/// The states of each sentence's beams side by side: `[rows, d]` to `[batch, beams, d]`.
fn by_sentence(rows: Tensor<2>, memory: &AttentionMemory) -> Tensor<3> {
    let ([n_rows, width], batch) = (rows.dims(), memory.keys.dims()[0]);
    rows.reshape([batch, n_rows / batch, width])
}

/// `[batch, beams, d]` to `[rows, d]`.
fn by_row(sentences: Tensor<3>) -> Tensor<2> {
    let [batch, beams, width] = sentences.dims();
    sentences.reshape([batch * beams, width])
}

/// Each row `n` times in a row.
pub(super) fn repeat_rows(tensor: Tensor<2>, n: usize) -> Tensor<2> {
    let [rows, width] = tensor.dims();
    if n == 1 {
        return tensor;
    }
    tensor.unsqueeze_dim::<3>(1).repeat_dim(1, n).reshape([rows * n, width])
}

impl RnnModel {
    /// One step from the word's part in the gates of the first layer.
    ///
    /// All that steps depend on happens here; attention on which no later step depends is left to [`RnnModel::attend_late`].
    pub(super) fn advance(
        &self,
        mut gates: Tensor<2>,
        state: RnnState,
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> (RnnState, Read) {
        pass.record("decoder.previous_state", || state.output.clone());
        let mut context = None;
        if let (Some(Attention::Bahdanau(attention)), Some(attended)) = (&self.attention, &memory.attention) {
            let (made, fed) = attention.forward(by_sentence(state.output, attended), state.step, attended, pass);
            gates = gates + by_row(fed);
            context = Some(by_row(made));
        }
        if let (Some(Attention::Luong(attention)), Some(last)) = (&self.attention, state.attentional)
            && let Some(fed) = attention.feed(last, pass)
        {
            gates = gates + fed;
        }
        let (layers, output) = self.layers(gates, &state.layers, pass);
        let mut next = RnnState { layers, output: output.clone(), attentional: None, step: state.step + 1 };
        let mut read = Read { state: output.clone(), context };
        if let (Some(Attention::Luong(attention)), Some(attended)) = (&self.attention, &memory.attention)
            && attention.feeds_input()
        {
            let (made, attentional) = attention.forward(by_sentence(output, attended), &[state.step], attended, pass);
            read = Read { state: by_row(attentional), context: Some(by_row(made)) };
            next.attentional = Some(read.state.clone());
        }
        (next, read)
    }

    /// All steps from the words' parts in the gates of the first layer: states and, if attention takes part in the
    /// recurrence, contexts.
    ///
    /// # Shapes
    /// - gates: `[batch, len, n_gates * d_hidden]`
    /// - output: `[batch, len, d_hidden]`, `[batch, len, d_encoded]`
    pub(super) fn advance_in_steps(
        &self,
        gates: Tensor<3>,
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> (Tensor<3>, Option<Tensor<3>>) {
        let mut state = self.start(memory, 1);
        let (mut states, mut contexts) = (Vec::new(), Vec::new());
        for gates in unbind_steps(gates) {
            let (next, read) = self.advance(gates, state, memory, pass);
            state = next;
            states.push(read.state);
            contexts.extend(read.context);
        }
        (Tensor::stack(states, 1), (!contexts.is_empty()).then(|| Tensor::stack(contexts, 1)))
    }

    /// The same as one operation, where there is one for this decoder and no trace wants its steps.
    pub(super) fn advance_at_once(
        &self,
        gates: Tensor<3>,
        memory: &RnnMemory,
        pass: &Pass,
    ) -> Option<(Tensor<3>, Option<Tensor<3>>)> {
        let [cell] = &self.decoder[..] else { return None };
        if pass.is_traced() {
            return None;
        }
        let (start, body) = (memory.start[0].clone(), pass.body());
        match (&self.attention, &memory.attention) {
            (Some(attention), Some(attended)) if attention.is_in_recurrence() => {
                let attention = attention.in_recurrence(cell.d_hidden(), attended)?;
                let (states, contexts) = ops::attentive_layer(gates, start, cell.parameters(), attention, body);
                Some((states, Some(contexts)))
            }
            _ => {
                let (states, _) = ops::recurrent_layer(gates, start, cell.parameters(), Reading::default(), body);
                Some((states, None))
            }
        }
    }

    /// The decoder's layers, each over the output of the one below: the cells' new states and the output of the top layer.
    fn layers(&self, mut gates: Tensor<2>, previous: &[CellState], pass: &mut Pass) -> (Vec<CellState>, Tensor<2>) {
        let mut layers: Vec<CellState> = Vec::with_capacity(self.decoder.len());
        let mut output: Option<Tensor<2>> = None;
        for (cell, previous) in self.decoder.iter().zip(previous) {
            if let Some(below) = &output {
                let input = pass.dropout(below.clone(), self.dropout_rate);
                gates = cell.project(input.unsqueeze_dim(1), pass).squeeze_dim(1);
            }
            if pass.is_traced()
                && let Some(kept) = cell.kept(gates.clone(), previous, pass)
            {
                pass.record(&format!("decoder.{}.gate", layers.len()), || kept);
            }
            let state = cell.step(gates.clone(), previous, pass);
            output = Some(match output {
                Some(below) if self.residual => state.hidden.clone() + below,
                _ => state.hidden.clone(),
            });
            layers.push(state);
        }
        let output = output.expect("at least one layer");
        pass.record("decoder.state", || output.clone());
        (layers, output)
    }

    /// Attention that no later step depends on, for any number of steps at once: contexts and attentional vectors.
    ///
    /// # Shapes
    /// - states: `[batch, query_len, d_hidden]`
    pub(super) fn attend_late(
        &self,
        states: Tensor<3>,
        steps: &[usize],
        memory: &RnnMemory,
        pass: &mut Pass,
    ) -> Option<(Tensor<3>, Tensor<3>)> {
        match (&self.attention, &memory.attention) {
            (Some(Attention::Luong(attention)), Some(attended)) if !attention.feeds_input() => {
                Some(attention.forward(states, steps, attended, pass))
            }
            _ => None,
        }
    }

    /// The same for one step of every beam.
    pub(super) fn attend_late_in_step(&self, read: Read, step: usize, memory: &RnnMemory, pass: &mut Pass) -> Read {
        let Some(attended) = &memory.attention else { return read };
        match self.attend_late(by_sentence(read.state.clone(), attended), &[step], memory, pass) {
            Some((context, attentional)) => Read { state: by_row(attentional), context: Some(by_row(context)) },
            None => read,
        }
    }

    /// The scores of every word.
    ///
    /// # Shapes
    /// - states, embedded, contexts: `[batch, len, width]`
    pub(super) fn scores_of(
        &self,
        states: Tensor<3>,
        embedded: Tensor<3>,
        contexts: Tensor<3>,
        pass: &mut Pass,
    ) -> Scores<'_> {
        let mut input = self.readout.forward(states, embedded, contexts, pass, self.dropout_rate);
        if let Some(projection) = &self.output_projection {
            input = linear_layer(projection, input, pass);
        }
        pass.record("decoder.readout", || input.clone());
        Scores { input, output: &self.output, embedding: Some(&self.target_embedding) }
    }
}
