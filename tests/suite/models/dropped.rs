//! Dropout: in every place where a model of its kind has it, and in no other.

use crate::support::flex;
use burn::tensor::Tensor;
use lookback::data::batch::{Batch, Example};
use lookback::layers::Pass;
use lookback::models::weights::to_vec;
use lookback::models::{ModelConfig, Vocabularies};
use serde_json::{Value, json};

const RATES: [&str; 4] =
    ["embedding_dropout_rate", "dropout_rate", "attention_dropout_rate", "activation_dropout_rate"];

/// In how many places a model drops, where this rate alone is not zero.
fn n_places(model: &Value, rate: &str) -> usize {
    let mut model = model.clone();
    let others: &[&str] = if model["kind"] == "rnn" { &[] } else { &RATES };
    others.iter().for_each(|other| model[*other] = 0.0.into());
    model[rate] = 0.5.into();
    let config: ModelConfig = serde_json::from_value(model).unwrap();
    let model = config.init(Vocabularies { source: 11, target: 11, shared: true }, 1, &flex()).unwrap();
    let example = Example { source: vec![5, 6, 7], target: vec![8, 9, 5] };
    let batch = Batch::new(&[&example], &flex());
    let mut pass = Pass::training(1, 0, 0);
    let _ = model.forward_batch(&batch, &mut pass);
    // The units of the next place tell how many there were before it.
    let units = |pass: &mut Pass| to_vec(pass.dropout(Tensor::<2>::ones([8, 16], &flex()), 0.5));
    let next = units(&mut pass);
    let has_passed = |n: &usize| {
        let mut pass = Pass::training(1, 0, 0);
        for _ in 0..*n {
            let _ = pass.next_dropout(0.5);
        }
        units(&mut pass) == next
    };
    (0..100).find(has_passed).expect("fewer than a hundred places")
}

#[test]
fn every_layer_drops_where_its_papers_do() {
    let transformer = json!({
        "kind": "transformer", "d_model": 16, "d_feed_forward": 24, "n_heads": 2, "n_encoder_layers": 2,
        "n_decoder_layers": 1, "positions": { "kind": "sinusoidal" },
    });
    let stack = |kind: &str| {
        json!({
            "kind": kind, "d_model": 16, "d_feed_forward": 24, "n_heads": 2, "n_layers": 2, "positions": { "kind": "sinusoidal" },
        })
    };
    let recurrent = |n_layers: usize, attention: Value, readout: Value| {
        json!({
            "kind": "rnn", "d_embedding": 8, "d_hidden": 12, "n_layers": n_layers, "attention": attention, "readout": readout,
        })
    };
    // A block has a residual sum for each of its sublayers: two in an encoder, three in a decoder with a source of its own.
    let of_transformer = [2, 2 * 2 + 3, 2 + 2, 2 + 1];
    let of_stack = [1, 2 * 2, 2, 2];
    for (model, expected) in
        [(transformer, of_transformer), (stack("decoder-only"), of_stack), (stack("encoder-only"), of_stack)]
    {
        assert_eq!(RATES.map(|rate| n_places(&model, rate)), expected, "{RATES:?} of {model}");
    }
    let bahdanau = json!({ "kind": "bahdanau" });
    let deep = json!({ "kind": "deep-output", "d_maxout": 6 });
    let state = json!({ "kind": "state" });
    // The words of both sides, what is read out, and what a layer hands to the next: in an encoder at once, in a decoder at each of four
    // steps.
    for (model, expected) in [
        (recurrent(1, bahdanau.clone(), deep), 3),
        (recurrent(1, json!({ "kind": "none" }), state), 3),
        (recurrent(2, bahdanau, json!({ "kind": "state-context" })), 3 + 1 + 4),
    ] {
        assert_eq!(n_places(&model, "dropout_rate"), expected, "{model}");
    }
}
