//! Each row by itself: what is normalized, and the gradient of what was.

use super::{Summing, Sums};
use crate::backend::gpu::kernels::cube::{UNITS_OF_ROW, cube_for_each, sum_of_cube};
use crate::backend::gpu::kernels::dropout::{Dropping, dropping, factor_at};
use crate::backend::gpu::kernels::{new_like, new_of_shape, unused};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// The normalized rows of `input`, or of its sum with `through`.
pub(super) fn normalized(
    input: CubeTensor,
    through: Option<CubeTensor>,
    [gamma, beta]: [CubeTensor; 2],
    how: Summing,
) -> Sums<CubeBackend> {
    let [input, gamma] = [input, gamma].map(into_contiguous);
    let beta = if how.is_centered { into_contiguous(beta) } else { unused(&input) };
    let form = Form {
        is_centered: how.is_centered,
        is_sum: through.is_some(),
        keeps_sum: how.keeps_sum(),
        drops: how.dropout.is_some(),
    };
    let through = through.map_or_else(|| unused(&input), into_contiguous);
    let width = gamma.meta.shape().num_elements();
    let n_rows = input.meta.shape().num_elements() / width;
    let rows = new_of_shape(&input);
    let moments = new_like(&input, [n_rows, 2].into());
    let sums = if form.keeps_sum { new_of_shape(&input) } else { unused(&input) };
    normalize::launch(
        &input.client.clone(),
        cube_for_each(n_rows),
        CubeDim::new_1d(UNITS_OF_ROW),
        SummedLaunch::new(
            input.into_buffer_arg(),
            through.into_buffer_arg(),
            sums.clone().into_buffer_arg(),
            dropping(how.dropout),
        ),
        gamma.into_buffer_arg(),
        beta.into_buffer_arg(),
        rows.clone().into_buffer_arg(),
        moments.clone().into_buffer_arg(),
        n_rows,
        width,
        how.epsilon,
        form,
    );
    Sums { rows, moments, sums }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Form {
    is_centered: bool,
    is_sum: bool,
    keeps_sum: bool,
    drops: bool,
}

/// What is added.
#[derive(CubeType, CubeLaunch)]
struct Summed {
    around: Box<[f32]>,
    through: Box<[f32]>,
    /// What is written, if it is kept.
    sums: Box<[f32]>,
    dropping: Dropping,
}

/// The gradient of the input, from input, gamma, moments and the gradient of what was normalized.
pub(super) fn gradient(tensors: [CubeTensor; 4], is_centered: bool) -> CubeTensor {
    let [input, gamma, moments, gradient] = tensors.map(into_contiguous);
    let width = gamma.meta.shape().num_elements();
    let n_rows = input.meta.shape().num_elements() / width;
    let of_input = new_of_shape(&input);
    go_back::launch(
        &input.client.clone(),
        cube_for_each(n_rows),
        CubeDim::new_1d(UNITS_OF_ROW),
        input.into_buffer_arg(),
        gamma.into_buffer_arg(),
        moments.into_buffer_arg(),
        gradient.into_buffer_arg(),
        of_input.clone().into_buffer_arg(),
        n_rows,
        width,
        is_centered,
    );
    of_input
}

/// An element of the input, or of its sum with what is left of `through`.
#[cube]
fn added(summed: &Summed, at: usize, #[comptime] form: Form) -> f32 {
    let mut value = summed.around[at];
    if comptime!(form.is_sum) {
        let mut through = summed.through[at];
        if comptime!(form.drops) {
            through *= factor_at(&summed.dropping, at);
        }
        value += through;
    }
    value
}

/// Such an element, which is not added again where the sum is kept.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(unused_assignments)]
#[cube]
fn element(summed: &Summed, at: usize, #[comptime] form: Form) -> f32 {
    let mut value = 0.0f32;
    if comptime!(form.keeps_sum) {
        value = summed.sums[at];
    } else {
        value = added(summed, at, form);
    }
    value
}

/// Each cube a row; each unit every so-many-th element of it.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn normalize(
    mut summed: Summed,
    gamma: &[f32],
    beta: &[f32],
    output: &mut [f32],
    moments: &mut [f32],
    n_rows: usize,
    width: usize,
    epsilon: f32,
    #[comptime] form: Form,
) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * width;
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let n = f32::cast_from(width);
        let mut own = 0.0f32;
        let mut at = first;
        let mut mean = 0.0f32;
        if comptime!(form.keeps_sum) {
            // A unit reads what it has written itself.
            while at < width {
                summed.sums[start + at] = added(&summed, start + at, form);
                at += step;
            }
            at = first;
        }
        if comptime!(form.is_centered) {
            while at < width {
                own += element(&summed, start + at, form);
                at += step;
            }
            mean = sum_of_cube(own, UNITS_OF_ROW) / n;
            own = 0.0f32;
            at = first;
        }
        while at < width {
            let centered = element(&summed, start + at, form) - mean;
            own += centered * centered;
            at += step;
        }
        let scale = 1.0f32 / (sum_of_cube(own, UNITS_OF_ROW) / n + epsilon).sqrt();
        at = first;
        while at < width {
            let mut value = (element(&summed, start + at, form) - mean) * scale * gamma[at];
            if comptime!(form.is_centered) {
                value += beta[at];
            }
            output[start + at] = value;
            at += step;
        }
        if UNIT_POS == 0 {
            moments[2 * row] = mean;
            moments[2 * row + 1] = scale;
        }
    }
}

/// Each cube a row; each unit every so-many-th element of it.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn go_back(
    input: &[f32],
    gamma: &[f32],
    moments: &[f32],
    gradient: &[f32],
    of_input: &mut [f32],
    n_rows: usize,
    width: usize,
    #[comptime] is_centered: bool,
) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * width;
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let n = f32::cast_from(width);
        let mean = moments[2 * row];
        let scale = moments[2 * row + 1];
        let mut own_of_normal = 0.0f32;
        let mut own_along = 0.0f32;
        let mut at = first;
        while at < width {
            let of_normal = gradient[start + at] * gamma[at];
            own_of_normal += of_normal;
            own_along += of_normal * (input[start + at] - mean) * scale;
            at += step;
        }
        let mut of_normal = 0.0f32;
        if is_centered {
            of_normal = sum_of_cube(own_of_normal, UNITS_OF_ROW) / n;
        }
        let along = sum_of_cube(own_along, UNITS_OF_ROW) / n;
        at = first;
        while at < width {
            let normal = (input[start + at] - mean) * scale;
            of_input[start + at] = scale * (gradient[start + at] * gamma[at] - of_normal - normal * along);
            at += step;
        }
    }
}
