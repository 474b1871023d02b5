//! Looking inside a language model: its maps, its states; and, in a module of their own, the steps of going on with a text.

mod steps;

use super::text::{TRAINED, loaded};
use super::{assert_says, fail, read, succeed};
use crate::support::{SAME_TOLERANCE, assert_close, flex};
use lookback::data::batch::Padded;
use lookback::data::text::prompt_ids;
use lookback::data::{EOS, TokenizerConfig, Tokenizers, TokenizersConfig};
use lookback::layers::mixer::{MixerKind, Mixers};
use lookback::layers::{Pass, Trace};
use lookback::models::weights::to_vec;
use lookback::models::{DecoderOnlyConfig, Model, ModelConfig, Seq2Seq, Vocabularies};
use lookback::report::attention::Part;
use lookback::report::attention::collect::{Written, collect as collect_maps};
use lookback::report::states::{Labelled, VectorKind, collect_texts};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// What a forward pass over a text leaves behind, and its logits row by row.
pub(super) fn forward(model: &Model, ids: &[u32]) -> (Trace, Vec<Vec<f32>>) {
    let mut trace = Trace::default();
    let padded = |ids: &[u32]| Padded::new(&[ids.to_vec()], 0, &flex());
    let logits = model.forward(&padded(&[]), &padded(ids), &mut Pass::traced(&mut trace));
    let width = logits.dims()[2];
    (trace, to_vec(logits).chunks(width).map(<[f32]>::to_vec).collect())
}

pub(super) fn probability(logits: &[f32], id: u32) -> f64 {
    let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
    f64::from(logits[id as usize]).exp() / sum
}

