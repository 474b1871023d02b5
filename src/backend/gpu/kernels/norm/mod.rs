//! Layer normalization and that by the root mean square on a GPU: one launch, and two for its gradients, where burn's operations take about
//! forty.

mod columns;
mod rows;

use super::computed;
use super::dropout::{Added, DropoutBackend};
use super::node::{Kept, node};
use crate::kernels::dropout::Dropout;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::ops::NodeGuard;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, DispatchTensor, ExtensionType, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;

/// What is added, and the parameters of the norm.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct Summands<B: Backend> {
    /// What goes around a layer.
    pub around: FloatTensor<B>,
    /// What has gone through it.
    pub through: FloatTensor<B>,
    /// `[width]`.
    pub gamma: FloatTensor<B>,
    /// `[width]`; not read unless rows are centered.
    pub beta: FloatTensor<B>,
}

/// What becomes of them.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct Sums<B: Backend> {
    /// The normalized rows.
    pub rows: FloatTensor<B>,
    /// The mean of each, and one over its deviation: `[rows, 2]`.
    pub moments: FloatTensor<B>,
    /// The sum; of one element where it is not kept.
    pub sums: FloatTensor<B>,
}

/// How a sum is made and normalized.
#[derive(Clone, Copy, Debug)]
pub struct Summing {
    epsilon: f32,
    is_centered: bool,
    dropout: Option<Dropout>,
    /// Whether somebody asks for the sum.
    is_asked: bool,
}

impl Summing {
    /// Whether the sum is written: what is dropped is decided once.
    fn keeps_sum(self) -> bool {
        self.is_asked || self.dropout.is_some()
    }
}

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

    /// The same of a sum of two tensors.
    #[fusion(meta = |inputs, how| spec::sums(inputs, how))]
    fn normalized_sums(#[extension_type] inputs: Summands<Self>, how: Summing) -> Sums<Self>;

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
    #[fusion(meta = |input, _gamma, _beta, _epsilon, _is_centered| input.clone())]
    fn norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self>;

    /// The normalized rows of a sum, and the sum.
    #[fusion(meta = |inputs, how| {
        let SumsMetadata { rows, sums, .. } = spec::sums(inputs, how);
        (rows, sums)
    })]
    fn norm_of_sums(#[extension_type] inputs: Summands<Self>, how: Summing) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::{SummandsMetadata, Summing, SumsMetadata};
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn sums(inputs: &SummandsMetadata, how: &Summing) -> SumsMetadata {
        let around = &inputs.around;
        let n_rows = around.shape.num_elements() / inputs.gamma.shape.num_elements();
        let nothing = TensorSpec::new([1].into(), around.dtype);
        SumsMetadata {
            rows: around.clone(),
            moments: TensorSpec::new([n_rows, 2].into(), around.dtype),
            sums: if how.keeps_sum() { around.clone() } else { nothing },
        }
    }
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
    Some(Tensor::from_dispatch(Dispatch::norm_of_rows(input, gamma, beta, epsilon as f32, true)))
}

/// [`rms_norm`](crate::ops::rms_norm) by these kernels, likewise.
pub fn rms_norm<const D: usize>(input: &Tensor<D>, gamma: &Tensor<1>, epsilon: f64) -> Option<Tensor<D>> {
    let (input, gamma) = (computed(input)?, computed(gamma)?);
    Some(Tensor::from_dispatch(Dispatch::norm_of_rows(input, gamma.clone(), gamma, epsilon as f32, false)))
}

/// `norm(x + dropout(y))`, layer normalization with `beta` and that by the root mean square without. None where the tensors are not ones of
/// 32-bit floats on a device that has these kernels.
pub fn norm_of_sum<const D: usize>(
    both: [&Tensor<D>; 2],
    dropout: Option<Dropout>,
    gamma: &Tensor<1>,
    beta: Option<&Tensor<1>>,
    epsilon: f64,
) -> Option<Tensor<D>> {
    let how = Summing { epsilon: epsilon as f32, is_centered: beta.is_some(), dropout, is_asked: false };
    let (rows, _) = sums(both, gamma, beta, how)?;
    Some(rows)
}

