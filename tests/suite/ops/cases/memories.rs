//! Recurrences without a product in each step: linear ones, memories that are matrices, and convolutions.

use super::super::Leaves;
use super::{Sizes, flat};
use burn::tensor::Tensor;
use lookback::kernels::linear_recurrence::Gating;
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::ops::{self, Body, MemoryParameters};

pub(super) fn linear_recurrence(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let gating = sizes.one_of(&[Gating::RgLru, Gating::MinGru, Gating::MinLstm, Gating::Ssru]);
    let (batch, len, d) = (sizes.batch, sizes.len.min(70), sizes.width);
    let gates = leaves.leaf("gates", [batch, len, gating.n_gates() * d], 3.0);
    let start = leaves.leaf("start", [batch, d], 1.0);
    // Models begin with decays of 4 to 9.
    let decay = (gating == Gating::RgLru).then(|| leaves.leaf("decay", [d], 2.0).add_scalar(sizes.inner as f64 % 7.0));
    let reading = Reading { is_backward: sizes.is_transposed, lengths: sizes.lengths(len) };
    vec![flat(ops::linear_recurrence(gating, gates, start, decay, reading, body))]
}

pub(super) fn matrix_memory(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let rule = sizes.one_of(&[Rule::GatedLinear, Rule::GatedDelta, Rule::Linear, Rule::Delta]);
    let (rows, len, n_heads) = (sizes.batch, sizes.len.min(70), sizes.n_key_value_heads * sizes.group);
    // On both sides of what a strip holds.
    let d_head = if sizes.is_causal { sizes.width } else { sizes.d_head };
    let d = n_heads * d_head;
    let packed = leaves.leaf("packed", [rows, len, rule.n_packed() * d], 3.0);
    let of_each = if rule == Rule::GatedLinear { d } else { n_heads };
    // What gated linear attention keeps has a least, which rates below -80 reach.
    let scale = if rule == Rule::GatedLinear && sizes.has_bias { 120.0 } else { 4.0 };
    let parameters = MemoryParameters {
        rates: (rule != Rule::Linear).then(|| leaves.leaf("rates", [rows, len, rule.n_rates() * of_each], scale)),
        decay: (rule == Rule::GatedDelta).then(|| leaves.leaf("decay", [n_heads], 2.0)),
        norm: (rule != Rule::Linear).then(|| leaves.leaf("norm", [d_head], 1.0)),
    };
    let shape = [rows, n_heads, d_head, rule.d_value(d_head)];
    // Linear attention divides by the sum of weights, which is above zero.
    let state = sizes.has_bias.then(|| match rule {
        Rule::Linear => leaves.leaf("state", shape, 1.0).add_scalar(1.1),
        _ => leaves.leaf("state", shape, 1.0),
    });
    let reading = Reading { is_backward: sizes.is_transposed, lengths: sizes.lengths(len) };
    let most_replaced = if sizes.is_causal { 2.0 } else { 1.0 };
    let config = MemoryConfig { rule, n_heads, most_replaced, epsilon: 1e-5 };
    let (read, state) = ops::matrix_memory(config, packed, parameters, state, reading, body);
    vec![flat(read), flat(state)]
}

pub(super) fn convolution(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (rows, d, width) = (sizes.batch, sizes.width, 2 + sizes.choice % 4);
    let input = leaves.leaf("input", [rows, sizes.len, d], 2.0);
    let weight = leaves.leaf("weight", [width, d], 1.0);
    let past = leaves.leaf("past", [rows, width - 1, d], 2.0);
    let (output, next) = ops::convolution(input, weight, past, body);
    vec![flat(output), flat(next)]
}
