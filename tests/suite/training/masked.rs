//! Models of masked words: learnt from plain text, measured, asked.

use super::{assert_says, fail, read, succeed};
use crate::support::shared_dir;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

pub(super) const CONFIG: &str = r#"
seed = 2
backend = "flex"
[data.text]
train = ["text.txt"]
valid = ["text.txt"]
context = 18
[tokenizer]
kind = "word"
[model]
kind = "encoder-only"
output = "masked-words"
transforms_output = true
tied_embeddings = true
d_model = 24
d_feed_forward = 32
n_heads = 2
n_layers = 2
dropout_rate = 0.0
positions = { kind = "rotary" }
[training]
max_updates = 260
batch_tokens = 400
learning_rate = 0.01
warmup_updates = 20
label_smoothing = 0.0
validate_every = 130
save_every = 130
"#;

/// Lines in which two words take turns, so that a hidden one is told by those around it.
pub(super) fn turns() -> String {
    let words = ["a", "b", "c", "d", "e", "f"];
    let pairs = words.iter().flat_map(|one| words.iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| one != other).map(|(one, other)| format!("{one} {other} ").repeat(4) + "\n").collect()
}

#[test]
fn a_text_with_nothing_to_hide_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("masked.toml"), CONFIG).unwrap();
    fs::write(dir.path().join("text.txt"), turns()).unwrap();
    fs::write(dir.path().join("other.txt"), "x y z\n").unwrap();
    let of = |split: &str| format!("data.text.{split}=[\"other.txt\"]");
    let message = fail(dir.path(), &["train", "masked.toml", "--run", "run", "--set", &of("valid")]);
    assert_says(&message, &["data.text.valid: has no token that could be hidden"]);
    let run = FILLER.path().join("run");
    let other = dir.path().join("other.txt");
    let setting = format!("data.text.valid=[{:?}]", other.to_str().unwrap());
    let evaluate = ["evaluate", "--run", run.to_str().unwrap(), "--split", "valid", "--set", &setting];
    assert_says(&fail(dir.path(), &evaluate), &["data.text.valid: has no token that could be hidden"]);
}

fn train(dir: &Path, run: &str, settings: &[&str]) -> String {
    fs::write(dir.join("masked.toml"), CONFIG).unwrap();
    fs::write(dir.join("text.txt"), turns()).unwrap();
    let mut arguments = vec!["train", "masked.toml", "--run", run];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    succeed(dir, &arguments)
}

/// A model that has learnt; tests must not write into its run folder.
pub(super) static FILLER: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = shared_dir();
    let shown = train(dir.path(), "run", &[]);
    assert_says(&shown, &["hidden words of the validation text", "asked   ", "<mask>", "lookback predict --run run"]);
    dir
});

#[test]
fn hidden_words_are_told_from_those_around_them() {
    let dir = FILLER.path();
    let text = "data.text.test=[\"text.txt\"]";
    let json = succeed(dir, &["evaluate", "--run", "run", "--set", text, "--json"]);
    let scores: Value = serde_json::from_str(&json).unwrap();
    assert!(scores["masked_accuracy"].as_f64().unwrap() > 0.95, "{scores}");
    // 30 lines of 8 words and an end, in pieces of 18 tokens: 15 pieces with 17 that can be chosen, or 16 beside two ends.
    assert_eq!(scores["tokens"], 270);
    assert_eq!(scores["masked"].as_u64().unwrap(), 15 * 2);
    // Whatever the size of a batch, the same tokens are asked for.
    let batches = "decoding.batch_tokens=20";
    let json = succeed(dir, &["evaluate", "--run", "run", "--set", text, "--set", batches, "--json"]);
    let other: Value = serde_json::from_str(&json).unwrap();
    let losses = [&scores, &other].map(|scores| scores["loss"].as_f64().unwrap());
    assert!((losses[0] - losses[1]).abs() < 1e-6, "{losses:?}");
    // Another part of the tokens.
    let half = "data.text.masked_rate=0.5";
    let json = succeed(dir, &["evaluate", "--run", "run", "--set", text, "--set", half, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["masked"], 15 * 8);
}

#[test]
fn predict_fills_in_what_is_hidden_and_leaves_the_rest_as_it_is() {
    let dir = FILLER.path();
    fs::write(dir.join("in.txt"), "a  b <mask> b a b a b\n\nc d c d c <mask> c d\ne f e f\n").unwrap();
    let found = succeed(dir, &["predict", "--run", "run", "--input", "in.txt"]);
    assert_eq!(found, "a  b a b a b a b\n\nc d c d c d c d\ne f e f\n");
    let lines = succeed(dir, &["predict", "--run", "run", "--input", "in.txt", "--json", "--n-best", "2"]);
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["tokens"][2], "<mask>");
    assert_eq!((&first["words"][0]["place"], &first["words"][0]["choices"][0]["answer"]), (&2.into(), &"a".into()));
    assert!(first["words"][0]["choices"][0]["probability"].as_f64().unwrap() > 0.8, "{first}");
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["words"], serde_json::json!([]));
}

