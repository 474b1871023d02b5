//! Memories that are matrices, on a GPU: one launch for all positions, as many as a step of a decoder reads or a whole sentence, and three for
//! the gradients of an output, where burn's operations take some hundred. Each head of a row is carried from position to position.

mod backward;
mod forward;
mod position;

use super::node::{Kept, node};
use super::product::ProductKernels;
use super::{computed, is_roomy};
use crate::backend::gpu::Remembered;
use crate::kernels::matrix_memory::{MemoryConfig, Rule};
use crate::kernels::recurrence::Reading;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, ExtensionType, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use position::Form;

/// The widest head: a unit holds a column or a row of the memory, and a cube has a unit for each of them.
const WIDEST_HEAD: usize = 128;

/// What a memory is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Remembering {
    config: MemoryConfig,
    form: Form,
    is_backward: bool,
    has_lengths: bool,
    has_state: bool,
}

/// Which of the two outputs a gradient is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// What is read.
    Read,
    /// The memory after the last position.
    State,
}

/// The tensors that a memory is read with; those that it does not have are of one element.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct MemoryInputs<B: Backend> {
    /// `[rows, len, n_packed d]`.
    pub packed: FloatTensor<B>,
    /// `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`.
    pub rates: FloatTensor<B>,
    /// `[n_heads]`.
    pub decay: FloatTensor<B>,
    /// `[d_head]`.
    pub norm: FloatTensor<B>,
    /// `[rows, n_heads, d_head, d_value]`.
    pub state: FloatTensor<B>,
    /// `[rows]`.
    pub lengths: FloatTensor<B>,
}

impl MemoryInputs<CubeBackend> {
    fn contiguous(self) -> Self {
        let Self { packed, rates, decay, norm, state, lengths } = self;
        let [packed, rates, decay, norm, state, lengths] =
            [packed, rates, decay, norm, state, lengths].map(into_contiguous);
        Self { packed, rates, decay, norm, state, lengths }
    }
}

/// What is found in it.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct MemoryOutputs<B: Backend> {
    /// What is read, `[rows, len, d]`.
    pub read: FloatTensor<B>,
    /// The memory after the last position.
    pub after: FloatTensor<B>,
    /// What gradients need: what was found in the memory before it was normalized and gated, and what of the values was missing in it,
    /// `[2, rows, len, n_heads, d_value]`.
    pub answers: FloatTensor<B>,
}

/// The gradients of the inputs.
#[derive(Clone, Debug, ExtensionType)]
#[cfg_attr(feature = "fusion", extension_type(fusion))]
pub struct MemoryGradients<B: Backend> {
    /// Of what is packed.
    pub packed: FloatTensor<B>,
    /// Of the rates.
    pub rates: FloatTensor<B>,
    /// For each row of the decay, `[rows, n_heads]`.
    pub decays: FloatTensor<B>,
    /// For each head of a row of the norm, `[rows n_heads, d_head]`.
    pub norms: FloatTensor<B>,
    /// Of the state.
    pub state: FloatTensor<B>,
}

/// Backends with both passes.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait MatrixMemoryKernels: Backend {
    /// What is found; the answers of one element, where it does not `keep` them.
    #[fusion(meta = |inputs, how, keeps| spec::outputs(inputs, how, *keeps))]
    fn remembered(#[extension_type] inputs: MemoryInputs<Self>, how: Remembering, keeps: bool) -> MemoryOutputs<Self>;

    /// The gradients, from that of one of the outputs.
    #[fusion(meta = |inputs, _answers, _gradient, how, _of| spec::gradients(inputs, how))]
    fn remembered_backward(
        #[extension_type] inputs: MemoryInputs<Self>,
        answers: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Remembering,
        of: Output,
    ) -> MemoryGradients<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait MatrixMemoryBackend: Backend {
    /// What is read, and the memory after the last position.
    #[fusion(meta = |inputs, how| {
        let MemoryOutputsMetadata { read, after, .. } = spec::outputs(inputs, how, false);
        (read, after)
    })]
    fn memory_read(
        #[extension_type] inputs: MemoryInputs<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::{MemoryGradientsMetadata, MemoryInputsMetadata, MemoryOutputsMetadata, Remembering};
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn outputs(inputs: &MemoryInputsMetadata, how: &Remembering, keeps: bool) -> MemoryOutputsMetadata {
        let packed = &inputs.packed;
        let [rows, len] = [packed.shape[0], packed.shape[1]];
        let (n_heads, d_head) = (how.config.n_heads, how.form.d_head);
        let d_value = how.form.rule.d_value(d_head);
        let answers = if keeps { [2, rows, len, n_heads, d_value].into() } else { [1].into() };
        MemoryOutputsMetadata {
            read: TensorSpec::new([rows, len, n_heads * d_head].into(), packed.dtype),
            after: TensorSpec::new([rows, n_heads, d_head, d_value].into(), packed.dtype),
            answers: TensorSpec::new(answers, packed.dtype),
        }
    }

    pub(super) fn gradients(inputs: &MemoryInputsMetadata, how: &Remembering) -> MemoryGradientsMetadata {
        let MemoryInputsMetadata { packed, rates, state, .. } = inputs.clone();
        let (rows, n_heads) = (packed.shape[0], how.config.n_heads);
        MemoryGradientsMetadata {
            decays: TensorSpec::new([rows, n_heads].into(), packed.dtype),
            norms: TensorSpec::new([rows * n_heads, how.form.d_head].into(), packed.dtype),
            packed,
            rates,
            state,
        }
    }
}