/// A language model of nine tokens with random parameters.
pub(super) fn tiny(mixer: MixerKind) -> (ModelConfig, Model) {
    let config = ModelConfig::DecoderOnly(DecoderOnlyConfig {
        d_model: 8,
        d_feed_forward: 12,
        n_heads: 2,
        n_layers: 2,
        mixer: Mixers::from(mixer),
        reads_source: false,
        positions: serde_json::from_str(r#"{"kind": "none"}"#).unwrap(),
        ..DecoderOnlyConfig::default()
    });
    let model = config.init(Vocabularies { source: 9, target: 9, shared: true }, 1, &flex()).unwrap();
    (config, model)
}

/// A tokenizer of the characters a to e, for [`tiny`].
pub(super) fn letters() -> Tokenizers {
    let config: TokenizerConfig = serde_json::from_str(r#"{"kind": "char"}"#).unwrap();
    let tokenizers = Tokenizers::train_text(&["abcde"], &TokenizersConfig::Same(config), false).unwrap();
    assert_eq!(tokenizers.target().vocab_size(), 9);
    tokenizers
}

#[test]
fn the_maps_of_a_text_are_those_of_its_forward_pass() {
    let loaded = loaded();
    let text = Written::of_text(3, "abcdef", &loaded.tokenizers).unwrap();
    let found = collect_maps(&loaded.model, &loaded.tokenizers, &text).unwrap();
    assert!(found.is_text());
    assert_eq!((found.number, found.source_text.as_str(), found.target_text.as_str()), (3, "", "abcdef"));
    assert_eq!(found.input, ["</s>", "a", "b", "c", "d", "e", "f"]);
    assert_eq!(found.target, ["a", "b", "c", "d", "e", "f", "</s>"]);
    assert_eq!(found.rows(Part::Decoder), found.columns(Part::Decoder));
    let ids = prompt_ids("abcdef", loaded.tokenizers.target());
    let (trace, logits) = forward(&loaded.model, &ids);
    let weights = &trace.get("decoder.0.self_attention.weights").unwrap().values;
    assert_eq!(found.maps.len(), 2);
    for (map, expected) in found.maps.iter().zip(weights.chunks(49)) {
        assert_eq!((map.part, map.n_rows, map.n_columns), (Part::Decoder, 7, 7));
        assert_eq!(map.weights, expected);
        for i in 0..7 {
            assert_close("a row", &[map.row(i).iter().sum::<f32>()], &[1.0], 1e-5);
            assert!(map.row(i)[i + 1..].iter().all(|weight| *weight == 0.0), "row {i} sees the future");
        }
    }
    for (i, (row, id)) in logits.iter().zip(&text.target).enumerate() {
        assert_close("probability", &[found.probabilities[i]], &[probability(row, *id)], SAME_TOLERANCE);
    }
}

#[test]
fn attention_of_texts_goes_into_every_kind_of_file() {
    let (dir, out) = (TRAINED.path(), TempDir::new().unwrap());
    let path = |name: &str| out.path().join(name).to_str().unwrap().to_string();
    std::fs::write(out.path().join("in.txt"), "abcdef\n\ngabe\n").unwrap();
    let input = path("in.txt");
    let inspect = |rest: &[&str]| succeed(dir, &[&["inspect", "attention", "--run", "run"], rest].concat());
    for name in ["m.html", "m.svg", "m.png", "m.csv", "m.safetensors"] {
        let shown = inspect(&["--input", &input, "--out", &path(name)]);
        assert_says(&shown, &["decoder      1     1", "decoder      1     2"]);
    }
    let csv = read(path("m.csv"));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "sentence,part,layer,head,row,column,row_token,column_token,weight,predicted");
    // Two heads over seven tokens of the first line and five of the third, each with those before it.
    assert_eq!(lines.len(), 1 + 2 * (28 + 15));
    assert_eq!(lines[1], "1,decoder,1,1,0,0,\"</s>\",\"</s>\",1,\"a\"");
    assert!(lines.last().unwrap().starts_with("3,decoder,1,2,4,4,\"e\",\"e\",") && csv.ends_with(",\"</s>\"\n"));
    assert_says(&read(path("m.svg")), &["What each token of the text looks at", "a → b", "f → &lt;/s&gt;"]);
    assert_says(&read(path("m.html")), &["A row is a token of the text, which predicts the next one."]);
    inspect(&[
        "--input",
        &input,
        "--sentence",
        "3",
        "--layer",
        "average",
        "--head",
        "average",
        "--out",
        &path("n.csv"),
    ]);
    assert!(read(path("n.csv")).lines().skip(1).all(|line| line.starts_with("3,decoder,1,,")));
    // Without --input, the text that was held out for the end.
    let json: Value = serde_json::from_str(&inspect(&["--json", "--sentences", "4"])).unwrap();
    assert_eq!((json["sentences"].as_u64(), json["heads"].as_array().map(Vec::len)), (Some(4), Some(2)));
    assert!(json["heads"][0]["entropy"].as_f64().unwrap() > 0.0);
}

#[test]
fn options_that_need_a_source_are_refused_with_the_reason() {
    let (dir, out) = (TRAINED.path(), TempDir::new().unwrap());
    let input = out.path().join("in.txt").to_str().unwrap().to_string();
    std::fs::write(&input, "abcdef\n").unwrap();
    let refused = |rest: &[&str]| {
        fail(dir, &[&["inspect", "attention", "--run", "run", "--input", input.as_str()], rest].concat())
    };
    assert_says(&refused(&["--target", &input]), &["--target has no effect here", "is the whole text"]);
    assert_says(&refused(&["--faithfulness"]), &["--faithfulness has no effect here", "words of a source"]);
    assert_says(&refused(&["--beam", "2"]), &["--beam has no effect here", "nothing is translated"]);
    let aligned = refused(&["--target", &input, "--alignments", &input]);
    assert_says(&aligned, &["--alignments has no effect here"]);
    assert_says(&refused(&["--part", "cross", "--out", "x.csv"]), &["has no cross attention"]);
    let explain = |rest: &[&str]| fail(dir, &[&["explain", "--run", "run"], rest].concat());
    assert_says(&explain(&["abc", "--beam", "2"]), &["--beam is for translations"]);
    assert_says(&explain(&["abc", "--target", ""]), &["--target is empty"]);
    assert_says(&explain(&["abc", "--step", "9"]), &["--step 9: this text has"]);
    assert_says(&explain(&["abcdefabcdefa"]), &["the beginning has 14 tokens", "12 in sight"]);
    assert_says(&explain(&["abcdef", "--target", "abcdefabc"]), &["the beginning and --target have 15 tokens"]);
    let gpt2 = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/gpt2");
    succeed(out.path(), &["import", "gpt2", gpt2.to_str().unwrap(), "--run", "gpt2"]);
    assert_says(
        &fail(out.path(), &["inspect", "attention", "--run", "gpt2"]),
        &["comes without a text of its own", "--input FILE"],
    );
    let shown = succeed(out.path(), &["inspect", "attention", "--run", "gpt2", "--input", "in.txt", "--json"]);
    assert_says(&shown, &["\"sentences\":1", "\"part\":\"decoder\""]);
    let long = "a b ".repeat(200);
    std::fs::write(&input, &long).unwrap();
    let message = fail(out.path(), &["inspect", "attention", "--run", "gpt2", "--input", "in.txt"]);
    assert_says(&message, &["in.txt:1", "model.positions.max_len", "split the line"]);
    assert_says(&fail(out.path(), &["explain", "--run", "gpt2", &long]), &["in sight", "a shorter text"]);
}

#[test]
fn the_states_of_a_text_are_what_its_tokens_are_predicted_from() {
    let loaded = loaded();
    let lines = ["abcdef", "gabe"].map(|line| Labelled::parse(1, line));
    let (found, kind) = collect_texts(&loaded.model, loaded.tokenizers.target(), &lines);
    assert_eq!(kind, VectorKind::MeanOfStates);
    assert_eq!(found[1].tokens, ["g", "a", "b", "e", "</s>"]);
    let mut ids = prompt_ids("gabe", loaded.tokenizers.target());
    ids.push(EOS);
    let (trace, _) = forward(&loaded.model, &ids);
    let output = trace.get("decoder.readout").unwrap();
    let expected: Vec<&[f32]> = output.values.chunks(16).skip(1).collect();
    assert_eq!(found[1].states.len(), expected.len());
    for (state, expected) in found[1].states.iter().zip(&expected) {
        assert_close("state", state, expected, SAME_TOLERANCE);
    }
    let mean: Vec<f32> = (0..16).map(|i| expected.iter().map(|state| state[i]).sum::<f32>() / 5.0).collect();
    assert_close("mean", &found[1].vector, &mean, SAME_TOLERANCE);
    let (dir, out) = (TRAINED.path(), TempDir::new().unwrap());
    let path = |name: &str| out.path().join(name).to_str().unwrap().to_string();
    std::fs::write(out.path().join("in.txt"), "one\tabcdef\none\tabcde\ntwo\tgabe\ntwo\tgab\n").unwrap();
    let inspect = |rest: &[&str]| succeed(dir, &[&["inspect", "states", "--run", "run"], rest].concat());
    for name in ["s.html", "s.svg", "s.csv"] {
        let shown = inspect(&["--input", &path("in.txt"), "--out", &path(name), "--tokens", "--word", "a"]);
        assert_says(&shown, &["4 sentences, each as the mean of the last layer's states", "by chance 33.3 %", "a: "]);
    }
    assert_says(&read(path("s.svg")), &["Tokens by the last layer"]);
    assert_eq!(read(path("s.csv")).lines().filter(|line| line.starts_with("token,1")).count(), 7);
    assert_says(&fail(dir, &["inspect", "states", "--run", "run", "--word", "z"]), &["not in the model's vocabulary"]);
}

#[test]
fn a_model_of_recurrences_alone_has_no_map_of_attention() {
    let ((_, model), tokenizers) = (tiny(MixerKind::Gru), letters());
    let text = Written::of_text(1, "abc", &tokenizers).unwrap();
    let error = collect_maps(&model, &tokenizers, &text).unwrap_err().to_string();
    assert_says(&error, &["this model has no attention, and its recurrences have no factor", "lookback explain"]);
}
