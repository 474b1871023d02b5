//! The smoothed cross-entropy.

use super::GOLDEN_LOSSES;
use crate::support::{
    FORWARD_TOLERANCE, GRADIENT_TOLERANCE, SAME_TOLERANCE, assert_close, closed_form, closed_form_tensor, flex, golden,
    host_backends, tensor,
};
use burn::tensor::{Device, Tensor, activation};
use lookback::data::PAD;
use lookback::models::weights::to_vec;
use lookback::training::loss::{LossSums, smoothed_cross_entropy};

const TARGETS: [u32; 12] = [5, 0, 12, 2, 0, 7, 1, 2, 0, 4, 4, 12];

fn logits(device: &Device) -> Tensor<3> {
    let logits = closed_form_tensor("logits", [3, 4, 13], 16.0, device);
    if device.is_autodiff() { logits.require_grad() } else { logits }
}

/// The sums and the gradient, by the function of the project.
fn computed(logits: Tensor<3>, targets: &[u32], smoothing: f64, n_total: usize) -> (LossSums, Vec<f32>) {
    let loss = smoothed_cross_entropy(logits.clone(), targets, smoothing, n_total);
    let grads = loss.mean.clone().backward();
    (loss.sums(), to_vec(logits.grad(&grads).expect("a leaf has a gradient")))
}

#[test]
fn the_loss_is_pytorchs_forward_and_backward() {
    let cases: Vec<_> = golden().layers.iter().filter(|case| case.layer == "cross-entropy").collect();
    assert_eq!(cases.len(), GOLDEN_LOSSES);
    for case in cases {
        for adapter in host_backends() {
            let what = format!("{} on {}", case.name, adapter.backend);
            let targets: Vec<u32> = case.choice("targets");
            let input = &case.inputs["logits"];
            let values = closed_form("logits", input.shape.iter().product(), input.scale);
            let logits = tensor(values, [3, 3, 13], &adapter.device.clone().autodiff()).require_grad();
            let (sums, gradient) = computed(logits, &targets, case.choice("smoothing"), 1);
            assert_close(&what, &[sums.smoothed], &case.outputs[0].values, FORWARD_TOLERANCE);
            assert_close(&format!("{what}: nll"), &[sums.cross_entropy], &case.traced[0].values, FORWARD_TOLERANCE);
            assert_eq!(sums.n_tokens, case.number("n_tokens"), "{what}");
            // The golden gradient is of a tenth of the loss.
            let gradient: Vec<f32> = gradient.iter().map(|value| 0.1 * value).collect();
            assert_close(&what, &gradient, &case.gradients["logits"], GRADIENT_TOLERANCE);
        }
    }
}

#[test]
fn the_closed_form_is_the_formula_written_with_log_softmax() {
    for adapter in host_backends() {
        for smoothing in [0.0, 0.1, 1.0] {
            let device = adapter.device.clone().autodiff();
            let (sums, gradient) = computed(logits(&device), &TARGETS, smoothing, 9);
            let logits = logits(&device);
            let log_p = activation::log_softmax(logits.clone(), 2).reshape([12, 13]);
            let coefficients = (0..12 * 13).map(|i| {
                let (target, word) = (TARGETS[i / 13], (i % 13) as u32);
                let picked = if target == word { 1.0 - smoothing } else { 0.0 };
                if target == PAD { 0.0 } else { -(picked + smoothing / 13.0) as f32 }
            });
            let loss = (log_p * tensor(coefficients.collect(), [12, 13], &device)).sum();
            let grads = loss.clone().div_scalar(9.0).backward();
            let what = format!("smoothing {smoothing} on {}", adapter.backend);
            assert_close(&what, &[sums.smoothed], &to_vec(loss), SAME_TOLERANCE);
            let expected = to_vec(logits.grad(&grads).expect("a leaf has a gradient"));
            assert_close(&what, &gradient, &expected, SAME_TOLERANCE);
        }
    }
}

