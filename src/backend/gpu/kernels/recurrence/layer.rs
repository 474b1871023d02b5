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
use burn::backend::{Autodiff, Backend, Dispatch, ExtensionType, TensorMetadata, backend_extension};
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

/// The tensors of a layer.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct LayerInputs<B: Backend> {
    /// `[batch, len, n_gates d]`.
    pub gates: FloatTensor<B>,
    /// `[d, n_gates d]`.
    pub recurrent: FloatTensor<B>,
    /// `[batch, d]`.
    pub start: FloatTensor<B>,
    /// `[batch, d]`, of an LSTM.
    pub start_memory: FloatTensor<B>,
    /// `[d]`, of a GRU's candidate.
    pub bias: FloatTensor<B>,
    /// `[batch]`.
    pub lengths: FloatTensor<B>,
}

/// What a layer makes.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct LayerOutputs<B: Backend> {
    /// The states, then the last state, then of an LSTM the last memory: `[batch, len + 1, d]`, or `len + 2`.
    pub packed: FloatTensor<B>,
    /// What gradients need of it.
    #[extension_type]
    pub saved: LayerSaved<B>,
}

/// What the gradients of a layer need of the way forward.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct LayerSaved<B: Backend> {
    /// The states before each step, `[batch, len, d]`.
    pub previous: FloatTensor<B>,
    /// What the cell keeps, `[batch, len, n_saved d]`.
    pub kept: FloatTensor<B>,
}

/// The gradients that the steps back find.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct LayerGradients<B: Backend> {
    /// Of the gates.
    pub gates: FloatTensor<B>,
    /// Of the products with the states, as the gates.
    pub products: FloatTensor<B>,
    /// Of the start.
    pub start: FloatTensor<B>,
    /// Of its memory; without one, of one element.
    pub start_memory: FloatTensor<B>,
}

/// Backends with both passes of all steps.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait RecurrenceKernels: Backend {
    /// What a layer makes.
    #[fusion(meta = |inputs, how| spec::outputs(inputs, how))]
    fn unrolled(#[extension_type] inputs: LayerInputs<Self>, how: Unrolling) -> LayerOutputs<Self>;

    /// The gradients, from that of what is packed.
    #[fusion(meta = |saved, recurrent, _lengths, _gradient, how| spec::gradients(saved, recurrent, how))]
    fn unrolled_backward(
        #[extension_type] saved: LayerSaved<Self>,
        recurrent: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Unrolling,
    ) -> LayerGradients<Self>;
}

/// Backends on which all steps are an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RecurrenceBackend: Backend {
    /// What a layer makes, packed.
    #[fusion(meta = |inputs, how| spec::outputs(inputs, how).packed)]
    fn recurrent_states(#[extension_type] inputs: LayerInputs<Self>, how: Unrolling) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::{CellKind, LayerGradientsMetadata, LayerInputsMetadata, LayerOutputsMetadata, LayerSavedMetadata};
    use super::{Unrolling, n_last, n_saved};
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn outputs(inputs: &LayerInputsMetadata, how: &Unrolling) -> LayerOutputsMetadata {
        let LayerInputsMetadata { gates, start, .. } = inputs;
        let of = |len: usize, width: usize| TensorSpec::new([gates.shape[0], len, width].into(), gates.dtype);
        let (len, d) = (gates.shape[1], start.shape[1]);
        LayerOutputsMetadata {
            packed: of(len + n_last(how.kind), d),
            saved: LayerSavedMetadata { previous: of(len, d), kept: of(len, n_saved(how.kind) * d) },
        }
    }

    pub(super) fn gradients(
        saved: &LayerSavedMetadata,
        recurrent: &TensorSpec,
        how: &Unrolling,
    ) -> LayerGradientsMetadata {
        let previous = &saved.previous;
        let of = |shape: burn::tensor::Shape| TensorSpec::new(shape, previous.dtype);
        let (batch, len, d) = (previous.shape[0], previous.shape[1], previous.shape[2]);
        let gates = of([batch, len, recurrent.shape[1]].into());
        LayerGradientsMetadata {
            products: gates.clone(),
            gates,
            start: of([batch, d].into()),
            start_memory: if how.kind == CellKind::Lstm { of([batch, d].into()) } else { of([1].into()) },
        }
    }
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
    let inputs = LayerInputs::<Dispatch> {
        gates,
        recurrent: computed(layer.recurrent)?,
        start: computed(layer.start)?,
        start_memory: computed(&memory)?,
        bias: computed(&bias)?,
        lengths: computed(&lengths)?,
    };
    let packed = Tensor::<3>::from_dispatch(Dispatch::recurrent_states(inputs, how));
    let vector = |at: usize| packed.clone().narrow(1, at, 1).reshape([batch, d]);
    let last_memory = (kind == CellKind::Lstm).then(|| vector(len + 1));
    Some(Unrolled { states: packed.clone().narrow(1, 0, len), last: vector(len), last_memory })
}

