//! A memory and its gradient, by rows: the gradients of queries and keys are sums over their columns.

use super::super::super::cube::sum_of_cube;
use super::super::super::functions::{logistic, silu_slope, softplus};
use super::super::Output;
use super::super::position::{Form, Place, Positions, Prepared, element, first_rate, log_kept, place, prepared};
use crate::kernels::matrix_memory::{GLA_TEMPERATURE, MOST_DECAY, Rule};
use burn_cubecl::cubecl::{self, prelude::*};

/// What belongs to the columns at a position, as all units see it.
#[derive(CubeType)]
struct Columns {
    /// What was written.
    written: Shared<[f32]>,
    /// The gradient of what was read.
    of_found: Shared<[f32]>,
    /// That of what was in the memory for the key, and was taken from the value.
    of_taken: Shared<[f32]>,
}

#[cube]
fn columns(#[comptime] form: Form) -> Columns {
    Columns {
        written: Shared::<[f32]>::new_slice(comptime!(form.n_units() as usize)),
        of_found: Shared::<[f32]>::new_slice(comptime!(form.n_units() as usize)),
        of_taken: Shared::<[f32]>::new_slice(comptime!(form.n_units() as usize)),
    }
}

/// Lets all units see the columns at a position. The unit's part of the gradient of the rate: what was missing, times the gradient of what was
/// written.
#[cube]
fn show(
    columns: &mut Columns,
    answers: &[f32],
    between: &[f32],
    positions: &Positions,
    place: &Place,
    own: &Prepared,
    #[comptime] form: Form,
) -> f32 {
    let unit = UNIT_POS as usize;
    let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
    let half = positions.n * positions.len * d_value;
    let at = (place.token * place.n_heads + place.head) * d_value + unit;
    let mut missing = 0.0f32;
    let mut of_found = 0.0f32;
    let mut of_written = 0.0f32;
    if unit < d_value {
        missing = answers[half + at];
        of_found = between[at];
        of_written = between[half + at];
    }
    let mut of_taken = 0.0f32;
    if comptime!(form.rule.is_delta()) {
        of_taken = -own.rate * of_written;
    }
    columns.written[unit] = own.rate * missing;
    columns.of_found[unit] = of_found;
    columns.of_taken[unit] = of_taken;
    sync_cube();
    missing * of_written
}

