//! Memories that are matrices, on a GPU: every rule, however the positions are read, whatever the gradient is of.

use super::GPU_TOLERANCE;
use crate::reliability::sampled;
use crate::support::{assert_close, closed_form_tensor, flex, wgpu};
use burn::tensor::{Device, Tensor};
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::models::weights::to_vec;
use lookback::ops::{Body, MemoryParameters};

/// A memory and what becomes of it.
#[derive(Clone, Copy, Debug)]
struct Case {
    rule: Rule,
    rows: usize,
    len: usize,
    n_heads: usize,
    d_head: usize,
    is_backward: bool,
    /// Whether rows have padding, and the memory is not empty before the first position.
    is_going_on: bool,
    /// How large rates are: what gated linear attention keeps has a least, which rates below -80 reach.
    rates: f32,
    /// What the gradients of the outputs, of what is read and of the last memory, are multiplied by; none is of an output that is not used.
    of: [Option<f32>; 2],
}

/// Rows, positions, heads and their width: a step, a sentence (of the same width: kernels are compiled for it), the widest head of the
/// kernels, and a wider one.
const SIZES: [[usize; 4]; 4] = [[3, 1, 2, 12], [4, 40, 3, 12], [2, 3, 1, 128], [1, 2, 1, 130]];

/// How they are read, how large rates are, and what the gradient is of.
const USES: [(bool, bool, f32, [Option<f32>; 2]); 4] = [
    (false, false, 4.0, [Some(1.0), Some(1.0)]),
    (true, true, 4.0, [Some(1.0), Some(1.0)]),
    (false, true, 120.0, [Some(1.0), None]),
    (true, false, 4.0, [None, Some(1.0)]),
];

#[test]
fn memories_on_a_gpu_answer_and_learn_as_on_the_host() {
    let Some(adapter) = wgpu() else { return };
    for rule in [Rule::Linear, Rule::GatedLinear, Rule::Delta, Rule::GatedDelta] {
        for [rows, len, n_heads, d_head] in SIZES {
            for (is_backward, is_going_on, rates, of) in sampled(USES, 2) {
                let case = Case { rule, rows, len, n_heads, d_head, is_backward, is_going_on, rates, of };
                let [found, expected] =
                    [&adapter.device, &flex()].map(|device| case.remember(&case.leaves(device)).map(to_vec));
                for (name, (found, expected)) in ["read", "state"].iter().zip(found.iter().zip(&expected)) {
                    assert_close(&format!("{name} of {case:?}"), found, expected, GPU_TOLERANCE);
                }
                let [found, expected] =
                    [&adapter.device, &flex()].map(|device| case.gradients(&device.clone().autodiff()));
                let largest = expected[0].iter().flatten().fold(0f32, |largest, value| largest.max(value.abs()));
                let names = ["packed", "rates", "decay", "norm", "state"];
                for (name, both) in names.iter().zip(found.into_iter().zip(expected)) {
                    let (Some(found), Some(expected)) = both else { continue };
                    let what = format!("gradient of {name} of {case:?}");
                    // What a decay of a memory changes is found as what is left of sums that cancel: where nothing is kept, nothing is.
                    let own = expected.iter().fold(0f32, |most, value| most.max(value.abs()));
                    let allowed = (GPU_TOLERANCE as f32 * own).max(1e-6 * largest);
                    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                        assert!(
                            (found - expected).abs() <= allowed,
                            "{what}: {found} instead of {expected} at {i}, {allowed:e}"
                        );
                    }
                }
            }
        }
    }
}

