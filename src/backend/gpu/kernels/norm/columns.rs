//! Sums over all rows: the gradients of gamma and beta.

use crate::backend::gpu::kernels::cube::{COLUMNS, UNITS_OF_COLUMN, sum_of_column};
use crate::backend::gpu::kernels::new_like;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// The gradients of gamma and beta, from input, moments and the gradient of what was normalized.
pub(super) fn gradients(tensors: [CubeTensor; 3], gamma: &CubeTensor) -> (CubeTensor, CubeTensor) {
    let [input, moments, gradient] = tensors.map(into_contiguous);
    let shape = gamma.meta.shape().clone();
    let width = shape.num_elements();
    let n_rows = input.meta.shape().num_elements() / width;
    let [of_gamma, of_beta] = [new_like(&input, shape.clone()), new_like(&input, shape)];
    sum_up::launch(
        &input.client.clone(),
        CubeCount::Static(width.div_ceil(COLUMNS as usize) as u32, 1, 1),
        CubeDim::new_1d(COLUMNS * UNITS_OF_COLUMN),
        input.into_buffer_arg(),
        moments.into_buffer_arg(),
        gradient.into_buffer_arg(),
        of_gamma.clone().into_buffer_arg(),
        of_beta.clone().into_buffer_arg(),
        n_rows,
        width,
    );
    (of_gamma, of_beta)
}

/// Each cube some columns; each unit every so-many-th row of one.
#[cube(launch)]
fn sum_up(
    input: &[f32],
    moments: &[f32],
    gradient: &[f32],
    of_gamma: &mut [f32],
    of_beta: &mut [f32],
    n_rows: usize,
    width: usize,
) {
    let column = CUBE_POS * comptime!(COLUMNS as usize).runtime() + (UNIT_POS % COLUMNS) as usize;
    let mut own_gamma = 0.0f32;
    let mut own_beta = 0.0f32;
    if column < width {
        let mut row = (UNIT_POS / COLUMNS) as usize;
        while row < n_rows {
            let of_output = gradient[row * width + column];
            own_gamma += of_output * (input[row * width + column] - moments[2 * row]) * moments[2 * row + 1];
            own_beta += of_output;
            row += comptime!(UNITS_OF_COLUMN as usize).runtime();
        }
    }
    let gamma = sum_of_column(own_gamma, COLUMNS, comptime!(COLUMNS * UNITS_OF_COLUMN));
    let beta = sum_of_column(own_beta, COLUMNS, comptime!(COLUMNS * UNITS_OF_COLUMN));
    if UNIT_POS < COLUMNS && column < width {
        of_gamma[column] = gamma;
        of_beta[column] = beta;
    }
}
