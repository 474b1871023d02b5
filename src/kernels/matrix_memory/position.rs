//! What a memory takes of the vectors of one position, and what becomes of what it reads.

use super::{GLA_TEMPERATURE, LANES, Lanes, MOST_DECAY, Memory, OfShared, Rule, TINY, dot};
use crate::activation::silu;
use crate::functions::{exp, sigmoid, softplus};
use crate::vectors::update;

/// The projections of a position.
#[derive(Clone, Copy)]
pub struct Parts<T> {
    /// `[n_heads d_head]`.
    pub query: T,
    /// `[n_heads d_head]`.
    pub key: T,
    /// `[n_heads d_head]`.
    pub value: T,
    /// `[n_heads d_head]`, or empty.
    pub gate: T,
    /// Each `[n_heads]`, of gated linear attention `[n_heads d_head]`; empty where the rule has none.
    pub rates: [T; 2],
}

/// What a memory is written with and asked at a position, and what it answers.
///
/// # Shapes
/// - query, key, value, kept: `[n_heads d_head]`
/// - rate, query_size, key_size: `[n_heads]`
/// - read, missing: `[n_heads n_strips]`
pub struct Position {
    pub(super) query: Vec<f32>,
    pub(super) key: Vec<f32>,
    value: Vec<f32>,
    /// What every row keeps.
    pub(super) kept: Vec<f32>,
    /// How much of a key's place is replaced.
    pub(super) rate: Vec<f32>,
    /// What vectors have been divided by.
    query_size: Vec<f32>,
    key_size: Vec<f32>,
    pub(super) read: Vec<Lanes>,
    /// What of the value was not in the memory.
    pub(super) missing: Vec<Lanes>,
}

/// Gradients with respect to a [`Position`], in the same shapes, except those of what is kept.
pub struct OfPosition {
    pub(super) query: Vec<f32>,
    pub(super) key: Vec<f32>,
    pub(super) value: Vec<f32>,
    /// Of the logarithm of what is kept: of gated linear attention for each row, else for all rows of a head together.
    pub(super) log_kept: Vec<f32>,
    pub(super) rate: Vec<f32>,
    pub(super) read: Vec<Lanes>,
    /// Of one head after the other, before lanes are summed.
    pub(super) shared: OfShared,
}

/// Sums over positions.
pub struct OfParameters {
    /// With respect to the logarithm of the speed: `[n_heads]`.
    pub speed: Vec<f32>,
    /// Each head's part of the norm: `[n_heads, d_head]`.
    pub norm: Vec<f32>,
}

/// `elu(x) + 1` and its slope.
#[inline(always)]
fn above_zero(x: f32) -> [f32; 2] {
    // Where it is not used the exponential must not overflow.
    let below = exp(if x > 0.0 { 0.0 } else { x });
    if x < 0.0 { [below, below] } else { [x + 1.0, 1.0] }
}