/// What is no number at padding is not met there.
#[test]
fn padding_of_a_memory_on_a_gpu_has_no_gradient_whatever_stands_there() {
    let Some(adapter) = wgpu() else { return };
    for rule in [Rule::GatedLinear, Rule::Delta, Rule::GatedDelta] {
        let (is_backward, of) = (false, [Some(1.0), Some(1.0)]);
        let case =
            Case { rule, rows: 2, len: 4, n_heads: 1, d_head: 3, is_backward, is_going_on: true, rates: 4.0, of };
        let [found, expected] = [&adapter.device, &flex()].map(|device| {
            let device = device.clone().autodiff();
            let mut leaves = case.leaves(&device);
            // The second row has two real positions.
            let rates = leaves[1].take().unwrap();
            let width = rates.dims()[0] / 8;
            let padding = Tensor::full([2 * width], f32::NAN, &device);
            leaves[1] = Some(Tensor::cat(vec![rates.narrow(0, 0, 6 * width), padding], 0));
            case.gradients_of(leaves)
        });
        for (found, expected) in found.into_iter().flatten().zip(expected.into_iter().flatten()) {
            assert_close(&format!("{rule:?}"), &found, &expected, GPU_TOLERANCE);
        }
    }
}

impl Case {
    /// What is packed, rates, a decay, a norm and a state, flat.
    fn leaves(&self, device: &Device) -> [Option<Tensor<1>>; 5] {
        let Self { rule, rows, len, n_heads, d_head, .. } = *self;
        let d = n_heads * d_head;
        let rates_width = if rule == Rule::GatedLinear { d } else { rule.n_rates() * n_heads };
        let leaf = |name: &str, len: usize, scale| closed_form_tensor::<1>(name, [len], scale, device);
        // Linear attention divides by the sum of weights, which is above zero.
        let state = || leaf("state", rows * n_heads * d_head * rule.d_value(d_head), 1.0).add_scalar(1.1);
        [
            Some(leaf("packed", rows * len * rule.n_packed() * d, 3.0)),
            (rule != Rule::Linear).then(|| leaf("rates", rows * len * rates_width, self.rates)),
            (rule == Rule::GatedDelta).then(|| leaf("decay", n_heads, 1.0)),
            (rule != Rule::Linear).then(|| leaf("norm", d_head, 1.0)),
            self.is_going_on.then(state),
        ]
    }

    /// What is read, and the memory after the last position, flat.
    fn remember(&self, leaves: &[Option<Tensor<1>>; 5]) -> [Tensor<1>; 2] {
        let Self { rule, rows, len, n_heads, d_head, is_backward, is_going_on, .. } = *self;
        let [packed, rates, decay, norm, state] = leaves.clone();
        let by_position = |leaf: Tensor<1>| leaf.reshape([rows as i32, len as i32, -1]);
        let parameters = MemoryParameters { rates: rates.map(by_position), decay, norm };
        let state = state.map(|state| state.reshape([rows, n_heads, d_head, rule.d_value(d_head)]));
        let lengths = is_going_on.then(|| (0..rows).map(|row| len - row * len / rows).collect());
        let reading = Reading { is_backward, lengths };
        let config = MemoryConfig { rule, n_heads, most_replaced: 2.0, epsilon: 1e-5 };
        let packed = by_position(packed.expect("something is packed"));
        let (read, state) = lookback::ops::matrix_memory(config, packed, parameters, state, reading, Body::Fused);
        [read.reshape([-1]), state.reshape([-1])]
    }

    fn gradients(&self, device: &Device) -> [Option<Vec<f32>>; 5] {
        self.gradients_of(self.leaves(device))
    }

    /// The gradients of the leaves; zeros where the outputs in use do not depend on one.
    fn gradients_of(&self, leaves: [Option<Tensor<1>>; 5]) -> [Option<Vec<f32>>; 5] {
        let leaves = leaves.map(|leaf| leaf.map(Tensor::require_grad));
        let used = self.remember(&leaves).into_iter().zip(self.of).filter_map(|(output, scale)| {
            let coefficients = closed_form_tensor::<1>("coefficients", output.dims(), scale?, &output.device());
            Some((output * coefficients).sum())
        });
        let gradients = used.reduce(|a, b| a + b).expect("an output is used").backward();
        leaves.map(|leaf| leaf.map(|leaf| leaf.grad(&gradients).map_or_else(|| vec![0.0; leaf.dims()[0]], to_vec)))
    }
}
