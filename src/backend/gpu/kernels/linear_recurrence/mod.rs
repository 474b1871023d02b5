//! Linear recurrences on a GPU: one launch, and one for all gradients, where burn's operations take thirty and more, most of them in a scan
//! whose passes grow with the logarithm of the length.

mod scan;

use super::cube::unit_for_each;
use super::node::{Kept, node};
use super::product::ProductKernels;
use super::{computed, is_roomy, new_like, new_of_shape, unused};
use crate::kernels::linear_recurrence::Gating;
use crate::kernels::recurrence::Reading;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, ExtensionType, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

/// What a recurrence is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Scanning {
    gating: Gating,
    is_backward: bool,
    has_lengths: bool,
}

/// The tensors of a recurrence.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct ScanInputs<B: Backend> {
    /// `[batch, len, n_gates d]`.
    pub gates: FloatTensor<B>,
    /// `[batch, d]`.
    pub start: FloatTensor<B>,
    /// `[d]`, of RG-LRU.
    pub decay: FloatTensor<B>,
    /// `[batch]`.
    pub lengths: FloatTensor<B>,
}

impl ScanInputs<CubeBackend> {
    fn contiguous(self) -> Self {
        let Self { gates, start, decay, lengths } = self;
        let [gates, start, decay, lengths] = [gates, start, decay, lengths].map(into_contiguous);
        Self { gates, start, decay, lengths }
    }

    /// `[batch, len, d]`.
    fn sizes(&self) -> [usize; 3] {
        let [batch, len] = [0, 1].map(|axis| self.gates.meta.shape()[axis]);
        [batch, len, self.start.meta.shape()[1]]
    }
}

/// The gradients of them.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct ScanGradients<B: Backend> {
    /// Of the gates.
    pub gates: FloatTensor<B>,
    /// Of the start.
    pub start: FloatTensor<B>,
    /// For each sentence that of the decay, `[batch, d]`, where there is one.
    pub decays: FloatTensor<B>,
}

/// Backends with both passes. States are `[batch, len, d]`.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait LinearRecurrenceKernels: Backend {
    /// The states.
    #[fusion(meta = |inputs, _how| spec::states(inputs))]
    fn scanned(#[extension_type] inputs: ScanInputs<Self>, how: Scanning) -> FloatTensor<Self>;

    /// The gradients, from the states and their gradient.
    #[fusion(meta = |inputs, _states, _gradient, _how| spec::gradients(inputs))]
    fn scanned_backward(
        #[extension_type] inputs: ScanInputs<Self>,
        states: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Scanning,
    ) -> ScanGradients<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait LinearRecurrenceBackend: Backend {
    /// The states.
    #[fusion(meta = |inputs, _how| spec::states(inputs))]
    fn linear_states(#[extension_type] inputs: ScanInputs<Self>, how: Scanning) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::{ScanGradientsMetadata, ScanInputsMetadata};
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn states(inputs: &ScanInputsMetadata) -> TensorSpec {
        let ScanInputsMetadata { gates, start, .. } = inputs;
        TensorSpec::new([gates.shape[0], gates.shape[1], start.shape[1]].into(), gates.dtype)
    }

    pub(super) fn gradients(inputs: &ScanInputsMetadata) -> ScanGradientsMetadata {
        let ScanInputsMetadata { gates, start, .. } = inputs.clone();
        ScanGradientsMetadata { gates, decays: start.clone(), start }
    }
}

/// [`linear_recurrence`](crate::ops::linear_recurrence()) by these kernels. None where the tensors are not ones of 32-bit floats on a device
/// that has them.
pub fn linear_recurrence(
    gating: Gating,
    gates: &Tensor<3>,
    start: &Tensor<2>,
    decay: Option<&Tensor<1>>,
    reading: &Reading,
) -> Option<Tensor<3>> {
    let device = gates.device();
    let ([batch, len, width], [_, d]) = (gates.dims(), start.dims());
    assert!(
        start.dims() == [batch, d]
            && width == gating.n_gates() * d
            && decay.map(Tensor::dims) == (gating == Gating::RgLru).then_some([d]),
        "gates {:?} from {:?} with a decay {:?}",
        gates.dims(),
        start.dims(),
        decay.map(Tensor::dims)
    );
    let packed = computed(gates)?;
    if len == 0 || !is_roomy(&packed) {
        return None;
    }
    let lengths = reading.cut(len).map(|lengths| Tensor::<1>::from_data(lengths.as_slice(), &device));
    let how = Scanning { gating, is_backward: reading.is_backward, has_lengths: lengths.is_some() };
    let nothing = || Tensor::<1>::empty([1], &device);
    let (lengths, decay) = (lengths.unwrap_or_else(nothing), decay.cloned().unwrap_or_else(nothing));
    let inputs = ScanInputs::<Dispatch> {
        gates: packed,
        start: computed(start)?,
        decay: computed(&decay)?,
        lengths: computed(&lengths)?,
    };
    Some(Tensor::from_dispatch(Dispatch::linear_states(inputs, how)))
}

#[derive(Clone, Debug)]
struct Scanned<B: Backend> {
    inputs: ScanInputs<B>,
    states: FloatTensor<B>,
    how: Scanning,
}

impl<B: LinearRecurrenceKernels + ProductKernels> Kept<B, 3> for Scanned<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let found = B::scanned_backward(self.inputs, self.states, gradient, self.how);
        [Some(found.gates), Some(found.start), needed[2].then(|| B::summed_rows(found.decays))]
    }
}