impl Memory<'_> {
    /// A position that has still to be prepared.
    pub fn position(&self) -> Position {
        let (width, n_strips) = (self.n_heads * self.d_head, self.n_heads * self.n_strips());
        let of_elements = || vec![0.0; width];
        let of_heads = || vec![0.0; self.n_heads];
        Position {
            query: of_elements(),
            key: of_elements(),
            value: of_elements(),
            kept: vec![1.0; width],
            rate: of_heads(),
            query_size: of_heads(),
            key_size: of_heads(),
            read: vec![[0.0; LANES]; n_strips],
            missing: vec![[0.0; LANES]; n_strips],
        }
    }

    /// Gradients of a position.
    pub fn of_position(&self) -> OfPosition {
        let (width, n_strips) = (self.n_heads * self.d_head, self.n_heads * self.n_strips());
        let n_kept = if self.rule == Rule::GatedLinear { self.d_head } else { 1 };
        let lanes = |n: usize| vec![[0.0; LANES]; n];
        // What is folded together is filled up with zeros.
        let folded = |n: usize| lanes(n.next_multiple_of(LANES));
        OfPosition {
            query: vec![0.0; width],
            key: vec![0.0; width],
            value: vec![0.0; width],
            log_kept: vec![0.0; self.n_heads * n_kept],
            rate: vec![0.0; self.n_heads],
            read: lanes(n_strips),
            shared: OfShared {
                key: folded(self.d_head),
                query: folded(self.d_head),
                log_kept: folded(n_kept),
                rate: [0.0; LANES],
            },
        }
    }

    /// Sums over positions that begin at zero.
    pub fn of_parameters(&self) -> OfParameters {
        let n_norm = if self.norm.is_empty() { 0 } else { self.n_heads * self.d_head };
        OfParameters { speed: vec![0.0; self.speed.len()], norm: vec![0.0; n_norm] }
    }

    /// The columns of a strip of the value of a head.
    #[inline(always)]
    pub(super) fn value(&self, position: &Position, head: usize, strip: usize) -> Lanes {
        let mut lanes = [0.0; LANES];
        let (columns, d) = (self.columns(strip), self.d_head);
        let n = columns.len();
        lanes[..n].copy_from_slice(&position.value[head * d..][columns]);
        if self.rule == Rule::Linear && d / LANES == strip {
            lanes[d % LANES] = 1.0;
        }
        lanes
    }

    /// Queries of gated linear attention are divided by the root of their width.
    #[inline(always)]
    fn query_scale(&self) -> f32 {
        1.0 / (self.d_head as f32).sqrt()
    }

    /// What the memory is written with and asked.
    #[inline(always)]
    pub fn prepare(&self, parts: &Parts<&[f32]>, position: &mut Position) {
        match self.rule {
            Rule::Linear => {
                update(
                    [parts.query, parts.key],
                    [&mut position.query, &mut position.key],
                    #[inline(always)]
                    |[q, k], _| [above_zero(q)[0], above_zero(k)[0]],
                );
                position.value.copy_from_slice(parts.value);
            }
            Rule::GatedLinear => {
                let scale = self.query_scale();
                update(
                    [parts.query, parts.rates[0]],
                    [&mut position.query, &mut position.kept],
                    #[inline(always)]
                    |[q, rate], _| {
                        let log = -softplus(-rate) / GLA_TEMPERATURE as f32;
                        [scale * q, exp(if log < MOST_DECAY as f32 { MOST_DECAY as f32 } else { log })]
                    },
                );
                position.key.copy_from_slice(parts.key);
                position.value.copy_from_slice(parts.value);
            }
            Rule::Delta | Rule::GatedDelta => {
                update(
                    [parts.query, parts.key, parts.value],
                    [&mut position.query, &mut position.key, &mut position.value],
                    #[inline(always)]
                    |[q, k, v], _| [silu(q)[0], silu(k)[0], silu(v)[0]],
                );
                let d = self.d_head;
                for head in 0..self.n_heads {
                    let own = head * d..(head + 1) * d;
                    position.query_size[head] = normalize(&mut position.query[own.clone()]);
                    position.key_size[head] = normalize(&mut position.key[own.clone()]);
                    position.rate[head] = self.most_replaced * sigmoid(parts.rates[0][head]);
                    if self.rule == Rule::GatedDelta {
                        position.kept[own].fill(exp(-self.speed[head] * softplus(parts.rates[1][head])));
                    }
                }
            }
        }
    }

    /// The gradients of the projections, from those of what the memory was written with and asked.
    #[inline(always)]
    pub fn prepare_backward(
        &self,
        parts: &Parts<&[f32]>,
        position: &Position,
        of: &mut OfPosition,
        of_parts: &mut Parts<&mut [f32]>,
        of_parameters: &mut OfParameters,
    ) {
        match self.rule {
            Rule::Linear => {
                update(
                    [parts.query, parts.key, &of.query, &of.key],
                    [&mut *of_parts.query, &mut *of_parts.key],
                    #[inline(always)]
                    |[q, k, of_q, of_k], _| [of_q * above_zero(q)[1], of_k * above_zero(k)[1]],
                );
                of_parts.value.copy_from_slice(&of.value);
            }
            Rule::GatedLinear => {
                let scale = self.query_scale();
                update(
                    [parts.rates[0], &of.query, &of.log_kept],
                    [&mut *of_parts.query, &mut *of_parts.rates[0]],
                    #[inline(always)]
                    |[rate, of_q, of_log], _| {
                        let is_free = -softplus(-rate) >= (MOST_DECAY * GLA_TEMPERATURE) as f32;
                        let slope = if is_free { sigmoid(-rate) / GLA_TEMPERATURE as f32 } else { 0.0 };
                        [scale * of_q, of_log * slope]
                    },
                );
                of_parts.key.copy_from_slice(&of.key);
                of_parts.value.copy_from_slice(&of.value);
            }
            Rule::Delta | Rule::GatedDelta => {
                let d = self.d_head;
                for head in 0..self.n_heads {
                    let own = head * d..(head + 1) * d;
                    normalize_backward(
                        &mut of.query[own.clone()],
                        &position.query[own.clone()],
                        position.query_size[head],
                    );
                    normalize_backward(&mut of.key[own.clone()], &position.key[own], position.key_size[head]);
                    let share = sigmoid(parts.rates[0][head]);
                    of_parts.rates[0][head] = of.rate[head] * self.most_replaced * share * (1.0 - share);
                    if self.rule == Rule::GatedDelta {
                        let (rate, speed) = (parts.rates[1][head], self.speed[head]);
                        let of_log = of.log_kept[head];
                        of_parts.rates[1][head] = -of_log * speed * sigmoid(rate);
                        of_parameters.speed[head] -= of_log * speed * softplus(rate);
                    }
                }
                update(
                    [parts.query, parts.key, parts.value, &of.query, &of.key, &of.value],
                    [&mut *of_parts.query, &mut *of_parts.key, &mut *of_parts.value],
                    #[inline(always)]
                    |[q, k, v, of_q, of_k, of_v], _| [of_q * silu(q)[1], of_k * silu(k)[1], of_v * silu(v)[1]],
                );
            }
        }
    }
}

/// Divides a vector by its length, short ones by a little more; what it was divided by.
#[inline(always)]
fn normalize(vector: &mut [f32]) -> f32 {
    let size = (dot(vector, vector) + TINY as f32).sqrt();
    for element in vector.iter_mut() {
        *element /= size;
    }
    size
}

/// The gradient of the vector before it was [normalized](normalize), from that after.
#[inline(always)]
fn normalize_backward(gradient: &mut [f32], normalized: &[f32], size: f32) {
    let along = dot(gradient, normalized);
    for (gradient, element) in gradient.iter_mut().zip(normalized) {
        *gradient = (*gradient - along * element) / size;
    }
}