/// `x + dropout(y)`, and `norm(x + dropout(y))`, likewise.
pub fn norm_with_sum<const D: usize>(
    both: [&Tensor<D>; 2],
    dropout: Option<Dropout>,
    gamma: &Tensor<1>,
    beta: Option<&Tensor<1>>,
    epsilon: f64,
) -> Option<[Tensor<D>; 2]> {
    let how = Summing { epsilon: epsilon as f32, is_centered: beta.is_some(), dropout, is_asked: true };
    let (rows, sums) = sums(both, gamma, beta, how)?;
    Some([Tensor::from_dispatch(sums), rows])
}

/// The normalized rows, and the sum if it is kept.
fn sums<const D: usize>(
    [around, through]: [&Tensor<D>; 2],
    gamma: &Tensor<1>,
    beta: Option<&Tensor<1>>,
    how: Summing,
) -> Option<(Tensor<D>, DispatchTensor)> {
    assert_eq!(around.dims(), through.dims(), "what goes by a layer and what has gone through it");
    let width = around.dims()[D - 1];
    assert!(gamma.dims() == [width] && beta.is_none_or(|beta| beta.dims() == [width]), "a norm of {width} elements");
    let inputs = Summands::<Dispatch> {
        around: computed(around)?,
        through: computed(through)?,
        gamma: computed(gamma)?,
        beta: computed(beta.unwrap_or(gamma))?,
    };
    let (rows, sums) = Dispatch::norm_of_sums(inputs, how);
    Some((Tensor::from_dispatch(rows), sums))
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

impl<B: NormKernels> Normalized<B> {
    /// The rows in the graph below input, gamma, and beta if they are centered.
    fn node<C: CheckpointStrategy>(
        self,
        [input, gamma, beta]: [NodeGuard; 3],
        rows: FloatTensor<B>,
    ) -> FloatTensor<Autodiff<B, C>> {
        match self.is_centered {
            true => node::<B, C, _, 3>([input, gamma, beta], rows, self),
            false => node::<B, C, _, 2>([input, gamma], rows, self),
        }
    }
}

impl<B: NormKernels + DropoutBackend, C: CheckpointStrategy> NormBackend for Autodiff<B, C> {
    fn norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        let [(input, of_input), (gamma, of_gamma), (beta, of_beta)] = [input, gamma, beta].map(|it| it.into_parts());
        let (rows, moments) = B::normalized_rows(input.clone(), gamma.clone(), beta, epsilon, is_centered);
        Normalized { input, gamma, moments, is_centered }.node::<C>([of_input, of_gamma, of_beta], rows)
    }

    fn norm_of_sums(inputs: Summands<Self>, how: Summing) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let Summands { around, through, gamma, beta } = inputs;
        let [around, through, gamma, beta] = [around, through, gamma, beta].map(|it| it.into_parts());
        let inputs = Summands::<B> { around: around.0, through: through.0, gamma: gamma.0.clone(), beta: beta.0 };
        // The gradient of the norm needs it.
        let Sums { rows, moments, sums } = B::normalized_sums(inputs, Summing { is_asked: true, ..how });
        let kept = Normalized { input: sums.clone(), gamma: gamma.0, moments, is_centered: how.is_centered };
        // Two nodes, as of two operations: the rows stand below the sum.
        let sums = node::<B, C, _, 2>([around.1, through.1], sums, Added(how.dropout));
        let (_, of_sums) = sums.clone().into_parts();
        (kept.node::<C>([of_sums, gamma.1, beta.1], rows), sums)
    }
}

impl NormBackend for CubeBackend {
    fn norm_of_rows(
        input: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f32,
        is_centered: bool,
    ) -> FloatTensor<Self> {
        Self::normalized_rows(input, gamma, beta, epsilon, is_centered).0
    }

    fn norm_of_sums(inputs: Summands<Self>, how: Summing) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let Sums { rows, sums, .. } = Self::normalized_sums(inputs, how);
        (rows, sums)
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
        let how = Summing { epsilon, is_centered, dropout: None, is_asked: false };
        let Sums { rows, moments, .. } = rows::normalized(input, None, [gamma, beta], how);
        (rows, moments)
    }

    fn normalized_sums(inputs: Summands<Self>, how: Summing) -> Sums<Self> {
        let Summands { around, through, gamma, beta } = inputs;
        rows::normalized(around, Some(through), [gamma, beta], how)
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
