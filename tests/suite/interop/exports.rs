//! Models of this program as folders of others. `tests/clients/exports.py` asks the real programs for the words.

use super::folder;
use crate::training::{BAHDANAU, assert_says, fail, succeed, write_tiny};
use lookback::data::{Pair, Tokenizers};
use lookback::experiment::Run;
use lookback::interop::import_marian;
use lookback::models::weights::{Weight, Weights, from_safetensors};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A Transformer with everything that CTranslate2 has and the paper has not.
const MODERN: &str = r#"
[model]
kind = "transformer"
d_model = 16
d_feed_forward = 24
n_heads = 2
n_encoder_layers = 2
n_decoder_layers = 1
norm = "rms"
activation = "swiglu"
positions = { kind = "rotary" }
decoder_positions = { kind = "learned", max_len = 20 }
"#;

/// As in the paper, with norms before the sublayers.
const PLAIN: &str = r#"
[model]
kind = "transformer"
d_model = 18
d_feed_forward = 24
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 2
share_layers = true
tied_embeddings = "target-output"
"#;

/// A folder with the run `run` of a tiny experiment.
fn trained(model: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), model);
    let short = ["--set", "training.max_updates=2", "--set", "tokenizer.kind=\"char\""];
    succeed(dir.path(), &[&["train", "tiny.toml", "--run", "run"][..], &short].concat());
    dir
}

pub(super) fn weights(path: &Path) -> Weights {
    from_safetensors(&fs::read(path).unwrap(), path).unwrap()
}

pub(super) fn parameters(dir: &Path) -> Weights {
    let (_, parameters) = Run::open(&dir.join("run")).unwrap().parameters(None, |_| ()).unwrap();
    parameters.weights
}

pub(super) fn json_file(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What a `model.bin` holds: names with the kind of numbers, and names for names.
struct Binary {
    head: (u32, String, u32),
    all: BTreeMap<String, (Vec<usize>, u8, Vec<u8>)>,
    aliases: BTreeMap<String, String>,
}

impl Binary {
    fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap();
        let mut rest = &bytes[..];
        fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
            let (first, others) = rest.split_at(n);
            *rest = others;
            first
        }
        fn number(rest: &mut &[u8]) -> u32 {
            u32::from_le_bytes(take(rest, 4).try_into().unwrap())
        }
        fn text(rest: &mut &[u8]) -> String {
            let n = u16::from_le_bytes(take(rest, 2).try_into().unwrap()) as usize;
            String::from_utf8(take(rest, n).strip_suffix(&[0]).expect("texts end with a zero").to_vec()).unwrap()
        }
        let head = (number(&mut rest), text(&mut rest), number(&mut rest));
        let mut all = BTreeMap::new();
        for _ in 0..number(&mut rest) {
            let name = text(&mut rest);
            let rank = take(&mut rest, 1)[0];
            let shape: Vec<usize> = (0..rank).map(|_| number(&mut rest) as usize).collect();
            let kind = take(&mut rest, 1)[0];
            let n = number(&mut rest) as usize;
            assert_eq!(n, shape.iter().product::<usize>() * [4, 1, 2, 4][kind as usize], "{name}");
            all.insert(name, (shape, kind, take(&mut rest, n).to_vec()));
        }
        let mut aliases = BTreeMap::new();
        for _ in 0..number(&mut rest) {
            aliases.insert(text(&mut rest), text(&mut rest));
        }
        assert!(rest.is_empty(), "{} bytes are left", rest.len());
        Self { head, all, aliases }
    }

    fn floats(&self, name: &str) -> Weight {
        let (shape, kind, bytes) = &self.all[name];
        assert_eq!(*kind, 0, "{name}");
        let values = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Weight { shape: shape.clone(), values }
    }

    fn byte(&self, name: &str) -> i8 {
        let (shape, kind, bytes) = &self.all[name];
        assert_eq!((&shape[..], *kind), (&[][..], 1), "{name}");
        bytes[0] as i8
    }
}

/// A matrix with its rows as columns.
pub(super) fn turned(weight: &Weight) -> Weight {
    let [rows, columns] = weight.shape[..] else { panic!("no matrix") };
    let values = (0..rows * columns).map(|i| weight.values[i % rows * columns + i / rows]).collect();
    Weight { shape: vec![columns, rows], values }
}

