//! Attention: scaled dot-product, in several heads.

use super::{Outputs, check_golden, golden_layers, named, no_parameters};
use crate::support::{
    LayerCase, SAME_TOLERANCE, assert_close, check_quotients, closed_form_tensor, flex, host_backends, tensor,
    with_closed_form,
};
use burn::tensor::{Device, Tensor};
use lookback::layers::attention::scaled_dot_product::{AttentionTerms, scaled_dot_product_attention};
use lookback::layers::attention::{CrossAttention, MultiHeadConfig, SelfAttention};
use lookback::layers::position::{AttentionPositions, PositionConfig};
use lookback::layers::{Init, Mask, Pass, Trace};
use lookback::models::weights::{Weights, apply, collect, to_vec};
use lookback::random::{Purpose, Stream};
use std::f64::consts::E;
use std::path::Path;

/// Self-attention without positions.
fn self_attention(d_model: usize, n_heads: usize, init: &Init) -> SelfAttention {
    SelfAttention::new(&MultiHeadConfig::new(d_model, n_heads), &PositionConfig::None {}, init)
}

/// The mask of a golden case.
pub(super) fn mask_of(case: &LayerCase, key_len: usize, device: &Device) -> Mask {
    match case.lengths() {
        Some(lengths) => Mask::padding(&lengths, key_len, device),
        None if case.config["causal"] == true => Mask::causal(key_len, device),
        None => Mask::none(),
    }
}

#[test]
fn scaled_dot_product_attention_is_pytorchs() {
    for case in golden_layers("scaled-dot-product") {
        check_golden(case, no_parameters, |_, inputs, pass| {
            let [query, key, value] = ["query", "key", "value"].map(|path| inputs.get::<4>(path));
            let mask = mask_of(case, key.dims()[2], &inputs.device());
            Outputs::from([named(
                "context",
                scaled_dot_product_attention(query, key, value, &AttentionTerms::masked(&mask), pass),
            )])
        });
    }
}

#[test]
fn self_attention_is_pytorchs() {
    for case in golden_layers("self-attention") {
        let build = |init: &Init| self_attention(case.number("d_model"), case.number("n_heads"), init);
        check_golden(case, build, |layer, inputs, pass| {
            let input = inputs.get::<3>("input");
            let mask = mask_of(case, input.dims()[1], &inputs.device());
            Outputs::from([named("output", layer.forward(input, &mask, &AttentionPositions::None, pass))])
        });
    }
}

#[test]
fn cross_attention_is_pytorchs() {
    for case in golden_layers("cross-attention") {
        let build = |init: &Init| {
            CrossAttention::new(&MultiHeadConfig::new(case.number("d_model"), case.number("n_heads")), init)
        };
        check_golden(case, build, |layer, inputs, pass| {
            let memory = inputs.get::<3>("memory");
            let mask = mask_of(case, memory.dims()[1], &inputs.device());
            let memory = layer.prepare(memory, pass);
            Outputs::from([named("output", layer.forward(inputs.get::<3>("input"), &memory, &mask, pass))])
        });
    }
}

#[test]
fn the_weights_of_scaled_dot_products_are_e_and_one_over_their_sum() {
    // One query of width 4 and length 2 along the first of two unit keys: scores 2 / sqrt(4) = 1 and 0.
    for adapter in host_backends() {
        let query = tensor(vec![2.0, 0.0, 0.0, 0.0], [1, 1, 1, 4], &adapter.device);
        let key = tensor(vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1, 1, 2, 4], &adapter.device);
        let value = tensor(vec![1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [1, 1, 2, 4], &adapter.device);
        let mut trace = Trace::default();
        let attend = |mask: &Mask, pass: &mut Pass| {
            to_vec(scaled_dot_product_attention(
                query.clone(),
                key.clone(),
                value.clone(),
                &AttentionTerms::masked(mask),
                pass,
            ))
        };
        let context = attend(&Mask::none(), &mut Pass::traced(&mut trace));
        let weights = [E / (1.0 + E), 1.0 / (1.0 + E)];
        assert_close("context", &context, &[weights[0], weights[1], 0.0, 0.0], SAME_TOLERANCE);
        assert_close("weights", &trace.get("weights").expect("traced").values, &weights, SAME_TOLERANCE);
        assert_close("scores", &trace.get("scores").expect("traced").values, &[1.0, 0.0], SAME_TOLERANCE);
        // With the second key hidden, the first has all the weight, exactly.
        let mask = Mask::padding(&[1], 2, &adapter.device);
        assert_eq!(attend(&mask, &mut Pass::inference()), [1.0, 0.0, 0.0, 0.0]);
    }
}

/// The parameters of `module` with those named set to `values` and all others to zero.
fn only<M: burn::module::Module>(module: M, values: &[(&str, &[f32])]) -> M {
    let mut weights: Weights = collect(&module);
    for (path, weight) in &mut weights {
        let given = values.iter().find(|(name, _)| name == path);
        weight.values = given.map_or(vec![0.0; weight.values.len()], |(_, values)| values.to_vec());
    }
    apply(module, &weights, Path::new("by hand")).expect("the module's own shapes")
}

