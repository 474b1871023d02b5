//! All steps of a recurrent layer on a GPU as one node: a product and one launch for a step, and as many on the way back, where burn's
//! operations take some ten and thirty.

use super::cube::unit_for_each;
use super::node::{Kept, node};
use super::{computed, is_roomy, new_like, unused};
use crate::backend::gpu::{Recurrent, Unrolled};
use crate::kernels::cell::{CellKind, n_saved};
use crate::kernels::recurrence::Reading;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// What a layer is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Unrolling {
    kind: CellKind,
    is_backward: bool,
    has_lengths: bool,
}

/// Vectors that a cell carries: the state, and the memory.
fn n_last(kind: CellKind) -> usize {
    if kind == CellKind::Lstm { 2 } else { 1 }
}

impl Unrolling {
    /// Vectors beside the states: the last state, and the last memory.
    fn n_last(self) -> usize {
        n_last(self.kind)
    }

    /// The steps in the order of reading.
    fn steps(self, len: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..len).map(move |i| if self.is_backward { len - 1 - i } else { i })
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
        (of(len + how.n_last(), d), of(len, d), of(len, n_saved(how.kind) * d))
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
    #[fusion(meta = |kept, previous, recurrent, _lengths, _gradient, _how| {
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

/// Backends on which all steps are an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait RecurrenceBackend: Backend {
    /// What a layer makes, packed.
    #[fusion(meta = |gates, _recurrent, start, _start_memory, _bias, _lengths, how| {
        let shape = [gates.shape[0], gates.shape[1] + how.n_last(), start.shape[1]].into();
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
    let lengths: Option<Vec<f32>> =
        reading.lengths.as_ref().map(|lengths| lengths.iter().map(|length| *length as f32).collect());
    let how = Unrolling { kind, is_backward: reading.is_backward, has_lengths: lengths.is_some() };
    let lengths = match lengths {
        Some(lengths) => Tensor::<1>::from_data(lengths.as_slice(), &device),
        None => Tensor::empty([1], &device),
    };
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

/// The gradient of the candidate's bias, from those of the products with states.
fn of_bias<B: Backend>(of_products: FloatTensor<B>, d: usize) -> FloatTensor<B> {
    // The candidate's part comes last.
    B::float_slice(B::linear_bias_backward(of_products), &[burn::tensor::Slice::from(2 * d..3 * d)])
}

impl<B: StepKernels> Kept<B, 5> for Step<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { kept, hidden, kind } = self;
        let d = hidden.shape()[1];
        let (of_input, of_product, of_hidden, of_memory) = B::advanced_backward(kept, hidden, gradient, kind);
        let of_bias = needed[4].then(|| of_bias::<B>(of_product.clone(), d));
        [Some(of_input), Some(of_product), Some(of_hidden), Some(of_memory), of_bias]
    }
}

impl<B: StepKernels, C: CheckpointStrategy> StepBackend for Autodiff<B, C> {
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

#[derive(Clone, Debug)]
struct Layer<B: Backend> {
    kept: FloatTensor<B>,
    previous: FloatTensor<B>,
    recurrent: FloatTensor<B>,
    lengths: FloatTensor<B>,
    how: Unrolling,
}

impl<B: RecurrenceKernels> Kept<B, 5> for Layer<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 5]) -> [Option<FloatTensor<B>>; 5] {
        let Self { kept, previous, recurrent, lengths, how } = self;
        let (of_gates, of_products, of_start, of_memory) =
            B::unrolled_backward(kept, previous.clone(), recurrent, lengths, gradient, how);
        let d = previous.shape()[2];
        let of_recurrent = needed[1].then(|| B::linear_weight_backward(previous, of_products.clone()));
        let of_bias = needed[4].then(|| of_bias::<B>(of_products, d));
        [Some(of_gates), of_recurrent, Some(of_start), Some(of_memory), of_bias]
    }
}

impl<B: RecurrenceKernels, C: CheckpointStrategy> RecurrenceBackend for Autodiff<B, C> {
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

/// Where a step stands: a kernel writes and reads accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// No step after it has said anything of its state; on the way forward, the last of its layer.
    Last,
    /// Others come after it in its layer.
    Within,
    /// It is no part of a layer.
    Alone,
}

/// What is read and written at every step of the way forward.
struct Forward {
    gates: CubeTensor,
    bias: CubeTensor,
    lengths: CubeTensor,
    packed: CubeTensor,
    previous: CubeTensor,
    kept: CubeTensor,
    /// `[batch, len, d]`.
    sizes: [usize; 3],
    kind: CellKind,
    has_lengths: bool,
}

