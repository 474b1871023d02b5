//! Forwards through all positions.

use super::super::cube::{cube_for_each, sum_of_cube};
use super::super::functions::silu;
use super::super::{new_like, unused};
use super::position::{Form, Positions, element, place, positions, prepared};
use super::{MemoryInputs, MemoryOutputs, Remembering};
use crate::kernels::matrix_memory::{Rule, TINY};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};

/// What is read, the memory after the last position, and what the backward pass needs.
pub(super) fn remembered(
    inputs: MemoryInputs<CubeBackend>,
    how: Remembering,
    keeps: bool,
) -> MemoryOutputs<CubeBackend> {
    let inputs = inputs.contiguous();
    let packed = &inputs.packed;
    let Remembering { config, form, .. } = how;
    let n_heads = config.n_heads;
    let [rows, len] = [0, 1].map(|axis| packed.meta.shape()[axis]);
    let d_value = form.rule.d_value(form.d_head);
    let read = new_like(packed, [rows, len, n_heads * form.d_head].into());
    let after = new_like(packed, [rows, n_heads, form.d_head, d_value].into());
    let answers = if keeps { new_like(packed, [2, rows, len, n_heads, d_value].into()) } else { unused(packed) };
    remember::launch(
        &packed.client,
        cube_for_each(rows * n_heads),
        CubeDim::new_1d(form.n_units()),
        positions(&inputs, how),
        inputs.norm.clone().into_buffer_arg(),
        inputs.state.clone().into_buffer_arg(),
        read.clone().into_buffer_arg(),
        after.clone().into_buffer_arg(),
        answers.clone().into_buffer_arg(),
        config.epsilon as f32,
        form,
        keeps,
    );
    MemoryOutputs { read, after, answers }
}

/// Each cube a head of a row, through all of its positions; each unit a column of the memory, and the element of queries, keys and values
/// that has the same number.
// Outer conditions are decided when the kernel is compiled.
#[allow(clippy::too_many_arguments, clippy::collapsible_if)]
#[cube(launch)]
fn remember(
    positions: Positions,
    norm: &[f32],
    state: &[f32],
    read: &mut [f32],
    after: &mut [f32],
    answers: &mut [f32],
    epsilon: f32,
    #[comptime] form: Form,
    #[comptime] keeps: bool,
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
        let of_state = own_head * width * d_value + unit;

        let is_given = is_column && positions.has_state == 1u32;
        let mut column = Array::<f32>::new(form.d_head);
        for i in 0..width {
            column[i] = 0.0f32;
            if is_given {
                column[i] = state[of_state + i * d_value];
            }
        }
        let mut queries = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut keys = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut kept = Shared::<[f32]>::new_slice(comptime!(n_units as usize));
        let mut sums = Shared::<[f32]>::new_slice(comptime!(n_units as usize));

        for i in 0..positions.len {
            let place = place(&positions, own_head, i, form);
            let own = prepared(&positions, &place, form);
            queries[unit] = own.query;
            keys[unit] = own.key;
            kept[unit] = own.keeps;
            sync_cube();

            let mut missing = own.value;
            if comptime!(form.rule.is_delta()) {
                for i in 0..width {
                    missing -= kept[i] * keys[i] * column[i];
                }
            }
            let written = own.rate * missing;
            let mut found = 0.0f32;
            for i in 0..width {
                let new = kept[i] * column[i] + keys[i] * written;
                found += queries[i] * new;
                column[i] = new;
            }
            if comptime!(keeps) {
                if is_column {
                    let at = (place.token * place.n_heads + place.head) * d_value + unit;
                    answers[at] = found;
                    answers[positions.n * positions.len * d_value + at] = missing;
                }
            }

            let mut answer = found;
            if comptime!(form.rule == Rule::Linear) {
                sums[unit] = found;
                sync_cube();
                answer = found / (sums[width] + tiny);
            } else {
                let square = select(is_element, found * found, 0.0f32);
                let size = (sum_of_cube(square, n_units) / f32::cast_from(width) + epsilon).sqrt();
                if is_element {
                    answer = found / size * norm[unit];
                    if comptime!(form.rule.is_gated()) {
                        answer *= silu(element(&positions, &place, 3usize, form));
                    }
                }
            }
            if is_element {
                read[place.token * d + place.head * width + unit] = answer;
            }
            // Every unit has read what the next position overwrites.
            sync_cube();
        }
        if is_column {
            for i in 0..width {
                after[of_state + i * d_value] = column[i];
            }
        }
    }
}