/// [`matrix_memory`](crate::ops::matrix_memory()) by these kernels. None where heads are wide, or where the tensors are not ones of 32-bit floats
/// on a device that has them.
pub fn matrix_memory(config: MemoryConfig, memory: &Remembered, reading: &Reading) -> Option<(Tensor<3>, Tensor<4>)> {
    let Remembered { packed, rates, decay, norm, state } = *memory;
    let device = packed.device();
    let [rows, len, width] = packed.dims();
    let MemoryConfig { rule, n_heads, .. } = config;
    let d = width / rule.n_packed();
    let d_head = d / n_heads;
    let of_rates = if rule == Rule::GatedLinear { d } else { rule.n_rates() * n_heads };
    let of_state = [rows, n_heads, d_head, rule.d_value(d_head)];
    assert!(
        width == rule.n_packed() * d
            && d.is_multiple_of(n_heads)
            && rates.map(Tensor::dims) == (rule != Rule::Linear).then_some([rows, len, of_rates])
            && decay.map(Tensor::dims) == (rule == Rule::GatedDelta).then_some([n_heads])
            && norm.map(Tensor::dims) == (rule != Rule::Linear).then_some([d_head])
            && state.is_none_or(|state| state.dims() == of_state),
        "{rule:?} of {n_heads} heads: {memory:?}"
    );
    let packed = computed(packed)?;
    if rows * len == 0 || d_head > WIDEST_HEAD || !is_roomy(&packed) {
        return None;
    }
    let lengths = reading.cut(len).map(|lengths| Tensor::<1>::from_data(lengths.as_slice(), &device));
    let how = Remembering {
        config,
        form: Form { rule, d_head },
        is_backward: reading.is_backward,
        has_lengths: lengths.is_some(),
        has_state: state.is_some(),
    };
    let nothing = || Tensor::<1>::empty([1], &device);
    let inputs = MemoryInputs::<Dispatch> {
        packed,
        rates: rates.map_or_else(|| computed(&nothing()), computed)?,
        decay: decay.map_or_else(|| computed(&nothing()), computed)?,
        norm: norm.map_or_else(|| computed(&nothing()), computed)?,
        state: state.map_or_else(|| computed(&nothing()), computed)?,
        lengths: computed(&lengths.unwrap_or_else(nothing))?,
    };
    let (read, after) = Dispatch::memory_read(inputs, how);
    Some((Tensor::from_dispatch(read), Tensor::from_dispatch(after)))
}

/// What is kept for the gradients of one of the outputs. Each output has a node of its own, since a node has one; the gradients of both are added,
/// and those of a memory that nobody uses are not computed.
#[derive(Clone, Debug)]
struct Carried<B: Backend> {
    inputs: MemoryInputs<B>,
    answers: FloatTensor<B>,
    how: Remembering,
    of: Output,
}

impl<B: MatrixMemoryKernels + ProductKernels> Kept<B, 5> for Carried<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { inputs, answers, how, of } = self;
        let found = B::remembered_backward(inputs, answers, gradient, how, of);
        [
            Some(found.packed),
            Some(found.rates),
            needed[2].then(|| B::summed_rows(found.decays)),
            // Zero for the memory after the last position, in which the norm has no part.
            needed[3].then(|| B::summed_rows(found.norms)),
            Some(found.state),
        ]
    }
}

impl<B: MatrixMemoryKernels + ProductKernels, C: CheckpointStrategy> MatrixMemoryBackend for Autodiff<B, C> {
    fn memory_read(inputs: MemoryInputs<Self>, how: Remembering) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let MemoryInputs { packed, rates, decay, norm, state, lengths } = inputs;
        let inputs = [packed, rates, decay, norm, state];
        let parents = || inputs.clone().map(|input| input.into_parts().1);
        let (of_read, of_after) = (parents(), parents());
        let [packed, rates, decay, norm, state] = inputs.map(|input| input.into_parts().0);
        let (lengths, _) = lengths.into_parts();
        let inputs = MemoryInputs::<B> { packed, rates, decay, norm, state, lengths };
        let MemoryOutputs { read, after, answers } = B::remembered(inputs.clone(), how, true);
        let read_kept = Carried { inputs, answers, how, of: Output::Read };
        let after_kept = Carried { of: Output::State, ..read_kept.clone() };
        (node::<B, C, _, 5>(of_read, read, read_kept), node::<B, C, _, 5>(of_after, after, after_kept))
    }
}

impl MatrixMemoryBackend for CubeBackend {
    fn memory_read(inputs: MemoryInputs<Self>, how: Remembering) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let MemoryOutputs { read, after, .. } = Self::remembered(inputs, how, false);
        (read, after)
    }
}

impl MatrixMemoryKernels for CubeBackend {
    fn remembered(inputs: MemoryInputs<Self>, how: Remembering, keeps: bool) -> MemoryOutputs<Self> {
        forward::remembered(inputs, how, keeps)
    }

    fn remembered_backward(
        inputs: MemoryInputs<Self>,
        answers: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Remembering,
        of: Output,
    ) -> MemoryGradients<Self> {
        backward::remembered_backward(inputs, answers, gradient, how, of)
    }
}
