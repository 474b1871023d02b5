//! Products as nodes of burn's graph.

use super::{ProductKernels, flat, transposed};
use crate::backend::gpu::kernels::computed;
use crate::backend::gpu::kernels::node::{Kept, node};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;

/// Backends on which a product is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait ProductBackend: Backend {
    /// `left right`, matrix by matrix.
    #[fusion(meta = |left, right| super::spec::product(left, right))]
    fn product_of(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `input weight`; with `is_transposed`, `input weight^T`.
    #[fusion(meta = |input, weight, is_transposed| spec::linear(input, weight, *is_transposed))]
    fn mapped(input: FloatTensor<Self>, weight: FloatTensor<Self>, is_transposed: bool) -> FloatTensor<Self>;

    /// [`Self::mapped`], and `bias` added to every row.
    #[fusion(meta = |input, weight, _bias, is_transposed| spec::linear(input, weight, *is_transposed))]
    fn mapped_and_moved(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        is_transposed: bool,
    ) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn linear(input: &TensorSpec, weight: &TensorSpec, is_transposed: bool) -> TensorSpec {
        let mut shape = input.shape.clone();
        let last = shape.num_dims() - 1;
        shape[last] = weight.shape[if is_transposed { 0 } else { 1 }];
        TensorSpec::new(shape, input.dtype)
    }
}

/// `left right`, matrix by matrix. None where the tensors are not ones of 32-bit floats on a device that has these kernels.
///
/// # Shapes
/// - left: `[.., m, k]`
/// - right: `[.., k, n]`, as many matrices
/// - output: `[.., m, n]`
pub fn product<const D: usize>(left: &Tensor<D>, right: &Tensor<D>) -> Option<Tensor<D>> {
    let (m, k) = (left.dims(), right.dims());
    assert!(m[..D - 2] == k[..D - 2] && m[D - 1] == k[D - 2], "a product of matrices {m:?} and {k:?}");
    Some(Tensor::from_dispatch(Dispatch::product_of(computed(left)?, computed(right)?)))
}

/// [`linear`](crate::ops::linear()) by these kernels. None where the tensors are not ones of 32-bit floats on a device that has them.
pub fn linear<const D: usize>(
    input: &Tensor<D>,
    weight: &Tensor<2>,
    is_transposed: bool,
    bias: Option<&Tensor<1>>,
) -> Option<Tensor<D>> {
    let of_weight = weight.dims();
    let [d_input, d_output] = if is_transposed { [of_weight[1], of_weight[0]] } else { of_weight };
    assert!(
        input.dims()[D - 1] == d_input && bias.is_none_or(|bias| bias.dims() == [d_output]),
        "inputs {:?}, a weight {of_weight:?} and a bias {:?}",
        input.dims(),
        bias.map(Tensor::dims)
    );
    let (input, weight) = (computed(input)?, computed(weight)?);
    Some(Tensor::from_dispatch(match bias {
        Some(bias) => Dispatch::mapped_and_moved(input, weight, computed(bias)?, is_transposed),
        None => Dispatch::mapped(input, weight, is_transposed),
    }))
}

#[derive(Clone, Debug)]
struct Product<B: Backend> {
    left: FloatTensor<B>,
    right: FloatTensor<B>,
}

impl<B: ProductKernels> Kept<B, 2> for Product<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let Self { left, right } = self;
        let of_left = needed[0].then(|| B::multiplied(gradient.clone(), transposed::<B>(right)));
        let of_right = needed[1].then(|| B::multiplied(transposed::<B>(left), gradient));
        [of_left, of_right]
    }
}

#[derive(Clone, Debug)]
struct Linear<B: Backend> {
    input: FloatTensor<B>,
    weight: FloatTensor<B>,
    is_transposed: bool,
}

impl<B: ProductKernels> Kept<B, 2> for Linear<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 2]) -> [Option<FloatTensor<B>>; 2] {
        let Self { input, weight, is_transposed } = self;
        let of_input = needed[0].then(|| B::multiplied(gradient.clone(), matrix::<B>(weight, !is_transposed)));
        let of_weight = needed[1].then(|| {
            let (input, gradient) = (flat::<B>(input), flat::<B>(gradient));
            let (left, right) = if is_transposed { (gradient, input) } else { (input, gradient) };
            B::multiplied(transposed::<B>(left), right)
        });
        [of_input, of_weight]
    }
}

/// With a bias.
#[derive(Clone, Debug)]
struct Moved<B: Backend>(Linear<B>);

impl<B: ProductKernels> Kept<B, 3> for Moved<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let of_bias = needed[2].then(|| B::summed_rows(flat::<B>(gradient.clone())));
        let [of_input, of_weight] = self.0.gradients(gradient, [needed[0], needed[1]]);
        [of_input, of_weight, of_bias]
    }
}

/// The matrix by which rows are multiplied.
fn matrix<B: Backend>(weight: FloatTensor<B>, is_transposed: bool) -> FloatTensor<B> {
    if is_transposed { transposed::<B>(weight) } else { weight }
}

impl<B: ProductKernels, C: CheckpointStrategy> ProductBackend for Autodiff<B, C> {
    fn product_of(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        let [(left, of_left), (right, of_right)] = [left, right].map(|it| it.into_parts());
        let output = B::multiplied(left.clone(), right.clone());
        node::<B, C, _, 2>([of_left, of_right], output, Product { left, right })
    }

    fn mapped(input: FloatTensor<Self>, weight: FloatTensor<Self>, is_transposed: bool) -> FloatTensor<Self> {
        let [(input, of_input), (weight, of_weight)] = [input, weight].map(|it| it.into_parts());
        let output = B::multiplied(input.clone(), matrix::<B>(weight.clone(), is_transposed));
        node::<B, C, _, 2>([of_input, of_weight], output, Linear { input, weight, is_transposed })
    }

    fn mapped_and_moved(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        is_transposed: bool,
    ) -> FloatTensor<Self> {
        let [(input, of_input), (weight, of_weight), (bias, of_bias)] = [input, weight, bias].map(|it| it.into_parts());
        let output = B::multiplied_and_moved(input.clone(), matrix::<B>(weight.clone(), is_transposed), bias);
        node::<B, C, _, 3>([of_input, of_weight, of_bias], output, Moved(Linear { input, weight, is_transposed }))
    }
}

impl ProductBackend for CubeBackend {
    fn product_of(left: FloatTensor<Self>, right: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::multiplied(left, right)
    }

    fn mapped(input: FloatTensor<Self>, weight: FloatTensor<Self>, is_transposed: bool) -> FloatTensor<Self> {
        Self::multiplied(input, matrix::<Self>(weight, is_transposed))
    }

    fn mapped_and_moved(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        is_transposed: bool,
    ) -> FloatTensor<Self> {
        Self::multiplied_and_moved(input, matrix::<Self>(weight, is_transposed), bias)
    }
}
