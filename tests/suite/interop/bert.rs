//! BERT for masked words.

use super::{TEXT_SETTINGS, assert_logits, fine_tune, folder, refused};
use crate::support::host_backends;
use crate::training::{assert_says, fail, succeed};
use lookback::data::batch::Padded;
use lookback::data::{EOS, Tokenizer};
use lookback::experiment::Run;
use lookback::interop::import_bert;
use lookback::layers::Pass;
use lookback::models::Seq2Seq;
use serde::Deserialize;
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

/// What transformers says of `tests/golden/bert`; `tests/golden/bert.py` wrote it.
#[derive(Deserialize)]
struct Golden {
    /// `[PAD]`, `[CLS]`, `[SEP]`, `[UNK]`.
    specials: [u32; 4],
    mask: u32,
    texts: Vec<Text>,
    ids: Vec<u32>,
    shape: [usize; 2],
    logits: Vec<f64>,
    filled: Vec<Filled>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Filled {
    text: String,
    places: Vec<usize>,
    ids: Vec<u32>,
}

impl Golden {
    fn read() -> Self {
        serde_json::from_str(&fs::read_to_string(folder("bert.json")).unwrap()).unwrap()
    }

    /// Our number of one of their tokens: special ones first, all others in their order.
    fn ours(&self, id: u32) -> u32 {
        match self.specials.iter().position(|special| *special == id) {
            Some(special) => special as u32,
            None => 4 + id - self.specials.iter().filter(|special| **special < id).count() as u32,
        }
    }

    /// Our numbers of a text of theirs, without the end, which the data puts behind a source.
    fn all_ours(&self, ids: &[u32]) -> Vec<u32> {
        let ids: Vec<u32> = ids.iter().map(|id| self.ours(*id)).collect();
        ids.strip_suffix(&[EOS]).expect("every text of BERT has an end").to_vec()
    }
}

fn imported() -> TempDir {
    let dir = TempDir::new().unwrap();
    import_bert(&folder("bert"), &dir.path().join("run")).unwrap();
    dir
}

fn with_tokenizer(dir: &TempDir, check: impl Fn(&Tokenizer)) {
    check(Run::open(&dir.path().join("run")).unwrap().tokenizers().unwrap().source());
}

#[test]
fn an_imported_bert_has_the_tokens_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    with_tokenizer(&dir, |tokenizer| {
        assert_eq!(tokenizer.vocab_size(), golden.shape[1]);
        assert_eq!(tokenizer.mask(), Some(golden.ours(golden.mask)));
        for Text { text, ids } in &golden.texts {
            assert_eq!(tokenizer.encode(text), golden.all_ours(ids), "{text:?}");
        }
        assert!(tokenizer.encode("  ").is_empty(), "a blank line stays blank");
        assert_eq!(tokenizer.unknown("a Dog? XYLOPHONE 漢"), ["?", "XYLOPHONE", "漢"]);
        assert_eq!(
            tokenizer.decode(&tokenizer.encode("They'll count <mask> stars.")),
            "they ' ll count <mask> stars <unk>"
        );
    });
    // The vocabulary as a list of lines says the same.
    let lines = TempDir::new().unwrap();
    let from = lines.path().join("bert");
    crate::training::copy_folder(&folder("bert"), &from);
    let json: Value = serde_json::from_str(&fs::read_to_string(from.join("tokenizer.json")).unwrap()).unwrap();
    let mut tokens: Vec<(u64, &String)> =
        json["model"]["vocab"].as_object().unwrap().iter().map(|(token, id)| (id.as_u64().unwrap(), token)).collect();
    tokens.sort_unstable();
    let text: String = tokens.iter().map(|(_, token)| format!("{token}\n")).collect();
    fs::write(from.join("vocab.txt"), text).unwrap();
    fs::remove_file(from.join("tokenizer.json")).unwrap();
    import_bert(&from, &lines.path().join("run")).unwrap();
    let fingerprint = |dir: &TempDir| Run::open(&dir.path().join("run")).unwrap().tokenizers().unwrap().fingerprint();
    assert_eq!(fingerprint(&lines), fingerprint(&dir));
}

#[test]
fn an_imported_bert_has_the_logits_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    for adapter in host_backends() {
        let loaded = Run::open(&dir.path().join("run")).unwrap().load_model(&adapter, None, |_| ()).unwrap();
        let text = golden.all_ours(&golden.ids);
        let source = Padded::sources([&text], &adapter.device);
        let given = Padded::new(&[vec![0; text.len() + 1]], 0, &adapter.device);
        for is_fused in [false, true] {
            let logits = loaded.model.forward(&source, &given, &mut Pass::inference().fused(is_fused));
            assert_eq!(logits.dims()[1..], golden.shape);
            let what = adapter.backend.to_string();
            assert_logits(&what, logits, golden.shape[1], |id| golden.ours(id), &golden.logits);
        }
    }
}

