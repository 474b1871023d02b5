//! What a memory is written with and asked at a position.

use super::super::cube::{position_read, sum_of_cube};
use super::super::functions::{logistic, silu, softplus};
use super::{MemoryInputs, Remembering};
use crate::kernels::matrix_memory::{GLA_TEMPERATURE, MOST_DECAY, Rule, TINY};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub(super) rule: Rule,
    pub(super) d_head: usize,
}

impl Form {
    /// The units of a cube: one for each column of a memory, and at least as many as there are rows.
    pub(super) fn n_units(self) -> u32 {
        self.rule.d_value(self.d_head).next_power_of_two() as u32
    }
}

/// What all positions of all rows are prepared from, and their number.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Positions {
    pub packed: Box<[f32]>,
    pub rates: Box<[f32]>,
    pub decay: Box<[f32]>,
    pub lengths: Box<[f32]>,
    /// The heads of all rows.
    pub n: usize,
    /// The positions of a row.
    pub len: usize,
    /// The heads of a row.
    pub n_heads: usize,
    pub most_replaced: f32,
    /// Whether they are read from the last to the first; a kernel is compiled for both ways, and for what is given, since compiling takes
    /// longer than a branch that all units take alike. 1 or 0.
    pub is_backward: u32,
    /// Whether rows have lengths.
    pub has_lengths: u32,
    /// Whether there is a memory before the first.
    pub has_state: u32,
}

/// They as the argument of a kernel.
pub(super) fn positions(inputs: &MemoryInputs<CubeBackend>, how: Remembering) -> PositionsLaunch {
    let MemoryInputs { packed, rates, decay, lengths, .. } = inputs;
    let [rows, len] = [0, 1].map(|axis| packed.meta.shape()[axis]);
    let [packed, rates, decay, lengths] =
        [packed, rates, decay, lengths].map(|tensor| tensor.clone().into_buffer_arg());
    let Remembering { config, is_backward, has_lengths, has_state, .. } = how;
    let n_heads = config.n_heads;
    let [is_backward, has_lengths, has_state] = [is_backward, has_lengths, has_state].map(u32::from);
    PositionsLaunch::new(
        packed,
        rates,
        decay,
        lengths,
        rows * n_heads,
        len,
        n_heads,
        config.most_replaced as f32,
        is_backward,
        has_lengths,
        has_state,
    )
}

/// Where a unit is at a position: the cube's head of a row, and the element of its queries, keys and values that has the unit's number.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Place {
    /// The position, of those of all rows.
    pub token: usize,
    /// The head.
    pub head: usize,
    /// The number of heads.
    pub n_heads: usize,
    /// The element of the query; keys, values and gates follow, each after as many elements as all heads have.
    pub at: usize,
    /// Whether the position is not padding.
    pub is_real: bool,
}

/// The `i`-th position in the order of reading.
#[cube]
pub(super) fn place(positions: &Positions, own_head: usize, i: usize, #[comptime] form: Form) -> Place {
    let width = comptime!(form.d_head).runtime();
    let n_packed = comptime!(form.rule.n_packed()).runtime();
    let n_heads = positions.n_heads;
    let row = own_head / n_heads;
    let head = own_head % n_heads;
    let position = position_read(i, positions.len, positions.is_backward == 1u32);
    let token = row * positions.len + position;
    let mut is_real = true;
    if positions.has_lengths == 1u32 {
        is_real = f32::cast_from(position) < positions.lengths[row];
    }
    Place { token, head, n_heads, at: token * n_packed * n_heads * width + head * width + UNIT_POS as usize, is_real }
}

/// A packed element of the unit's number: of the query for 0, of the key for 1, of the value for 2, of the gate for 3. Zero at padding, and
/// where a head has no such element.
#[cube]
pub(super) fn element(positions: &Positions, place: &Place, #[comptime] of: usize, #[comptime] form: Form) -> f32 {
    let width = comptime!(form.d_head).runtime();
    let mut found = 0.0f32;
    if place.is_real && (UNIT_POS as usize) < width {
        found = positions.packed[place.at + comptime!(of).runtime() * place.n_heads * width];
    }
    found
}

/// What a unit has of a position that is prepared. At padding nothing is asked, written or lost.
#[derive(CubeType, Clone, Copy)]
pub(super) struct Prepared {
    /// Of the query; of unit length under the delta rules.
    pub query: f32,
    /// Of the key; likewise.
    pub key: f32,
    /// Of the value.
    pub value: f32,
    /// What the row of the unit's number keeps.
    pub keeps: f32,
    /// How much of a key's place is replaced; the same for all units.
    pub rate: f32,
    /// The length that the query had, under the delta rules.
    pub query_size: f32,
    /// The length that the key had.
    pub key_size: f32,
}

/// Prepares a position: see [`MatrixMemory`](crate::layers::mixer::MatrixMemory) for the equations. All units have to come here.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(unused_assignments)]
#[cube]
pub(super) fn prepared(positions: &Positions, place: &Place, #[comptime] form: Form) -> Prepared {
    let unit = UNIT_POS as usize;
    let width = comptime!(form.d_head).runtime();
    let n_units = comptime!(form.n_units());
    let tiny = comptime!(TINY as f32).runtime();
    let d = place.n_heads * width;
    let is_element = unit < width;
    let mut query = element(positions, place, 0usize, form);
    let mut key = element(positions, place, 1usize, form);
    let mut value = element(positions, place, 2usize, form);
    let mut keeps = 1.0f32;
    let mut rate = 1.0f32;
    let mut query_size = 1.0f32;
    let mut key_size = 1.0f32;
    if comptime!(form.rule == Rule::Linear) {
        // elu(x) + 1; the exponential of what is not below zero is not used, and must not overflow.
        query = select(query < 0.0f32, min(query, 0.0f32).exp(), query + 1.0f32);
        key = select(key < 0.0f32, min(key, 0.0f32).exp(), key + 1.0f32);
        value = select(is_element, value, 1.0f32);
    } else if comptime!(form.rule == Rule::GatedLinear) {
        query /= f32::cast_from(width).sqrt();
        if is_element {
            let log = log_kept(positions.rates[place.token * d + place.head * width + unit]);
            let least = comptime!(MOST_DECAY as f32).runtime();
            // What is not a number stays so.
            keeps = select(log < least, least, log).exp();
        }
    } else {
        query = silu(query);
        key = silu(key);
        value = silu(value);
        query_size = (sum_of_cube(query * query, n_units) + tiny).sqrt();
        key_size = (sum_of_cube(key * key, n_units) + tiny).sqrt();
        query /= query_size;
        key /= key_size;
        let of_rate = first_rate(place, form);
        rate = positions.most_replaced * logistic(positions.rates[of_rate]);
        if comptime!(form.rule == Rule::GatedDelta) {
            keeps = (-positions.decay[place.head].exp() * softplus(positions.rates[of_rate + place.n_heads])).exp();
        }
    }
    if !place.is_real {
        query = 0.0f32;
        key = 0.0f32;
        value = 0.0f32;
        keeps = 1.0f32;
        rate = 0.0f32;
    }
    Prepared { query, key, value, keeps, rate, query_size, key_size }
}

/// The logarithm of what gated linear attention keeps, before it is cut.
#[cube]
pub(super) fn log_kept(rate: f32) -> f32 {
    -softplus(-rate) / comptime!(GLA_TEMPERATURE as f32).runtime()
}

/// Where the first rate of a head is, of the delta rules.
#[cube]
pub(super) fn first_rate(place: &Place, #[comptime] form: Form) -> usize {
    place.token * comptime!(form.rule.n_rates()).runtime() * place.n_heads + place.head
}
