//! A matrix memory in burn's operations.

use super::chunks::{Sequence, read};
use super::operation::Body;
use super::scan::{log_sigmoid, real};
use crate::kernels::matrix_memory::{GLA_TEMPERATURE, MOST_DECAY, MemoryConfig, Rule, TINY};
use crate::kernels::recurrence::Reading;
use burn::tensor::{Tensor, activation};

/// What a matrix memory takes beside queries, keys and values.
pub struct MemoryParameters {
    /// What the rates of every position are made of, before their sigmoid: `[rows, len, n_rates n_heads]`, of gated linear attention
    /// `[rows, len, d]`. Every rule but the linear has them.
    pub rates: Option<Tensor<3>>,
    /// `A`, the logarithm of how fast each head fades: `[n_heads]`, of the gated delta rule.
    pub decay: Option<Tensor<1>>,
    /// The scale of the norm: `[d_head]`, of every rule but the linear.
    pub norm: Option<Tensor<1>>,
}

/// What [`matrix_memory`](super::matrix_memory()) gives.
pub(super) fn written_memory(
    config: MemoryConfig,
    packed: Tensor<3>,
    parameters: MemoryParameters,
    state: Option<Tensor<4>>,
    reading: &Reading,
    body: Body,
) -> (Tensor<3>, Tensor<4>) {
    let MemoryConfig { rule, n_heads, epsilon, .. } = config;
    let [rows, len, width] = packed.dims();
    let (d, device) = (width / rule.n_packed(), packed.device());
    let turn = |x: Tensor<3>| if reading.is_backward { x.flip([1]) } else { x };
    let real = reading.lengths.as_ref().and_then(|lengths| real(lengths, len, &device));
    let turned = real.clone().map(|real| turn(real).unsqueeze_dim::<4>(1));
    // Padding writes nothing and lets nothing fade.
    let only_real = |values: Tensor<4>| match &turned {
        Some(real) => values * real.clone(),
        None => values,
    };
    let packed = turn(packed);
    let part = |i: usize| heads(packed.clone().narrow(2, i * d, d), n_heads);
    let parameters = MemoryParameters { rates: parameters.rates.map(turn), ..parameters };
    let (query, key, value) = (part(0), part(1), part(2));
    let log_decay = parameters.log_kept(config).map(only_real);
    let rate = parameters.replaced(config);
    let sequence = match rule {
        Rule::Linear => {
            let ones = Tensor::ones([rows, n_heads, len, 1], &device);
            let value = Tensor::cat(vec![value, ones], 3);
            Sequence { query: above_zero(query), key: only_real(above_zero(key)), value, log_decay, rate }
        }
        Rule::GatedLinear => {
            let query = query.mul_scalar(((d / n_heads) as f64).powf(-0.5));
            Sequence { query, key: only_real(key), value, log_decay, rate }
        }
        Rule::Delta | Rule::GatedDelta => Sequence {
            query: unit(activation::silu(query)),
            key: only_real(unit(activation::silu(key))),
            value: activation::silu(value),
            log_decay,
            rate,
        },
    };
    let (read, state) = read(sequence, state, body);
    let read = match rule {
        Rule::Linear => {
            let d_head = d / n_heads;
            let total = read.clone().narrow(3, d_head, 1).add_scalar(TINY);
            read.narrow(3, 0, d_head) / total
        }
        _ => {
            let norm = parameters.norm.expect("every rule but the linear has a norm");
            let size = read.clone().square().mean_dim(3).add_scalar(epsilon).sqrt();
            read / size * norm.unsqueeze()
        }
    };
    let read = read.swap_dims(1, 2).reshape([rows, len, d]);
    let read = if rule.is_gated() { read * activation::silu(packed.narrow(2, 3 * d, d)) } else { read };
    let read = match real {
        Some(real) => turn(read) * real,
        None => turn(read),
    };
    (read, state)
}

impl MemoryParameters {
    /// The logarithm of what every position keeps of the memory: `[rows, n_heads, len, 1]`, of gated linear attention
    /// `[rows, n_heads, len, d_head]`. Nothing of a memory that keeps all.
    pub fn log_kept(&self, config: MemoryConfig) -> Option<Tensor<4>> {
        match config.rule {
            Rule::Linear | Rule::Delta => None,
            Rule::GatedLinear => {
                let rates = heads(self.rates(), config.n_heads);
                Some(log_sigmoid(rates).div_scalar(GLA_TEMPERATURE).clamp_min(MOST_DECAY))
            }
            Rule::GatedDelta => {
                let decay = self.decay.clone().expect("the gated delta rule has a decay");
                let speed = decay.exp().reshape([1, config.n_heads, 1, 1]);
                // softplus(x) = -log(sigmoid(-x))
                Some(log_sigmoid(self.of_heads(1, config).neg()) * speed)
            }
        }
    }

    /// How much of a key's place every position replaces: `[rows, n_heads, len, 1]`. Nothing of a rule that only adds.
    pub fn replaced(&self, config: MemoryConfig) -> Option<Tensor<4>> {
        let is_delta = config.rule.is_delta();
        is_delta.then(|| activation::sigmoid(self.of_heads(0, config)).mul_scalar(config.most_replaced))
    }

    /// The rates of one kind, `[rows, len, n_heads]` turned to `[rows, n_heads, len, 1]`.
    fn of_heads(&self, kind: usize, config: MemoryConfig) -> Tensor<4> {
        self.rates().narrow(2, kind * config.n_heads, config.n_heads).swap_dims(1, 2).unsqueeze_dim(3)
    }

    fn rates(&self) -> Tensor<3> {
        self.rates.clone().expect("every rule but the linear has rates")
    }
}

/// `[rows, len, n_heads * d_head]` to `[rows, n_heads, len, d_head]`.
fn heads(packed: Tensor<3>, n_heads: usize) -> Tensor<4> {
    let [rows, len, width] = packed.dims();
    packed.reshape([rows, len, n_heads, width / n_heads]).swap_dims(1, 2)
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
