//! A memory and its gradient, by rows: the gradients of queries and keys are sums over their columns.

use super::super::super::cube::sum_of_cube;
use super::super::super::functions::{logistic, silu_slope, softplus};
use super::super::Output;
use super::super::position::{Form, Place, Prepared, first_rate, log_kept, place, prepared};
use crate::kernels::matrix_memory::{GLA_TEMPERATURE, MOST_DECAY, Rule};
use burn_cubecl::cubecl::{self, prelude::*};

/// What belongs to the column of a unit's number at a position.
#[derive(CubeType, Clone, Copy)]
struct OfColumn {
    /// What was not in the memory.
    missing: f32,
    /// What was written.
    written: f32,
    /// The gradient of what was read.
    of_found: f32,
    /// That of what was written.
    of_written: f32,
    /// That of what was in the memory for the key, and was taken from the value.
    of_taken: f32,
}

#[cube]
fn of_column(
    answers: &[f32],
    between: &[f32],
    place: &Place,
    own: &Prepared,
    half: usize,
    #[comptime] form: Form,
) -> OfColumn {
    let unit = UNIT_POS as usize;
    let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
    let at = (place.token * place.n_heads + place.head) * d_value + unit;
    let mut missing = 0.0f32;
    let mut of_found = 0.0f32;
    let mut of_written = 0.0f32;
    if unit < d_value {
        missing = select(place.is_real, answers[half + at], 0.0f32);
        of_found = between[at];
        of_written = between[half + at];
    }
    let mut of_taken = 0.0f32;
    if comptime!(form.rule.is_delta()) {
        of_taken = select(place.is_real, -own.rate * of_written, 0.0f32);
    }
    OfColumn { missing, written: select(place.is_real, own.rate * missing, 0.0f32), of_found, of_written, of_taken }
}

/// Each cube a head of a row, from the first position that is read to the last; each unit a row of the memory.
///
/// # Shapes
/// - parts: the gradients of queries as they are used, a part of those of keys, and the sum of the absolute values of a row of the memory before
///   the position, `[3, rows, len, d]`
/// - ends: for each row of the memory after the last position, the sum of its products with its gradient, `[rows, n_heads, d_head]`
#[allow(clippy::too_many_arguments, clippy::collapsible_if)]
#[cube(launch)]
pub(super) fn forwards(
    packed: &[f32],
    rates: &[f32],
    decay: &[f32],
    state: &[f32],
    lengths: &[f32],
    answers: &[f32],
    between: &[f32],
    gradient: &[f32],
    parts: &mut [f32],
    ends: &mut [f32],
    n: usize,
    len: usize,
    n_heads: usize,
    most_replaced: f32,
    #[comptime] form: Form,
    #[comptime] of: Output,
) {
    let own_head = CUBE_POS;
    if own_head < n {
        let unit = UNIT_POS as usize;
        let n_units = comptime!(form.n_units());
        let width = comptime!(form.d_head).runtime();
        let d = n_heads * width;
        let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
        let is_element = unit < width;
        let in_state = (own_head * width + unit) * d_value;

        let mut row = Array::<f32>::new(comptime!(form.rule.d_value(form.d_head)));
        for c in 0..d_value {
            row[c] = 0.0f32;
            if comptime!(form.has_state) {
                if is_element {
                    row[c] = state[in_state + c];
                }
            }
        }
        let mut written = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut of_found = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut of_taken = Shared::<[f32]>::new_slice(comptime!(n_units as usize));

        for i in 0..len {
            let place = place(own_head, i, len, n_heads, lengths, form);
            let own = prepared(packed, rates, decay, &place, most_replaced, form);
            let column = of_column(answers, between, &place, &own, n * len * d_value, form);
            written[unit] = column.written;
            of_found[unit] = column.of_found;
            of_taken[unit] = column.of_taken;
            sync_cube();

            let key = select(place.is_real, own.key, 0.0f32);
            let keeps = select(place.is_real, own.keeps, 1.0f32);
            let mut of_query = 0.0f32;
            let mut of_key = 0.0f32;
            let mut size = 0.0f32;
            for c in 0..d_value {
                size += row[c].abs();
                let faded = keeps * row[c];
                let new = faded + key * written[c];
                of_key += faded * of_taken[c];
                of_query += new * of_found[c];
                row[c] = new;
            }
            if is_element {
                let at = place.token * d + place.head * width + unit;
                parts[at] = of_query;
                parts[n * len * width + at] = of_key;
                parts[2 * n * len * width + at] = size;
            }
            // Every unit has read what the next position overwrites.
            sync_cube();
        }
        if is_element {
            let mut end = 0.0f32;
            if comptime!(of == Output::State) {
                for c in 0..d_value {
                    end += gradient[in_state + c] * row[c];
                }
            }
            ends[own_head * width + unit] = end;
        }
    }
}

