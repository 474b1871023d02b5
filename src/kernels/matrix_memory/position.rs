//! What a memory takes of the vectors of one position, and what becomes of what it reads.

use super::{GLA_TEMPERATURE, LANES, Lanes, MOST_DECAY, Memory, Rule, TINY};
use crate::kernels::activation::silu;
use crate::kernels::functions::{exp, sigmoid, softplus};
use crate::kernels::vectors::update;

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

/// Gradients with respect to the same, but of the logarithm of what is kept.
pub struct OfPosition {
    pub(super) query: Vec<f32>,
    pub(super) key: Vec<f32>,
    pub(super) value: Vec<f32>,
    pub(super) log_kept: Vec<f32>,
    pub(super) rate: Vec<f32>,
    pub(super) read: Vec<Lanes>,
}

impl OfPosition {
    /// Zeros for the sums over strips.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.query.fill(0.0);
        self.key.fill(0.0);
        self.log_kept.fill(0.0);
        self.rate.fill(0.0);
    }
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

/// The sum of products of two vectors of a head.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 4];
    let ((fours, rest), (other_fours, other_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in fours.iter().zip(other_fours) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    let mut sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (a, b) in rest.iter().zip(other_rest) {
        sum += a * b;
    }
    sum
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
        OfPosition {
            query: vec![0.0; width],
            key: vec![0.0; width],
            value: vec![0.0; width],
            log_kept: vec![0.0; width],
            rate: vec![0.0; self.n_heads],
            read: vec![[0.0; LANES]; n_strips],
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
        let (from, d) = (strip * LANES, self.d_head);
        if from < d {
            let n = LANES.min(d - from);
            lanes[..n].copy_from_slice(&position.value[head * d + from..][..n]);
        }
        if self.rule == Rule::Linear && (from..from + LANES).contains(&d) {
            lanes[d - from] = 1.0;
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
                update([parts.query, parts.key], [&mut position.query, &mut position.key], |[q, k], _| {
                    [above_zero(q)[0], above_zero(k)[0]]
                });
                position.value.copy_from_slice(parts.value);
            }
            Rule::GatedLinear => {
                let scale = self.query_scale();
                update([parts.query, parts.rates[0]], [&mut position.query, &mut position.kept], |[q, rate], _| {
                    let log = -softplus(-rate) / GLA_TEMPERATURE as f32;
                    [scale * q, exp(if log < MOST_DECAY as f32 { MOST_DECAY as f32 } else { log })]
                });
                position.key.copy_from_slice(parts.key);
                position.value.copy_from_slice(parts.value);
            }
            Rule::Delta | Rule::GatedDelta => {
                update(
                    [parts.query, parts.key, parts.value],
                    [&mut position.query, &mut position.key, &mut position.value],
                    |[q, k, v], _| [silu(q)[0], silu(k)[0], silu(v)[0]],
                );
                let d = self.d_head;
                for head in 0..self.n_heads {
                    let own = head * d..(head + 1) * d;
                    position.query_size[head] = shorten(&mut position.query[own.clone()]);
                    position.key_size[head] = shorten(&mut position.key[own.clone()]);
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
    pub fn unprepare(
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
                    |[q, k, of_q, of_k], _| [of_q * above_zero(q)[1], of_k * above_zero(k)[1]],
                );
                of_parts.value.copy_from_slice(&of.value);
            }
            Rule::GatedLinear => {
                let scale = self.query_scale();
                update(
                    [parts.rates[0], &of.query, &of.log_kept],
                    [&mut *of_parts.query, &mut *of_parts.rates[0]],
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
                    unshorten(&mut of.query[own.clone()], &position.query[own.clone()], position.query_size[head]);
                    unshorten(&mut of.key[own.clone()], &position.key[own.clone()], position.key_size[head]);
                    let share = sigmoid(parts.rates[0][head]);
                    of_parts.rates[0][head] = of.rate[head] * self.most_replaced * share * (1.0 - share);
                    if self.rule == Rule::GatedDelta {
                        let (rate, speed) = (parts.rates[1][head], self.speed[head]);
                        let mut of_log = 0.0;
                        for of_row in &of.log_kept[own] {
                            of_log += of_row;
                        }
                        of_parts.rates[1][head] = -of_log * speed * sigmoid(rate);
                        of_parameters.speed[head] -= of_log * speed * softplus(rate);
                    }
                }
                update(
                    [parts.query, parts.key, parts.value, &of.query, &of.key, &of.value],
                    [&mut *of_parts.query, &mut *of_parts.key, &mut *of_parts.value],
                    |[q, k, v, of_q, of_k, of_v], _| [of_q * silu(q)[1], of_k * silu(k)[1], of_v * silu(v)[1]],
                );
            }
        }
    }

    /// The root of the mean of the squares of what a head has read.
    #[inline(always)]
    fn size(&self, read: &[f32]) -> f32 {
        (dot(read, read) / self.d_head as f32 + self.epsilon).sqrt()
    }

    /// What others see: what was read, divided by the sum of weights or normalized, and gated.
    #[inline(always)]
    pub fn finish(&self, position: &Position, gate: &[f32], out: &mut [f32]) {
        let (d, n_strips) = (self.d_head, self.n_strips());
        for (head, out) in out.chunks_exact_mut(d).enumerate() {
            let read = position.read[head * n_strips..][..n_strips].as_flattened();
            if self.rule == Rule::Linear {
                let total = read[d] + TINY as f32;
                for (out, read) in out.iter_mut().zip(read) {
                    *out = read / total;
                }
            } else {
                let size = self.size(&read[..d]);
                for (out, (read, norm)) in out.iter_mut().zip(read.iter().zip(self.norm)) {
                    *out = read / size * norm;
                }
            }
        }
        if self.rule.is_gated() {
            update([gate], [out], |[gate], [out]| [out * silu(gate)[0]]);
        }
    }

    /// The gradients of what was read and of the gate, from those of what others see; the former are found in `of`.
    #[inline(always)]
    pub fn unfinish(
        &self,
        position: &Position,
        gate: &[f32],
        of_out: &[f32],
        of: &mut OfPosition,
        of_gate: &mut [f32],
        of_parameters: &mut OfParameters,
    ) {
        let (d, n_strips) = (self.d_head, self.n_strips());
        // The value is not needed yet: its place is lent.
        let of_ungated = &mut of.value;
        match self.rule.is_gated() {
            true => update([of_out, gate], [of_ungated], |[of_out, gate], _| [of_out * silu(gate)[0]]),
            false => of_ungated.copy_from_slice(of_out),
        }
        for head in 0..self.n_heads {
            let own = head * d..(head + 1) * d;
            let read = position.read[head * n_strips..][..n_strips].as_flattened();
            let of_read = of.read[head * n_strips..][..n_strips].as_flattened_mut();
            let of_ungated = &of.value[own.clone()];
            if self.rule == Rule::Linear {
                let total = read[d] + TINY as f32;
                for (of_read, of_ungated) in of_read.iter_mut().zip(of_ungated) {
                    *of_read = of_ungated / total;
                }
                of_read[d] = -dot(&of_read[..d], &read[..d]) / total;
                continue;
            }
            let size = self.size(&read[..d]);
            for (of_read, (of_ungated, norm)) in of_read.iter_mut().zip(of_ungated.iter().zip(self.norm)) {
                *of_read = of_ungated * norm / size;
            }
            if self.rule.is_gated() {
                let of_gate = &mut of_gate[own.clone()];
                let ungated = read.iter().zip(self.norm);
                for (of_gate, ((read, norm), of_out)) in of_gate.iter_mut().zip(ungated.zip(&of_out[own.clone()])) {
                    *of_gate = read / size * norm * of_out;
                }
            }
            let of_norm = &mut of_parameters.norm[own];
            for (of_norm, (read, of_ungated)) in of_norm.iter_mut().zip(read.iter().zip(of_ungated)) {
                *of_norm += read / size * of_ungated;
            }
            // The size changes with every element.
            let along = dot(&of_read[..d], &read[..d]) / (size * size * d as f32);
            for (of_read, read) in of_read[..d].iter_mut().zip(read) {
                *of_read -= along * read;
            }
        }
        if self.rule.is_gated() {
            update([gate], [of_gate], |[gate], [of_gate]| [of_gate * silu(gate)[1]]);
        }
    }
}

/// Divides a vector by its length, short ones by a little more; what it was divided by.
#[inline(always)]
fn shorten(vector: &mut [f32]) -> f32 {
    let size = (dot(vector, vector) + TINY as f32).sqrt();
    for element in vector.iter_mut() {
        *element /= size;
    }
    size
}

/// The gradient of the vector before it was [shortened](shorten), from that after.
#[inline(always)]
fn unshorten(gradient: &mut [f32], shortened: &[f32], size: f32) {
    let along = dot(gradient, shortened);
    for (gradient, element) in gradient.iter_mut().zip(shortened) {
        *gradient = (*gradient - along * element) / size;
    }
}
