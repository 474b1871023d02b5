//! Adam on a GPU: one launch for a parameter, where burn's operations take sixteen.

use super::{computed, new_like};
use crate::backend::gpu::AdamStep;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, calculate_cube_count_elemwise, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends whose devices update a parameter in one launch.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait AdamBackend: Backend {
    /// The weights and both moments after an update.
    #[fusion(meta = |values, _gradient, first, second, _step| (values.clone(), first.clone(), second.clone()))]
    fn adam_step(
        values: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// The weights, the mean gradient and the mean square after an update. None where the tensors are not ones of 32-bit floats on a device
/// that has a kernel for it.
pub fn adam_step(
    values: &Tensor<1>,
    gradient: &Tensor<1>,
    first: &Tensor<1>,
    second: &Tensor<1>,
    step: AdamStep,
) -> Option<[Tensor<1>; 3]> {
    let (gradient, first, second) = (computed(gradient)?, computed(first)?, computed(second)?);
    let (values, first, second) = Dispatch::adam_step(computed(values)?, gradient, first, second, step);
    Some([values, first, second].map(Tensor::from_dispatch))
}

impl AdamBackend for CubeBackend {
    fn adam_step(
        values: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [values, gradient, first, second] = [values, gradient, first, second].map(into_contiguous);
        let (client, len) = (values.client.clone(), values.meta.shape().num_elements());
        let new = || new_like(&values, values.meta.shape().clone());
        let [new_values, new_first, new_second] = [new(), new(), new()];
        let cube_dim = CubeDim::new(&client, len);
        let cube_count = calculate_cube_count_elemwise(&client, len, cube_dim);
        let AdamStep { decays, scale, rate, root, keep, epsilon } = step;
        update::launch(
            &client,
            cube_count,
            cube_dim,
            values.into_buffer_arg(),
            gradient.into_buffer_arg(),
            first.into_buffer_arg(),
            second.into_buffer_arg(),
            new_values.clone().into_buffer_arg(),
            new_first.clone().into_buffer_arg(),
            new_second.clone().into_buffer_arg(),
            decays[0],
            decays[1],
            scale,
            rate,
            root,
            keep,
            epsilon,
        );
        (new_values, new_first, new_second)
    }
}

#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn update(
    values: &[f32],
    gradient: &[f32],
    first: &[f32],
    second: &[f32],
    new_values: &mut [f32],
    new_first: &mut [f32],
    new_second: &mut [f32],
    decay_1: f32,
    decay_2: f32,
    scale: f32,
    rate: f32,
    root: f32,
    keep: f32,
    epsilon: f32,
) {
    let at = ABSOLUTE_POS;
    if at < values.len() {
        let g = gradient[at] * scale;
        let mean = decay_1 * first[at] + (1.0f32 - decay_1) * g;
        let square = decay_2 * second[at] + (1.0f32 - decay_2) * g * g;
        new_first[at] = mean;
        new_second[at] = square;
        new_values[at] = keep * values[at] - rate * mean / ((square * root).sqrt() + epsilon);
    }
}
