//! One step of a recurrent cell on a GPU as a node of burn's graph: one launch, and one on the way back.

use super::cell::{Back, Forward, Place, n_last, of_bias};
use crate::backend::gpu::kernels::node::{Kept, node};
use crate::backend::gpu::kernels::product::ProductKernels;
use crate::backend::gpu::kernels::{computed, is_roomy, new_like, new_of_shape, unused};
use crate::kernels::cell::{CellKind, n_saved};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

/// The tensors of a step.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct StepInputs<B: Backend> {
    /// The input's part of the gates, `[rows, n_gates d]`.
    pub input: FloatTensor<B>,
    /// The state's part.
    pub product: FloatTensor<B>,
    /// `[rows, d]`.
    pub hidden: FloatTensor<B>,
    /// `[rows, d]`, of an LSTM.
    pub memory: FloatTensor<B>,
    /// `[d]`, of a GRU's candidate.
    pub bias: FloatTensor<B>,
}

/// What a step makes.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct StepOutputs<B: Backend> {
    /// The state after, then of an LSTM the memory: `[1, rows, d]`, or `[2, rows, d]`.
    pub packed: FloatTensor<B>,
    /// What the cell keeps, `[rows, n_saved d]`.
    pub kept: FloatTensor<B>,
}

/// The gradients of its tensors.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct StepGradients<B: Backend> {
    /// Of the input's part.
    pub input: FloatTensor<B>,
    /// Of the state's part.
    pub product: FloatTensor<B>,
    /// Of the state.
    pub hidden: FloatTensor<B>,
    /// Of the memory; without one, of one element.
    pub memory: FloatTensor<B>,
}

/// Backends with both passes of a step alone.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait StepKernels: Backend {
    /// What a step makes.
    #[fusion(meta = |inputs, kind| spec::outputs(inputs, *kind))]
    fn advanced(#[extension_type] inputs: StepInputs<Self>, kind: CellKind) -> StepOutputs<Self>;

    /// The gradients, from that of what is packed.
    #[fusion(meta = |_kept, hidden, _gradient, kind| spec::gradients(hidden, *kind))]
    fn advanced_backward(
        kept: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: CellKind,
    ) -> StepGradients<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait StepBackend: Backend {
    /// What a step makes, packed.
    #[fusion(meta = |inputs, kind| spec::outputs(inputs, *kind).packed)]
    fn cell_stepped(#[extension_type] inputs: StepInputs<Self>, kind: CellKind) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::{CellKind, StepGradientsMetadata, StepInputsMetadata, StepOutputsMetadata, n_last, n_saved};
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn outputs(inputs: &StepInputsMetadata, kind: CellKind) -> StepOutputsMetadata {
        let (rows, d, dtype) = (inputs.hidden.shape[0], inputs.hidden.shape[1], inputs.hidden.dtype);
        StepOutputsMetadata {
            packed: TensorSpec::new([n_last(kind), rows, d].into(), dtype),
            kept: TensorSpec::new([rows, n_saved(kind) * d].into(), dtype),
        }
    }

    pub(super) fn gradients(hidden: &TensorSpec, kind: CellKind) -> StepGradientsMetadata {
        let gates = TensorSpec::new([hidden.shape[0], kind.n_gates() * hidden.shape[1]].into(), hidden.dtype);
        let nothing = TensorSpec::new([1].into(), hidden.dtype);
        StepGradientsMetadata {
            input: gates.clone(),
            product: gates,
            hidden: hidden.clone(),
            memory: if kind == CellKind::Lstm { hidden.clone() } else { nothing },
        }
    }
}

/// [`cell_step`](crate::ops::cell_step) by these kernels: the state after, and the memory of an LSTM. None where the tensors are not ones
/// of 32-bit floats on a device that has them.
///
/// # Shapes
/// - input, product: `[rows, n_gates d]`
/// - hidden, memory, outputs: `[rows, d]`
/// - bias: `[d]`, of a GRU's candidate
pub fn cell_step(
    kind: CellKind,
    [input, product, hidden]: [&Tensor<2>; 3],
    memory: Option<&Tensor<2>>,
    bias: Option<&Tensor<1>>,
) -> Option<(Tensor<2>, Option<Tensor<2>>)> {
    let [rows, d] = hidden.dims();
    let device = hidden.device();
    let input = computed(input)?;
    if !is_roomy(&input) {
        return None;
    }
    let memory = memory.cloned().unwrap_or_else(|| Tensor::empty([1, 1], &device));
    let bias = bias.cloned().unwrap_or_else(|| Tensor::empty([1], &device));
    let inputs = StepInputs::<Dispatch> {
        input,
        product: computed(product)?,
        hidden: computed(hidden)?,
        memory: computed(&memory)?,
        bias: computed(&bias)?,
    };
    let packed = Tensor::<3>::from_dispatch(Dispatch::cell_stepped(inputs, kind));
    if kind != CellKind::Lstm {
        return Some((packed.reshape([rows, d]), None));
    }
    let part = |i: usize| packed.clone().narrow(0, i, 1).reshape([rows, d]);
    Some((part(0), Some(part(1))))
}

#[derive(Clone, Debug)]
struct Step<B: Backend> {
    kept: FloatTensor<B>,
    hidden: FloatTensor<B>,
    kind: CellKind,
}

impl<B: StepKernels + ProductKernels> Kept<B, 5> for Step<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { kept, hidden, kind } = self;
        let d = hidden.shape()[1];
        let found = B::advanced_backward(kept, hidden, gradient, kind);
        let of_bias = needed[4].then(|| of_bias::<B>(found.product.clone(), d));
        [Some(found.input), Some(found.product), Some(found.hidden), Some(found.memory), of_bias]
    }
}