/// A row of a memory that is given, or of zeros.
#[cube]
fn row_of(memory: &[f32], own_head: usize, is_given: bool, #[comptime] form: Form) -> Array<f32> {
    let unit = UNIT_POS as usize;
    let width = comptime!(form.d_head).runtime();
    let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
    let is_there = is_given && unit < width;
    let mut row = Array::<f32>::new(comptime!(form.rule.d_value(form.d_head)));
    for c in 0..d_value {
        row[c] = 0.0f32;
        if is_there {
            row[c] = memory[(own_head * width + unit) * d_value + c];
        }
    }
    row
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
    positions: Positions,
    state: &[f32],
    answers: &[f32],
    between: &[f32],
    gradient: &[f32],
    parts: &mut [f32],
    ends: &mut [f32],
    #[comptime] form: Form,
    #[comptime] of: Output,
) {
    let own_head = CUBE_POS;
    if own_head < positions.n {
        let unit = UNIT_POS as usize;
        let width = comptime!(form.d_head).runtime();
        let d = positions.n_heads * width;
        let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
        let n_elements = positions.n * positions.len * width;
        let is_element = unit < width;
        let in_state = (own_head * width + unit) * d_value;

        let mut row = row_of(state, own_head, positions.has_state == 1u32, form);
        let mut columns = columns(form);

        for i in 0..positions.len {
            let place = place(&positions, own_head, i, form);
            let own = prepared(&positions, &place, form);
            show(&mut columns, answers, between, &positions, &place, &own, form);

            let mut of_query = 0.0f32;
            let mut of_key = 0.0f32;
            let mut size = 0.0f32;
            for c in 0..d_value {
                size += row[c].abs();
                let faded = own.keeps * row[c];
                let new = faded + own.key * columns.written[c];
                of_key += faded * columns.of_taken[c];
                of_query += new * columns.of_found[c];
                row[c] = new;
            }
            if is_element {
                let at = place.token * d + place.head * width + unit;
                parts[at] = of_query;
                parts[n_elements + at] = of_key;
                parts[2 * n_elements + at] = size;
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
    positions: Positions,
    answers: &[f32],
    between: &[f32],
    parts: &[f32],
    ends: &[f32],
    gradient: &[f32],
    of_packed: &mut [f32],
    of_rates: &mut [f32],
    of_decays: &mut [f32],
    #[comptime] form: Form,
    #[comptime] of: Output,
) {
    let own_head = CUBE_POS;
    if own_head < positions.n {
        let unit = UNIT_POS as usize;
        let n_units = comptime!(form.n_units());
        let width = comptime!(form.d_head).runtime();
        let d = positions.n_heads * width;
        let d_value = comptime!(form.rule.d_value(form.d_head)).runtime();
        let n_elements = positions.n * positions.len * width;
        let is_element = unit < width;

        let mut row = row_of(gradient, own_head, comptime!(of == Output::State).runtime(), form);
        let mut columns = columns(form);
        // Of the logarithm of what the row has kept.
        let mut of_log = 0.0f32;
        if is_element {
            of_log = ends[own_head * width + unit];
        }
        let mut of_decay = 0.0f32;

        for i in 0..positions.len {
            let place = place(&positions, own_head, positions.len - 1 - i, form);
            let own = prepared(&positions, &place, form);
            let of_own_rate = show(&mut columns, answers, between, &positions, &place, &own, form);

            let mut of_key = 0.0f32;
            let mut largest = 0.0f32;
            for c in 0..d_value {
                let of_new = row[c] + own.query * columns.of_found[c];
                of_key += of_new * columns.written[c];
                let of_old = own.keeps * (of_new + own.key * columns.of_taken[c]);
                row[c] = of_old;
                largest = max(largest, of_old.abs());
            }
            let mut of_query = 0.0f32;
            if is_element {
                let at = place.token * d + place.head * width + unit;
                of_query = parts[at];
                let of_taken_key = parts[n_elements + at];
                of_log += own.query * of_query - own.key * of_key + own.key * of_taken_key;
                // What is not a number stays so.
                let most = largest * parts[2 * n_elements + at];
                of_log = select(of_log > most, most, select(of_log < -most, -most, of_log));
                of_key += of_taken_key;
            }

            // From what was used to what was packed.
            let mut of_first = of_query;
            let mut of_second = of_key;
            if comptime!(form.rule == Rule::Linear) {
                of_first *= above_zero_slope(element(&positions, &place, 0usize, form));
                of_second *= above_zero_slope(element(&positions, &place, 1usize, form));
            } else if comptime!(form.rule == Rule::GatedLinear) {
                of_first /= f32::cast_from(width).sqrt();
                if is_element {
                    let at = place.token * d + place.head * width + unit;
                    let rate = positions.rates[at];
                    let is_free = log_kept(rate) >= comptime!(MOST_DECAY as f32).runtime();
                    let slope = logistic(-rate) / comptime!(GLA_TEMPERATURE as f32).runtime();
                    of_rates[at] = select(is_free && place.is_real, of_log * slope, 0.0f32);
                }
            } else {
                let along_query = sum_of_cube(of_query * own.query, n_units);
                let along_key = sum_of_cube(of_key * own.key, n_units);
                let of_rate = sum_of_cube(of_own_rate, n_units);
                of_first = (of_query - along_query * own.query) / own.query_size;
                of_second = (of_key - along_key * own.key) / own.key_size;
                of_first *= silu_slope(element(&positions, &place, 0usize, form));
                of_second *= silu_slope(element(&positions, &place, 1usize, form));
                let first = first_rate(&place, form);
                let mut of_all = 0.0f32;
                if comptime!(form.rule == Rule::GatedDelta) {
                    of_all = sum_of_cube(of_log, n_units);
                }
                if unit == 0 {
                    let share = logistic(positions.rates[first]);
                    let of_share = of_rate * positions.most_replaced * share * (1.0f32 - share);
                    of_rates[first] = select(place.is_real, of_share, 0.0f32);
                    if comptime!(form.rule == Rule::GatedDelta) {
                        let rate = positions.rates[first + place.n_heads];
                        let of_speed = of_all * positions.decay[place.head].exp();
                        of_rates[first + place.n_heads] = select(place.is_real, -of_speed * logistic(rate), 0.0f32);
                        of_decay -= select(place.is_real, of_speed * softplus(rate), 0.0f32);
                    }
                }
            }
            if is_element {
                of_packed[place.at] = of_first;
                of_packed[place.at + d] = of_second;
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
