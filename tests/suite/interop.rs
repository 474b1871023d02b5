//! Models of other programs: the same tokens, the same scores, the same words as there.

mod added_tokens;
mod bert;
mod exports;
mod generation;
mod language_models;
mod marian;
mod sizes;
mod special_words;

use crate::support::{SAME_TOLERANCE, assert_close, host_backends};
use crate::training::{assert_says, fail, succeed};
use burn::tensor::Tensor;
use lookback::data::batch::Padded;
use lookback::data::text::prompt_ids;
use lookback::data::{EOS, TokenStream};
use lookback::experiment::Run;
use lookback::interop::import_gpt2;
use lookback::layers::Pass;
use lookback::models::Seq2Seq;
use lookback::models::weights::{Weights, to_safetensors, to_vec};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What transformers says of `tests/golden/gpt2`; `tests/golden/gpt2.py` wrote it.
#[derive(Deserialize)]
struct Golden {
    end: u32,
    texts: Vec<Text>,
    ids: Vec<u32>,
    shape: [usize; 2],
    logits: Vec<f64>,
    greedy: Vec<Greedy>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Greedy {
    prompt: String,
    ids: Vec<u32>,
    text: String,
}

impl Golden {
    fn read() -> Self {
        serde_json::from_str(&fs::read_to_string(folder("gpt2.json")).unwrap()).unwrap()
    }

    /// Our number of one of their tokens.
    fn ours(&self, id: u32) -> u32 {
        match id {
            id if id == self.end => EOS,
            id => 4 + id - u32::from(id > self.end),
        }
    }

    fn all_ours(&self, ids: &[u32]) -> Vec<u32> {
        ids.iter().map(|id| self.ours(*id)).collect()
    }
}

/// Compares the logits of our words with those of theirs; `ours` gives our number of one of the `n` words there.
fn assert_logits(what: &str, logits: Tensor<3>, n: usize, ours: impl Fn(u32) -> u32, golden: &[f64]) -> Vec<f32> {
    let vocab_size = logits.dims()[2];
    let found = to_vec(logits);
    let in_their_order = |row: &[f32]| (0..n as u32).map(|id| row[ours(id) as usize]).collect::<Vec<f32>>();
    let theirs: Vec<f32> = found.chunks(vocab_size).flat_map(in_their_order).collect();
    assert_close(what, &theirs, golden, SAME_TOLERANCE);
    found
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A copy of the golden model of a kind with changes in its files: of which, what, and into what.
fn changed(dir: &TempDir, kind: &str, name: &str, changes: &[(&str, &str, &str)]) -> PathBuf {
    let to = dir.path().join(name);
    crate::training::copy_folder(&folder(kind), &to);
    for (file, old, new) in changes {
        let text = fs::read_to_string(to.join(file)).unwrap();
        assert!(text.contains(old), "{file} has no {old}");
        fs::write(to.join(file), text.replace(old, new)).unwrap();
    }
    to
}

/// What is said of such a copy.
fn refused(dir: &TempDir, kind: &str, name: &str, changes: &[(&str, &str, &str)]) -> String {
    changed(dir, kind, name, changes);
    fail(dir.path(), &["import", kind, name, "--run", "out"])
}

/// Changes a file of JSON.
fn change_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Changes the parameters of a folder.
fn change_weights(from: &Path, change: impl FnOnce(&mut Weights)) {
    let path = from.join("model.safetensors");
    let mut weights = exports::weights(&path);
    change(&mut weights);
    fs::write(path, to_safetensors(&weights, &BTreeMap::new(), HashMap::new()).unwrap()).unwrap();
}

/// What a language model is fine-tuned with.
const TEXT_SETTINGS: [&str; 5] = [
    "data.text.train=[\"text.txt\"]",
    "data.text.valid=[\"text.txt\"]",
    "data.text.context=10",
    "training.max_updates=2",
    "training.batch_tokens=40",
];

/// Trains the imported model `run` of a folder a little further, as `tuned`.
fn fine_tune(dir: &TempDir, settings: &[&str]) {
    let config = fs::read_to_string(dir.path().join("run/config.toml")).unwrap();
    // Without the checksum: a config of the user's own.
    let own: String = config.lines().skip(1).map(|line| format!("{line}\n")).collect();
    fs::write(dir.path().join("more.toml"), own).unwrap();
    let start = ["train", "more.toml", "--run", "tuned", "--init-from", "run"];
    succeed(dir.path(), &[&start[..], &with_set(settings)].concat());
}

/// `--set` before each setting.
fn with_set<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    settings.iter().flat_map(|setting| ["--set", setting]).collect()
}

fn imported() -> TempDir {
    let dir = TempDir::new().unwrap();
    import_gpt2(&folder("gpt2"), &dir.path().join("run")).unwrap();
    dir
}

#[test]
fn an_imported_gpt2_has_the_tokens_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    let tokenizers = Run::open(&dir.path().join("run")).unwrap().tokenizers().unwrap();
    let tokenizer = tokenizers.target();
    assert_eq!(tokenizer.vocab_size(), golden.shape[1] + 3);
    for Text { text, ids } in &golden.texts {
        assert_eq!(prompt_ids(text, tokenizer), golden.all_ours(ids), "{text:?}");
        assert_eq!(tokenizer.decode(&golden.all_ours(ids)), *text);
        // Line by line, on all cores, it is the same stream.
        let lines: Vec<&str> = text.lines().collect();
        let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let expected: Vec<u32> = std::iter::once(EOS).chain(tokenizer.encode(&whole)).collect();
        assert_eq!(TokenStream::new(&lines, tokenizer).ids, expected, "{text:?}");
    }
}

