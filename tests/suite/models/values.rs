//! Models that read and answer numbers: what holds for every mixer, on every host backend.

use crate::support::{SAME_TOLERANCE, assert_close, check_quotients, flex, host_backends, tensor, with_closed_form};
use burn::tensor::{Device, Tensor};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::{collect, to_vec};
use lookback::models::{Autoregressive, Model, ModelConfig, Seq2Seq, Vocabularies};
use serde_json::{Value, json};

const CHANNELS: Vocabularies = Vocabularies { source: 2, target: 3, shared: false };
const LENGTHS: [usize; 3] = [5, 1, 3];
const LEN: usize = 5;

/// Attention, recurrences of both kinds, and both, causal and not.
fn configs() -> Vec<(String, bool, ModelConfig)> {
    let mixers = [
        ("attention", json!({ "kind": "attention" }), json!({ "kind": "rotary" })),
        ("gru", json!({ "kind": "gru" }), json!({ "kind": "none" })),
        ("delta, attention", json!([{ "kind": "delta" }, { "kind": "attention" }]), json!({ "kind": "alibi" })),
    ];
    let config = |is_causal: bool, mixer: &Value, positions: &Value| {
        let model = json!({
            "kind": "encoder-only", "output": "values", "is_causal": is_causal, "d_model": 8, "d_feed_forward": 12,
            "n_heads": 2, "n_layers": 2, "mixer": mixer, "positions": positions, "dropout_rate": 0.0, "activation": "gelu",
        });
        serde_json::from_value::<ModelConfig>(model).expect("a model of numbers")
    };
    let both = |(name, mixer, positions): &(&str, Value, Value)| {
        [false, true]
            .map(|is_causal| (format!("{name}, causal {is_causal}"), is_causal, config(is_causal, mixer, positions)))
    };
    mixers.iter().flat_map(both).collect()
}

fn model(config: &ModelConfig, device: &Device) -> Model {
    with_closed_form(config.init(CHANNELS, 1, device).expect("a valid config"), 1.0)
}

/// Number `i` of a batch, whatever its shape.
fn number(i: usize) -> f32 {
    (1.7 * i as f32).sin()
}

/// Rows of so many steps in a batch that is `len` wide; what lies beyond is `padding`.
fn batch(rows: &[(usize, usize)], len: usize, padding: f32, device: &Device) -> Padded {
    let value = |(row, i): (usize, usize)| {
        let (first, n) = rows[row];
        if i / CHANNELS.source < n { number(100 * first + i) } else { padding }
    };
    let width = len * CHANNELS.source;
    let values = (0..rows.len()).flat_map(|row| (0..width).map(move |i| (row, i))).map(value).collect();
    Padded {
        ids: Tensor::zeros([rows.len(), len], device),
        values: Some(tensor(values, [rows.len(), len, CHANNELS.source], device)),
        lengths: rows.iter().map(|(_, n)| *n).collect(),
    }
}

fn rows() -> Vec<(usize, usize)> {
    LENGTHS.into_iter().enumerate().collect()
}

/// The predictions of each row's own steps.
fn predictions(model: &Model, source: &Padded) -> Vec<Vec<f32>> {
    let width = source.len() * CHANNELS.target;
    let all = to_vec(model.forward(source, source, &mut Pass::inference()));
    all.chunks(width).zip(&source.lengths).map(|(row, n)| row[..n * CHANNELS.target].to_vec()).collect()
}

#[test]
fn a_series_in_a_batch_is_the_same_as_alone_and_padding_does_not_matter() {
    for adapter in host_backends() {
        for (name, _, config) in configs() {
            let what = format!("{name} on {}", adapter.backend);
            let model = model(&config, &adapter.device);
            let whole = predictions(&model, &batch(&rows(), LEN, 0.0, &adapter.device));
            assert!(whole[0].iter().any(|value| value.abs() > 0.01), "{what}: {whole:?}");
            let wide = predictions(&model, &batch(&rows(), LEN + 3, 0.0, &adapter.device));
            let other = predictions(&model, &batch(&rows(), LEN, 9.0, &adapter.device));
            for (row, n) in rows() {
                let alone = &predictions(&model, &batch(&[(row, n)], n, 0.0, &adapter.device))[0];
                for (how, found) in [("alone", alone), ("wide", &wide[row]), ("other padding", &other[row])] {
                    assert_close(&format!("{what}: row {row}, {how}"), found, &whole[row], SAME_TOLERANCE);
                }
            }
        }
    }
}

#[test]
fn stepping_takes_the_same_predictions_one_by_one() {
    for adapter in host_backends() {
        for (name, _, config) in configs() {
            let model = model(&config, &adapter.device);
            let source = batch(&[(0, LEN)], LEN, 0.0, &adapter.device);
            let memory = model.encode(&source, &mut Pass::inference());
            let mut state = model.start(&memory, 1);
            let mut found = Vec::new();
            for _ in 0..LEN {
                let previous = Tensor::zeros([1], &adapter.device);
                let (step, next) = model.step(previous, state, &memory, &mut Pass::inference());
                found.extend(to_vec(step));
                state = next;
            }
            assert_close(&name, &found, &predictions(&model, &source)[0], SAME_TOLERANCE);
        }
    }
}

#[test]
fn a_causal_model_does_not_look_ahead_and_another_does() {
    for adapter in host_backends() {
        for (name, is_causal, config) in configs() {
            let what = format!("{name} on {}", adapter.backend);
            let model = model(&config, &adapter.device);
            let source = batch(&[(0, LEN)], LEN, 0.0, &adapter.device);
            let whole = predictions(&model, &source)[0].clone();
            for changed in 0..LEN {
                let mut values = to_vec(source.values.clone().expect("numbers"));
                values[changed * CHANNELS.source] += 1.0;
                let values = Some(tensor(values, [1, LEN, CHANNELS.source], &adapter.device));
                let other = predictions(&model, &Padded { values, ..source.clone() })[0].clone();
                let gaps: Vec<f32> = whole.iter().zip(other).map(|(a, b)| (a - b).abs()).collect();
                let (before, after) = gaps.split_at(changed * CHANNELS.target);
                let largest = |gaps: &[f32]| gaps.iter().copied().fold(0.0, f32::max);
                assert!(largest(after) > 1e-3, "{what}: step {changed} changes nothing");
                match is_causal {
                    true => assert_eq!(largest(before), 0.0, "{what}: step {changed} is seen before it comes"),
                    false if changed > 0 => {
                        assert!(largest(before) > 1e-5, "{what}: step {changed} is not looked ahead at")
                    }
                    false => {}
                }
            }
        }
    }
}

#[test]
fn gradients_are_the_limits_of_difference_quotients() {
    // The delta rule is too curved for the step of the quotients.
    for (name, _, config) in configs().into_iter().filter(|(name, _, _)| !name.contains("delta")) {
        check_quotients(&name, model(&config, &flex()), |model: &Model, device| {
            let source = batch(&[(0, LEN)], LEN, 0.0, device);
            model.forward(&source, &source, &mut Pass::inference().fused(true))
        });
    }
}

#[test]
fn the_first_map_has_a_bias_from_the_start() {
    // Without one, the first norm would leave nothing of a single channel but its sign.
    let channels = Vocabularies { source: 1, target: 1, shared: false };
    let model = configs()[0].2.init(channels, 1, &flex()).expect("a valid config");
    let bias = &collect(&model)["source_embedding.bias"].values;
    assert!(bias.iter().all(|value| value.abs() <= 1.0) && bias.iter().any(|value| value.abs() > 0.1), "{bias:?}");
}
