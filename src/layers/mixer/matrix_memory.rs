//! Linear attention, the delta rule, and both with a memory that fades: a matrix instead of a cache.

use super::MixerKind;
use super::chunks::{Sequence, read};
use crate::layers::linear::linear_layer;
use crate::layers::norm::EPSILON;
use crate::layers::{Init, Pass};
use crate::ops::scan::log_sigmoid;
use burn::module::{Module, Param};
use burn::nn::{Linear, RmsNorm};
use burn::tensor::{Tensor, TensorData, activation};

/// What becomes of the memory at each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `S_t = S_(t-1) + k_t v_t^T`
    Linear,
    /// `S_t = diag(a_t) S_(t-1) + k_t v_t^T`
    GatedLinear,
    /// `S_t = (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T`
    Delta,
    /// `S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T`
    GatedDelta,
}

impl Rule {
    /// That of a mixer, if it has one.
    pub fn of(kind: MixerKind) -> Option<Self> {
        match kind {
            MixerKind::Linear => Some(Self::Linear),
            MixerKind::GatedLinear => Some(Self::GatedLinear),
            MixerKind::Delta => Some(Self::Delta),
            MixerKind::GatedDelta => Some(Self::GatedDelta),
            _ => None,
        }
    }

    fn is_gated(self) -> bool {
        matches!(self, Self::GatedLinear | Self::GatedDelta)
    }
}

/// What the decay of a head is divided by in logarithms: `tau` of GLA.
pub const GLA_TEMPERATURE: f64 = 16.0;
/// The logarithm of what GLA keeps of a row at one position, at least.
const MOST_DECAY: f64 = -5.0;
/// What is added to the sum of weights of linear attention, and to the squares of a key, before dividing.
const TINY: f64 = 1e-6;

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
/// `norm` is a root-mean-square normalization of each head. In training a sequence is read in chunks: inside a chunk by
/// products of matrices, as attention, from chunk to chunk by the state. burn has no such layer.
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
        let n_packed = if rule.is_gated() { 4 } else { 3 };
        let rates = match rule {
            Rule::Linear => None,
            Rule::GatedLinear => Some(init.linear(d_model, d_model, 1)),
            Rule::Delta => Some(init.linear(d_model, n_heads, 1)),
            Rule::GatedDelta => Some(init.linear(d_model, 2 * n_heads, 2)),
        };
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

    /// What is read at every position of `input`; `state` is the memory before it and after it.
    ///
    /// # Shapes
    /// - input, output: `[rows, len, d_model]`
    /// - real: `[rows, len, 1]`, zero where nothing is to be written
    /// - state: `[rows, n_heads, d_head, d_head]`; of linear attention `[rows, n_heads, d_head, d_head + 1]`, `z` last
    pub fn advance(
        &self,
        input: Tensor<3>,
        real: Option<&Tensor<3>>,
        state: &mut Option<Tensor<4>>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [rows, len, d] = input.dims();
        let packed = linear_layer(&self.input, input.clone(), pass);
        let part = |i: usize| self.heads(packed.clone().narrow(2, i * d, d));
        let rates = self.rates.as_ref().map(|rates| linear_layer(rates, input, pass));
        let real = real.map(|real| real.clone().unsqueeze_dim::<4>(1));
        // Padding writes nothing and lets nothing fade.
        let only_real = |values: Tensor<4>| match &real {
            Some(real) => values * real.clone(),
            None => values,
        };
        let (query, keys, value) = (part(0), part(1), part(2));
        let sequence = match self.rule {
            Rule::Linear => {
                let ones = Tensor::ones([rows, self.n_heads, len, 1], &value.device());
                Sequence {
                    query: above_zero(query),
                    key: only_real(above_zero(keys)),
                    value: Tensor::cat(vec![value, ones], 3),
                    log_decay: None,
                    rate: None,
                }
            }
            Rule::GatedLinear => {
                let rates = self.heads(rates.expect("GLA has rates"));
                let log = log_sigmoid(rates).div_scalar(GLA_TEMPERATURE).clamp_min(MOST_DECAY);
                Sequence {
                    query: query.mul_scalar(((d / self.n_heads) as f64).powf(-0.5)),
                    key: only_real(keys),
                    value,
                    log_decay: Some(only_real(log)),
                    rate: None,
                }
            }
            Rule::Delta | Rule::GatedDelta => {
                let rates = rates.expect("a delta rule has rates");
                // `[rows, len, n_heads]` to `[rows, n_heads, len, 1]`.
                let rate = |i: usize| {
                    rates.clone().narrow(2, i * self.n_heads, self.n_heads).swap_dims(1, 2).unsqueeze_dim::<4>(3)
                };
                let most = if self.negative_eigenvalues { 2.0 } else { 1.0 };
                let log_decay = self.decay.as_ref().map(|decay| {
                    let speed = decay.val().exp().reshape([1, self.n_heads, 1, 1]);
                    // softplus(x) = -log(sigmoid(-x))
                    only_real(log_sigmoid(rate(1).neg()) * speed)
                });
                Sequence {
                    query: unit(activation::silu(query)),
                    key: only_real(unit(activation::silu(keys))),
                    value: activation::silu(value),
                    log_decay,
                    rate: Some(activation::sigmoid(rate(0)).mul_scalar(most)),
                }
            }
        };
        self.record(&sequence, pass);
        let (read, after) = read(sequence, state.take(), pass);
        *state = Some(after);
        let read = match &self.norm {
            None => {
                let d_head = d / self.n_heads;
                let total = read.clone().narrow(3, d_head, 1).add_scalar(TINY);
                read.narrow(3, 0, d_head) / total
            }
            Some(norm) => norm.forward(read),
        };
        let read = read.swap_dims(1, 2).reshape([rows, len, d]);
        if self.rule.is_gated() { read * activation::silu(packed.narrow(2, 3 * d, d)) } else { read }
    }

    /// What a reader of a trace sees: how much of the memory is kept, and how much of a key's place is replaced.
    fn record(&self, sequence: &Sequence, pass: &mut Pass) {
        if let Some(log_decay) = &sequence.log_decay {
            pass.record("kept", || log_decay.clone().exp());
        }
        if let Some(rate) = &sequence.rate {
            pass.record("replaced", || rate.clone());
        }
    }

    /// `[rows, len, n_heads * d_head]` to `[rows, n_heads, len, d_head]`.
    fn heads(&self, packed: Tensor<3>) -> Tensor<4> {
        let [rows, len, width] = packed.dims();
        packed.reshape([rows, len, self.n_heads, width / self.n_heads]).swap_dims(1, 2)
    }
}

/// `elu(x) + 1`.
fn above_zero(x: Tensor<4>) -> Tensor<4> {
    let is_negative = x.clone().lower_elem(0.0);
    // Where it is not used the exponential must not overflow.
    let below = x.clone().clamp_max(0.0).exp();
    x.add_scalar(1.0).mask_where(is_negative, below)
}

/// Vectors of length 1, short ones a little less.
fn unit(x: Tensor<4>) -> Tensor<4> {
    let squares = (x.clone() * x.clone()).sum_dim(3);
    x / squares.add_scalar(TINY).sqrt()
}