impl Forward {
    /// The state and the memory after a step.
    fn step(&self, [hidden, memory, product]: [CubeTensor; 3], step: usize, place: Place) -> [CubeTensor; 2] {
        let [batch, len, d] = self.sizes;
        let client = self.gates.client.clone();
        let next = match place {
            Place::Alone => unused(&self.gates),
            _ => new_like(&self.gates, [batch, d].into()),
        };
        let next_memory = match self.kind {
            CellKind::Lstm => next_of(&next),
            _ => unused(&self.gates),
        };
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        advance::launch(
            &client,
            cube_count,
            cube_dim,
            self.gates.clone().into_buffer_arg(),
            into_contiguous(product).into_buffer_arg(),
            self.bias.clone().into_buffer_arg(),
            hidden.into_buffer_arg(),
            memory.into_buffer_arg(),
            self.lengths.clone().into_buffer_arg(),
            next.clone().into_buffer_arg(),
            next_memory.clone().into_buffer_arg(),
            self.packed.clone().into_buffer_arg(),
            self.previous.clone().into_buffer_arg(),
            self.kept.clone().into_buffer_arg(),
            batch * d,
            len,
            d,
            step,
            place,
            self.has_lengths,
            self.kind,
        );
        [next, next_memory]
    }
}

/// What is read and written at every step of the way back.
struct Back {
    kept: CubeTensor,
    previous: CubeTensor,
    gradient: CubeTensor,
    lengths: CubeTensor,
    of_gates: CubeTensor,
    of_products: CubeTensor,
    sizes: [usize; 3],
    kind: CellKind,
    has_lengths: bool,
}