#[test]
fn an_imported_gpt2_has_the_logits_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    for adapter in host_backends() {
        let loaded = Run::open(&dir.path().join("run")).unwrap().load_model(&adapter, None, |_| ()).unwrap();
        let input = Padded::new(&[golden.all_ours(&golden.ids)], 0, &adapter.device);
        let empty = Padded::new(&[Vec::new()], 0, &adapter.device);
        for is_fused in [false, true] {
            let logits = loaded.model.forward(&empty, &input, &mut Pass::inference().fused(is_fused));
            let (what, vocab_size) = (adapter.backend.to_string(), logits.dims()[2]);
            let ours = assert_logits(&what, logits, golden.shape[1], |id| golden.ours(id), &golden.logits);
            for row in ours.chunks(vocab_size) {
                assert!([0, 1, 3].iter().all(|special| row[*special] < -1e8), "what GPT-2 does not have is possible");
            }
        }
    }
}

#[test]
fn an_imported_gpt2_writes_the_words_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    for Greedy { prompt, ids, text } in &golden.greedy {
        let loaded = Run::open(&dir.path().join("run")).unwrap();
        let n_prompt = prompt_ids(prompt, loaded.tokenizers().unwrap().target()).len();
        let n_new = (ids.len() - n_prompt).to_string();
        let json = succeed(dir.path(), &["generate", "--run", "run", prompt, "--max-tokens", &n_new, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["text"].as_str(), Some(text.as_str()), "after {prompt:?}");
    }
}

#[test]
fn an_imported_gpt2_is_a_model_like_any_other() {
    let dir = imported();
    fs::write(dir.path().join("text.txt"), "the dog looks back\n".repeat(30)).unwrap();
    let test = "data.text.test=[\"text.txt\"]";
    let scores = succeed(dir.path(), &["evaluate", "--run", "run", "--set", test]);
    assert_says(&scores, &["bits per character"]);
    assert_says(&fail(dir.path(), &["evaluate", "--run", "run"]), &["data.text.test", "names no file to measure on"]);
    succeed(dir.path(), &["export", "run", "--run", "run", "--out", "small", "--int8"]);
    succeed(dir.path(), &["generate", "--run", "small", "the", "--max-tokens", "3"]);
    fine_tune(&dir, &TEXT_SETTINGS);
    assert_says(&fail(dir.path(), &["translate", "--run", "run"]), &["is a language model"]);
}

#[test]
fn what_is_no_gpt2_is_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    let copy = |name: &str, changes: &[(&str, &str, &str)]| refused(&dir, "gpt2", name, changes);
    assert_says(&copy("bert", &[("config.json", "\"gpt2\"", "\"bert\"")]), &["config.json", "model_type = \"bert\""]);
    let scaled = copy("scaled", &[("config.json", "_layer_idx\": false", "_layer_idx\": true")]);
    assert_says(&scaled, &["scale_attn_by_inverse_layer_idx = true"]);
    assert_says(
        &copy("wide", &[("config.json", "\"n_embd\": 16", "\"n_embd\": 18")]),
        &["model.safetensors", "wpe.weight"],
    );
    let heads = copy("heads", &[("config.json", "\"n_head\": 2", "\"n_head\": 3")]);
    assert_says(&heads, &["n_heads", "must divide"]);
    let deep = copy("deep", &[("config.json", "\"n_layer\": 2", "\"n_layer\": 1")]);
    assert_says(&deep, &["h.1.", "which GPT-2 does not have"]);
    let cutter = copy("cutter", &[("tokenizer.json", "\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}")]);
    assert_says(&cutter, &["tokenizer.json", "normalizer"]);
    assert_says(&fail(dir.path(), &["import", "gpt2", "nowhere", "--run", "out"]), &["nowhere", "is no folder"]);
    fs::create_dir(dir.path().join("empty")).unwrap();
    assert_says(&fail(dir.path(), &["import", "gpt2", "empty", "--run", "out"]), &["config.json"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
}