impl<B: StepKernels + ProductKernels, C: CheckpointStrategy> StepBackend for Autodiff<B, C> {
    fn cell_stepped(inputs: StepInputs<Self>, kind: CellKind) -> FloatTensor<Self> {
        let StepInputs { input, product, hidden, memory, bias } = inputs;
        let [input, product, hidden, memory, bias] = [input, product, hidden, memory, bias].map(|it| it.into_parts());
        let parents = [input.1, product.1, hidden.1, memory.1, bias.1];
        let [input, product, hidden, memory, bias] = [input.0, product.0, hidden.0, memory.0, bias.0];
        let inputs = StepInputs::<B> { input, product, hidden: hidden.clone(), memory, bias };
        let StepOutputs { packed, kept } = B::advanced(inputs, kind);
        node::<B, C, _, 5>(parents, packed, Step { kept, hidden, kind })
    }
}

impl StepBackend for CubeBackend {
    fn cell_stepped(inputs: StepInputs<Self>, kind: CellKind) -> FloatTensor<Self> {
        Self::advanced(inputs, kind).packed
    }
}

impl StepKernels for CubeBackend {
    fn advanced(inputs: StepInputs<Self>, kind: CellKind) -> StepOutputs<Self> {
        let StepInputs { input, product, hidden, memory, bias } = inputs;
        let [gates, hidden, memory, bias] = [input, hidden, memory, bias].map(into_contiguous);
        let [batch, d] = [0, 1].map(|axis| hidden.meta.shape()[axis]);
        let packed = new_like(&gates, [n_last(kind), batch, d].into());
        let kept = new_like(&gates, [batch, n_saved(kind) * d].into());
        let (lengths, previous) = (unused(&gates), unused(&gates));
        let sizes = [batch, 1, d];
        let forward = Forward { gates, bias, lengths, packed, previous, kept, sizes, kind, has_lengths: false };
        forward.step([hidden, memory, product], 0, Place::Alone);
        StepOutputs { packed: forward.packed, kept: forward.kept }
    }

    fn advanced_backward(
        kept: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: CellKind,
    ) -> StepGradients<Self> {
        let [kept, previous, gradient] = [kept, hidden, gradient].map(into_contiguous);
        let [batch, d] = [0, 1].map(|axis| previous.meta.shape()[axis]);
        let of_gates = new_like(&kept, [batch, kind.n_gates() * d].into());
        let of_products = if kind == CellKind::Gru { new_of_shape(&of_gates) } else { unused(&kept) };
        let lengths = unused(&kept);
        let nothing = [0; 3].map(|_| unused(&kept));
        let sizes = [batch, 1, d];
        let back = Back { kept, previous, gradient, lengths, of_gates, of_products, sizes, kind, has_lengths: false };
        let [product, hidden, memory] = back.step(nothing, 0, Place::Alone);
        StepGradients { input: back.of_gates, product, hidden, memory }
    }
}