#[test]
fn each_head_attends_to_its_own_part_of_the_vector() {
    // Width 2, two heads of width 1, no projections: each head sees one coordinate. The query 1 meets the keys 1 and 0 in
    // the first, 0 and 1 in the second; values are the keys.
    let device = flex();
    let identity: &[f32] = &[1.0, 0.0, 0.0, 1.0];
    let layer = CrossAttention::new(&MultiHeadConfig::new(2, 2), &Init::new(1, &device));
    let packed: &[f32] = &[1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    let layer = only(layer, &[("query.weight", identity), ("key_value.weight", packed), ("output.weight", identity)]);
    let memory = layer.prepare(tensor(identity.to_vec(), [1, 2, 2], &device), &Pass::inference());
    let input = tensor(vec![1.0, 2.0], [1, 1, 2], &device);
    let output = layer.forward(input, &memory, &Mask::none(), &mut Pass::inference());
    let expected = [E / (E + 1.0), E.powi(2) / (E.powi(2) + 1.0)];
    assert_close("output", &to_vec(output), &expected, SAME_TOLERANCE);
}

/// Fails unless the rows of `weights` sum to one and are zero beyond the length of their sentence.
fn check_weights(what: &str, weights: &[f32], lengths: &[usize], key_len: usize) {
    let rows_each = weights.len() / key_len / lengths.len();
    for (row, weights) in weights.chunks(key_len).enumerate() {
        let (shown, hidden) = weights.split_at(lengths[row / rows_each]);
        assert!(
            (shown.iter().sum::<f32>() - 1.0).abs() < 1e-6,
            "{what}: row {row} sums to {}",
            shown.iter().sum::<f32>()
        );
        assert!(hidden.iter().all(|weight| *weight == 0.0), "{what}: row {row} looks at padding: {hidden:?}");
        assert!(shown.iter().all(|weight| *weight > 0.0), "{what}: row {row} overlooks a word: {shown:?}");
    }
}

#[test]
fn weights_sum_to_one_and_are_exactly_zero_on_padding() {
    let lengths = [3, 5, 1];
    for adapter in host_backends() {
        let device = &adapter.device;
        let mask = Mask::padding(&lengths, 5, device);
        let mut trace = Trace::default();
        let input = closed_form_tensor("input", [3, 5, 10], 8.0, device);
        let layer = with_closed_form(self_attention(10, 5, &Init::new(1, device)), 2.0);
        layer.forward(input, &mask, &AttentionPositions::None, &mut Pass::traced(&mut trace));
        check_weights("self-attention", &trace.get("weights").expect("traced").values, &lengths, 5);
    }
}

#[test]
fn a_row_that_sees_nothing_has_a_zero_context_and_a_zero_gradient() {
    for adapter in host_backends() {
        for device in [adapter.device.clone(), adapter.device.clone().autodiff()] {
            let mask = Mask::padding(&[0, 2], 3, &device);
            let leaf = |path| closed_form_tensor(path, [2, 1, 3, 5], 4.0, &device);
            let [query, key, value] = ["query", "key", "value"]
                .map(|path| if device.is_autodiff() { leaf(path).require_grad() } else { leaf(path) });
            let all = [query.clone(), key.clone(), value.clone()];
            let context =
                scaled_dot_product_attention(query, key, value, &AttentionTerms::masked(&mask), &mut Pass::inference());
            let (empty, other) = (context.clone().narrow(0, 0, 1), context.clone().narrow(0, 1, 1));
            assert!(to_vec(empty).iter().all(|value| *value == 0.0), "{}: a context from nothing", adapter.backend);
            assert!(to_vec(other).iter().all(|value| value.is_finite() && *value != 0.0));
            if device.is_autodiff() {
                let grads = context.sum().backward();
                for tensor in all {
                    let grad = to_vec(tensor.grad(&grads).expect("a leaf has a gradient"));
                    let (empty, other) = grad.split_at(15);
                    assert!(empty.iter().all(|value| *value == 0.0), "{}: {empty:?}", adapter.backend);
                    assert!(other.iter().all(|value| value.is_finite()) && other.iter().any(|value| *value != 0.0));
                }
            }
        }
    }
}

#[test]
fn the_kernel_and_the_attention_that_is_written_out_agree() {
    for adapter in host_backends() {
        let masks = [Mask::none(), Mask::padding(&[3, 7, 0], 7, &adapter.device), Mask::causal(7, &adapter.device)];
        let [query, key, value] =
            ["query", "key", "value"].map(|path| closed_form_tensor(path, [3, 2, 7, 5], 8.0, &adapter.device));
        for (i, mask) in masks.iter().enumerate() {
            let attend = |pass: &mut Pass| {
                to_vec(scaled_dot_product_attention(
                    query.clone(),
                    key.clone(),
                    value.clone(),
                    &AttentionTerms::masked(mask),
                    pass,
                ))
            };
            let written_out = attend(&mut Pass::training(1, 1, 1));
            assert_close(&format!("mask {i}"), &attend(&mut Pass::inference()), &written_out, SAME_TOLERANCE);
        }
    }
}

#[test]
fn dropout_follows_the_softmax() {
    // Equal scores over two keys: weights of one half, of which dropout at one half makes 0 or 1, whatever the draws.
    let device = flex();
    let zeros = Tensor::zeros([3, 2, 7, 5], &device);
    let key = Tensor::zeros([3, 2, 2, 5], &device);
    let value = Tensor::ones([3, 2, 2, 5], &device);
    let mask = Mask::none();
    let terms = AttentionTerms { dropout_rate: 0.5, ..AttentionTerms::masked(&mask) };
    let context = scaled_dot_product_attention(zeros, key, value, &terms, &mut Pass::training(1, 1, 1));
    let context = to_vec(context);
    assert!(context.iter().all(|value| [0.0, 1.0, 2.0].contains(value)), "{context:?}");
    // A weight is dropped for all of its value, and for its own query alone.
    assert!(context.chunks(5).all(|row| row.iter().all(|value| *value == row[0])), "{context:?}");
    assert!(context.chunks(35).any(|head| head.iter().any(|value| *value != head[0])), "{context:?}");
    for seen in [0.0, 1.0, 2.0] {
        assert!(context.contains(&seen), "42 pairs of draws without the sum {seen}: one in 10^5");
    }
}

#[test]
fn steps_of_self_attention_are_the_causal_whole() {
    for adapter in host_backends() {
        let device = &adapter.device;
        let layer = with_closed_form(self_attention(10, 5, &Init::new(1, device)), 2.0);
        let input: Tensor<3> = closed_form_tensor("input", [3, 7, 10], 4.0, device);
        let whole =
            layer.forward(input.clone(), &Mask::causal(7, device), &AttentionPositions::None, &mut Pass::inference());
        let mut cache = None;
        let steps = (0..7).map(|t| {
            layer.step(
                input.clone().narrow(1, t, 1),
                &mut cache,
                &Mask::none(),
                &AttentionPositions::None,
                &mut Pass::inference(),
            )
        });
        let steps = Tensor::cat(steps.collect(), 1);
        assert_close("steps", &to_vec(steps), &to_vec(whole), SAME_TOLERANCE);
    }
}

#[test]
fn gradients_of_attention_are_difference_quotients() {
    let init = Init::new(1, &flex());
    let mask = |device: &Device| Mask::padding(&[5, 2, 3], 5, device);

    let layer = with_closed_form(self_attention(10, 5, &init), 2.0);
    check_quotients("self-attention", layer, |layer, device| {
        let input = closed_form_tensor("input", [3, 5, 10], 4.0, device);
        layer.forward(input, &mask(device), &AttentionPositions::None, &mut Pass::inference())
    });
    let layer = with_closed_form(CrossAttention::new(&MultiHeadConfig::new(10, 5), &init), 2.0);
    check_quotients("cross-attention", layer, |layer, device| {
        let memory = closed_form_tensor("memory", [3, 5, 10], 4.0, device);
        let memory = layer.prepare(memory, &Pass::inference());
        let input = closed_form_tensor("input", [3, 4, 10], 4.0, device);
        layer.forward(input, &memory, &mask(device), &mut Pass::inference())
    });
}

#[test]
fn the_variance_of_unscaled_scores_grows_with_the_width_and_that_of_scaled_ones_does_not() {
    // Vaswani 2017, footnote 4: with independent components of mean 0 and variance 1, q . k has variance d.
    const N: usize = 64;
    let device = flex();
    let variance = |scores: &[f64]| {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / scores.len() as f64
    };
    for d_head in [4, 16, 64, 256] {
        let normal = |purpose: u64| {
            let stream = Stream::new(purpose, Purpose::Initialization, &[]);
            let values = (0..N * d_head).map(|i| stream.normal(i as u64) as f32).collect();
            tensor::<4>(values, [1, 1, N, d_head], &device)
        };
        let mask = Mask::none();
        let terms = AttentionTerms::masked(&mask);
        let mut trace = Trace::default();
        let (query, key) = (normal(1), normal(2));
        scaled_dot_product_attention(query, key.clone(), key, &terms, &mut Pass::traced(&mut trace));
        let scaled: Vec<f64> = trace.get("scores").expect("traced").values.iter().map(|score| *score as f64).collect();
        let unscaled: Vec<f64> = scaled.iter().map(|score| score * (d_head as f64).sqrt()).collect();
        let ratio = variance(&unscaled) / d_head as f64;
        // 4096 products of 64 vectors: the variance of so many is within a quarter of what is expected.
        assert!((0.75..1.25).contains(&ratio), "unscaled, width {d_head}: {}", variance(&unscaled));
        assert!((0.75..1.25).contains(&variance(&scaled)), "scaled, width {d_head}: {}", variance(&scaled));
    }
}
