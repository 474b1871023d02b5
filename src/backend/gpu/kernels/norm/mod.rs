//! Layer normalization and that by the root mean square on a GPU: one launch, and two for its gradients, where burn's operations take about
//! forty.

mod columns;
mod rows;

use super::node::{Kept, node};
use super::{computed, computed_plain};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;

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
        rows::normalized(input, None, [gamma, beta], epsilon, is_centered)
    }

    fn normalized_sums(
        around: FloatTensor<Self>,
        through: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        rows::normalized(around, Some(through), [gamma, beta], epsilon, is_centered).0
    }

    fn gradient_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        rows::gradient([input, gamma, moments, gradient], is_centered)
    }

    fn gradients_of_columns(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        moments: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        columns::gradients([input, moments, gradient], &gamma)
    }
}
