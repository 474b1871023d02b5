//! Adam on a GPU: one launch for several parameters, where burn's operations take sixteen for each.

use super::cube::unit_for_each;
use super::{computed_plain, new_of_shape, room};
use crate::backend::gpu::PARAMETERS_OF_LAUNCH;
use crate::kernels::adam::AdamStep;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, ExtensionType, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Buffers of a parameter: four that are read and three that are written.
const BUFFERS: usize = 7;

/// A parameter before an update.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct Parameter<B: Backend> {
    /// The weights.
    pub values: FloatTensor<B>,
    /// Their gradient.
    pub gradient: FloatTensor<B>,
    /// The mean gradient.
    pub first: FloatTensor<B>,
    /// The mean square.
    pub second: FloatTensor<B>,
}

/// A parameter after an update.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct Updated<B: Backend> {
    /// The weights.
    pub values: FloatTensor<B>,
    /// The mean gradient.
    pub first: FloatTensor<B>,
    /// The mean square.
    pub second: FloatTensor<B>,
}

/// As many parameters as share a launch where a kernel may name enough buffers.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct FourParameters<B: Backend> {
    #[extension_type]
    a: Parameter<B>,
    #[extension_type]
    b: Parameter<B>,
    #[extension_type]
    c: Parameter<B>,
    #[extension_type]
    d: Parameter<B>,
}

/// They after an update.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct FourUpdated<B: Backend> {
    #[extension_type]
    a: Updated<B>,
    #[extension_type]
    b: Updated<B>,
    #[extension_type]
    c: Updated<B>,
    #[extension_type]
    d: Updated<B>,
}

/// Backends whose devices update parameters in one launch.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait AdamBackend: Backend {
    /// One parameter after an update.
    #[fusion(meta = |parameter, _step| updated(parameter))]
    fn adam_step(#[extension_type] parameter: Parameter<Self>, step: AdamStep) -> Updated<Self>;

    /// Four parameters after an update.
    #[fusion(meta = |parameters, _step| FourUpdatedMetadata {
        a: updated(&parameters.a),
        b: updated(&parameters.b),
        c: updated(&parameters.c),
        d: updated(&parameters.d),
    })]
    fn adam_step_of_four(#[extension_type] parameters: FourParameters<Self>, step: AdamStep) -> FourUpdated<Self>;
}

#[cfg(feature = "fusion")]
fn updated(parameter: &ParameterMetadata) -> UpdatedMetadata {
    let ParameterMetadata { values, first, second, .. } = parameter.clone();
    UpdatedMetadata { values, first, second }
}

/// Of each parameter the weights, the mean gradient and the mean square after an update, from the weights, the gradient and both means
/// before it. None where the tensors are not ones of 32-bit floats on a device that has a kernel for it.
pub fn adam_steps(parameters: &[[Tensor<1>; 4]], step: AdamStep) -> Option<Vec<[Tensor<1>; 3]>> {
    let mut taken = Vec::with_capacity(parameters.len());
    for [values, gradient, first, second] in parameters {
        taken.push(Parameter::<Dispatch> {
            values: computed_plain(values)?,
            gradient: computed_plain(gradient)?,
            first: computed_plain(first)?,
            second: computed_plain(second)?,
        });
    }
    let mut found: Vec<Updated<Dispatch>> = Vec::with_capacity(taken.len());
    let mut rest = taken.into_iter();
    while rest.len() >= PARAMETERS_OF_LAUNCH {
        let [Some(a), Some(b), Some(c), Some(d)] = [(); PARAMETERS_OF_LAUNCH].map(|()| rest.next()) else { break };
        let FourUpdated { a, b, c, d } = Dispatch::adam_step_of_four(FourParameters { a, b, c, d }, step);
        found.extend([a, b, c, d]);
    }
    found.extend(rest.map(|parameter| Dispatch::adam_step(parameter, step)));
    let tensors = |it: Updated<Dispatch>| [it.values, it.first, it.second].map(Tensor::from_dispatch);
    Some(found.into_iter().map(tensors).collect())
}

impl AdamBackend for CubeBackend {
    fn adam_step(parameter: Parameter<Self>, step: AdamStep) -> Updated<Self> {
        let [updated] = launch([parameter], step);
        updated
    }

    fn adam_step_of_four(parameters: FourParameters<Self>, step: AdamStep) -> FourUpdated<Self> {
        let FourParameters { a, b, c, d } = parameters;
        let [a, b, c, d] = match room(&a.values.client) >= PARAMETERS_OF_LAUNCH * BUFFERS {
            true => launch([a, b, c, d], step),
            false => [a, b, c, d].map(|parameter| Self::adam_step(parameter, step)),
        };
        FourUpdated { a, b, c, d }
    }
}

fn launch<const N: usize>(parameters: [Parameter<CubeBackend>; N], step: AdamStep) -> [Updated<CubeBackend>; N] {
    let parameters = parameters.map(|it| [it.values, it.gradient, it.first, it.second].map(into_contiguous));
    let updated = parameters.each_ref().map(|[values, ..]| {
        let new = || new_of_shape(values);
        Updated { values: new(), first: new(), second: new() }
    });
    let client = parameters[0][0].client.clone();
    let longest = parameters.iter().map(|[values, ..]| values.meta.shape().num_elements()).max().unwrap_or(0);
    let mut buffers = SequenceArg::new();
    for (old, new) in parameters.into_iter().zip(&updated) {
        let [values, gradient, first, second] = old.map(CubeTensor::into_buffer_arg);
        let [new_values, new_first, new_second] =
            [&new.values, &new.first, &new.second].map(|new: &CubeTensor| new.clone().into_buffer_arg());
        buffers.push(BuffersLaunch::new(values, gradient, first, second, new_values, new_first, new_second));
    }
    let (cube_count, cube_dim) = unit_for_each(longest, &client);
    let AdamStep { decays, scale, rate, root, keep, epsilon } = step;
    update::launch(&client, cube_count, cube_dim, buffers, decays[0], decays[1], scale, rate, root, keep, epsilon);
    updated
}

/// A parameter in a kernel.
#[derive(CubeType, CubeLaunch)]
struct Buffers {
    values: Box<[f32]>,
    gradient: Box<[f32]>,
    first: Box<[f32]>,
    second: Box<[f32]>,
    new_values: Box<[f32]>,
    new_first: Box<[f32]>,
    new_second: Box<[f32]>,
}

/// Each unit an element of each parameter.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn update(
    mut parameters: Sequence<Buffers>,
    decay_1: f32,
    decay_2: f32,
    scale: f32,
    rate: f32,
    root: f32,
    keep: f32,
    epsilon: f32,
) {
    let at = ABSOLUTE_POS;
    #[unroll]
    for i in 0..parameters.len() {
        let own = parameters.index_mut(i);
        if at < own.values.len() {
            let g = own.gradient[at] * scale;
            let mean = decay_1 * own.first[at] + (1.0f32 - decay_1) * g;
            let square = decay_2 * own.second[at] + (1.0f32 - decay_2) * g * g;
            own.new_first[at] = mean;
            own.new_second[at] = square;
            own.new_values[at] = keep * own.values[at] - rate * mean / ((square * root).sqrt() + epsilon);
        }
    }
}
