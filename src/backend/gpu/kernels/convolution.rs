//! A short causal convolution on a GPU: one launch, and two for all gradients, where burn's operations take three for every distance, and
//! their gradients more.

use super::cube::{COLUMNS, UNITS_OF_COLUMN, sum_of_column, unit_for_each};
use super::node::{Kept, node};
use super::{computed, new_of_shape};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends with kernels for both passes.
///
/// # Shapes
/// - input, output: `[rows, len, d]`; weight: `[n_past + 1, d]`; past: `[rows, n_past, d]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait ConvolutionKernels: Backend {
    /// The output.
    #[fusion(meta = |input, _weight, _past| input.clone())]
    fn convolved(input: FloatTensor<Self>, weight: FloatTensor<Self>, past: FloatTensor<Self>) -> FloatTensor<Self>;

    /// The gradients of the input and of the past.
    #[fusion(meta = |_weight, past, gradient| (gradient.clone(), past.clone()))]
    fn gradients_of_positions(
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the weight.
    #[fusion(meta = |_input, weight, _past, _gradient| weight.clone())]
    fn gradient_of_weight(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait ConvolutionBackend: Backend {
    /// The output.
    #[fusion(meta = |input, _weight, _past| input.clone())]
    fn convolved_channels(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}

/// The output of [`convolution`](crate::ops::convolution()) by these kernels. None where the tensors are not ones of 32-bit floats on a device
/// that has them.
pub fn convolution(input: &Tensor<3>, weight: &Tensor<2>, past: &Tensor<3>) -> Option<Tensor<3>> {
    let ([rows, _, d], [width, _]) = (input.dims(), weight.dims());
    assert!(
        weight.dims() == [width, d] && past.dims() == [rows, width - 1, d],
        "inputs {:?} behind {:?} with a weight {:?}",
        input.dims(),
        past.dims(),
        weight.dims()
    );
    let (input, weight, past) = (computed(input)?, computed(weight)?, computed(past)?);
    Some(Tensor::from_dispatch(Dispatch::convolved_channels(input, weight, past)))
}

#[derive(Clone, Debug)]
struct Convolved<B: Backend> {
    input: FloatTensor<B>,
    weight: FloatTensor<B>,
    past: FloatTensor<B>,
}

impl<B: ConvolutionKernels> Kept<B, 3> for Convolved<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { input, weight, past } = self;
        let of_weight = needed[1].then(|| B::gradient_of_weight(input, weight.clone(), past.clone(), gradient.clone()));
        let of_positions = (needed[0] || needed[2]).then(|| B::gradients_of_positions(weight, past, gradient));
        let [of_input, of_past] = of_positions.map_or([None, None], |(input, past)| [Some(input), Some(past)]);
        [of_input, of_weight, of_past]
    }
}

impl<B: ConvolutionKernels, C: CheckpointStrategy> ConvolutionBackend for Autodiff<B, C> {
    fn convolved_channels(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [(input, of_input), (weight, of_weight), (past, of_past)] = [input, weight, past].map(|it| it.into_parts());
        let output = B::convolved(input.clone(), weight.clone(), past.clone());
        node::<B, C, _, 3>([of_input, of_weight, of_past], output, Convolved { input, weight, past })
    }
}

impl ConvolutionBackend for CubeBackend {
    fn convolved_channels(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::convolved(input, weight, past)
    }
}

impl ConvolutionKernels for CubeBackend {
    fn convolved(input: FloatTensor<Self>, weight: FloatTensor<Self>, past: FloatTensor<Self>) -> FloatTensor<Self> {
        let [input, weight, past] = [input, weight, past].map(into_contiguous);
        let [len, d] = [1, 2].map(|axis| input.meta.shape()[axis]);
        let n_past = past.meta.shape()[1];
        let output = new_of_shape(&input);
        let (cube_count, cube_dim) = unit_for_each(input.meta.shape().num_elements(), &input.client);
        convolve::launch(
            &input.client.clone(),
            cube_count,
            cube_dim,
            input.into_buffer_arg(),
            weight.into_buffer_arg(),
            past.into_buffer_arg(),
            output.clone().into_buffer_arg(),
            len,
            d,
            n_past,
        );
        output
    }

    fn gradients_of_positions(
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [weight, gradient] = [weight, gradient].map(into_contiguous);
        let [rows, len, d] = [0, 1, 2].map(|axis| gradient.meta.shape()[axis]);
        let n_past = past.meta.shape()[1];
        let (of_input, of_past) = (new_of_shape(&gradient), new_of_shape(&past));
        let n = rows * (n_past + len) * d;
        let (cube_count, cube_dim) = unit_for_each(n, &gradient.client);
        convolve_back::launch(
            &gradient.client.clone(),
            cube_count,
            cube_dim,
            weight.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_input.clone().into_buffer_arg(),
            of_past.clone().into_buffer_arg(),
            n,
            len,
            d,
            n_past,
        );
        (of_input, of_past)
    }

    fn gradient_of_weight(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        past: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let [input, past, gradient] = [input, past, gradient].map(into_contiguous);
        let [rows, len, d] = [0, 1, 2].map(|axis| gradient.meta.shape()[axis]);
        let n_past = past.meta.shape()[1];
        let of_weight = new_of_shape(&weight);
        weigh_back::launch(
            &gradient.client.clone(),
            CubeCount::Static(d.div_ceil(COLUMNS as usize) as u32, n_past as u32 + 1, 1),
            CubeDim::new_1d(COLUMNS * UNITS_OF_COLUMN),
            input.into_buffer_arg(),
            past.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_weight.clone().into_buffer_arg(),
            rows * len,
            len,
            d,
            n_past,
        );
        of_weight
    }
}

/// The element of a channel so many positions before position `t` of a row.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube]
fn before(
    input: &[f32],
    past: &[f32],
    row: usize,
    t: usize,
    channel: usize,
    distance: usize,
    len: usize,
    d: usize,
    n_past: usize,
) -> f32 {
    let mut x = 0.0f32;
    if distance <= t {
        x = input[(row * len + t - distance) * d + channel];
    } else {
        x = past[(row * n_past + n_past + t - distance) * d + channel];
    }
    x
}

/// Each unit an element of the output.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn convolve(input: &[f32], weight: &[f32], past: &[f32], output: &mut [f32], len: usize, d: usize, n_past: usize) {
    let at = ABSOLUTE_POS;
    if at < output.len() {
        let channel = at % d;
        let t = (at / d) % len;
        let row = at / (d * len);
        let mut sum = 0.0f32;
        for distance in 0..n_past + 1 {
            sum += weight[distance * d + channel] * before(input, past, row, t, channel, distance, len, d, n_past);
        }
        output[at] = sum;
    }
}

