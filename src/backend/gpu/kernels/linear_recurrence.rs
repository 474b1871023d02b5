//! Linear recurrences on a GPU: one launch, and one for all gradients, where burn's operations take thirty and more, most of them in a scan
//! whose passes grow with the logarithm of the length.

use super::cube::unit_for_each;
use super::functions::{logistic, softplus, tanh};
use super::node::{Kept, node};
use super::product::ProductKernels;
use super::{computed, is_roomy, new_like, new_of_shape, unused};
use crate::kernels::linear_recurrence::{Gating, RG_LRU_FLOOR, RG_LRU_SPEED};
use crate::kernels::recurrence::Reading;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// What a recurrence is beside its tensors. Tensors that it does not have are of one element.
#[derive(Clone, Copy, Debug)]
pub struct Scanning {
    gating: Gating,
    is_backward: bool,
    has_lengths: bool,
}

/// Backends with both passes.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d]`; start: `[batch, d]`; decay: `[d]`, of RG-LRU; lengths: `[batch]`
/// - states: `[batch, len, d]`
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait LinearRecurrenceKernels: Backend {
    /// The states.
    #[fusion(meta = |gates, start, _decay, _lengths, _how| spec::states(gates, start))]
    fn scanned(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Scanning,
    ) -> FloatTensor<Self>;

    /// The gradients of the gates and of the start; and for each sentence that of the decay, where there is one.
    #[fusion(meta = |gates, start, _decay, _lengths, _states, _gradient, _how| (gates.clone(), start.clone(), start.clone()))]
    fn scanned_backward(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        states: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Scanning,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait LinearRecurrenceBackend: Backend {
    /// The states.
    #[fusion(meta = |gates, start, _decay, _lengths, _how| spec::states(gates, start))]
    fn linear_states(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Scanning,
    ) -> FloatTensor<Self>;
}

/// Shapes of what has yet to be computed.
#[cfg(feature = "fusion")]
mod spec {
    use burn::backend::fusion::custom::TensorSpec;

    pub(super) fn states(gates: &TensorSpec, start: &TensorSpec) -> TensorSpec {
        TensorSpec::new([gates.shape[0], gates.shape[1], start.shape[1]].into(), gates.dtype)
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
    let (start, decay, lengths) = (computed(start)?, computed(&decay)?, computed(&lengths)?);
    Some(Tensor::from_dispatch(Dispatch::linear_states(packed, start, decay, lengths, how)))
}

#[derive(Clone, Debug)]
struct Scanned<B: Backend> {
    gates: FloatTensor<B>,
    start: FloatTensor<B>,
    decay: FloatTensor<B>,
    lengths: FloatTensor<B>,
    states: FloatTensor<B>,
    how: Scanning,
}

impl<B: LinearRecurrenceKernels + ProductKernels> Kept<B, 3> for Scanned<B> {
    fn gradients(self, gradient: FloatTensor<B>, needed: [bool; 3]) -> [Option<FloatTensor<B>>; 3] {
        let Self { gates, start, decay, lengths, states, how } = self;
        let (of_gates, of_start, of_decays) = B::scanned_backward(gates, start, decay, lengths, states, gradient, how);
        [Some(of_gates), Some(of_start), needed[2].then(|| B::summed_rows(of_decays))]
    }
}

impl<B: LinearRecurrenceKernels + ProductKernels, C: CheckpointStrategy> LinearRecurrenceBackend for Autodiff<B, C> {
    fn linear_states(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Scanning,
    ) -> FloatTensor<Self> {
        let [(gates, of_gates), (start, of_start), (decay, of_decay)] = [gates, start, decay].map(|it| it.into_parts());
        let (lengths, _) = lengths.into_parts();
        let states = B::scanned(gates.clone(), start.clone(), decay.clone(), lengths.clone(), how);
        let kept = Scanned { gates, start, decay, lengths, states: states.clone(), how };
        node::<B, C, _, 3>([of_gates, of_start, of_decay], states, kept)
    }
}

impl LinearRecurrenceBackend for CubeBackend {
    fn linear_states(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Scanning,
    ) -> FloatTensor<Self> {
        Self::scanned(gates, start, decay, lengths, how)
    }
}

impl LinearRecurrenceKernels for CubeBackend {
    fn scanned(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        how: Scanning,
    ) -> FloatTensor<Self> {
        let [gates, start, decay, lengths] = [gates, start, decay, lengths].map(into_contiguous);
        let [batch, len] = [0, 1].map(|axis| gates.meta.shape()[axis]);
        let d = start.meta.shape()[1];
        let states = new_like(&gates, [batch, len, d].into());
        let (cube_count, cube_dim) = unit_for_each(batch * d, &gates.client);
        scan::launch(
            &gates.client.clone(),
            cube_count,
            cube_dim,
            gates.into_buffer_arg(),
            start.into_buffer_arg(),
            decay.into_buffer_arg(),
            lengths.into_buffer_arg(),
            states.clone().into_buffer_arg(),
            batch * d,
            len,
            d,
            how.is_backward,
            how.has_lengths,
            how.gating,
        );
        states
    }

    fn scanned_backward(
        gates: FloatTensor<Self>,
        start: FloatTensor<Self>,
        decay: FloatTensor<Self>,
        lengths: FloatTensor<Self>,
        states: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Scanning,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [gates, start, decay] = [gates, start, decay].map(into_contiguous);
        let [lengths, states, gradient] = [lengths, states, gradient].map(into_contiguous);
        let [batch, len, d] = [0, 1, 2].map(|axis| states.meta.shape()[axis]);
        let (of_gates, of_start) = (new_of_shape(&gates), new_of_shape(&start));
        let of_decays = if how.gating == Gating::RgLru { new_of_shape(&start) } else { unused(&start) };
        let (cube_count, cube_dim) = unit_for_each(batch * d, &gates.client);
        scan_back::launch(
            &gates.client.clone(),
            cube_count,
            cube_dim,
            gates.into_buffer_arg(),
            start.into_buffer_arg(),
            decay.into_buffer_arg(),
            lengths.into_buffer_arg(),
            states.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_gates.clone().into_buffer_arg(),
            of_start.clone().into_buffer_arg(),
            of_decays.clone().into_buffer_arg(),
            batch * d,
            len,
            d,
            how.is_backward,
            how.has_lengths,
            how.gating,
        );
        // Without a decay nobody reads its gradient, but it has to have the promised shape.
        let of_decays = if how.gating == Gating::RgLru { of_decays } else { of_start.clone() };
        (of_gates, of_start, of_decays)
    }
}

/// `x + 1/2`, or `sigmoid(x)` below zero.
#[cube]
fn positive(x: f32) -> f32 {
    select(x >= 0.0f32, x + 0.5f32, logistic(x))
}

/// `sigmoid(x)`, and what it is at -80 below that: a share of two that are nothing would be no number.
#[cube]
fn above_nothing(x: f32) -> f32 {
    logistic(select(x < -80.0f32, -80.0f32, x))
}

/// `8 log(sigmoid(x))`.
#[cube]
fn slowest(x: f32) -> f32 {
    -comptime!(RG_LRU_SPEED as f32).runtime() * softplus(-x)
}

/// `1 - a^2` for `a = e^log`, without losing the digits of what is near 1.
#[cube]
fn room(log: f32, a: f32) -> f32 {
    (1.0f32 + a * a) * tanh(-log)
}

/// Each unit a channel of a sentence, through all of its positions. The equations are those of
/// [`LinearRecurrence`](crate::layers::mixer::LinearRecurrence).
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube(launch)]
fn scan(
    gates: &[f32],
    start: &[f32],
    decay: &[f32],
    lengths: &[f32],
    states: &mut [f32],
    n: usize,
    len: usize,
    d: usize,
    #[comptime] is_backward: bool,
    #[comptime] has_lengths: bool,
    #[comptime] gating: Gating,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let sentence = at / d;
        let channel = at % d;
        let n_gates = comptime!(gating.n_gates()).runtime();
        let floor = comptime!(RG_LRU_FLOOR).runtime();
        let mut slowest_here = 0.0f32;
        if comptime!(gating == Gating::RgLru) {
            slowest_here = slowest(decay[channel]);
        }
        let mut h = start[at];
        for i in 0..len {
            let mut position = i;
            if comptime!(is_backward) {
                position = len - 1 - i;
            }
            let gate = (sentence * len + position) * n_gates * d + channel;
            let mut next = h;
            if comptime!(gating == Gating::MinGru) {
                next = h + logistic(gates[gate]) * (positive(gates[gate + d]) - h);
            } else if comptime!(gating == Gating::MinLstm) {
                let f = above_nothing(gates[gate]);
                let new = positive(gates[gate + 2 * d]);
                next = new + f / (f + above_nothing(gates[gate + d])) * (h - new);
            } else if comptime!(gating == Gating::Ssru) {
                let x = gates[gate + d];
                next = x + logistic(gates[gate]) * (h - x);
            } else {
                let log = logistic(gates[gate]) * slowest_here;
                let a = log.exp();
                next = a * h + max(room(log, a), floor).sqrt() * logistic(gates[gate + d]) * gates[gate + 2 * d];
            }
            let mut shown = next;
            if comptime!(has_lengths) {
                let is_real = f32::cast_from(position) < lengths[sentence];
                shown = select(is_real, next, 0.0f32);
                next = select(is_real, next, h);
            }
            states[(sentence * len + position) * d + channel] = shown;
            h = next;
        }
    }
}

/// Each unit a channel of a sentence, from the last position that was read to the first.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn scan_back(
    gates: &[f32],
    start: &[f32],
    decay: &[f32],
    lengths: &[f32],
    states: &[f32],
    gradient: &[f32],
    of_gates: &mut [f32],
    of_start: &mut [f32],
    of_decays: &mut [f32],
    n: usize,
    len: usize,
    d: usize,
    #[comptime] is_backward: bool,
    #[comptime] has_lengths: bool,
    #[comptime] gating: Gating,
) {
    let at = ABSOLUTE_POS;
    if at < n {
        let sentence = at / d;
        let channel = at % d;
        let n_gates = comptime!(gating.n_gates()).runtime();
        let floor = comptime!(RG_LRU_FLOOR).runtime();
        let mut slowest_here = 0.0f32;
        if comptime!(gating == Gating::RgLru) {
            slowest_here = slowest(decay[channel]);
        }
        let mut n_real = len;
        if comptime!(has_lengths) {
            n_real = min(len, usize::cast_from(lengths[sentence]));
        }
        let mut of_h = 0.0f32;
        let mut of_slowest = 0.0f32;
        for i in 0..len {
            let mut position = len - 1 - i;
            if comptime!(is_backward) {
                position = i;
            }
            let row = (sentence * len + position) * d + channel;
            let gate = (sentence * len + position) * n_gates * d + channel;
            if position < n_real {
                // The state before this position in the order of reading.
                let mut before = start[at];
                if comptime!(is_backward) {
                    if position + 1 < n_real {
                        before = states[row + d];
                    }
                } else if position > 0 {
                    before = states[row - d];
                }
                let g = of_h + gradient[row];
                if comptime!(gating == Gating::MinGru) {
                    let z = logistic(gates[gate]);
                    let x = gates[gate + d];
                    let new = positive(x);
                    of_gates[gate] = g * (new - before) * z * (1.0f32 - z);
                    of_gates[gate + d] = g * z * select(x >= 0.0f32, 1.0f32, new * (1.0f32 - new));
                    of_h = g * (1.0f32 - z);
                } else if comptime!(gating == Gating::MinLstm) {
                    let f = above_nothing(gates[gate]);
                    let enter = above_nothing(gates[gate + d]);
                    let x = gates[gate + 2 * d];
                    let new = positive(x);
                    let a = f / (f + enter);
                    let of_log = g * (before - new) * a * (1.0f32 - a);
                    of_gates[gate] = of_log * (1.0f32 - f);
                    of_gates[gate + d] = -of_log * (1.0f32 - enter);
                    of_gates[gate + 2 * d] = g * (1.0f32 - a) * select(x >= 0.0f32, 1.0f32, new * (1.0f32 - new));
                    of_h = g * a;
                } else if comptime!(gating == Gating::Ssru) {
                    let a = logistic(gates[gate]);
                    of_gates[gate] = g * (before - gates[gate + d]) * a * (1.0f32 - a);
                    of_gates[gate + d] = g * (1.0f32 - a);
                    of_h = g * a;
                } else {
                    let r = logistic(gates[gate]);
                    let enter = logistic(gates[gate + d]);
                    let x = gates[gate + 2 * d];
                    let log = r * slowest_here;
                    let a = log.exp();
                    let square = room(log, a);
                    let root = max(square, floor).sqrt();
                    let slope = select(square > floor, a / root, 0.0f32);
                    let of_log = g * (before - enter * x * slope) * a;
                    of_slowest += of_log * r;
                    of_gates[gate] = of_log * slowest_here * r * (1.0f32 - r);
                    of_gates[gate + d] = g * root * x * enter * (1.0f32 - enter);
                    of_gates[gate + 2 * d] = g * root * enter;
                    of_h = g * a;
                }
            } else {
                for part in 0..n_gates {
                    of_gates[gate + part * d] = 0.0f32;
                }
            }
        }
        of_start[at] = of_h;
        if comptime!(gating == Gating::RgLru) {
            of_decays[at] = of_slowest * comptime!(RG_LRU_SPEED as f32).runtime() * logistic(-decay[channel]);
        }
    }
}
