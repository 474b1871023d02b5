//! Recurrent layers, their attention, and the output of the RNN encoder-decoder.

use super::super::Leaves;
use super::{Sizes, flat};
use burn::tensor::Tensor;
use lookback::kernels::alignment::AlignmentScore;
use lookback::kernels::cell::CellKind;
use lookback::kernels::recurrence::Reading;
use lookback::layers::Mask;
use lookback::ops::steps::CellState;
use lookback::ops::{self, Body, CellParameters, Placement, StepAttention, Weight};

pub(super) fn deep_output(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, len) = (sizes.batch, sizes.len);
    let widths = [sizes.width, sizes.inner, sizes.d_head];
    let [state, embedded, context] =
        [0, 1, 2].map(|i| leaves.leaf(["state", "embedded", "context"][i], [batch, len, widths[i]], 2.0));
    let weight = Weight::plain(leaves.leaf("weight", [widths.iter().sum(), 2 * sizes.inner], 1.0));
    let bias = leaves.leaf("bias", [2 * sizes.inner], 1.0);
    vec![flat(ops::deep_output([state, embedded, context], weight, bias, sizes.dropout(), body))]
}

pub(super) const CELLS: [CellKind; 3] = [CellKind::Gru, CellKind::Lstm, CellKind::Vanilla];

fn start(leaves: &mut Leaves, kind: CellKind, rows: usize, d: usize) -> CellState {
    let hidden = leaves.leaf("start", [rows, d], 1.0);
    CellState { hidden, memory: (kind == CellKind::Lstm).then(|| leaves.leaf("memory", [rows, d], 1.0)) }
}

fn candidate_bias(leaves: &mut Leaves, kind: CellKind, d: usize) -> Option<Tensor<1>> {
    (kind == CellKind::Gru).then(|| leaves.leaf("candidate bias", [d], 1.0))
}

pub(super) fn cell_step(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (kind, rows, d) = (sizes.one_of(&CELLS), sizes.batch * sizes.len, sizes.width);
    let width = kind.n_gates() * d;
    let (projected, recurrent) =
        (leaves.leaf("projected", [rows, width], 2.0), leaves.leaf("recurrent", [rows, width], 2.0));
    let state = start(leaves, kind, rows, d);
    let bias = candidate_bias(leaves, kind, d);
    let CellState { hidden, memory } = ops::cell_step(kind, projected, recurrent, state, bias, body);
    [hidden].into_iter().chain(memory).map(flat).collect()
}

fn score(sizes: &Sizes) -> AlignmentScore {
    sizes.one_of(&[AlignmentScore::Network, AlignmentScore::Dot { scale: 0.7 }])
}

pub(super) fn contexts(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (batch, key_len, d_key, d_value) = (sizes.batch, sizes.key_len, sizes.width, sizes.inner);
    let query = leaves.leaf("query", [batch, sizes.len, d_key], 4.0);
    let (keys, values) =
        (leaves.leaf("keys", [batch, key_len, d_key], 4.0), leaves.leaf("values", [batch, key_len, d_value], 4.0));
    let score = score(sizes);
    let vector = (score == AlignmentScore::Network).then(|| leaves.leaf("vector", [d_key, 1], 4.0));
    let lengths = sizes.real_lengths(key_len);
    let mask = lengths.map_or_else(Mask::none, |lengths| Mask::padding(&lengths, key_len, leaves.device));
    vec![flat(ops::contexts(score, query, keys, values, vector, &mask, body))]
}

/// A layer's inputs. Long sentences would only repeat what short ones do.
fn layer(leaves: &mut Leaves, sizes: &Sizes) -> (Tensor<3>, CellState, CellParameters) {
    let (kind, len, d) = (sizes.one_of(&CELLS), sizes.len.min(12), sizes.width.min(20));
    let width = kind.n_gates() * d;
    let gates = leaves.leaf("gates", [sizes.batch, len, width], 2.0);
    let state = start(leaves, kind, sizes.batch, d);
    let recurrent = leaves.leaf("recurrent", [d, width], 1.0);
    (gates, state, CellParameters { kind, recurrent, candidate_bias: candidate_bias(leaves, kind, d) })
}

pub(super) fn recurrent_layer(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (gates, state, parameters) = layer(leaves, sizes);
    let lengths = sizes.real_lengths(gates.dims()[1]);
    let reading = Reading { is_backward: sizes.is_transposed, lengths };
    let (states, last) = ops::recurrent_layer(gates, state, parameters, reading, body);
    [flat(states), flat(last.hidden)].into_iter().chain(last.memory.map(flat)).collect()
}

pub(super) fn attentive_layer(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (gates, state, parameters) = layer(leaves, sizes);
    let (batch, key_len, d) = (sizes.batch, sizes.key_len.min(12), state.hidden.dims()[1]);
    let (width, d_value) = (gates.dims()[2], sizes.inner.min(20));
    let score = score(sizes);
    let is_network = score == AlignmentScore::Network;
    let d_key = if is_network { sizes.d_head } else { d };
    let attention = StepAttention {
        keys: leaves.leaf("keys", [batch, key_len, d_key], 2.0),
        values: leaves.leaf("values", [batch, key_len, d_value], 2.0),
        lengths: sizes.real_lengths(key_len),
        score,
        network: is_network.then(|| (leaves.leaf("query", [d, d_key], 1.0), leaves.leaf("vector", [d_key, 1], 2.0))),
        placement: match sizes.has_bias {
            true => Placement::Before { context_input: leaves.leaf("context input", [d_value, width], 1.0) },
            false => Placement::After {
                attentional: leaves.leaf("attentional", [d_value + d, d], 1.0),
                attentional_bias: leaves.leaf("attentional bias", [d], 1.0),
                feeding: leaves.leaf("feeding", [d, width], 1.0),
            },
        },
    };
    let (states, contexts) = ops::attentive_layer(gates, state, parameters, attention, body);
    vec![flat(states), flat(contexts)]
}
