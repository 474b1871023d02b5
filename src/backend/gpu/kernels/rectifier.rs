//! Bias, rectifier and dropout on a GPU in one launch, and their gradient in two, where burn's operations take four and five.

use super::cube::unit_for_each;
use super::dropout::{Dropping, dropping, factor_at};
use super::node::{Kept, node};
use super::product::{ProductKernels, flat, rectified, with_axes_of};
use super::{computed, computed_plain, new_like};
use crate::kernels::dropout::Dropout;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends with kernels for both passes.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait RectifierKernels: Backend {
    /// `dropout(max(0, sums + bias))`.
    #[fusion(meta = |sums, _bias, _dropout| sums.clone())]
    fn rectified(sums: FloatTensor<Self>, bias: FloatTensor<Self>, dropout: Option<Dropout>) -> FloatTensor<Self>;

    /// `max(0, left right + bias)`, with one matrix on the right.
    #[fusion(meta = |left, right, _bias| super::product::spec::product(left, right))]
    fn rectified_product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self>;

    /// The gradient of the sums, from what is left of them and its gradient.
    #[fusion(meta = |active, _gradient, _kept| active.clone())]
    fn unrectified(active: FloatTensor<Self>, gradient: FloatTensor<Self>, kept: f32) -> FloatTensor<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RectifierBackend: Backend {
    /// `dropout(max(0, sums + bias))`.
    #[fusion(meta = |sums, _bias, _dropout| sums.clone())]
    fn rectified_sums(sums: FloatTensor<Self>, bias: FloatTensor<Self>, dropout: Option<Dropout>) -> FloatTensor<Self>;
}

/// `dropout(max(0, sums + bias))`. None where the tensors are not ones of 32-bit floats on a device that has these kernels.
///
/// # Shapes
/// - sums, output: `[batch, len, width]`
/// - bias: `[width]`
pub fn rectify(sums: &Tensor<3>, bias: &Tensor<1>, dropout: Option<Dropout>) -> Option<Tensor<3>> {
    Some(Tensor::from_dispatch(Dispatch::rectified_sums(computed(sums)?, computed(bias)?, dropout)))
}

/// `max(0, input weight + bias)`. None where a tensor has a graph, and where they are not ones of 32-bit floats on a device that has these
/// kernels.
///
/// # Shapes
/// - input: `[.., d_input]`
/// - weight: `[d_input, d_output]`
/// - bias: `[d_output]`
pub fn rectified_linear<const D: usize>(input: &Tensor<D>, weight: &Tensor<2>, bias: &Tensor<1>) -> Option<Tensor<D>> {
    let [d_input, d_output] = weight.dims();
    assert!(
        input.dims()[D - 1] == d_input && bias.dims() == [d_output],
        "inputs {:?}, a weight [{d_input}, {d_output}] and a bias {:?}",
        input.dims(),
        bias.dims()
    );
    let (input, weight, bias) = (computed_plain(input)?, computed_plain(weight)?, computed_plain(bias)?);
    Some(Tensor::from_dispatch(Dispatch::rectified_product(input, weight, bias)))
}

#[derive(Clone, Debug)]
struct Rectifier<B: Backend> {
    active: FloatTensor<B>,
    kept: f32,
}

impl<B: RectifierKernels + ProductKernels> Kept<B, 2> for Rectifier<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let of_sums = B::unrectified(self.active, gradient, self.kept);
        let of_bias = needed[1].then(|| B::summed_rows(flat::<B>(of_sums.clone())));
        [Some(of_sums), of_bias]
    }
}

impl<B: RectifierKernels + ProductKernels, C: CheckpointStrategy> RectifierBackend for Autodiff<B, C> {
    fn rectified_sums(sums: FloatTensor<Self>, bias: FloatTensor<Self>, dropout: Option<Dropout>) -> FloatTensor<Self> {
        let [(sums, of_sums), (bias, of_bias)] = [sums, bias].map(|it| it.into_parts());
        let active = B::rectified(sums, bias, dropout);
        let kept = dropout.map_or(1.0, |dropout| dropout.kept());
        node::<B, C, _, 2>([of_sums, of_bias], active.clone(), Rectifier { active, kept })
    }
}

impl RectifierBackend for CubeBackend {
    fn rectified_sums(sums: FloatTensor<Self>, bias: FloatTensor<Self>, dropout: Option<Dropout>) -> FloatTensor<Self> {
        Self::rectified(sums, bias, dropout)
    }
}

impl RectifierKernels for CubeBackend {
    fn rectified(sums: FloatTensor<Self>, bias: FloatTensor<Self>, dropout: Option<Dropout>) -> FloatTensor<Self> {
        let [sums, bias] = [sums, bias].map(into_contiguous);
        let (client, shape) = (sums.client.clone(), sums.meta.shape().clone());
        let (len, width) = (shape.num_elements(), bias.meta.shape().num_elements());
        let active = new_like(&sums, shape);
        let (cube_count, cube_dim) = unit_for_each(len, &client);
        rectify_elements::launch(
            &client,
            cube_count,
            cube_dim,
            sums.into_buffer_arg(),
            bias.into_buffer_arg(),
            active.clone().into_buffer_arg(),
            len,
            width,
            dropping(dropout),
            dropout.is_some(),
        );
        active
    }

    fn rectified_product(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        bias: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        rectified(&left, &right, &bias).unwrap_or_else(|| {
            let right = with_axes_of::<Self>(&left, right);
            Self::rectified(Self::float_matmul(left, right), bias, None)
        })
    }

    fn unrectified(active: FloatTensor<Self>, gradient: FloatTensor<Self>, kept: f32) -> FloatTensor<Self> {
        let [active, gradient] = [active, gradient].map(into_contiguous);
        let (client, shape) = (active.client.clone(), active.meta.shape().clone());
        let len = shape.num_elements();
        let of_sums = new_like(&active, shape);
        let (cube_count, cube_dim) = unit_for_each(len, &client);
        unrectify_elements::launch(
            &client,
            cube_count,
            cube_dim,
            active.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_sums.clone().into_buffer_arg(),
            len,
            kept,
        );
        of_sums
    }
}

#[cube(launch)]
fn rectify_elements(
    sums: &[f32],
    bias: &[f32],
    active: &mut [f32],
    len: usize,
    width: usize,
    dropping: Dropping,
    #[comptime] drops: bool,
) {
    let at = ABSOLUTE_POS;
    if at < len {
        let sum = sums[at] + bias[at % width];
        // What is not a number stays so.
        let mut value = select(sum <= 0.0f32, 0.0f32, sum);
        if drops {
            value *= factor_at(&dropping, at);
        }
        active[at] = value;
    }
}

#[cube(launch)]
fn unrectify_elements(active: &[f32], gradient: &[f32], of_sums: &mut [f32], len: usize, kept: f32) {
    let at = ABSOLUTE_POS;
    if at < len {
        of_sums[at] = select(active[at] <= 0.0f32, 0.0f32, gradient[at] * kept);
    }
}
