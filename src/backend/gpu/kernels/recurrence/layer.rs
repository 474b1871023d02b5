//! All steps of a recurrent layer on a GPU as one node of burn's graph. A step takes a product and a launch, and as many on the way back;
//! in burn's operations it takes some ten, and thirty.

use super::cell::{Back, Forward, Place, n_last, of_bias};
use crate::backend::gpu::kernels::node::{Kept, node};
use crate::backend::gpu::kernels::product::{ProductKernels, flat, transposed};
use crate::backend::gpu::kernels::{computed, is_roomy, new_like, new_of_shape, unused};
use crate::backend::gpu::{Recurrent, Unrolled};
use crate::kernels::cell::{CellKind, n_saved};
use crate::kernels::recurrence::Reading;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;

/// What a layer is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Unrolling {
    kind: CellKind,
    is_backward: bool,
    has_lengths: bool,
}

impl Unrolling {
    /// The steps in the order of reading.
    fn steps(self, len: usize) -> impl DoubleEndedIterator<Item = usize> {
        Reading { is_backward: self.is_backward, lengths: None }.steps(len)
    }
}

/// Backends with both passes of all steps.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d]`; recurrent: `[d, n_gates d]`; start, start_memory: `[batch, d]`; bias: `[d]`; lengths: `[batch]`
/// - packed: `[batch, len + 1, d]`, or with an LSTM `len + 2`: the states, then the last state, then the last memory
/// - previous: `[batch, len, d]`; kept: `[batch, len, n_saved d]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait RecurrenceKernels: Backend {
    /// What a layer makes, packed; the states before each step; and what the cell keeps.
    #[fusion(meta = |gates, _recurrent, start, _start_memory, _bias, _lengths, how| {
        let of = |len: usize, width: usize| {
            burn::backend::fusion::custom::TensorSpec::new([gates.shape[0], len, width].into(), gates.dtype)
        };
        let (len, d) = (gates.shape[1], start.shape[1]);
        (of(len + n_last(how.kind), d), of(len, d), of(len, n_saved(how.kind) * d))
    })]
    fn unrolled(
        gates: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        start: FloatTensor<Self>,
        start_memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Unrolling,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of the gates, of the products with the states, of the start and of its memory; without a memory, the last is of one
    /// element.
    #[fusion(meta = |kept, previous, recurrent, _lengths, _gradient, how| {
        let of = |shape: burn::tensor::Shape| burn::backend::fusion::custom::TensorSpec::new(shape, kept.dtype);
        let (batch, len, d) = (previous.shape[0], previous.shape[1], previous.shape[2]);
        let gates = || of([batch, len, recurrent.shape[1]].into());
        let memory = if how.kind == CellKind::Lstm { of([batch, d].into()) } else { of([1].into()) };
        (gates(), gates(), of([batch, d].into()), memory)
    })]
    fn unrolled_backward(
        kept: FloatTensor<Self>,
        previous: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Unrolling,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which all steps are an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RecurrenceBackend: Backend {
    /// What a layer makes, packed.
    #[fusion(meta = |gates, _recurrent, start, _start_memory, _bias, _lengths, how| {
        let shape = [gates.shape[0], gates.shape[1] + n_last(how.kind), start.shape[1]].into();
        burn::backend::fusion::custom::TensorSpec::new(shape, gates.dtype)
    })]
    fn recurrent_states(
        gates: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        start: FloatTensor<Self>,
        start_memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Unrolling,
    ) -> FloatTensor<Self>;
}

/// The states of a layer. None where the tensors are not ones of 32-bit floats on a device that has these kernels.
pub fn recurrent_layer(layer: Recurrent, kind: CellKind, reading: &Reading) -> Option<Unrolled> {
    let [batch, len, _] = layer.gates.dims();
    let d = layer.start.dims()[1];
    let device = layer.gates.device();
    let gates = computed(layer.gates)?;
    if len == 0 || !is_roomy(&gates) {
        return None;
    }
    let lengths = reading.cut(len).map(|lengths| Tensor::<1>::from_data(lengths.as_slice(), &device));
    let how = Unrolling { kind, is_backward: reading.is_backward, has_lengths: lengths.is_some() };
    let lengths = lengths.unwrap_or_else(|| Tensor::empty([1], &device));
    let memory = layer.start_memory.cloned().unwrap_or_else(|| Tensor::empty([1, 1], &device));
    let bias = layer.candidate_bias.cloned().unwrap_or_else(|| Tensor::empty([1], &device));
    let packed = Dispatch::recurrent_states(
        gates,
        computed(layer.recurrent)?,
        computed(layer.start)?,
        computed(&memory)?,
        computed(&bias)?,
        computed(&lengths)?,
        how,
    );
    let packed = Tensor::<3>::from_dispatch(packed);
    let vector = |at: usize| packed.clone().narrow(1, at, 1).reshape([batch, d]);
    let last_memory = (kind == CellKind::Lstm).then(|| vector(len + 1));
    Some(Unrolled { states: packed.clone().narrow(1, 0, len), last: vector(len), last_memory })
}