impl<B: LinearRecurrenceKernels + ProductKernels, C: CheckpointStrategy> LinearRecurrenceBackend for Autodiff<B, C> {
    fn linear_states(inputs: ScanInputs<Self>, how: Scanning) -> FloatTensor<Self> {
        let ScanInputs { gates, start, decay, lengths } = inputs;
        let [(gates, of_gates), (start, of_start), (decay, of_decay)] = [gates, start, decay].map(|it| it.into_parts());
        let (lengths, _) = lengths.into_parts();
        let inputs = ScanInputs::<B> { gates, start, decay, lengths };
        let states = B::scanned(inputs.clone(), how);
        let kept = Scanned { inputs, states: states.clone(), how };
        node::<B, C, _, 3>([of_gates, of_start, of_decay], states, kept)
    }
}

impl LinearRecurrenceBackend for CubeBackend {
    fn linear_states(inputs: ScanInputs<Self>, how: Scanning) -> FloatTensor<Self> {
        Self::scanned(inputs, how)
    }
}

impl LinearRecurrenceKernels for CubeBackend {
    fn scanned(inputs: ScanInputs<Self>, how: Scanning) -> FloatTensor<Self> {
        let inputs = inputs.contiguous();
        let [batch, len, d] = inputs.sizes();
        let states = new_like(&inputs.gates, [batch, len, d].into());
        let client = inputs.gates.client.clone();
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        scan::forwards::launch(
            &client,
            cube_count,
            cube_dim,
            scan::gated(inputs),
            states.clone().into_buffer_arg(),
            how.is_backward,
            how.has_lengths,
            how.gating,
        );
        states
    }

    fn scanned_backward(
        inputs: ScanInputs<Self>,
        states: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Scanning,
    ) -> ScanGradients<Self> {
        let inputs = inputs.contiguous();
        let [states, gradient] = [states, gradient].map(into_contiguous);
        let [batch, _, d] = inputs.sizes();
        let (gates, start) = (new_of_shape(&inputs.gates), new_of_shape(&inputs.start));
        let has_decay = how.gating == Gating::RgLru;
        let decays = if has_decay { new_of_shape(&start) } else { unused(&start) };
        let client = inputs.gates.client.clone();
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        scan::back::launch(
            &client,
            cube_count,
            cube_dim,
            scan::gated(inputs),
            states.into_buffer_arg(),
            gradient.into_buffer_arg(),
            gates.clone().into_buffer_arg(),
            start.clone().into_buffer_arg(),
            decays.clone().into_buffer_arg(),
            how.is_backward,
            how.has_lengths,
            how.gating,
        );
        // Without a decay nobody reads its gradient, but it has to have the promised shape.
        let decays = if has_decay { decays } else { start.clone() };
        ScanGradients { gates, start, decays }
    }
}