#[test]
fn a_model_of_masked_words_is_looked_into_like_any_other() {
    let dir = FILLER.path();
    let given = succeed(dir, &["explain", "--run", "run", "a <mask> a b", "--target", "a c a b", "--json"]);
    let given: Value = serde_json::from_str(&given).unwrap();
    let written: Vec<&str> =
        given["steps"].as_array().unwrap().iter().map(|step| step["chosen"]["token"].as_str().unwrap()).collect();
    assert_eq!((written, &given["forced"]), (vec!["a", "c", "a", "b"], &true.into()));
    // Without --input it is the run's own text.
    let own = succeed(dir, &["inspect", "attention", "--run", "run", "--sentences", "2"]);
    assert_says(&own, &["encoder"]);
}

#[test]
fn a_line_of_which_nothing_is_read_is_left_out_as_a_blank_one() {
    // The character that stands for hidden words is lost from texts.
    let dir = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let (some, none) = (file("some", "\u{fffc}\na b a b\n"), file("none", "\u{fffc}\n"));
    let inspect = ["inspect", "attention", "--run", "run", "--input"];
    let found = succeed(FILLER.path(), &[&inspect[..], &[&some, "--json"]].concat());
    assert_eq!(serde_json::from_str::<Value>(&found).unwrap()["sentences"], 1);
    assert_says(&fail(FILLER.path(), &[&inspect[..], &[&none]].concat()), &["none: has no sentence to look at"]);
    let first = fail(FILLER.path(), &[&inspect[..], &[&some, "--sentence", "1"]].concat());
    assert_says(&first, &["some: sentence 1 is blank"]);
}

#[test]
fn a_model_of_masked_words_goes_on_where_it_was() {
    let dir = TempDir::new().unwrap();
    let constant = "training.schedule=\"constant\"";
    let saves = "training.save_every=10";
    train(dir.path(), "whole", &[constant, saves, "training.max_updates=20"]);
    train(dir.path(), "parts", &[constant, saves, "training.max_updates=10"]);
    train(dir.path(), "parts", &[constant, saves, "training.max_updates=20"]);
    let weights = |run: &str| fs::read(dir.path().join(run).join("checkpoints/000020/model.safetensors")).unwrap();
    assert!(weights("whole") == weights("parts"), "the same bits");
    let stats = read(dir.path().join("whole/metrics.jsonl"));
    assert!(stats.contains("\"token_accuracy\"") && !stats.contains("bits_per_character"), "{stats}");
}

#[test]
fn what_does_not_go_with_masked_words_is_refused() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    fs::write(dir.join("masked.toml"), CONFIG).unwrap();
    let refused = |settings: &[&str], expected: &[&str]| {
        let mut arguments = vec!["config", "check", "masked.toml"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        assert_says(&fail(dir, &arguments), expected);
    };
    refused(&["model.is_causal=true"], &["model.is_causal", "both sides"]);
    refused(&["model.activation=\"swiglu\""], &["model.transforms_output", "gate"]);
    refused(&["data.text.masked_rate=1.0"], &["data.text.masked_rate", "between 0 and 1"]);
    refused(&["model.norm_epsilon=0.0"], &["model.norm_epsilon"]);
    refused(&["training.criterion=\"score\""], &["training.criterion"]);
    refused(&["model.output=\"tags\""], &["transforms_output", "masked-words"]);
    let pairs = ["data={ task = { kind = \"reverse\" } }"];
    refused(&pairs, &["model.output", "data.text.train"]);
    refused(&["model.randomized_positions=1"], &["model.randomized_positions", "at least 2"]);
    let none = ["model.positions={ kind = \"none\" }", "model.randomized_positions=50"];
    refused(&none, &["model.randomized_positions", "draws positions"]);
    let pieces = ["tokenizer={ kind = \"word-piece\" }", "model={ kind = \"decoder-only\", reads_source = false }"];
    refused(&pieces, &["tokenizer.kind", "masked-words"]);
    let language_model = ["model={ kind = \"decoder-only\", reads_source = false }", "data.text.masked_rate=0.3"];
    refused(&language_model, &["data.text.masked_rate", "masked words"]);
    let run = FILLER.path();
    let longer = fail(run, &["explain", "--run", "run", "a b a b", "--target", "a b"]);
    assert_says(&longer, &["--target has 2 tokens, and the text 4"]);
    let lines = ["inspect", "attention", "--run", "run", "--input", "text.txt", "--target", "text.txt"];
    assert_says(&fail(run, &lines), &["--target has no effect here"]);
    let small = ["train", "masked.toml", "--run", "small", "--set", "model.randomized_positions=10"];
    fs::write(dir.join("text.txt"), turns()).unwrap();
    assert_says(&fail(dir, &small), &["data.text.context", "model.randomized_positions = 10"]);
    assert_says(&fail(run, &["generate", "--run", "run", "a"]), &["predict"]);
    assert_says(&fail(run, &["compare", "--run", "run", "--out", "none"]), &["is a model of masked words"]);
    assert_says(&fail(run, &["evaluate", "--run", "run", "--chart", "c.svg"]), &["--chart"]);
    assert_says(&fail(run, &["evaluate", "--run", "run", "--beam", "3"]), &["--beam"]);
    assert_says(&fail(run, &["evaluate", "--run", "run", "--tokenize", "13a"]), &["--tokenize has no effect here"]);
}
