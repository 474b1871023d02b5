//! The gradient of a memory, by columns: what is read and what is written are sums over its rows.

use super::super::super::cube::sum_of_cube;
use super::super::super::functions::{silu, silu_slope};
use super::super::Output;
use super::super::position::{Form, Positions, element, place, prepared};
use crate::kernels::matrix_memory::{Rule, TINY};
use burn_cubecl::cubecl::{self, prelude::*};

/// Each cube a head of a row, from the last position that was read to the first; each unit a column.
///
/// # Shapes
/// - answers: what was read and what was missing, `[2, rows, len, n_heads, d_value]`
/// - gradient: of what others see, `[rows, len, d]`, or of the memory, `[rows, n_heads, d_head, d_value]`
/// - between: the gradients of what was read and of what was written, `[2, rows, len, n_heads, d_value]`
#[allow(clippy::too_many_arguments, clippy::collapsible_if)]
#[cube(launch)]
pub(super) fn back(
    positions: Positions,
    norm: &[f32],
    answers: &[f32],
    gradient: &[f32],
    between: &mut [f32],
    of_packed: &mut [f32],
    of_norms: &mut [f32],
    of_state: &mut [f32],
    epsilon: f32,
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
        let tiny = comptime!(TINY as f32).runtime();
        let is_element = unit < width;
        let is_column = unit < d_value;
        let in_state = own_head * width * d_value + unit;

        let mut column = Array::<f32>::new(form.d_head);
        for i in 0..width {
            column[i] = 0.0f32;
            if comptime!(of == Output::State) {
                if is_column {
                    column[i] = gradient[in_state + i * d_value];
                }
            }
        }
        let mut queries = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut keys = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut kept = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut sums = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut of_norm = 0.0f32;

        for i in 0..positions.len {
            let place = place(&positions, own_head, positions.len - 1 - i, form);
            let own = prepared(&positions, &place, form);
            queries[unit] = own.query;
            keys[unit] = own.key;
            kept[unit] = own.keeps;
            let at = (place.token * place.n_heads + place.head) * d_value + unit;
            let mut found = 0.0f32;
            if is_column {
                found = answers[at];
            }
            sums[unit] = found;
            sync_cube();

            let mut of_found = 0.0f32;
            if comptime!(of == Output::Read) {
                let mut of_seen = 0.0f32;
                if is_element {
                    of_seen = select(place.is_real, gradient[place.token * d + place.head * width + unit], 0.0f32);
                }
                if comptime!(form.rule == Rule::Linear) {
                    let total = sums[width] + tiny;
                    of_found = of_seen / total;
                    let along = sum_of_cube(of_found * found, n_units);
                    of_found = select(unit == width, -along / total, of_found);
                } else {
                    let size = (sum_of_cube(found * found, n_units) / f32::cast_from(width) + epsilon).sqrt();
                    let mut of_ungated = of_seen;
                    let mut scale = 0.0f32;
                    if is_element {
                        scale = norm[unit];
                        if comptime!(form.rule.is_gated()) {
                            let gate = element(&positions, &place, 3usize, form);
                            of_ungated = of_seen * silu(gate);
                            of_packed[place.at + 3 * d] = found / size * scale * of_seen * silu_slope(gate);
                        }
                    }
                    of_norm += found / size * of_ungated;
                    of_found = of_ungated * scale / size;
                    // The size changes with every element.
                    let along = sum_of_cube(of_found * found, n_units);
                    of_found -= along / (size * size * f32::cast_from(width)) * found;
                }
            } else if comptime!(form.rule.is_gated()) {
                if is_element {
                    of_packed[place.at + 3 * d] = 0.0f32;
                }
            }

            let mut of_written = 0.0f32;
            for i in 0..width {
                let gradient = column[i] + queries[i] * of_found;
                column[i] = gradient;
                of_written += keys[i] * gradient;
            }
            // Under the delta rule, what was in the memory for the key was taken from the value.
            let mut of_value = own.rate * of_written;
            let mut of_taken = 0.0f32;
            if comptime!(form.rule.is_delta()) {
                of_taken = -of_value;
            }
            for i in 0..width {
                column[i] = kept[i] * (column[i] + keys[i] * of_taken);
            }
            if is_column {
                between[at] = of_found;
                between[positions.n * positions.len * d_value + at] = of_written;
            }
            if comptime!(form.rule.is_delta()) {
                of_value *= silu_slope(element(&positions, &place, 2usize, form));
            }
            if is_element {
                of_packed[place.at + 2 * d] = of_value;
            }
            // Every unit has read what the next position overwrites.
            sync_cube();
        }
        if is_element {
            of_norms[own_head * width + unit] = of_norm;
        }
        if is_column && positions.has_state == 1u32 {
            for i in 0..width {
                of_state[in_state + i * d_value] = column[i];
            }
        }
    }
}
