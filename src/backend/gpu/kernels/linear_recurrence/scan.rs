//! The scan, and the scan back.

use super::ScanInputs;
use crate::backend::gpu::kernels::cube::position_read;
use crate::backend::gpu::kernels::functions::{logistic, softplus, tanh};
use crate::kernels::linear_recurrence::{Gating, RG_LRU_FLOOR, RG_LRU_SPEED};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};

/// What both scans read, and their sizes.
#[derive(CubeType, CubeLaunch)]
pub(super) struct Gated {
    gates: Box<[f32]>,
    start: Box<[f32]>,
    decay: Box<[f32]>,
    lengths: Box<[f32]>,
    /// The channels of all sentences.
    n: usize,
    /// The positions of a sentence.
    len: usize,
    /// The channels of a sentence.
    d: usize,
}

/// They as the argument of a kernel.
pub(super) fn gated(inputs: ScanInputs<CubeBackend>) -> GatedLaunch {
    let [batch, len, d] = inputs.sizes();
    let ScanInputs { gates, start, decay, lengths } = inputs;
    let [gates, start, decay, lengths] = [gates, start, decay, lengths].map(|tensor| tensor.into_buffer_arg());
    GatedLaunch::new(gates, start, decay, lengths, batch * d, len, d)
}

/// A unit's channel of a sentence at a position.
#[derive(CubeType, Clone, Copy)]
struct Place {
    position: usize,
    /// Among the states.
    state: usize,
    /// The first gate; the others follow, each after as many elements as there are channels.
    gate: usize,
}

/// The channel of unit `at` at the `i`-th position in the order of reading, or of going back.
#[cube]
fn place(inputs: &Gated, at: usize, i: usize, #[comptime] is_backward: bool, #[comptime] gating: Gating) -> Place {
    let n_gates = comptime!(gating.n_gates()).runtime();
    let position = position_read(i, inputs.len, comptime!(is_backward).runtime());
    let token = at / inputs.d * inputs.len + position;
    let channel = at % inputs.d;
    Place { position, state: token * inputs.d + channel, gate: token * n_gates * inputs.d + channel }
}

/// What RG-LRU keeps at most of the channel, as a logarithm; of the others nothing is asked.
#[cube]
fn slowest_of(inputs: &Gated, at: usize, #[comptime] gating: Gating) -> f32 {
    let mut found = 0.0f32;
    if comptime!(gating == Gating::RgLru) {
        found = slowest(inputs.decay[at % inputs.d]);
    }
    found
}

/// The positions of a sentence before its padding.
#[cube]
fn n_real(inputs: &Gated, at: usize, #[comptime] has_lengths: bool) -> usize {
    let mut found = inputs.len;
    if comptime!(has_lengths) {
        found = min(inputs.len, usize::cast_from(inputs.lengths[at / inputs.d]));
    }
    found
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
#[allow(unused_assignments)]
#[cube(launch)]
pub(super) fn forwards(
    inputs: Gated,
    states: &mut [f32],
    #[comptime] is_backward: bool,
    #[comptime] has_lengths: bool,
    #[comptime] gating: Gating,
) {
    let at = ABSOLUTE_POS;
    if at < inputs.n {
        let gates = &inputs.gates;
        let d = inputs.d;
        let floor = comptime!(RG_LRU_FLOOR).runtime();
        let slowest_here = slowest_of(&inputs, at, gating);
        let n_real = n_real(&inputs, at, has_lengths);
        let mut h = inputs.start[at];
        for i in 0..inputs.len {
            let Place { position, state, gate } = place(&inputs, at, i, is_backward, gating);
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
                shown = select(position < n_real, next, 0.0f32);
                next = select(position < n_real, next, h);
            }
            states[state] = shown;
            h = next;
        }
    }
}

/// Each unit a channel of a sentence, from the last position that was read to the first.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
pub(super) fn back(
    inputs: Gated,
    states: &[f32],
    gradient: &[f32],
    of_gates: &mut [f32],
    of_start: &mut [f32],
    of_decays: &mut [f32],
    #[comptime] is_backward: bool,
    #[comptime] has_lengths: bool,
    #[comptime] gating: Gating,
) {
    let at = ABSOLUTE_POS;
    if at < inputs.n {
        let gates = &inputs.gates;
        let d = inputs.d;
        let floor = comptime!(RG_LRU_FLOOR).runtime();
        let slowest_here = slowest_of(&inputs, at, gating);
        let n_real = n_real(&inputs, at, has_lengths);
        let mut of_h = 0.0f32;
        let mut of_slowest = 0.0f32;
        for i in 0..inputs.len {
            // The other way.
            let Place { position, state, gate } = place(&inputs, at, i, comptime!(!is_backward), gating);
            if position < n_real {
                // The state before this position in the order of reading.
                let mut before = inputs.start[at];
                if comptime!(is_backward) {
                    if position + 1 < n_real {
                        before = states[state + d];
                    }
                } else if position > 0 {
                    before = states[state - d];
                }
                let g = of_h + gradient[state];
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
                for part in 0..comptime!(gating.n_gates()).runtime() {
                    of_gates[gate + part * d] = 0.0f32;
                }
            }
        }
        of_start[at] = of_h;
        if comptime!(gating == Gating::RgLru) {
            of_decays[at] = of_slowest * comptime!(RG_LRU_SPEED as f32).runtime() * logistic(-inputs.decay[at % d]);
        }
    }
}
