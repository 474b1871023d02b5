//! Every golden model against PyTorch, forward and backward, on every host backend.

use crate::support::{
    FORWARD_TOLERANCE, GRADIENT_TOLERANCE, ModelCase, assert_close, golden_models, gradients_by_path, host_backends,
    tensor,
};
use burn::module::Module;
use burn::tensor::Tensor;
use lookback::backend::Adapter;
use lookback::data::batch::Padded;
use lookback::layers::{Pass, Trace};
use lookback::models::weights::{collect, to_vec};
use lookback::models::{Model, Seq2Seq};

#[test]
fn every_golden_transformer_is_pytorchs_forward_and_backward() {
    let cases = golden_models("transformer/");
    assert_eq!(cases.len(), 8);
    cases.into_iter().for_each(check);
}

#[test]
fn every_position_scheme_norm_and_grouping_is_that_of_pytorch_and_transformers() {
    let cases = golden_models("positions/");
    assert_eq!(cases.len(), 17);
    cases.into_iter().for_each(check);
}

#[test]
fn every_mixer_is_the_papers_forward_and_backward() {
    let cases = golden_models("mixers/");
    assert_eq!(cases.len(), 24);
    cases.into_iter().for_each(check);
}

#[test]
fn every_golden_decoder_only_model_is_pytorchs_and_gpt2s_forward_and_backward() {
    let cases = golden_models("decoder-only/");
    assert_eq!(cases.len(), 14);
    cases.into_iter().for_each(check);
}

#[test]
fn every_golden_language_model_is_gpt2_or_the_papers_forward_and_backward() {
    let cases = golden_models("language-model/");
    assert_eq!(cases.len(), 5);
    cases.into_iter().for_each(check);
}

#[test]
fn every_golden_encoder_only_model_is_pytorchs_and_berts_forward_and_backward() {
    let cases = golden_models("encoder-only/");
    assert_eq!(cases.len(), 12);
    cases.into_iter().for_each(check);
}

#[test]
fn every_golden_rnn_is_pytorchs_forward_and_backward() {
    let cases = golden_models("rnn/");
    assert_eq!(cases.len(), 16);
    cases.into_iter().for_each(check);
}

#[test]
fn every_golden_model_with_attention_is_the_papers_forward_and_backward() {
    let cases = golden_models("recurrent/");
    assert_eq!(cases.len(), 32);
    cases.into_iter().for_each(check);
}

fn check(case: &ModelCase) {
    for adapter in host_backends() {
        let what = format!("{} on {}", case.name, adapter.backend);
        let model = case.model(&adapter.device);
        let shapes = collect(&model).into_iter().map(|(path, weight)| (path, weight.shape)).collect();
        assert_eq!(case.parameters, shapes, "{what}: parameters");

        // Inference and tracing run the attention kernel, learning the attention that is written out.
        check_logits(&what, case, forward(case, &model, &adapter, &mut Pass::inference()));
        let mut trace = Trace::default();
        check_logits(&format!("{what}, traced"), case, forward(case, &model, &adapter, &mut Pass::traced(&mut trace)));

        let model = model.train();
        let learning = Adapter { device: adapter.device.clone().autodiff(), ..adapter };
        for is_fused in [false, true] {
            let what = format!("{what}, learning, {}", if is_fused { "fused" } else { "written out" });
            let logits = forward(case, &model, &learning, &mut Pass::inference().fused(is_fused));
            let loss = (logits.clone() * tensor(coefficients(case), case.logits_shape, &learning.device)).sum();
            check_logits(&what, case, logits);
            let found = gradients_by_path(&model, loss.backward());
            assert_eq!(found.len(), case.gradients.len(), "{what}: parameters with a gradient");
            for (path, expected) in &case.gradients {
                assert_close(&format!("{what}: gradient of {path}"), &found[path], expected, GRADIENT_TOLERANCE);
            }
        }
    }
}

fn forward(case: &ModelCase, model: &Model, adapter: &Adapter, pass: &mut Pass) -> Tensor<3> {
    let source = Padded::new(&case.source, 0, &adapter.device);
    let target_input = Padded::new(&case.target_input, 0, &adapter.device);
    model.forward(&source, &target_input, pass)
}

/// What is computed for a padded target position has no meaning, and is zero in the golden file.
fn check_logits(what: &str, case: &ModelCase, logits: Tensor<3>) {
    assert_eq!(logits.dims(), case.logits_shape, "{what}: shape of the logits");
    let real = case.is_real().into_iter();
    let found: Vec<f32> =
        to_vec(logits).into_iter().zip(real).map(|(value, real)| if real { value } else { 0.0 }).collect();
    assert_close(&format!("{what}: logits"), &found, &case.logits, FORWARD_TOLERANCE);
}

/// What the golden loss multiplies the logits with: `0.1 cos(0.5 b + 0.3 t + 0.2 v)` where the target is real.
fn coefficients(case: &ModelCase) -> Vec<f32> {
    let [_, target_len, vocab_size] = case.logits_shape;
    let value = |(i, is_real): (usize, bool)| {
        let (b, t, v) = (i / (target_len * vocab_size), i / vocab_size % target_len, i % vocab_size);
        let value = 0.1 * (0.5 * b as f64 + 0.3 * t as f64 + 0.2 * v as f64).cos();
        if is_real { value as f32 } else { 0.0 }
    };
    case.is_real().into_iter().enumerate().map(value).collect()
}
