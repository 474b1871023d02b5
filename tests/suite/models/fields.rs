//! Every field of `[model]` does something: another value gives another number of parameters, other logits, in training or
//! out of it, or is refused.

use crate::support::flex;
use crate::training::assert_says;
use burn::module::Module;
use lookback::data::batch::{Batch, Example};
use lookback::layers::Pass;
use lookback::models::weights::to_vec;
use lookback::models::{ModelConfig, Vocabularies};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a model is told apart by: its number of parameters, its logits, and its logits in training.
pub fn behaviour(model: &Value) -> Result<(usize, Vec<f32>, Vec<f32>), String> {
    let config: ModelConfig = serde_json::from_value(model.clone()).map_err(|error| error.to_string())?;
    let vocabularies = Vocabularies { source: 11, target: 11, shared: true };
    let model = config.init(vocabularies, 1, &flex()).map_err(|error| error.to_string())?;
    let examples =
        [(1, 4), (3, 1), (5, 3)].map(|(s, t)| Example { source: (4..4 + s).collect(), target: (5..5 + t).collect() });
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &flex());
    let logits = |pass: &mut Pass| to_vec(model.forward_batch(&batch, pass));
    Ok((model.num_params(), logits(&mut Pass::inference()), logits(&mut Pass::training(1, 0, 0))))
}

/// The models whose fields are changed: one of each kind, and one for each choice that has fields of its own.
fn models() -> Vec<Value> {
    let transformer = |positions: Value| {
        json!({
            "kind": "transformer", "d_model": 16, "d_feed_forward": 24, "n_heads": 2, "n_encoder_layers": 1,
            "n_decoder_layers": 1, "dropout_rate": 0.2, "embedding_dropout_rate": 0.0, "attention_dropout_rate": 0.1, "activation_dropout_rate": 0.1,
            "positions": positions,
        })
    };
    let recurrent = |attention: Value| {
        json!({
            "kind": "rnn", "d_embedding": 8, "d_hidden": 12, "dropout_rate": 0.2, "attention": attention,
            "readout": { "kind": "deep-output", "d_maxout": 6 },
        })
    };
    let mixed = |mixer: Value| {
        let mut model = transformer(json!({ "kind": "none" }));
        model["mixer"] = mixer;
        model
    };
    let decoder_only = |positions: Value, mixer: Value| {
        json!({
            "kind": "decoder-only", "d_model": 16, "d_feed_forward": 24, "n_heads": 2, "n_layers": 2, "dropout_rate": 0.2,
            "embedding_dropout_rate": 0.0, "attention_dropout_rate": 0.1, "activation_dropout_rate": 0.1,
            "positions": positions, "mixer": mixer,
        })
    };
    let encoder_only = |positions: Value, mixer: Value| {
        let mut model = decoder_only(positions, mixer);
        model["kind"] = "encoder-only".into();
        model
    };
    let mut masked = encoder_only(json!({ "kind": "rotary" }), json!({ "kind": "attention" }));
    masked["output"] = "masked-words".into();
    masked["randomized_positions"] = 24.into();
    let mut drawn = [
        transformer(json!({ "kind": "sinusoidal" })),
        decoder_only(json!({ "kind": "learned", "max_len": 32 }), json!({ "kind": "attention" })),
    ];
    drawn.iter_mut().for_each(|model| model["randomized_positions"] = 24.into());
    let [drawn, drawn_in_one] = drawn;
    let mut own = transformer(json!({ "kind": "alibi" }));
    own["decoder_positions"] = json!({ "kind": "none" });
    vec![
        transformer(json!({ "kind": "sinusoidal" })),
        transformer(json!({ "kind": "learned", "max_len": 8 })),
        transformer(json!({ "kind": "rotary" })),
        transformer(json!({ "kind": "t5", "n_buckets": 8, "max_distance": 5 })),
        transformer(json!({ "kind": "shaw", "max_distance": 2 })),
        own,
        mixed(json!({ "kind": "min-gru", "convolution": 2, "bidirectional": false, "expansion": 2 })),
        mixed(json!({ "kind": "delta", "negative_eigenvalues": true })),
        decoder_only(json!({ "kind": "learned", "max_len": 16 }), json!({ "kind": "attention" })),
        decoder_only(json!({ "kind": "t5", "n_buckets": 8, "max_distance": 5 }), json!({ "kind": "attention" })),
        decoder_only(json!({ "kind": "none" }), json!([{ "kind": "attention" }, { "kind": "ssru", "expansion": 2 }])),
        encoder_only(json!({ "kind": "learned", "max_len": 16 }), json!({ "kind": "attention" })),
        encoder_only(json!({ "kind": "none" }), json!([{ "kind": "attention" }, { "kind": "ssru", "expansion": 2 }])),
        masked,
        drawn,
        drawn_in_one,
        recurrent(json!({ "kind": "bahdanau", "score": { "kind": "additive", "d_attention": 10 } })),
        recurrent(json!({ "kind": "bahdanau", "score": { "kind": "concat", "d_attention": 10 } })),
        recurrent(json!({ "kind": "luong", "window": { "kind": "local-p", "half_width": 1 } })),
        recurrent(json!({
            "kind": "luong", "input_feeding": false, "window": { "kind": "local-m", "half_width": 1 },
            "score": { "kind": "location", "max_source_len": 8 },
        })),
    ]
}