#[test]
fn two_words_can_be_computed_by_hand() {
    // Logits (0, ln 3) are probabilities (1/4, 3/4). The target is word 1: nll = ln 4/3, the mean over words of -log p is
    // (ln 4 + ln 4/3) / 2, and with smoothing 0.2 the gradient is (1/4 - 0.1, 3/4 - 0.8 - 0.1).
    let values = vec![0.0, 3f32.ln()];
    let logits = tensor(values, [1, 1, 2], &flex().autodiff()).require_grad();
    let (sums, gradient) = computed(logits, &[1], 0.2, 1);
    let nll = (4f64 / 3.0).ln();
    assert_close("nll", &[sums.cross_entropy], &[nll], SAME_TOLERANCE);
    assert_close("smoothed", &[sums.smoothed], &[0.8 * nll + 0.1 * (nll + 4f64.ln())], SAME_TOLERANCE);
    assert_close("gradient", &gradient, &[0.15, -0.15], SAME_TOLERANCE);
    assert_eq!((sums.n_correct, sums.n_tokens), (1, 1));
}

#[test]
fn gradients_of_the_loss_are_difference_quotients() {
    const STEP: f32 = 1e-2;
    let (_, gradient) = computed(logits(&flex().autodiff()), &TARGETS, 0.1, 9);
    let values = to_vec(logits(&flex()));
    let value = |i: usize, step: f32| {
        let mut moved = values.clone();
        moved[i] += step;
        smoothed_cross_entropy(tensor(moved, [3, 4, 13], &flex()), &TARGETS, 0.1, 9).sums().smoothed / 9.0
    };
    let quotients: Vec<f64> =
        (0..values.len()).map(|i| (value(i, STEP) - value(i, -STEP)) / (2.0 * STEP as f64)).collect();
    // Sums in 64 bits over exponentials in 32: rounding leaves 1e-6 over the step.
    assert_close("gradient", &gradient, &quotients, 1e-3);
}

#[test]
fn padding_contributes_nothing() {
    let device = flex().autodiff();
    let (sums, gradient) = computed(logits(&device), &TARGETS, 0.1, 9);
    let mut values = to_vec(logits(&flex()));
    for (i, value) in values.iter_mut().enumerate() {
        if TARGETS[i / 13] == PAD {
            assert_eq!(gradient[i], 0.0, "the gradient of element {i}");
            *value = 1000.0 + i as f32;
        }
    }
    let (changed, _) = computed(tensor(values, [3, 4, 13], &device).require_grad(), &TARGETS, 0.1, 9);
    assert_eq!(sums, changed);
    assert_eq!(sums.n_tokens, 9);
}

#[test]
fn words_with_the_highest_probability_are_counted_as_correct() {
    // Of three words each: right, wrong, padding that would be right.
    let values = vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0];
    let sums = smoothed_cross_entropy(tensor(values, [1, 3, 3], &flex()), &[2, 1, 0], 0.1, 1).sums();
    assert_eq!((sums.n_correct, sums.n_tokens), (1, 2));
}

#[test]
fn the_gradient_is_divided_by_the_tokens_of_the_whole_update_and_the_sums_are_not() {
    let device = flex().autodiff();
    let (one_sums, one) = computed(logits(&device), &TARGETS, 0.1, 1);
    let (all_sums, all) = computed(logits(&device), &TARGETS, 0.1, 1000);
    assert_eq!(one_sums, all_sums);
    let expected: Vec<f64> = one.iter().map(|value| *value as f64 / 1000.0).collect();
    assert_close("gradient", &all, &expected, SAME_TOLERANCE);
}

#[test]
fn logits_far_apart_stay_finite() {
    // The first target has probability one, the second e^-60000.
    let values = vec![3e4, -3e4, 0.0, 3e4, -3e4, 0.0];
    let logits = tensor(values, [1, 2, 3], &flex().autodiff()).require_grad();
    let loss = smoothed_cross_entropy(logits.clone(), &[0, 1], 0.0, 1);
    let gradient = to_vec(logits.grad(&loss.mean.backward()).expect("a leaf has a gradient"));
    assert_close("loss", &[loss.sums().smoothed], &[6e4], SAME_TOLERANCE);
    // The target 0 is padding, so that row counts nothing.
    assert_close("gradient", &gradient, &[0.0, 0.0, 0.0, 1.0, -1.0, 0.0], SAME_TOLERANCE);
}