impl Back {
    /// The gradients of the product with the state, of the state past that product, and of the memory.
    fn step(&self, [past, product, of_memory]: [CubeTensor; 3], step: usize, place: Place) -> [CubeTensor; 3] {
        let [batch, len, d] = self.sizes;
        let client = self.kept.client.clone();
        let new_past = new_like(&self.kept, [batch, d].into());
        let new_memory = if self.kind == CellKind::Lstm { next_of(&new_past) } else { unused(&self.kept) };
        let of_product = new_like(&self.kept, [batch, self.kind.n_gates() * d].into());
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        go_back::launch(
            &client,
            cube_count,
            cube_dim,
            self.kept.clone().into_buffer_arg(),
            self.previous.clone().into_buffer_arg(),
            self.gradient.clone().into_buffer_arg(),
            self.lengths.clone().into_buffer_arg(),
            past.into_buffer_arg(),
            product.into_buffer_arg(),
            of_memory.into_buffer_arg(),
            self.of_gates.clone().into_buffer_arg(),
            self.of_products.clone().into_buffer_arg(),
            of_product.clone().into_buffer_arg(),
            new_past.clone().into_buffer_arg(),
            new_memory.clone().into_buffer_arg(),
            batch * d,
            len,
            d,
            step,
            place,
            self.has_lengths,
            self.kind,
        );
        [of_product, new_past, new_memory]
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
        let (packed, previous, kept) = (of(len + how.n_last(), d), of(len, d), of(len, n_saved(how.kind) * d));
        let (kind, has_lengths) = (how.kind, how.has_lengths);
        let sizes = [batch, len, d];
        let forward = Forward { gates, bias, lengths, packed, previous, kept, sizes, kind, has_lengths };
        for (i, step) in how.steps(len).enumerate() {
            let product = Self::float_matmul(hidden.clone(), recurrent.clone());
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
        let of_products = if how.kind == CellKind::Gru { next_of(&of_gates) } else { unused(&kept) };
        let transposed = Self::float_swap_dims(recurrent, 0, 1);
        let [mut past, mut product, mut of_memory] = [0; 3].map(|_| unused(&kept));
        let (kind, has_lengths) = (how.kind, how.has_lengths);
        let sizes = [batch, len, d];
        let back = Back { kept, previous, gradient, lengths, of_gates, of_products, sizes, kind, has_lengths };
        for (i, step) in how.steps(len).rev().enumerate() {
            let place = if i == 0 { Place::Last } else { Place::Within };
            let of_product;
            [of_product, past, of_memory] = back.step([past, product, of_memory], step, place);
            product = into_contiguous(Self::float_matmul(of_product, transposed.clone()));
        }
        let Back { of_gates, of_products, .. } = back;
        let of_products = if kind == CellKind::Gru { of_products } else { of_gates.clone() };
        (of_gates, of_products, Self::float_add(past, product), of_memory)
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
        let of_products = if kind == CellKind::Gru { next_of(&of_gates) } else { unused(&kept) };
        let lengths = unused(&kept);
        let nothing = [0; 3].map(|_| unused(&kept));
        let sizes = [batch, 1, d];
        let back = Back { kept, previous, gradient, lengths, of_gates, of_products, sizes, kind, has_lengths: false };
        let [of_product, of_hidden, of_memory] = back.step(nothing, 0, Place::Alone);
        (back.of_gates, of_product, of_hidden, of_memory)
    }
}

/// Memory for another tensor of the same shape.
fn next_of(like: &CubeTensor) -> CubeTensor {
    new_like(like, like.meta.shape().clone())
}

#[cube]
fn logistic(x: f32) -> f32 {
    1.0f32 / (1.0f32 + (-x).exp())
}

/// Each unit an element of a state. The equations are those of [`Cell`](crate::layers::recurrent::Cell).
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube(launch)]
fn advance(
    gates: &[f32],
    product: &[f32],
    bias: &[f32],
    hidden: &[f32],
    memory: &[f32],
    lengths: &[f32],
    next: &mut [f32],
    next_memory: &mut [f32],
    packed: &mut [f32],
    previous: &mut [f32],
    kept: &mut [f32],
    n: usize,
    len: usize,
    d: usize,
    step: usize,
    #[comptime] place: Place,
    #[comptime] has_lengths: bool,
    #[comptime] kind: CellKind,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let sentence = at / d;
        let i = at % d;
        let n_gates = comptime!(kind.n_gates()).runtime();
        let vectors = comptime!(n_saved(kind)).runtime();
        let n_last = comptime!(n_last(kind)).runtime();
        let input = (sentence * len + step) * n_gates * d + i;
        let own = sentence * n_gates * d + i;
        let save = (sentence * len + step) * vectors * d + i;
        let old = hidden[at];
        let mut new = old;
        let mut new_memory = 0.0f32;
        if comptime!(kind == CellKind::Vanilla) {
            new = (gates[input] + product[own]).tanh();
            kept[save] = new;
        } else if comptime!(kind == CellKind::Gru) {
            let reset = logistic(gates[input] + product[own]);
            let update = logistic(gates[input + d] + product[own + d]);
            let inner = product[own + 2 * d] + bias[i];
            let candidate = (gates[input + 2 * d] + reset * inner).tanh();
            new = candidate + update * (old - candidate);
            kept[save] = reset;
            kept[save + d] = update;
            kept[save + 2 * d] = candidate;
            kept[save + 3 * d] = inner;
        } else {
            let enter = logistic(gates[input] + product[own]);
            let forget = logistic(gates[input + d] + product[own + d]);
            let leave = logistic(gates[input + 2 * d] + product[own + 2 * d]);
            let candidate = (gates[input + 3 * d] + product[own + 3 * d]).tanh();
            new_memory = forget * memory[at] + enter * candidate;
            let squashed = new_memory.tanh();
            new = leave * squashed;
            kept[save] = enter;
            kept[save + d] = forget;
            kept[save + 2 * d] = leave;
            kept[save + 3 * d] = candidate;
            kept[save + 4 * d] = squashed;
            kept[save + 5 * d] = memory[at];
        }
        let mut shown = new;
        if has_lengths {
            let is_real = f32::cast_from(step) < lengths[sentence];
            shown = select(is_real, new, 0.0f32);
            new = select(is_real, new, old);
            if comptime!(kind == CellKind::Lstm) {
                new_memory = select(is_real, new_memory, memory[at]);
            }
        }
        if comptime!(place == Place::Alone) {
            packed[at] = new;
            if comptime!(kind == CellKind::Lstm) {
                packed[n + at] = new_memory;
            }
        } else {
            previous[(sentence * len + step) * d + i] = old;
            let start = sentence * (len + n_last) * d + i;
            packed[start + step * d] = shown;
            next[at] = new;
            if comptime!(kind == CellKind::Lstm) {
                next_memory[at] = new_memory;
            }
            if comptime!(place == Place::Last) {
                packed[start + len * d] = new;
                if comptime!(kind == CellKind::Lstm) {
                    packed[start + (len + 1) * d] = new_memory;
                }
            }
        }
    }
}

