//! One step of a recurrent cell on a GPU as a node of burn's graph: one launch, and one on the way back.

use super::cell::{Back, Forward, Place, n_last, of_bias};
use crate::backend::gpu::kernels::node::{Kept, node};
use crate::backend::gpu::kernels::product::ProductKernels;
use crate::backend::gpu::kernels::{computed, is_roomy, new_like, new_of_shape, unused};
use crate::kernels::cell::{CellKind, n_saved};
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

/// Backends with both passes of a step alone.
///
/// # Shapes
/// - input, product: `[rows, n_gates d]`; hidden, memory: `[rows, d]`; bias: `[d]`
/// - packed: `[1, rows, d]`, or with an LSTM `[2, rows, d]`: the state after, then the memory
/// - kept: `[rows, n_saved d]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait StepKernels: Backend {
    /// What a step makes, packed, and what the cell keeps.
    #[fusion(meta = |_input, _product, hidden, _memory, _bias, kind| {
        let (rows, d) = (hidden.shape[0], hidden.shape[1]);
        let of = |shape: burn::tensor::Shape| burn::backend::fusion::custom::TensorSpec::new(shape, hidden.dtype);
        (of([n_last(*kind), rows, d].into()), of([rows, n_saved(*kind) * d].into()))
    })]
    fn advanced(
        input: FloatTensor<Self>,
        product: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: CellKind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of input, product, state and memory; without a memory, the last is of one element.
    #[fusion(meta = |_kept, hidden, _gradient, kind| {
        let (rows, d) = (hidden.shape[0], hidden.shape[1]);
        let gates = burn::backend::fusion::custom::TensorSpec::new([rows, kind.n_gates() * d].into(), hidden.dtype);
        let nothing = burn::backend::fusion::custom::TensorSpec::new([1].into(), hidden.dtype);
        let memory = if *kind == CellKind::Lstm { hidden.clone() } else { nothing };
        (gates.clone(), gates, hidden.clone(), memory)
    })]
    fn advanced_backward(
        kept: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: CellKind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait StepBackend: Backend {
    /// What a step makes, packed.
    #[fusion(meta = |_input, _product, hidden, _memory, _bias, kind| {
        let shape = [n_last(*kind), hidden.shape[0], hidden.shape[1]].into();
        burn::backend::fusion::custom::TensorSpec::new(shape, hidden.dtype)
    })]
    fn cell_stepped(
        input: FloatTensor<Self>,
        product: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: CellKind,
    ) -> FloatTensor<Self>;
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
    let (product, hidden, memory, bias) = (computed(product)?, computed(hidden)?, computed(&memory)?, computed(&bias)?);
    let packed = Tensor::<3>::from_dispatch(Dispatch::cell_stepped(input, product, hidden, memory, bias, kind));
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
        let (of_input, of_product, of_hidden, of_memory) = B::advanced_backward(kept, hidden, gradient, kind);
        let of_bias = needed[4].then(|| of_bias::<B>(of_product.clone(), d));
        [Some(of_input), Some(of_product), Some(of_hidden), Some(of_memory), of_bias]
    }
}

impl<B: StepKernels + ProductKernels, C: CheckpointStrategy> StepBackend for Autodiff<B, C> {
    fn cell_stepped(
        input: FloatTensor<Self>,
        product: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: CellKind,
    ) -> FloatTensor<Self> {
        let [input, product, hidden, memory, bias] = [input, product, hidden, memory, bias].map(|it| it.into_parts());
        let parents = [input.1, product.1, hidden.1, memory.1, bias.1];
        let (packed, kept) = B::advanced(input.0, product.0, hidden.0.clone(), memory.0, bias.0, kind);
        node::<B, C, _, 5>(parents, packed, Step { kept, hidden: hidden.0, kind })
    }
}

impl StepBackend for CubeBackend {
    fn cell_stepped(
        input: FloatTensor<Self>,
        product: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: CellKind,
    ) -> FloatTensor<Self> {
        Self::advanced(input, product, hidden, memory, bias, kind).0
    }
}

impl StepKernels for CubeBackend {
    fn advanced(
        input: FloatTensor<Self>,
        product: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        kind: CellKind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [gates, hidden, memory, bias] = [input, hidden, memory, bias].map(into_contiguous);
        let [batch, d] = [0, 1].map(|axis| hidden.meta.shape()[axis]);
        let packed = new_like(&gates, [n_last(kind), batch, d].into());
        let kept = new_like(&gates, [batch, n_saved(kind) * d].into());
        let (lengths, previous) = (unused(&gates), unused(&gates));
        let sizes = [batch, 1, d];
        let forward = Forward { gates, bias, lengths, packed, previous, kept, sizes, kind, has_lengths: false };
        forward.step([hidden, memory, product], 0, Place::Alone);
        (forward.packed, forward.kept)
    }

    fn advanced_backward(
        kept: FloatTensor<Self>,
        hidden: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        kind: CellKind,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [kept, previous, gradient] = [kept, hidden, gradient].map(into_contiguous);
        let [batch, d] = [0, 1].map(|axis| previous.meta.shape()[axis]);
        let of_gates = new_like(&kept, [batch, kind.n_gates() * d].into());
        let of_products = if kind == CellKind::Gru { new_of_shape(&of_gates) } else { unused(&kept) };
        let lengths = unused(&kept);
        let nothing = [0; 3].map(|_| unused(&kept));
        let sizes = [batch, 1, d];
        let back = Back { kept, previous, gradient, lengths, of_gates, of_products, sizes, kind, has_lengths: false };
        let [of_product, of_hidden, of_memory] = back.step(nothing, 0, Place::Alone);
        (back.of_gates, of_product, of_hidden, of_memory)
    }
}
