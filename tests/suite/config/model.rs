//! Every field of `[model]` does something.

use super::complete;
use crate::training::assert_says;
use burn::module::Module;
use lookback::backend::Backend;
use lookback::data::batch::{Batch, Example};
use lookback::layers::Pass;
use lookback::models::weights::to_vec;
use lookback::models::{ModelConfig, Vocabularies};
use std::collections::BTreeSet;

/// What a model is told apart by: its number of parameters, its logits, and its logits in training.
fn behaviour(model: &toml::Table) -> Result<(usize, Vec<f32>, Vec<f32>), String> {
    let config: ModelConfig = model.clone().try_into().map_err(|error: toml::de::Error| error.to_string())?;
    let device = Backend::Flex.open().unwrap().device;
    let vocabularies = Vocabularies { source: 11, target: 11, shared: true };
    let model = config.init(vocabularies, 1, &device).map_err(|error| error.to_string())?;
    let examples =
        [(1, 4), (3, 1), (5, 3)].map(|(s, t)| Example { source: (4..4 + s).collect(), target: (5..5 + t).collect() });
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &device);
    let logits = |pass: &mut Pass| to_vec(model.forward_batch(&batch, pass));
    Ok((model.num_params(), logits(&mut Pass::inference()), logits(&mut Pass::training(1, 0, 0))))
}

/// Another value for every field of `[model]`.
fn perturbations(kind: &str) -> Vec<(&'static str, &'static str)> {
    match kind {
        "transformer" => vec![
            ("d_model", "24"),
            ("d_feed_forward", "25"),
            ("n_heads", "4"),
            ("n_encoder_layers", "2"),
            ("n_decoder_layers", "2"),
            ("dropout_rate", "0.3"),
            ("attention_dropout_rate", "0.3"),
            ("activation_dropout_rate", "0.3"),
            ("norm_position", "\"post\""),
            ("activation", "\"gelu\""),
            ("activation", "\"swiglu\""),
            ("positions", "{ kind = \"learned\", max_len = 9 }"),
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
            ("attention", "{ kind = \"none\" }"),
            ("attention", "{ kind = \"bahdanau\", score = { kind = \"dot\" } }"),
            ("context", "\"initial\""),
            ("bridge", "\"zeros\""),
            ("readout", "{ kind = \"state\" }"),
            ("readout", "{ kind = \"state-context\" }"),
            ("readout", "{ kind = \"deep-output\", d_maxout = 7 }"),
            ("output", "\"projection\""),
            ("dropout_rate", "0.3"),
        ],
    }
}

#[test]
fn no_field_of_a_model_is_without_effect() {
    for config in complete() {
        let base = toml::Table::try_from(&config.model).unwrap();
        let expected = behaviour(&base).unwrap();
        let perturbations = perturbations(base["kind"].as_str().unwrap());
        let fields: BTreeSet<&str> = base.keys().map(String::as_str).filter(|key| *key != "kind").collect();
        assert_eq!(fields, perturbations.iter().map(|(key, _)| *key).collect(), "each field has another value here");
        for (key, value) in perturbations {
            let mut changed = base.clone();
            changed.insert(key.into(), toml::from_str::<toml::Table>(&format!("x = {value}")).unwrap()["x"].clone());
            match behaviour(&changed) {
                Ok(found) => assert_ne!(found, expected, "{key} = {value} changes nothing"),
                Err(message) => assert_says(&message, &[key]),
            }
        }
    }
}