#[test]
fn a_model_goes_to_marian_and_comes_back_unchanged() {
    let dir = TempDir::new().unwrap();
    import_marian(&folder("marian"), &dir.path().join("run")).unwrap();
    succeed(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    succeed(dir.path(), &["import", "marian", "out", "--run", "again"]);
    let file = |run: &str| weights(&dir.path().join(run).join("model.safetensors"));
    assert_eq!(file("again"), file("run"));
    let config = json_file(&dir.path().join("out/config.json"));
    assert_eq!((&config["model_type"], &config["activation_function"]), (&json!("marian"), &json!("silu")));
    let open = |run: &str| Run::open(&dir.path().join(run)).unwrap().tokenizers().unwrap();
    let (first, again) = (open("run"), open("again"));
    for text in ["naïve cafe\u{301} — 漢字 ½ ﬁne ①", "  two  spaces ", "when the tide", ">>deu<< the dog"] {
        assert_eq!(again.source().encode(text), first.source().encode(text), "{text:?}");
        assert_eq!(again.target().encode(text), first.target().encode(text), "{text:?}");
    }
    let card = fs::read_to_string(dir.path().join("out/README.md")).unwrap();
    assert_says(&card, &["MarianMTModel.from_pretrained", "MarianTokenizer", "trained elsewhere"]);
    assert!(!card.contains("n_train"), "nobody knows what it was trained on");
}

#[test]
fn norms_before_the_sublayers_make_a_pegasus() {
    let dir = trained(PLAIN);
    succeed(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    let (ours, theirs) = (parameters(dir.path()), weights(&dir.path().join("out/model.safetensors")));
    let config = json_file(&dir.path().join("out/config.json"));
    assert_eq!(config["architectures"], json!(["PegasusForConditionalGeneration"]));
    assert_eq!((&config["decoder_layers"], &config["tie_word_embeddings"]), (&json!(2), &json!(false)));
    // Sines before cosines: their columns 0, 1, ... are ours 0, 2, ..., then 1, 3, ...
    let order: Vec<usize> = (0..9).map(|i| 2 * i).chain((0..9).map(|i| 2 * i + 1)).collect();
    let table = |weight: &Weight| -> Vec<f32> {
        weight.values.chunks(18).flat_map(|row| order.iter().map(|own| row[*own])).collect()
    };
    let vector = |name: &str| table(&ours[name]);
    assert_eq!(theirs["model.decoder.embed_tokens.weight"].values, vector("target_embedding.weight"));
    assert_eq!(theirs["lm_head.weight"], theirs["model.decoder.embed_tokens.weight"], "the output is tied here");
    assert_eq!(theirs["model.encoder.embed_tokens.weight"].values, vector("source_embedding.weight"));
    assert_eq!(theirs["model.encoder.layer_norm.weight"].values, vector("encoder_norm.gamma"));
    let query_key_value = turned(&ours["decoder.0.self_attention.query_key_value.weight"]);
    let key = Weight { shape: vec![18, 18], values: query_key_value.values[18 * 18..2 * 18 * 18].to_vec() };
    // Layers are shared: both are the one that there is.
    for layer in 0..2 {
        let name = format!("model.decoder.layers.{layer}.self_attn.k_proj");
        assert_eq!(theirs[&format!("{name}.weight")].values, table(&key));
        let bias = &ours["decoder.0.self_attention.query_key_value.bias"].values[18..36];
        assert_eq!(theirs[&format!("{name}.bias")].values, bias);
    }
    let outer = turned(&ours["encoder.0.feed_forward.outer.weight"]);
    let rows: Vec<f32> = order.iter().flat_map(|row| outer.values[row * 24..(row + 1) * 24].to_vec()).collect();
    assert_eq!(theirs["model.encoder.layers.0.fc2.weight"], Weight { shape: vec![18, 24], values: rows });
    assert_eq!(theirs["final_logits_bias"].shape[0], 1);
    assert_says(
        &fs::read_to_string(dir.path().join("out/README.md")).unwrap(),
        &["PreTrainedTokenizerFast", "PegasusFor"],
    );
    let again = fail(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    assert_says(&again, &["out: holds something already"]);
    assert_says(&fail(dir.path(), &["export", "huggingface", "--run", "run", "--out", "x", "--int8"]), &["--int8"]);
}

#[test]
fn a_model_for_ctranslate2_has_every_number() {
    for model in [PLAIN, MODERN] {
        let dir = trained(model);
        succeed(dir.path(), &["export", "ctranslate2", "--run", "run", "--out", "out"]);
        let ours = parameters(dir.path());
        let file = Binary::read(&dir.path().join("out/model.bin"));
        assert_eq!(file.head, (6, "TransformerSpec".to_owned(), 7));
        let is_modern = model == MODERN;
        assert_eq!(file.byte("decoder/pre_norm"), 1);
        assert_eq!(file.byte("encoder/activation"), if is_modern { 2 } else { 0 });
        let n_layers = if is_modern { 1 } else { 2 };
        for layer in 0..n_layers {
            for (place, part) in [(0, "query"), (1, "key_value"), (2, "output")] {
                let name = format!("decoder/layer_{layer}/attention/linear_{place}");
                assert_eq!(
                    file.floats(&format!("{name}/weight")),
                    turned(&ours[&format!("decoder.0.cross_attention.{part}.weight")])
                );
                assert_eq!(
                    file.floats(&format!("{name}/bias")),
                    ours[&format!("decoder.0.cross_attention.{part}.bias")]
                );
            }
        }
        assert!(!file.all.contains_key(&format!("decoder/layer_{n_layers}/attention/linear_0/weight")));
        assert_eq!(file.floats("encoder/embeddings_0/weight"), ours["source_embedding.weight"]);
        assert_eq!(file.floats("decoder/embeddings/weight"), ours["target_embedding.weight"]);
        let bias = file.floats("decoder/projection/bias").values;
        assert!(bias[0] < -1e8 && bias[1] < -1e8 && bias[2] > -1e8, "padding and the start are never written");
        let gate = turned(&ours["encoder.0.feed_forward.inner.weight"]);
        if is_modern {
            assert!(!file.all.contains_key("encoder/position_encodings/encodings"));
            assert_eq!(file.floats("decoder/position_encodings/encodings"), ours["decoder_position.learned.weight"]);
            assert_eq!(file.byte("encoder/layer_1/self_attention/rotary_interleave"), 0);
            assert!(!file.all.contains_key("encoder/layer_norm/beta"), "there is no shift");
            let half = gate.values.len() / 2;
            assert_eq!(file.floats("encoder/layer_0/ffn/linear_0/weight").values, gate.values[..half]);
            assert_eq!(file.floats("encoder/layer_0/ffn/linear_0_noact/weight").values, gate.values[half..]);
            assert_eq!(file.floats("decoder/projection/weight"), turned(&ours["output.projection.weight"]));
        } else {
            assert_eq!(file.floats("encoder/layer_0/ffn/linear_0/weight"), gate);
            assert_eq!(file.aliases["decoder/projection/weight"], "decoder/embeddings/weight");
            let table = file.floats("encoder/position_encodings/encodings");
            assert_eq!(&table.values[..2], [0.0, 1.0]);
            assert!((table.values[18] - 1.0f32.sin()).abs() < 1e-6);
        }
        let words = json_file(&dir.path().join("out/shared_vocabulary.json"));
        assert_eq!(words.as_array().unwrap().len(), ours["target_embedding.weight"].shape[0]);
        assert_eq!(words[2], "</s>");
    }
}

#[test]
fn in_8_bits_no_number_is_further_off_than_half_a_step() {
    let dir = trained(PLAIN);
    succeed(dir.path(), &["export", "ctranslate2", "--run", "run", "--out", "out", "--int8"]);
    let file = Binary::read(&dir.path().join("out/model.bin"));
    let exact = turned(&parameters(dir.path())["encoder.0.feed_forward.inner.weight"]);
    let (shape, kind, bytes) = &file.all["encoder/layer_0/ffn/linear_0/weight"];
    let scales = file.floats("encoder/layer_0/ffn/linear_0/weight_scale");
    assert_eq!((shape, *kind, scales.shape[0]), (&exact.shape, 1, exact.shape[0]));
    for (i, (byte, value)) in bytes.iter().zip(&exact.values).enumerate() {
        let scale = scales.values[i / shape[1]];
        assert!((f32::from(*byte as i8) - value * scale).abs() <= 0.501, "element {i}");
    }
    for (row, scale) in exact.values.chunks(shape[1]).zip(&scales.values) {
        let largest = row.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        assert!((largest * scale - 127.0).abs() < 1e-3, "the largest of a row takes all of the range");
    }
    assert_eq!(file.all["decoder/projection/bias"].1, 0, "vectors stay as they are");
}

#[test]
fn what_another_program_has_no_place_for_is_refused() {
    let dir = trained(BAHDANAU);
    for program in ["huggingface", "ctranslate2"] {
        let said = fail(dir.path(), &["export", program, "--run", "run", "--out", "out"]);
        assert_says(&said, &["run:", "is a model of a kind (model.kind) that is not written for"]);
        let said = fail(dir.path(), &["export", program, "--run", "run", "--out", "out", "--checkpoint", "nine"]);
        assert_says(&said, &["run: has no checkpoint nine; there are "]);
    }
    let dir = trained(MODERN);
    let said = fail(dir.path(), &["export", "huggingface", "--run", "run", "--out", "out"]);
    assert_says(&said, &["model.positions = rotary", "has no place", "sinusoidal"]);
    let dir = trained(&MODERN.replace("{ kind = \"rotary\" }", "{ kind = \"alibi\" }"));
    let said = fail(dir.path(), &["export", "ctranslate2", "--run", "run", "--out", "out"]);
    assert_says(&said, &["model.positions = alibi", "has no place"]);
    assert!(!dir.path().join("out").exists());
}

#[test]
fn the_library_of_hugging_face_cuts_texts_as_we_do() {
    let lines = [
        "The old dog looks back at the lighthouse, and the lighthouse looks back!",
        "Don't count the waves; they'll count twenty-one stars (or 22).",
        "naïve café: déjà vu, l'eau",
    ];
    let texts =
        [lines[0], lines[1], lines[2], "  two  spaces ", "XYLOPHONE lighthouses", "漢字, 😀 and a\ttab", "a", ""];
    let pairs: Vec<Pair> =
        lines.iter().map(|line| Pair { source: (*line).to_owned(), target: line.to_uppercase() }).collect();
    for (tokenizer, is_shared) in [
        (json!({ "kind": "bpe", "vocab_size": 90, "shared": true }), true),
        (json!({ "kind": "bpe", "vocab_size": 90, "lowercase": true }), false),
        (json!({ "kind": "unigram", "vocab_size": 90, "shared": true }), true),
        (json!({ "kind": "byte-bpe", "vocab_size": 300, "shared": true }), true),
        (json!({ "kind": "char", "lowercase": true }), false),
        (json!({ "kind": "word", "split_punctuation": false }), false),
    ] {
        let config: lookback::data::TokenizersConfig = serde_json::from_value(tokenizer.clone()).unwrap();
        let tokenizers = Tokenizers::train(&pairs, config).unwrap();
        let (source, target) = tokenizers.for_hugging_face(false).unwrap();
        assert_eq!(target.is_none(), is_shared, "{tokenizer}");
        let sides = [(source, tokenizers.source())].into_iter().chain(target.map(|file| (file, tokenizers.target())));
        for (file, ours) in sides {
            assert!(!String::from_utf8_lossy(&file).contains("(?"), "Oniguruma in Python's library has other options");
            let theirs = tokenizers::Tokenizer::from_bytes(&file).unwrap();
            for text in texts {
                let ids = ours.encode(text);
                let found = theirs.encode(text, true).unwrap();
                assert_eq!(found.get_ids(), [&ids[..], &[2]].concat(), "{tokenizer} {text:?}");
                if !ids.contains(&3) {
                    assert_eq!(theirs.decode(&ids, true).unwrap(), ours.decode(&ids), "{tokenizer} {text:?}");
                }
            }
        }
    }
    let config: lookback::data::TokenizersConfig = serde_json::from_value(json!({ "kind": "word" })).unwrap();
    let reason = Tokenizers::train(&pairs, config).unwrap().for_hugging_face(false).unwrap_err();
    assert_says(&reason, &["joiner", "`bpe`"]);
}

#[test]
fn alignments_name_a_source_word_for_each_target_word() {
    let dir = TempDir::new().unwrap();
    import_marian(&folder("marian"), &dir.path().join("run")).unwrap();
    fs::write(dir.path().join("in.txt"), "when the tide goes out\n\nthe dog\n").unwrap();
    let arguments = ["translate", "--run", "run", "--input", "in.txt", "--output", "out.txt", "--alignments", "a.txt"];
    succeed(dir.path(), &[&arguments[..], &["--max-len-factor", "2"]].concat());
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let (inputs, outputs, alignments) = (read("in.txt"), read("out.txt"), read("a.txt"));
    assert_eq!(alignments.lines().count(), 3);
    for ((source, target), line) in inputs.lines().zip(outputs.lines()).zip(alignments.lines()) {
        let n = |text: &str| text.split_whitespace().count();
        let links: Vec<(usize, usize)> = line
            .split_whitespace()
            .map(|link| link.split_once('-').map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap())
            .collect();
        assert!(links.iter().all(|(a, _)| *a < n(source)), "{line}");
        assert_eq!(links.iter().map(|(_, b)| *b).collect::<Vec<_>>(), (0..n(target)).collect::<Vec<_>>(), "{line}");
    }
    let same = ["translate", "--run", "run", "--input", "in.txt", "--output", "x.txt", "--alignments", "x.txt"];
    assert_says(&fail(dir.path(), &same), &["--alignments and --output are both x.txt"]);
    let dir =
        trained(&BAHDANAU.replace(
            "{ kind = \"bahdanau\", score = { kind = \"additive\", d_attention = 10 } }",
            "{ kind = \"none\" }",
        ));
    fs::write(dir.path().join("in.txt"), "a b\n").unwrap();
    let said = fail(dir.path(), &["translate", "--run", "run", "--input", "in.txt", "--alignments", "a.txt"]);
    assert_says(&said, &["--alignments", "cross-attention"]);
}