/// Each unit an element of a state.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube(launch)]
fn go_back(
    kept: &[f32],
    previous: &[f32],
    gradient: &[f32],
    lengths: &[f32],
    past: &[f32],
    product: &[f32],
    of_memory: &[f32],
    of_gates: &mut [f32],
    of_products: &mut [f32],
    of_product: &mut [f32],
    new_past: &mut [f32],
    new_memory: &mut [f32],
    n: usize,
    len: usize,
    d: usize,
    step: usize,
    #[comptime] place: Place,
    #[comptime] has_lengths: bool,
    #[comptime] kind: CellKind,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let sentence = at / d;
        let i = at % d;
        let n_gates = comptime!(kind.n_gates()).runtime();
        let vectors = comptime!(n_saved(kind)).runtime();
        let n_last = comptime!(n_last(kind)).runtime();
        let output = (sentence * len + step) * n_gates * d + i;
        let own = sentence * n_gates * d + i;
        let save = (sentence * len + step) * vectors * d + i;
        let start = sentence * (len + n_last) * d + i;
        // What the steps after this one say of the state, and of the memory.
        let mut carried = 0.0f32;
        let mut of_memory_after = 0.0f32;
        let mut of_shown = 0.0f32;
        if comptime!(place == Place::Alone) {
            carried = gradient[at];
            if comptime!(kind == CellKind::Lstm) {
                of_memory_after = gradient[n + at];
            }
        } else {
            of_shown = gradient[start + step * d];
            if comptime!(place == Place::Last) {
                carried = gradient[start + len * d];
                if comptime!(kind == CellKind::Lstm) {
                    of_memory_after = gradient[start + (len + 1) * d];
                }
            } else {
                carried = past[at] + product[at];
                if comptime!(kind == CellKind::Lstm) {
                    of_memory_after = of_memory[at];
                }
            }
        }
        let mut is_real = true;
        if has_lengths {
            is_real = f32::cast_from(step) < lengths[sentence];
        }
        let g = carried + of_shown;
        let old = previous[(sentence * len + step) * d + i];
        let mut direct = 0.0f32;
        let mut of_memory_before = 0.0f32;
        if comptime!(kind == CellKind::Vanilla) {
            let h = kept[save];
            let of_sum = select(is_real, g * (1.0f32 - h * h), 0.0f32);
            of_gates[output] = of_sum;
            of_product[own] = of_sum;
        } else if comptime!(kind == CellKind::Gru) {
            let reset = kept[save];
            let update = kept[save + d];
            let candidate = kept[save + 2 * d];
            let inner = kept[save + 3 * d];
            let of_candidate = select(is_real, g * (1.0f32 - update) * (1.0f32 - candidate * candidate), 0.0f32);
            let of_reset = select(is_real, of_candidate * inner * reset * (1.0f32 - reset), 0.0f32);
            let of_update = select(is_real, g * (old - candidate) * update * (1.0f32 - update), 0.0f32);
            direct = g * update;
            of_gates[output] = of_reset;
            of_gates[output + d] = of_update;
            of_gates[output + 2 * d] = of_candidate;
            of_products[output] = of_reset;
            of_products[output + d] = of_update;
            of_products[output + 2 * d] = of_candidate * reset;
            of_product[own] = of_reset;
            of_product[own + d] = of_update;
            of_product[own + 2 * d] = of_candidate * reset;
        } else {
            let enter = kept[save];
            let forget = kept[save + d];
            let leave = kept[save + 2 * d];
            let candidate = kept[save + 3 * d];
            let squashed = kept[save + 4 * d];
            let before = kept[save + 5 * d];
            let of_c = of_memory_after + g * leave * (1.0f32 - squashed * squashed);
            let of_enter = select(is_real, of_c * candidate * enter * (1.0f32 - enter), 0.0f32);
            let of_forget = select(is_real, of_c * before * forget * (1.0f32 - forget), 0.0f32);
            let of_leave = select(is_real, g * squashed * leave * (1.0f32 - leave), 0.0f32);
            let of_candidate = select(is_real, of_c * enter * (1.0f32 - candidate * candidate), 0.0f32);
            of_memory_before = select(is_real, of_c * forget, of_memory_after);
            of_gates[output] = of_enter;
            of_gates[output + d] = of_forget;
            of_gates[output + 2 * d] = of_leave;
            of_gates[output + 3 * d] = of_candidate;
            of_product[own] = of_enter;
            of_product[own + d] = of_forget;
            of_product[own + 2 * d] = of_leave;
            of_product[own + 3 * d] = of_candidate;
        }
        new_past[at] = select(is_real, direct, carried);
        if comptime!(kind == CellKind::Lstm) {
            new_memory[at] = of_memory_before;
        }
    }
}
