//! Models of numbers: predictions and squared error against PyTorch, their means against NumPy.

use super::{Inputs, Outputs, check_golden, golden_layers, named};
use crate::support::{FORWARD_TOLERANCE, LayerCase, assert_close, closed_form, tensor};
use burn::tensor::Tensor;
use lookback::data::batch::{Padded, TargetValues};
use lookback::layers::Pass;
use lookback::models::{EncoderOnlyModel, ModelConfig, Seq2Seq, Vocabularies};
use lookback::training::squared_error::squared_error;

/// The true numbers of a case, zero beyond its series.
fn targets(case: &LayerCase, lengths: &[usize]) -> TargetValues {
    let shape = &case.outputs[0].shape;
    let (len, n_channels) = (shape[1], shape[2]);
    let scale: f32 = case.choice("target_scale");
    let values = closed_form("target", shape.iter().product(), scale).into_iter().enumerate();
    let is_real = |i: usize| i / n_channels % len < lengths[i / n_channels / len];
    let scaled = values.map(|(i, value)| if is_real(i) { value } else { 0.0 }).collect();
    TargetValues { scaled, lengths: lengths.to_vec(), units: case.choice("units") }
}

fn run(case: &LayerCase, model: &EncoderOnlyModel, inputs: &Inputs, pass: &mut Pass) -> Outputs {
    let lengths = case.lengths().expect("a batch has lengths");
    let n_steps: usize = lengths.iter().sum();
    let values: Tensor<3> = inputs.get("source");
    let [batch, len, _] = values.dims();
    let ids = Tensor::zeros([batch, len], &values.device());
    let source = Padded { ids, values: Some(values), lengths: lengths.clone() };
    let predictions = model.forward(&source, &source, pass);
    let targets = targets(case, &lengths);
    let loss = squared_error(predictions.clone(), &targets, n_steps);

    let mean_loss = loss.mean.clone();
    let sums = loss.sums();
    let errors = sums.errors.expect("numbers have errors").scores();
    let expected = |key: &str| case.config["errors"][key].as_f64().expect("a number");
    assert_close(&format!("{}: mse", case.name), &[errors.mse], &[expected("mse")], FORWARD_TOLERANCE);
    assert_close(&format!("{}: mae", case.name), &[errors.mae], &[expected("mae")], FORWARD_TOLERANCE);
    assert_eq!(errors.rmse, errors.mse.sqrt());
    assert_eq!(sums.n_tokens, n_steps);
    let mean = sums.smoothed / n_steps as f64;
    assert_close(&format!("{}: sums", case.name), &[mean], &case.outputs[1].values, FORWARD_TOLERANCE);

    let is_real = (0..batch * len).map(|i| if i % len < lengths[i / len] { 1.0 } else { 0.0 }).collect();
    let real = predictions * tensor(is_real, [batch, len, 1], &inputs.device());
    Outputs::from([named("predictions", real), named("loss", mean_loss)])
}

#[test]
fn every_golden_model_of_numbers_is_pytorchs_forward_and_backward() {
    for case in golden_layers("values") {
        let config: ModelConfig = case.choice("model");
        let ModelConfig::EncoderOnly(config) = config else { panic!("{} is encoder-only", case.name) };
        let channels = |side: &str| case.config["channels"][side].as_u64().expect("a number") as usize;
        let vocabularies = Vocabularies { source: channels("source"), target: channels("target"), shared: false };
        check_golden(
            case,
            |init| config.init(vocabularies, init).expect("a golden config is valid"),
            |model, inputs, pass| run(case, model, inputs, pass),
        );
    }
}