/// Each unit an element of the past and the input, side by side.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn convolve_back(
    weight: &[f32],
    gradient: &[f32],
    of_input: &mut [f32],
    of_past: &mut [f32],
    n: usize,
    len: usize,
    d: usize,
    n_past: usize,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let channel = at % d;
        let position = (at / d) % (n_past + len);
        let row = at / (d * (n_past + len));
        let mut sum = 0.0f32;
        for distance in 0..n_past + 1 {
            // The position of the output that sees this one from so far.
            let after = position + distance;
            if after >= n_past && after < n_past + len {
                sum += gradient[(row * len + after - n_past) * d + channel] * weight[distance * d + channel];
            }
        }
        if position < n_past {
            of_past[(row * n_past + position) * d + channel] = sum;
        } else {
            of_input[(row * len + position - n_past) * d + channel] = sum;
        }
    }
}

/// Each cube some channels and a distance; each unit every so-many-th position of a channel.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn weigh_back(
    input: &[f32],
    past: &[f32],
    gradient: &[f32],
    of_weight: &mut [f32],
    n_positions: usize,
    len: usize,
    d: usize,
    n_past: usize,
) {
    let channel = CUBE_POS_X as usize * comptime!(COLUMNS as usize).runtime() + (UNIT_POS % COLUMNS) as usize;
    let distance = CUBE_POS_Y as usize;
    let mut own = 0.0f32;
    if channel < d {
        let mut position = (UNIT_POS / COLUMNS) as usize;
        while position < n_positions {
            let x = before(input, past, position / len, position % len, channel, distance, len, d, n_past);
            own += gradient[position * d + channel] * x;
            position += comptime!(UNITS_OF_COLUMN as usize).runtime();
        }
    }
    let sum = sum_of_column(own, COLUMNS, comptime!(COLUMNS * UNITS_OF_COLUMN));
    if UNIT_POS < COLUMNS && channel < d {
        of_weight[distance * d + channel] = sum;
    }
}