#[derive(Clone, Debug)]
struct Layer<B: Backend> {
    saved: LayerSaved<B>,
    recurrent: FloatTensor<B>,
    lengths: FloatTensor<B>,
    how: Unrolling,
}

impl<B: RecurrenceKernels + ProductKernels> Kept<B, 5> for Layer<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { saved, recurrent, lengths, how } = self;
        let previous = saved.previous.clone();
        let found = B::unrolled_backward(saved, recurrent, lengths, gradient, how);
        let d = previous.shape()[2];
        let of_recurrent =
            needed[1].then(|| B::multiplied(transposed::<B>(flat::<B>(previous)), flat::<B>(found.products.clone())));
        let of_bias = needed[4].then(|| of_bias::<B>(found.products, d));
        [Some(found.gates), of_recurrent, Some(found.start), Some(found.start_memory), of_bias]
    }
}

impl<B: RecurrenceKernels + ProductKernels, C: CheckpointStrategy> RecurrenceBackend for Autodiff<B, C> {
    fn recurrent_states(inputs: LayerInputs<Self>, how: Unrolling) -> FloatTensor<Self> {
        let LayerInputs { gates, recurrent, start, start_memory, bias, lengths } = inputs;
        let [gates, recurrent, start, start_memory, bias] =
            [gates, recurrent, start, start_memory, bias].map(|it| it.into_parts());
        let parents = [gates.1, recurrent.1, start.1, start_memory.1, bias.1];
        let (lengths, _) = lengths.into_parts();
        let LayerOutputs { packed, saved } = B::unrolled(
            LayerInputs {
                gates: gates.0,
                recurrent: recurrent.0.clone(),
                start: start.0,
                start_memory: start_memory.0,
                bias: bias.0,
                lengths: lengths.clone(),
            },
            how,
        );
        node::<B, C, _, 5>(parents, packed, Layer { saved, recurrent: recurrent.0, lengths, how })
    }
}

impl RecurrenceBackend for CubeBackend {
    fn recurrent_states(inputs: LayerInputs<Self>, how: Unrolling) -> FloatTensor<Self> {
        Self::unrolled(inputs, how).packed
    }
}

impl RecurrenceKernels for CubeBackend {
    fn unrolled(inputs: LayerInputs<Self>, how: Unrolling) -> LayerOutputs<Self> {
        let LayerInputs { gates, recurrent, start, start_memory, bias, lengths } = inputs;
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
        let Forward { packed, previous, kept, .. } = forward;
        LayerOutputs { packed, saved: LayerSaved { previous, kept } }
    }

    fn unrolled_backward(
        saved: LayerSaved<Self>,
        recurrent: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Unrolling,
    ) -> LayerGradients<Self> {
        let [kept, previous, lengths, gradient] = [saved.kept, saved.previous, lengths, gradient].map(into_contiguous);
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
        let Back { of_gates: gates, of_products, .. } = back;
        let products = if kind == CellKind::Gru { of_products } else { gates.clone() };
        LayerGradients { gates, products, start: Self::float_add(past, product), start_memory: of_memory }
    }
}
