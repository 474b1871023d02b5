//! Layer normalization and that by the root mean square on a GPU: one launch, and two for its gradients, where burn's operations take about
//! forty.

use super::cube::{COLUMNS, UNITS_OF_COLUMN, UNITS_OF_ROW, cube_for_each, sum_of_column, sum_of_cube};
use super::node::{Kept, node};
use super::{computed, computed_plain, new_like, new_of_shape, unused};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Backends with kernels for both passes.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait NormKernels: Backend {
    /// The normalized rows; and `[rows, 2]`, the mean of each and one over its deviation. Unless they are centered, the mean is taken for zero
    /// and `beta` is not read.
    #[fusion(meta = |input, gamma, _beta, _epsilon, _is_centered| {
        let n_rows = input.shape.num_elements() / gamma.shape.num_elements();
        (input.clone(), burn::backend::fusion::custom::TensorSpec::new([n_rows, 2].into(), input.dtype))
    })]
    fn normalized_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The normalized rows of a sum of two tensors.
    #[fusion(meta = |around, _through, _gamma, _beta, _epsilon, _is_centered| around.clone())]
    fn normalized_sums(
        around: FloatTensor<Self>,
        through: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self>;

    /// The gradient of the input.
    #[fusion(meta = |input, _gamma, _moments, _gradient, _is_centered| input.clone())]
    fn gradient_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        is_centered: bool,
    ) -> FloatTensor<Self>;

    /// The gradients of gamma and beta.
    #[fusion(meta = |_input, gamma, _moments, _gradient| (gamma.clone(), gamma.clone()))]
    fn gradients_of_columns(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait NormBackend: Backend {
    /// The normalized rows.
    #[fusion(meta = |input, _gamma, _beta, _epsilon| input.clone())]
    fn layer_norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self>;

    /// The rows divided by their root mean squares.
    #[fusion(meta = |input, _gamma, _epsilon| input.clone())]
    fn rms_norm_of_rows(input: FloatTensor<Self>, gamma: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self>;
}

/// [`layer_norm`](crate::ops::layer_norm) by these kernels. None where the tensors are not ones of 32-bit floats on a device that has
/// them.
pub fn layer_norm<const D: usize>(
    input: &Tensor<D>,
    gamma: &Tensor<1>,
    beta: &Tensor<1>,
    epsilon: f64,
) -> Option<Tensor<D>> {
    let (input, gamma, beta) = (computed(input)?, computed(gamma)?, computed(beta)?);
    Some(Tensor::from_dispatch(Dispatch::layer_norm_of_rows(input, gamma, beta, epsilon as f32)))
}

/// [`rms_norm`](crate::ops::rms_norm) by these kernels, likewise.
pub fn rms_norm<const D: usize>(input: &Tensor<D>, gamma: &Tensor<1>, epsilon: f64) -> Option<Tensor<D>> {
    let (input, gamma) = (computed(input)?, computed(gamma)?);
    Some(Tensor::from_dispatch(Dispatch::rms_norm_of_rows(input, gamma, epsilon as f32)))
}

/// `norm(x + y)`, layer normalization with `beta` and that by the root mean square without. None where a tensor has a graph, and where they
/// are not ones of 32-bit floats on a device that has these kernels.
pub fn norm_of_sum<const D: usize>(
    [around, through]: [&Tensor<D>; 2],
    gamma: &Tensor<1>,
    beta: Option<&Tensor<1>>,
    epsilon: f64,
) -> Option<Tensor<D>> {
    assert_eq!(around.dims(), through.dims(), "what goes by a layer and what has gone through it");
    let width = around.dims()[D - 1];
    assert!(gamma.dims() == [width] && beta.is_none_or(|beta| beta.dims() == [width]), "a norm of {width} elements");
    let (around, through) = (computed_plain(around)?, computed_plain(through)?);
    let (gamma, beta, is_centered) = (computed_plain(gamma)?, computed_plain(beta.unwrap_or(gamma))?, beta.is_some());
    Some(Tensor::from_dispatch(Dispatch::normalized_sums(around, through, gamma, beta, epsilon as f32, is_centered)))
}

/// What is kept of either norm.
#[derive(Clone, Debug)]
struct Normalized<B: Backend> {
    input: FloatTensor<B>,
    gamma: FloatTensor<B>,
    moments: FloatTensor<B>,
    is_centered: bool,
}

impl<B: NormKernels> Kept<B, 3> for Normalized<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { input, gamma, moments, is_centered } = self;
        let of_input = needed[0]
            .then(|| B::gradient_of_rows(input.clone(), gamma.clone(), moments.clone(), gradient.clone(), is_centered));
        let of_columns = (needed[1] || needed[2]).then(|| B::gradients_of_columns(input, gamma, moments, gradient));
        let [of_gamma, of_beta] = of_columns.map_or([None, None], |(gamma, beta)| [Some(gamma), Some(beta)]);
        [of_input, of_gamma, of_beta]
    }
}

/// Without a shift.
impl<B: NormKernels> Kept<B, 2> for Normalized<B> {
    fn gradients(self, gradient: FloatTensor<B>, [input, gamma]: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let [of_input, of_gamma, _] = Kept::<B, 3>::gradients(self, gradient, [input, gamma, false]);
        [of_input, of_gamma]
    }
}

