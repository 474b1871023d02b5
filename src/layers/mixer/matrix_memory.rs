//! Linear attention, the delta rule, and both with a memory that fades: a matrix instead of a cache.

use super::MixerKind;
use crate::kernels::matrix_memory::MemoryConfig;
pub use crate::kernels::matrix_memory::{GLA_TEMPERATURE, Rule};
use crate::kernels::recurrence::Reading;
use crate::layers::linear::linear_layer;
use crate::layers::norm::EPSILON;
use crate::layers::{Init, Pass};
use crate::ops::{MemoryParameters, matrix_memory};
use burn::module::{Module, Param};
use burn::nn::{Linear, RmsNorm};
use burn::tensor::{Tensor, TensorData};

impl MixerKind {
    /// What becomes of the memory of a mixer, if that is a matrix.
    pub fn rule(self) -> Option<Rule> {
        match self {
            Self::Linear => Some(Rule::Linear),
            Self::GatedLinear => Some(Rule::GatedLinear),
            Self::Delta => Some(Rule::Delta),
            Self::GatedDelta => Some(Rule::GatedDelta),
            _ => None,
        }
    }
}

/// Attention without a softmax: a matrix `S` for each head takes up every key with its value, and answers a query with
/// `S^T q`. It is as large after a thousand words as after one.
///
/// - linear: `S_t = S_(t-1) + k_t v_t^T`, `z_t = z_(t-1) + k_t`, `o_t = S_t^T q_t / (z_t . q_t)`, where keys and queries are
///   `elu(W x) + 1`
/// - gated linear: `S_t = diag(a_t) S_(t-1) + k_t v_t^T` with `a_t = sigmoid(W_a x_t)^(1/16)`, one number for each element of
///   a key; `o_t = norm(S_t^T q_t) * silu(W_g x_t)`, queries divided by the root of their width
/// - delta: `S_t = S_(t-1) + b_t k_t (v_t - S_(t-1)^T k_t)^T`: what the memory has for a key is replaced by the part `b_t =
///   sigmoid(w_b . x_t)`, or twice that with negative eigenvalues. Queries and keys are `silu(W x)` of length 1, values
///   `silu(W x)`; `o_t = norm(S_t^T q_t)`
/// - gated delta: as delta in the memory `a_t S_(t-1)`, `a_t = exp(-exp(A) softplus(w_a . x_t + c))`, one number for each
///   head; `o_t = norm(S_t^T q_t) * silu(W_g x_t)`
///
/// `norm` is a root-mean-square normalization of each head. The fused operation reads a sequence position after position, with the matrix
/// in the nearest cache, or in the registers of a GPU. In burn's operations, which heads wider than 128 are left to on a GPU, it is read in
/// chunks: inside a chunk by products of matrices, as attention, from chunk to chunk by the state. burn has no such layer.
///
/// # Reference
/// Katharopoulos et al., Transformers are RNNs, 2020, equations 16 to 20; Yang et al., Gated Linear Attention Transformers with
/// Hardware-Efficient Training, 2023, section 4; Schlag et al., Linear Transformers Are Secretly Fast Weight Programmers, 2021,
/// equation 24, and Yang et al., Parallelizing Linear Transformers with the Delta Rule over Sequence Length, 2024; Yang et al.,
/// Gated Delta Networks, 2025, equation 10; Grazzi et al., Unlocking State-Tracking in Linear RNNs Through Negative
/// Eigenvalues, 2025. **Differs from the papers:** GLA's gate has a whole matrix instead of one of rank 16, and keeps at least
/// `e^-5` of a row at each position; a convolution before the layer is one of the layer, not one each of queries, keys and
/// values.
#[derive(Module, Debug)]
pub struct MatrixMemory {
    /// `W^Q`, `W^K`, `W^V` and, for gated rules, `W_g` of all heads, packed in this order.
    input: Linear,
    /// GLA's `W_a`: `[d_model, d_model]`; or `w_b` and `w_a` of each head, packed in this order.
    rates: Option<Linear>,
    /// `A` of each head.
    decay: Option<Param<Tensor<1>>>,
    norm: Option<RmsNorm>,
    #[module(skip)]
    rule: Rule,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    negative_eigenvalues: bool,
}

impl MatrixMemory {
    /// A memory that reads and writes vectors of width `d_model` in `n_heads` heads.
    ///
    /// # Panics
    /// If the heads do not divide the width.
    pub fn new(rule: Rule, d_model: usize, n_heads: usize, negative_eigenvalues: bool, init: &Init) -> Self {
        assert!(d_model.is_multiple_of(n_heads), "n_heads must divide d_model, got {n_heads} and {d_model}");
        let n_packed = rule.n_packed();
        let rates = (rule.n_rates() > 0).then(|| {
            let width = if rule == Rule::GatedLinear { d_model } else { rule.n_rates() * n_heads };
            init.linear(d_model, width, rule.n_rates())
        });
        let decay = (rule == Rule::GatedDelta).then(|| {
            // Half-lives from about one position to some hundred, each head its own.
            let rate = |head: usize| (0.01f64 * 100f64.powf((head as f64 + 0.5) / n_heads as f64)).ln() as f32;
            let rates: Vec<f32> = (0..n_heads).map(rate).collect();
            Param::from_data(TensorData::new(rates, [n_heads]), init.device())
        });
        Self {
            input: init.linear(d_model, n_packed * d_model, n_packed),
            rates,
            decay,
            norm: (rule != Rule::Linear).then(|| init.rms_norm(d_model / n_heads, EPSILON)),
            rule,
            n_heads,
            negative_eigenvalues,
        }
    }

    /// What is read at every position of `input`, zero on padding; `state` is the memory before it and after it.
    ///
    /// # Shapes
    /// - input, output: `[rows, len, d_model]`
    /// - state: `[rows, n_heads, d_head, d_head]`; of linear attention `[rows, n_heads, d_head, d_head + 1]`, `z` last
    pub fn advance(
        &self,
        input: Tensor<3>,
        reading: Reading,
        state: &mut Option<Tensor<4>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let packed = linear_layer(&self.input, input.clone(), pass);
        let parameters = MemoryParameters {
            rates: self.rates.as_ref().map(|rates| linear_layer(rates, input, pass)),
            decay: self.decay.as_ref().map(|decay| decay.val()),
            norm: self.norm.as_ref().map(|norm| norm.gamma.val()),
        };
        let config = MemoryConfig {
            rule: self.rule,
            n_heads: self.n_heads,
            most_replaced: if self.negative_eigenvalues { 2.0 } else { 1.0 },
            epsilon: self.norm.as_ref().map_or(EPSILON, |norm| norm.epsilon),
        };
        // What a reader of a trace sees: how much of the memory is kept, and how much of a key's place is replaced.
        if pass.is_traced() {
            if let Some(log_kept) = parameters.log_kept(config) {
                pass.record("kept", || log_kept.exp());
            }
            if let Some(replaced) = parameters.replaced(config) {
                pass.record("replaced", || replaced);
            }
        }
        let (read, after) = matrix_memory(config, packed, parameters, state.take(), reading, pass.body());
        *state = Some(after);
        read
    }
}