/// Each cube a head of a row, from the last position that was read to the first; each unit a row of the gradient of the memory.
#[allow(clippy::too_many_arguments, clippy::collapsible_if)]
#[cube(launch)]
pub(super) fn back(
    packed: &[f32],
    rates: &[f32],
    decay: &[f32],
    lengths: &[f32],
    answers: &[f32],
    between: &[f32],
    parts: &[f32],
    ends: &[f32],
    gradient: &[f32],
    of_packed: &mut [f32],
    of_rates: &mut [f32],
    of_decays: &mut [f32],
    n: usize,
    len: usize,
    n_heads: usize,
    most_replaced: f32,
    #[comptime] form: Form,
    #[comptime] of: Output,
) {
    let own_head = CUBE_POS;
    if own_head < n {
        let unit = UNIT_POS as usize;
        let n_units = comptime!(form.n_units());
        let width = comptime!(form.d_head).runtime();
        let d = n_heads * width;
        let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
        let is_element = unit < width;
        let in_state = (own_head * width + unit) * d_value;

        let mut row = Array::<f32>::new(comptime!(form.rule.d_value(form.d_head)));
        for c in 0..d_value {
            row[c] = 0.0f32;
            if comptime!(of == Output::State) {
                if is_element {
                    row[c] = gradient[in_state + c];
                }
            }
        }
        let mut written = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut of_found = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut of_taken = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        // Of the logarithm of what the row has kept.
        let mut of_log = 0.0f32;
        if is_element {
            of_log = ends[own_head * width + unit];
        }
        let mut of_decay = 0.0f32;

        for i in 0..len {
            let place = place(own_head, len - 1 - i, len, n_heads, lengths, form);
            let own = prepared(packed, rates, decay, &place, most_replaced, form);
            let column = of_column(answers, between, &place, &own, n * len * d_value, form);
            written[unit] = column.written;
            of_found[unit] = column.of_found;
            of_taken[unit] = column.of_taken;
            sync_cube();

            let query = select(place.is_real, own.query, 0.0f32);
            let key = select(place.is_real, own.key, 0.0f32);
            let keeps = select(place.is_real, own.keeps, 1.0f32);
            let mut of_key = 0.0f32;
            let mut largest = 0.0f32;
            for c in 0..d_value {
                let of_new = row[c] + query * of_found[c];
                of_key += of_new * written[c];
                let of_old = keeps * (of_new + key * of_taken[c]);
                row[c] = of_old;
                largest = max(largest, of_old.abs());
            }
            let mut of_query = 0.0f32;
            if is_element {
                let at = place.token * d + place.head * width + unit;
                of_query = parts[at];
                let of_taken_key = parts[n * len * width + at];
                of_log += query * of_query - key * of_key + key * of_taken_key;
                // What is not a number stays so.
                let most = largest * parts[2 * n * len * width + at];
                of_log = select(of_log > most, most, select(of_log < -most, -most, of_log));
                of_key += of_taken_key;
            }

            // From what was used to what was packed.
            let mut of_first = of_query;
            let mut of_second = of_key;
            if comptime!(form.rule == Rule::Linear) {
                if is_element {
                    of_first *= above_zero_slope(packed[place.at]);
                    of_second *= above_zero_slope(packed[place.at + d]);
                }
            } else if comptime!(form.rule == Rule::GatedLinear) {
                of_first /= f32::cast_from(width).sqrt();
                if is_element {
                    let at = place.token * d + place.head * width + unit;
                    let rate = rates[at];
                    let is_free = log_kept(rate) >= comptime!(MOST_DECAY as f32).runtime();
                    let slope = logistic(-rate) / comptime!(GLA_TEMPERATURE as f32).runtime();
                    of_rates[at] = select(is_free && place.is_real, of_log * slope, 0.0f32);
                }
            } else {
                let along_query = sum_of_cube(of_query * own.query, n_units);
                let along_key = sum_of_cube(select(is_element, of_key, 0.0f32) * own.key, n_units);
                let of_rate = sum_of_cube(column.of_written * column.missing, n_units);
                of_first = (of_query - along_query * own.query) / own.query_size;
                of_second = (of_key - along_key * own.key) / own.key_size;
                if is_element {
                    of_first *= silu_slope(packed[place.at]);
                    of_second *= silu_slope(packed[place.at + d]);
                }
                let first = first_rate(&place, form);
                let mut of_all = 0.0f32;
                if comptime!(form.rule == Rule::GatedDelta) {
                    of_all = sum_of_cube(of_log, n_units);
                }
                if unit == 0 {
                    let share = logistic(rates[first]);
                    let of_share = of_rate * most_replaced * share * (1.0f32 - share);
                    of_rates[first] = select(place.is_real, of_share, 0.0f32);
                    if comptime!(form.rule == Rule::GatedDelta) {
                        let rate = rates[first + n_heads];
                        let of_speed = of_all * decay[place.head].exp();
                        of_rates[first + n_heads] = select(place.is_real, -of_speed * logistic(rate), 0.0f32);
                        of_decay -= select(place.is_real, of_speed * softplus(rate), 0.0f32);
                    }
                }
            }
            if is_element {
                of_packed[place.at] = select(place.is_real, of_first, 0.0f32);
                of_packed[place.at + d] = select(place.is_real, of_second, 0.0f32);
            }
            // Every unit has read what the next position overwrites.
            sync_cube();
        }
        if unit == 0 {
            of_decays[own_head] = of_decay;
        }
    }
}

/// The slope of `elu(x) + 1`.
#[cube]
fn above_zero_slope(x: f32) -> f32 {
    select(x < 0.0f32, min(x, 0.0f32).exp(), 1.0f32)
}