#[derive(Clone, Debug)]
struct Layer<B: Backend> {
    kept: FloatTensor<B>,
    previous: FloatTensor<B>,
    recurrent: FloatTensor<B>,
    lengths: FloatTensor<B>,
    how: Unrolling,
}

impl<B: RecurrenceKernels + ProductKernels> Kept<B, 5> for Layer<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { kept, previous, recurrent, lengths, how } = self;
        let (of_gates, of_products, of_start, of_memory) =
            B::unrolled_backward(kept, previous.clone(), recurrent, lengths, gradient, how);
        let d = previous.shape()[2];
        let of_recurrent =
            needed[1].then(|| B::multiplied(transposed::<B>(flat::<B>(previous)), flat::<B>(of_products.clone())));
        let of_bias = needed[4].then(|| of_bias::<B>(of_products, d));
        [Some(of_gates), of_recurrent, Some(of_start), Some(of_memory), of_bias]
    }
}

impl<B: RecurrenceKernels + ProductKernels, C: CheckpointStrategy> RecurrenceBackend for Autodiff<B, C> {
    fn recurrent_states(
        gates: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        start: FloatTensor<Self>,
        start_memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Unrolling,
    ) -> FloatTensor<Self> {
        let [gates, recurrent, start, memory, bias] =
            [gates, recurrent, start, start_memory, bias].map(|it| it.into_parts());
        let (lengths, _) = lengths.into_parts();
        let parents = [gates.1, recurrent.1, start.1, memory.1, bias.1];
        let (packed, previous, kept) =
            B::unrolled(gates.0, recurrent.0.clone(), start.0, memory.0, bias.0, lengths.clone(), how);
        node::<B, C, _, 5>(parents, packed, Layer { kept, previous, recurrent: recurrent.0, lengths, how })
    }
}

impl RecurrenceBackend for CubeBackend {
    fn recurrent_states(
        gates: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        start: FloatTensor<Self>,
        start_memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Unrolling,
    ) -> FloatTensor<Self> {
        Self::unrolled(gates, recurrent, start, start_memory, bias, lengths, how).0
    }
}

impl RecurrenceKernels for CubeBackend {
    fn unrolled(
        gates: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        start: FloatTensor<Self>,
        start_memory: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Unrolling,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [gates, bias, lengths] = [gates, bias, lengths].map(into_contiguous);
        let [mut hidden, mut memory] = [start, start_memory].map(into_contiguous);
        let [batch, len] = [0, 1].map(|axis| gates.meta.shape()[axis]);
        let d = hidden.meta.shape()[1];
        let of = |len: usize, width: usize| new_like(&gates, [batch, len, width].into());
        let (packed, previous, kept) = (of(len + n_last(how.kind), d), of(len, d), of(len, n_saved(how.kind) * d));
        let (kind, has_lengths) = (how.kind, how.has_lengths);
        let sizes = [batch, len, d];
        let forward = Forward { gates, bias, lengths, packed, previous, kept, sizes, kind, has_lengths };
        for (i, step) in how.steps(len).enumerate() {
            let product = Self::multiplied(hidden.clone(), recurrent.clone());
            let place = if i + 1 == len { Place::Last } else { Place::Within };
            [hidden, memory] = forward.step([hidden, memory, product], step, place);
        }
        (forward.packed, forward.previous, forward.kept)
    }

    fn unrolled_backward(
        kept: FloatTensor<Self>,
        previous: FloatTensor<Self>,
        recurrent: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Unrolling,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [kept, previous, lengths, gradient] = [kept, previous, lengths, gradient].map(into_contiguous);
        let [batch, len, d] = [0, 1, 2].map(|axis| previous.meta.shape()[axis]);
        let of_gates = new_like(&kept, [batch, len, recurrent.meta.shape()[1]].into());
        // But for the GRU's candidate, both parts of the gates have the same gradient.
        let of_products = if how.kind == CellKind::Gru { new_of_shape(&of_gates) } else { unused(&kept) };
        let transposed = Self::float_swap_dims(recurrent, 0, 1);
        let [mut past, mut product, mut of_memory] = [0; 3].map(|_| unused(&kept));
        let (kind, has_lengths) = (how.kind, how.has_lengths);
        let sizes = [batch, len, d];
        let back = Back { kept, previous, gradient, lengths, of_gates, of_products, sizes, kind, has_lengths };
        for (i, step) in how.steps(len).rev().enumerate() {
            let place = if i == 0 { Place::Last } else { Place::Within };
            let of_product;
            [of_product, past, of_memory] = back.step([past, product, of_memory], step, place);
            product = into_contiguous(Self::multiplied(of_product, transposed.clone()));
        }
        let Back { of_gates, of_products, .. } = back;
        let of_products = if kind == CellKind::Gru { of_products } else { of_gates.clone() };
        (of_gates, of_products, Self::float_add(past, product), of_memory)
    }
}
