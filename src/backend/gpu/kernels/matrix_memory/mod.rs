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
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use position::Form;

/// The widest head: a unit holds a column or a row of the memory, and a cube has a unit for each of them.
const WIDEST_HEAD: usize = 128;

/// What a memory is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Remembering {
    config: MemoryConfig,
    form: Form,
}

/// Which of the two outputs a gradient is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// What is read.
    Read,
    /// The memory after the last position.
    State,
}

/// Backends with both passes.
///
/// # Shapes
/// - packed: `[rows, len, n_packed d]`
/// - rates: `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`
/// - decay: `[n_heads]`; norm: `[d_head]`; state: `[rows, n_heads, d_head, d_value]`; lengths: `[rows]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait MatrixMemoryKernels: Backend {
    /// What is read, `[rows, len, d]`, and the memory after the last position; and if that `keeps` what gradients need, what was found in the memory
    /// before it was normalized and gated, and what of the values was missing in it: `[2, rows, len, n_heads, d_value]`.
    #[fusion(meta = |packed, _rates, _decay, _norm, _state, _lengths, how, keeps| spec::remembered(packed, how, *keeps))]
    #[allow(clippy::too_many_arguments)]
    fn remembered(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
        keeps: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The gradients of what is packed, of the rates, for each row of the decay, `[rows, n_heads]`, for each head of a row of the norm,
    /// `[rows n_heads, d_head]`, and of the state.
    #[fusion(meta = |packed, rates, _decay, _norm, state, _lengths, _answers, _gradient, how, _of| {
        let [of_decays, of_norms] = spec::of_parameters(packed, how);
        (packed.clone(), rates.clone(), of_decays, of_norms, state.clone())
    })]
    #[allow(clippy::too_many_arguments, clippy::type_complexity)]
    fn remembered_backward(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        answers: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Remembering,
        of: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait MatrixMemoryBackend: Backend {
    /// What is read, and the memory after the last position.
    #[fusion(meta = |packed, _rates, _decay, _norm, _state, _lengths, how| {
        let (read, after, _) = spec::remembered(packed, how, false);
        (read, after)
    })]
    fn memory_read(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use super::Remembering;
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn remembered(
        packed: &TensorSpec,
        how: &Remembering,
        keeps: bool,
    ) -> (TensorSpec, TensorSpec, TensorSpec) {
        let [rows, len, d_head, d_value] = sizes(packed, how);
        let n_heads = how.config.n_heads;
        let answers = if keeps { [2, rows, len, n_heads, d_value].into() } else { [1].into() };
        (
            TensorSpec::new([rows, len, n_heads * d_head].into(), packed.dtype),
            TensorSpec::new([rows, n_heads, d_head, d_value].into(), packed.dtype),
            TensorSpec::new(answers, packed.dtype),
        )
    }

    pub(super) fn of_parameters(packed: &TensorSpec, how: &Remembering) -> [TensorSpec; 2] {
        let [rows, _, d_head, _] = sizes(packed, how);
        let n_heads = how.config.n_heads;
        [[rows, n_heads], [rows * n_heads, d_head]].map(|shape| TensorSpec::new(shape.into(), packed.dtype))
    }

    fn sizes(packed: &TensorSpec, how: &Remembering) -> [usize; 4] {
        [packed.shape[0], packed.shape[1], how.form.d_head, how.form.rule.d_value(how.form.d_head)]
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
    let form = Form {
        rule,
        d_head,
        is_backward: reading.is_backward,
        has_lengths: lengths.is_some(),
        has_state: state.is_some(),
    };
    let nothing = || Tensor::<1>::empty([1], &device);
    let (read, after) = Dispatch::memory_read(
        packed,
        rates.map_or_else(|| computed(&nothing()), computed)?,
        decay.map_or_else(|| computed(&nothing()), computed)?,
        norm.map_or_else(|| computed(&nothing()), computed)?,
        state.map_or_else(|| computed(&nothing()), computed)?,
        computed(&lengths.unwrap_or_else(nothing))?,
        Remembering { config, form },
    );
    Some((Tensor::from_dispatch(read), Tensor::from_dispatch(after)))
}

/// What is kept for the gradients of one of the outputs. Each output has a node of its own, since a node has one; the gradients of both are added,
/// and those of a memory that nobody uses are not computed.
#[derive(Clone, Debug)]
struct Carried<B: Backend> {
    packed: FloatTensor<B>,
    rates: FloatTensor<B>,
    decay: FloatTensor<B>,
    norm: FloatTensor<B>,
    state: FloatTensor<B>,
    lengths: FloatTensor<B>,
    answers: FloatTensor<B>,
    how: Remembering,
    of: Output,
}

impl<B: MatrixMemoryKernels + ProductKernels> Kept<B, 5> for Carried<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { packed, rates, decay, norm, state, lengths, answers, how, of } = self;
        let (of_packed, of_rates, of_decays, of_norms, of_state) =
            B::remembered_backward(packed, rates, decay, norm, state, lengths, answers, gradient, how, of);
        [
            Some(of_packed),
            Some(of_rates),
            needed[2].then(|| B::summed_rows(of_decays)),
            // Zero for the memory after the last position, in which the norm has no part.
            needed[3].then(|| B::summed_rows(of_norms)),
            Some(of_state),
        ]
    }
}

impl<B: MatrixMemoryKernels + ProductKernels, C: CheckpointStrategy> MatrixMemoryBackend for Autodiff<B, C> {
    fn memory_read(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let inputs = [packed, rates, decay, norm, state];
        let parents = || inputs.clone().map(|input| input.into_parts().1);
        let (of_read, of_after) = (parents(), parents());
        let [packed, rates, decay, norm, state] = inputs.map(|input| input.into_parts().0);
        let (lengths, _) = lengths.into_parts();
        let (read, after, answers) = B::remembered(
            packed.clone(),
            rates.clone(),
            decay.clone(),
            norm.clone(),
            state.clone(),
            lengths.clone(),
            how,
            true,
        );
        let read_kept = Carried { packed, rates, decay, norm, state, lengths, answers, how, of: Output::Read };
        let after_kept = Carried { of: Output::State, ..read_kept.clone() };
        (node::<B, C, _, 5>(of_read, read, read_kept), node::<B, C, _, 5>(of_after, after, after_kept))
    }
}

impl MatrixMemoryBackend for CubeBackend {
    fn memory_read(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (read, after, _) = Self::remembered(packed, rates, decay, norm, state, lengths, how, false);
        (read, after)
    }
}

impl MatrixMemoryKernels for CubeBackend {
    fn remembered(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Remembering,
        keeps: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        forward::remembered([packed, rates, decay, norm, state, lengths], how, keeps)
    }

    fn remembered_backward(
        packed: FloatTensor<Self>,
        rates: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        state: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        answers: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Remembering,
        of: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let inputs = [packed, rates, decay, norm, state, lengths, answers];
        backward::remembered_backward(inputs, gradient, how, of)
    }
}