#[test]
fn an_imported_bert_fills_in_the_words_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    let lines: String = golden.filled.iter().map(|filled| filled.text.clone() + "\n").collect();
    fs::write(dir.path().join("in.txt"), &lines).unwrap();
    let found = succeed(dir.path(), &["predict", "--run", "run", "--input", "in.txt", "--json", "--n-best", "3"]);
    let written = succeed(dir.path(), &["predict", "--run", "run", "--input", "in.txt"]);
    assert_eq!([found.lines().count(), written.lines().count()], [golden.filled.len(); 2]);
    with_tokenizer(&dir, |tokenizer| {
        for ((Filled { text, places, ids }, json), written) in
            golden.filled.iter().zip(found.lines()).zip(written.lines())
        {
            let json: Value = serde_json::from_str(json).unwrap();
            let words = json["words"].as_array().unwrap();
            assert_eq!(words.len(), ids.len(), "{text}");
            let mut parts = text.split("[MASK]");
            let mut expected = parts.next().unwrap().to_owned();
            for ((word, place), id) in words.iter().zip(places).zip(ids) {
                assert_eq!(word["place"].as_u64(), Some(*place as u64));
                assert_eq!(word["choices"][0]["answer"], tokenizer.label(golden.ours(*id)));
                assert_eq!(word["choices"].as_array().unwrap().len(), 3);
                expected += tokenizer.decode(&[golden.ours(*id)]).trim();
                expected += parts.next().unwrap();
            }
            assert_eq!(written, expected);
            assert_eq!(json["text"], *expected);
        }
    });
}

#[test]
fn an_imported_bert_is_a_model_like_any_other() {
    let dir = imported();
    fs::write(dir.path().join("text.txt"), "the dog looks back\n".repeat(30)).unwrap();
    let test = "data.text.test=[\"text.txt\"]";
    let scores = succeed(dir.path(), &["evaluate", "--run", "run", "--set", test]);
    assert_says(&scores, &["hidden tokens", "masked accuracy (%)"]);
    assert_says(&fail(dir.path(), &["evaluate", "--run", "run"]), &["data.text.test", "names no file to measure on"]);
    assert_says(&fail(dir.path(), &["generate", "--run", "run", "the"]), &["is no language model", "predict"]);
    assert_says(&fail(dir.path(), &["translate", "--run", "run"]), &["predict"]);
    let explained = succeed(dir.path(), &["explain", "--run", "run", "the [MASK] looks"]);
    assert_says(&explained, &["x_i^0 = norm(x_i + p_i)", "u_1 = norm(gelu(W_u h_1 + b_u))", "softmax(E u_1 + b_o)"]);
    assert!(!explained.contains("cut"), "no answer of BERT has an end");
    succeed(dir.path(), &["export", "run", "--run", "run", "--out", "small", "--int8"]);
    succeed(dir.path(), &["predict", "--run", "small", "--input", "text.txt"]);
    fine_tune(&dir, &TEXT_SETTINGS);
}

#[test]
fn what_is_no_bert_is_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    let copy = |name: &str, changes: &[(&str, &str, &str)]| refused(&dir, "bert", name, changes);
    assert_says(&copy("gpt2", &[("config.json", "\"bert\"", "\"gpt2\"")]), &["config.json", "model_type = \"gpt2\""]);
    let decoder = copy("decoder", &[("config.json", "\"is_decoder\": false", "\"is_decoder\": true")]);
    assert_says(&decoder, &["is_decoder = true"]);
    let wide = copy("wide", &[("config.json", "\"intermediate_size\": 24", "\"intermediate_size\": 25")]);
    assert_says(&wide, &["model.safetensors", "intermediate.dense"]);
    let deep = copy("deep", &[("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1")]);
    assert_says(&deep, &["layer.1.", "which config.json does not describe"]);
    let cutter = copy("cutter", &[("tokenizer.json", "\"BertPreTokenizer\"", "\"Whitespace\"")]);
    assert_says(&cutter, &["tokenizer.json", "cut in another way"]);
    let accents = copy("accents", &[("tokenizer.json", "\"strip_accents\": null", "\"strip_accents\": false")]);
    assert_says(&accents, &["strip_accents"]);
    let mask = copy("mask", &[("tokenizer.json", "[MASK]", "[HIDE]")]);
    assert_says(&mask, &["has no token [MASK]"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
}
