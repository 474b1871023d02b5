//! Where numbers end: what is none, and gates that are as good as open or closed.

use super::{GPU_TOLERANCE, Leaves, TOLERANCE, cases};
use crate::support::{assert_close, flex, host_backends, wgpu};
use burn::tensor::Tensor;
use lookback::backend::Adapter;
use lookback::kernels::linear_recurrence::Gating;
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::models::weights::to_vec;
use lookback::ops::{self, Body, MemoryParameters};

/// What is not a number stays so, however an operation is made: the guard against divergence looks for it.
#[test]
fn what_is_not_a_number_is_passed_on() {
    for adapter in host_backends() {
        [Body::Fused, Body::Written].into_iter().for_each(|body| pass_on_what_is_not_a_number(&adapter, body));
    }
    if let Some(adapter) = wgpu() {
        pass_on_what_is_not_a_number(&adapter, Body::Fused);
    }
}

#[test]
#[ignore = "compiles kernels for half a minute; CI has it in a step of its own"]
fn what_is_not_a_number_is_passed_on_by_burns_operations_on_a_gpu() {
    if let Some(adapter) = wgpu() {
        pass_on_what_is_not_a_number(&adapter, Body::Written);
    }
}

fn pass_on_what_is_not_a_number(adapter: &Adapter, body: Body) {
    for bad in [f32::NAN, f32::INFINITY] {
        for (name, values) in cases::with_bad_number(bad, body, &adapter.device) {
            // burn's attention takes a row of scores that are not numbers for one that is hidden.
            if body == Body::Written && name.starts_with("attention") {
                continue;
            }
            let what = format!("{name} of {bad} as {body:?} on {}", adapter.backend);
            assert!(values.iter().any(|value| !value.is_finite()), "{what}: {values:?}");
        }
    }
}

/// Gates at their ends: of RG-LRU, `1 - a^2` is below its floor, where it has no slope; of minLSTM, both gates vanish.
#[test]
fn gates_at_their_ends_have_the_gradients_of_burns_operations() {
    let device = flex().autodiff();
    let run = |gating: Gating, gate: f64, decay: Option<f64>, body: Body| {
        let mut leaves = Leaves { device: &device, read: Vec::new() };
        let (rows, len, d) = (2, 3, 20);
        // Kernels take gates below -88 for that: those of minLSTM are equal here.
        let spread = if gating == Gating::MinLstm { 0.0 } else { 1e-3 };
        let gates = leaves.leaf("gates", [rows, len, gating.n_gates() * d], spread).add_scalar(gate);
        let start = leaves.leaf("start", [rows, d], 1.0);
        // 8 log(sigmoid(L)) of 9 is -0.001.
        let decay = decay.map(|decay| leaves.leaf("decay", [d], 1e-3).add_scalar(decay));
        let states = ops::linear_recurrence(gating, gates, start, decay, Reading::default(), body);
        let loss = states.clone().sum();
        let gradients = loss.backward();
        let mut found = vec![("states".to_string(), to_vec(states))];
        found.extend(leaves.read.into_iter().map(|(name, read)| (name, read(&gradients))));
        found
    };
    for (gating, gate, decay) in [
        (Gating::RgLru, -8.0, Some(9.0)),
        (Gating::RgLru, -2.0, Some(9.0)),
        (Gating::MinLstm, -120.0, None),
        (Gating::MinLstm, 120.0, None),
    ] {
        let [found, expected] = [Body::Fused, Body::Written].map(|body| run(gating, gate, decay, body));
        for ((name, found), (_, expected)) in found.iter().zip(&expected) {
            assert!(expected.iter().all(|value| value.is_finite()), "{name} of {gating:?}: {expected:?}");
            assert_close(&format!("{name} of {gating:?} at {gate}"), found, expected, TOLERANCE);
        }
    }
}

/// Gates that are closed as far as numbers go share what is left, and a rate that is no number stays none.
#[test]
fn the_ends_of_the_line_are_the_same_on_a_gpu() {
    let Some(adapter) = wgpu() else { return };
    let [found, expected] = [&adapter.device, &flex()].map(|device| {
        let gates = Tensor::<3>::full([1, 3, 4], -200.0, device);
        let gates = Tensor::cat(vec![gates, Tensor::ones([1, 3, 2], device)], 2);
        let start = Tensor::zeros([1, 2], device);
        let states = ops::linear_recurrence(Gating::MinLstm, gates, start, None, Reading::default(), Body::Fused);
        let rates = Tensor::<3>::full([1, 3, 2], f32::NAN, device);
        let parameters = MemoryParameters { rates: Some(rates), decay: None, norm: Some(Tensor::ones([2], device)) };
        let config = MemoryConfig { rule: Rule::GatedLinear, n_heads: 1, most_replaced: 1.0, epsilon: 1e-5 };
        let packed = Tensor::ones([1, 3, 8], device);
        let (read, _) = ops::matrix_memory(config, packed, parameters, None, Reading::default(), Body::Fused);
        (to_vec(states), to_vec(read).into_iter().map(f32::is_nan).collect::<Vec<_>>())
    });
    assert_close("minLSTM", &found.0, &expected.0, GPU_TOLERANCE);
    assert!(found.0[0] > 0.5, "{:?}", found.0);
    assert_eq!(found.1, expected.1);
    assert!(found.1[5], "{:?}", found.1);
}