/// The dotted keys of a model. A choice is its fields and itself; an optional key that is not set is a key too.
pub fn keys(prefix: &str, table: &Value, found: &mut BTreeSet<String>) {
    for (key, value) in table.as_object().expect("a table") {
        match value {
            Value::Object(_) => keys(&format!("{prefix}{key}."), value, found),
            _ if key == "kind" => drop(found.insert(prefix.trim_end_matches('.').to_string())),
            _ => drop(found.insert(format!("{prefix}{key}"))),
        }
    }
}

/// Another value for every field of `[model]`.
fn perturbations(kind: &str) -> Vec<(&'static str, &'static str)> {
    match kind {
        "transformer" => vec![
            ("d_model", "24"),
            ("d_feed_forward", "25"),
            ("n_heads", "4"),
            ("n_key_value_heads", "1"),
            ("n_encoder_layers", "2"),
            ("n_decoder_layers", "2"),
            ("dropout_rate", "0.3"),
            ("embedding_dropout_rate", "0.3"),
            ("attention_dropout_rate", "0.3"),
            ("activation_dropout_rate", "0.3"),
            ("norm_position", "\"post\""),
            ("norm", "\"rms\""),
            ("activation", "\"gelu\""),
            ("activation", "\"swiglu\""),
            ("positions", r#"{ "kind": "sinusoidal" }"#),
            ("positions", r#"{ "kind": "learned", "max_len": 9 }"#),
            ("positions", r#"{ "kind": "rotary" }"#),
            ("positions", r#"{ "kind": "alibi" }"#),
            ("positions", r#"{ "kind": "hard-alibi" }"#),
            ("positions", r#"{ "kind": "t5" }"#),
            ("positions", r#"{ "kind": "shaw" }"#),
            ("positions", r#"{ "kind": "none" }"#),
            ("decoder_positions", r#"{ "kind": "learned", "max_len": 9 }"#),
            ("decoder_positions", r#"{ "kind": "shaw" }"#),
            ("tied_embeddings", "\"target-output\""),
            ("tied_embeddings", "\"all\""),
            ("share_layers", "true"),
            ("mixer", r#"{ "kind": "gru" }"#),
            ("mixer", r#"{ "kind": "attention" }"#),
        ],
        "encoder-only" => vec![
            ("output", "\"class\""),
            ("is_causal", "true"),
            ("scales_embeddings", "false"),
            ("normalizes_embeddings", "true"),
            ("transforms_output", "true"),
            ("tied_embeddings", "true"),
            ("norm_epsilon", "0.1"),
            ("d_model", "24"),
            ("d_feed_forward", "25"),
            ("n_heads", "4"),
            ("n_key_value_heads", "1"),
            ("n_layers", "3"),
            ("share_layers", "true"),
            ("mixer", r#"{ "kind": "gru" }"#),
            ("dropout_rate", "0.3"),
            ("embedding_dropout_rate", "0.3"),
            ("attention_dropout_rate", "0.3"),
            ("activation_dropout_rate", "0.3"),
            ("norm_position", "\"post\""),
            ("norm", "\"rms\""),
            ("activation", "\"gelu\""),
            ("positions", r#"{ "kind": "sinusoidal" }"#),
            ("positions", r#"{ "kind": "alibi" }"#),
        ],
        "decoder-only" => vec![
            ("d_model", "24"),
            ("d_feed_forward", "25"),
            ("n_heads", "4"),
            ("n_key_value_heads", "1"),
            ("n_layers", "3"),
            ("share_layers", "true"),
            ("mixer", r#"{ "kind": "gru" }"#),
            ("mixer", r#"{ "kind": "min-gru" }"#),
            ("sees_whole_source", "true"),
            ("reads_source", "false"),
            ("scales_embeddings", "false"),
            ("output_bias", "true"),
            ("dropout_rate", "0.3"),
            ("embedding_dropout_rate", "0.3"),
            ("attention_dropout_rate", "0.3"),
            ("activation_dropout_rate", "0.3"),
            ("norm_position", "\"post\""),
            ("norm", "\"rms\""),
            ("activation", "\"relu\""),
            ("activation", "\"gelu-tanh\""),
            ("positions", r#"{ "kind": "sinusoidal" }"#),
            ("positions", r#"{ "kind": "alibi" }"#),
            ("tied_embeddings", "\"target-output\""),
            ("tied_embeddings", "\"all\""),
        ],
        _ => vec![
            ("cell", "\"vanilla\""),
            ("cell", "\"lstm\""),
            ("d_embedding", "9"),
            ("d_hidden", "13"),
            ("n_layers", "2"),
            ("directions", "\"forward\""),
            ("reverse_source", "true"),
            ("attention", r#"{ "kind": "none" }"#),
            ("residual", "true"),
            ("attention", r#"{ "kind": "bahdanau" }"#),
            ("attention", r#"{ "kind": "luong" }"#),
            ("context", "\"initial\""),
            ("bridge", "\"zeros\""),
            ("readout", r#"{ "kind": "state" }"#),
            ("readout", r#"{ "kind": "state-context" }"#),
            ("readout", r#"{ "kind": "deep-output", "d_maxout": 7 }"#),
            ("output", "\"projection\""),
            ("dropout_rate", "0.3"),
        ],
    }
}

/// Another value for a field of a choice.
fn perturbations_of_choices() -> Vec<(&'static str, &'static str)> {
    vec![
        ("randomized_positions", "18"),
        ("mixer.convolution", "3"),
        ("mixer.bidirectional", "true"),
        ("mixer.expansion", "1"),
        ("mixer.negative_eigenvalues", "false"),
        ("positions.max_len", "12"),
        ("positions.base", "100.0"),
        ("positions.n_buckets", "6"),
        ("positions.max_distance", "9"),
        ("attention.score", r#"{ "kind": "dot" }"#),
        ("attention.score", r#"{ "kind": "general" }"#),
        ("attention.score", r#"{ "kind": "additive", "d_attention": 11 }"#),
        ("attention.score.d_attention", "11"),
        ("attention.score.max_source_len", "7"),
        ("attention.window", r#"{ "kind": "global" }"#),
        ("attention.window", r#"{ "kind": "local-m", "half_width": 2 }"#),
        ("attention.window.half_width", "2"),
        ("attention.input_feeding", "true"),
        ("attention.input_feeding", "false"),
        ("readout.d_maxout", "7"),
    ]
}

#[test]
fn no_field_of_a_model_is_without_effect() {
    for given in models() {
        let config: ModelConfig = serde_json::from_value(given).expect("a model");
        let base = serde_json::to_value(&config).expect("a config is a table");
        let expected = behaviour(&base).expect("a model that can be made");
        let mut fields = BTreeSet::new();
        keys("", &base, &mut fields);
        // Which kind of model it is.
        assert!(fields.remove(""));
        let changes = [perturbations(base["kind"].as_str().expect("a kind")), perturbations_of_choices()].concat();
        for field in fields {
            let pointer = format!("/{}", field.replace('.', "/"));
            let texts = changes.iter().filter(|(key, _)| *key == field).map(|(_, text)| *text);
            let others: Vec<Value> = texts
                .map(|text| {
                    let mut changed = base.clone();
                    let place = changed.pointer_mut(&pointer).expect("a key of the model");
                    *place = serde_json::from_str(text).expect("a value");
                    changed
                })
                .filter(|changed| serde_json::from_value::<ModelConfig>(changed.clone()).ok().as_ref() != Some(&config))
                .collect();
            assert!(!others.is_empty(), "{field} has no other value here");
            for changed in others {
                let new = changed.pointer(&pointer).expect("it was set");
                match behaviour(&changed) {
                    Ok(found) => assert!(found != expected, "{field} = {new} changes nothing"),
                    Err(message) => assert_says(&message, &[&field]),
                }
            }
        }
    }
}