impl<B: NormKernels, C: CheckpointStrategy> NormBackend for Autodiff<B, C> {
    fn layer_norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        let [(input, of_input), (gamma, of_gamma), (beta, of_beta)] = [input, gamma, beta].map(|it| it.into_parts());
        let (output, moments) = B::normalized_rows(input.clone(), gamma.clone(), beta, epsilon, true);
        let kept = Normalized { input, gamma, moments, is_centered: true };
        node::<B, C, _, 3>([of_input, of_gamma, of_beta], output, kept)
    }

    fn rms_norm_of_rows(input: FloatTensor<Self>, gamma: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        let [(input, of_input), (gamma, of_gamma)] = [input, gamma].map(|it| it.into_parts());
        let (output, moments) = B::normalized_rows(input.clone(), gamma.clone(), gamma.clone(), epsilon, false);
        let kept = Normalized { input, gamma, moments, is_centered: false };
        node::<B, C, _, 2>([of_input, of_gamma], output, kept)
    }
}

impl NormBackend for CubeBackend {
    fn layer_norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
    ) -> FloatTensor<Self> {
        Self::normalized_rows(input, gamma, beta, epsilon, true).0
    }

    fn rms_norm_of_rows(input: FloatTensor<Self>, gamma: FloatTensor<Self>, epsilon: f32) -> FloatTensor<Self> {
        Self::normalized_rows(input, gamma.clone(), gamma, epsilon, false).0
    }
}

impl NormKernels for CubeBackend {
    fn normalized_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        normalize_rows(input, None, [gamma, beta], epsilon, is_centered)
    }

    fn normalized_sums(
        around: FloatTensor<Self>,
        through: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        normalize_rows(around, Some(through), [gamma, beta], epsilon, is_centered).0
    }

    fn gradient_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        let [input, gamma, moments, gradient] = [input, gamma, moments, gradient].map(into_contiguous);
        let width = gamma.meta.shape().num_elements();
        let n_rows = input.meta.shape().num_elements() / width;
        let of_input = new_of_shape(&input);
        backward_rows::launch(
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

    fn gradients_of_columns(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [input, moments, gradient] = [input, moments, gradient].map(into_contiguous);
        let shape = gamma.meta.shape().clone();
        let width = shape.num_elements();
        let n_rows = input.meta.shape().num_elements() / width;
        let [of_gamma, of_beta] = [new_like(&input, shape.clone()), new_like(&input, shape)];
        backward_columns::launch(
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
}

/// The normalized rows of `input`, or of its sum with `through`, and their moments.
fn normalize_rows(
    input: CubeTensor,
    through: Option<CubeTensor>,
    [gamma, beta]: [CubeTensor; 2],
    epsilon: f32,
    is_centered: bool,
) -> (CubeTensor, CubeTensor) {
    let [input, gamma] = [input, gamma].map(into_contiguous);
    let beta = if is_centered { into_contiguous(beta) } else { unused(&input) };
    let is_sum = through.is_some();
    let through = through.map_or_else(|| unused(&input), into_contiguous);
    let width = gamma.meta.shape().num_elements();
    let n_rows = input.meta.shape().num_elements() / width;
    let output = new_of_shape(&input);
    let moments = new_like(&input, [n_rows, 2].into());
    normalize::launch(
        &input.client.clone(),
        cube_for_each(n_rows),
        CubeDim::new_1d(UNITS_OF_ROW),
        input.into_buffer_arg(),
        through.into_buffer_arg(),
        gamma.into_buffer_arg(),
        beta.into_buffer_arg(),
        output.clone().into_buffer_arg(),
        moments.clone().into_buffer_arg(),
        n_rows,
        width,
        epsilon,
        is_centered,
        is_sum,
    );
    (output, moments)
}

/// An element of the input, or of its sum with `through`.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(unused_assignments)]
#[cube]
fn summed(input: &[f32], through: &[f32], at: usize, #[comptime] is_sum: bool) -> f32 {
    let mut value = input[at];
    if comptime!(is_sum) {
        value = input[at] + through[at];
    }
    value
}

/// Each cube a row; each unit every so-many-th element of it.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn normalize(
    input: &[f32],
    through: &[f32],
    gamma: &[f32],
    beta: &[f32],
    output: &mut [f32],
    moments: &mut [f32],
    n_rows: usize,
    width: usize,
    epsilon: f32,
    #[comptime] is_centered: bool,
    #[comptime] is_sum: bool,
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
        if is_centered {
            while at < width {
                own += summed(input, through, start + at, is_sum);
                at += step;
            }
            mean = sum_of_cube(own, UNITS_OF_ROW) / n;
            own = 0.0f32;
            at = first;
        }
        while at < width {
            let centered = summed(input, through, start + at, is_sum) - mean;
            own += centered * centered;
            at += step;
        }
        let scale = 1.0f32 / (sum_of_cube(own, UNITS_OF_ROW) / n + epsilon).sqrt();
        at = first;
        while at < width {
            let mut value = (summed(input, through, start + at, is_sum) - mean) * scale * gamma[at];
            if is_centered {
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

#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn backward_rows(
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

/// Each cube some columns; each unit every so-many-th row of one.
#[cube(launch)]
fn backward_columns(
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
