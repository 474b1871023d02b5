//! What theory says of a model's cost, in closed form: operations, steps that wait for each other, bytes that are carried.
//!
//! Operations are counted as is usual: a product of an `m x k` and a `k x n` matrix is `2 m k n`; element-wise work, softmax and
//! norms are left out. A training update costs three times the forward pass: the gradient needs a product for the input and one
//! for the weight for each product of the forward pass.

use super::Vocabularies;
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::{Gating, MixerConfig, MixerKind};
use crate::ops::chunk_of;

/// Bytes of an element.
const ELEMENT: u64 = 4;
/// A training update in forward passes.
pub const TRAINING: f64 = 3.0;

/// What a model costs.
pub trait Costs {
    /// Operations of the forward pass over a source and a target of `n` tokens, each target token written once: of training, and
    /// of decoding with a cache.
    fn forward_flops(&self, vocabularies: Vocabularies, n: usize) -> f64;

    /// Steps that have to wait for each other in the forward pass of training over `n` tokens on each side: layers where all
    /// positions are computed at once, positions where they are not, chunks of a memory that is a matrix, which can be read so.
    fn training_steps(&self, n: usize) -> u64;

    /// The same of greedy decoding of `n` tokens.
    fn decoding_steps(&self, n: usize) -> u64;

    /// Numbers that decoding carries from step to step after `n` tokens on each side, what it keeps of the source included.
    fn state_elements(&self, n: u64) -> u64;

    /// The exponents of seconds and of memory for long sentences, of an update or of decoding.
    ///
    /// A recurrence takes a step for each word and keeps its states for the gradient: linear. Every word looks at every other in
    /// attention: quadratic time, and quadratic memory where all weights are kept; decoding keeps one row of them. A fused
    /// Transformer (`is_fused`) never has more than a block of its weights.
    fn exponents(&self, is_update: bool, is_fused: bool) -> [f64; 2];

    /// The bytes of [`Self::state_elements`].
    fn state_bytes(&self, n: usize) -> u64 {
        ELEMENT * self.state_elements(n as u64)
    }
}

/// What a mixer stands in.
pub(super) struct Widths {
    pub d_model: usize,
    pub n_heads: usize,
    /// Of all keys, and of all values.
    pub d_key_value: usize,
}

/// One token's way through a feed-forward network.
pub(super) fn network_flops(activation: Activation, d_model: usize, d_feed_forward: usize) -> f64 {
    let n_inner = if activation == Activation::Swiglu { 3.0 } else { 2.0 };
    2.0 * n_inner * d_model as f64 * d_feed_forward as f64
}

impl Widths {
    pub(super) fn new(d_model: usize, n_heads: usize, n_key_value_heads: usize) -> Self {
        Self { d_model, n_heads, d_key_value: d_model * n_key_value_heads / n_heads }
    }

    /// Queries and outputs, keys and values of attention, for one token.
    pub(super) fn projections(&self) -> f64 {
        let [d, key_value] = [self.d_model, self.d_key_value].map(|width| width as f64);
        4.0 * d * d + 4.0 * d * key_value
    }

    /// One token's way through a mixer; attention sees `n_seen` positions.
    pub(super) fn flops(&self, own: &MixerConfig, n_directions: usize, n_seen: f64) -> f64 {
        let [d, n_heads] = [self.d_model, self.n_heads].map(|width| width as f64);
        let d_state = d * own.expansion() as f64;
        let n_directions = n_directions as f64;
        let width = n_directions * d_state;
        let leads_back = |is_needed: bool| if is_needed { 2.0 * width * d } else { 0.0 };
        let vector = |n_gates: f64, recurrent: f64| {
            n_directions * 2.0 * n_gates * d_state * (d + recurrent) + leads_back(width != d)
        };
        // What is written, and what is asked; a delta rule asks before it writes.
        let matrix = |n_packed: f64, rates: f64, n_products: f64| {
            let products = n_products * 2.0 * d * d / n_heads;
            n_directions * (2.0 * n_packed * d * d + 2.0 * d * rates + products) + leads_back(true)
        };
        match own.kind {
            // Scores and weighted sum.
            MixerKind::Attention => self.projections() + 4.0 * n_seen * d,
            MixerKind::Vanilla => vector(1.0, d_state),
            MixerKind::Gru => vector(3.0, d_state),
            MixerKind::Lstm => vector(4.0, d_state),
            MixerKind::MinGru | MixerKind::MinLstm | MixerKind::Ssru | MixerKind::RgLru => {
                vector(own.kind.gating().map_or(0, Gating::n_gates) as f64, 0.0)
            }
            MixerKind::Linear => matrix(3.0, 0.0, 2.0),
            MixerKind::GatedLinear => matrix(4.0, d, 2.0),
            MixerKind::Delta => matrix(3.0, n_heads, 3.0),
            MixerKind::GatedDelta => matrix(4.0, 2.0 * n_heads, 3.0),
        }
    }

    /// Numbers that a decoder's layer keeps of `n` tokens.
    pub(super) fn state(&self, own: &MixerConfig, n: u64) -> u64 {
        let [d, key_value] = [self.d_model, self.d_key_value].map(|width| width as u64);
        let (d_head, d_state) = (d / self.n_heads as u64, d * own.expansion() as u64);
        let state = match own.kind {
            MixerKind::Attention => 2 * key_value * n,
            MixerKind::Lstm => 2 * d_state,
            MixerKind::Linear => d * (d_head + 1),
            MixerKind::GatedLinear | MixerKind::Delta | MixerKind::GatedDelta => d * d_head,
            _ => d_state,
        };
        state + own.convolution.map_or(0, |width| (width as u64 - 1) * d)
    }
}

/// Steps of a layer over `n` positions that wait for each other.
pub(super) fn steps(own: &MixerConfig, n: usize) -> u64 {
    let steps = match own.kind {
        MixerKind::Vanilla | MixerKind::Gru | MixerKind::Lstm => n,
        MixerKind::Linear | MixerKind::GatedLinear | MixerKind::Delta | MixerKind::GatedDelta => {
            own.kind.rule().map_or(n, |rule| n.div_ceil(chunk_of(rule)))
        }
        MixerKind::Attention | MixerKind::MinGru | MixerKind::MinLstm | MixerKind::Ssru | MixerKind::RgLru => 1,
    };
    steps as u64
}
