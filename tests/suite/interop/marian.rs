//! MarianMT.

use super::{assert_logits, fine_tune, folder, refused, with_set};
use crate::support::host_backends;
use crate::training::{assert_says, copy_folder, fail, succeed};
use lookback::data::batch::Padded;
use lookback::data::{BOS, EOS};
use lookback::experiment::Run;
use lookback::interop::import_marian;
use lookback::layers::Pass;
use lookback::models::Seq2Seq;
use serde::Deserialize;
use std::fs;
use tempfile::TempDir;

/// What transformers says of `tests/golden/marian`; `tests/golden/marian.py` wrote it.
#[derive(Deserialize)]
struct Golden {
    /// `<pad>`, `</s>`, `<unk>`.
    specials: [u32; 3],
    texts: Vec<Text>,
    source: Vec<u32>,
    target: Vec<u32>,
    shape: [usize; 2],
    logits: Vec<f64>,
    decoded: Vec<Decoded>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    source: Vec<u32>,
    target: Vec<u32>,
}

#[derive(Deserialize)]
struct Decoded {
    text: String,
    greedy: Written,
    beam: Written,
}

#[derive(Deserialize)]
struct Written {
    text: String,
}

impl Golden {
    fn read() -> Self {
        serde_json::from_str(&fs::read_to_string(folder("marian.json")).unwrap()).unwrap()
    }

    /// Our number of one of their tokens: padding, start, end and the unknown word first, all others in their order.
    fn ours(&self, id: u32) -> u32 {
        match self.specials.iter().position(|special| *special == id) {
            Some(special) => [0, EOS, 3][special],
            None => 4 + id - self.specials.iter().filter(|special| **special < id).count() as u32,
        }
    }

    /// Our numbers of a text of theirs, without the end.
    fn all_ours(&self, ids: &[u32]) -> Vec<u32> {
        let ids: Vec<u32> = ids.iter().map(|id| self.ours(*id)).collect();
        ids.strip_suffix(&[EOS]).expect("every text of Marian has an end").to_vec()
    }
}

fn imported() -> TempDir {
    let dir = TempDir::new().unwrap();
    import_marian(&folder("marian"), &dir.path().join("run")).unwrap();
    dir
}

#[test]
fn an_imported_marian_has_the_tokens_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    let tokenizers = Run::open(&dir.path().join("run")).unwrap().tokenizers().unwrap();
    assert!(tokenizers.is_shared(), "there is one vocabulary, however texts are cut");
    assert_eq!(tokenizers.source().vocab_size(), golden.shape[1] + 1);
    for Text { text, source, target } in &golden.texts {
        assert_eq!(tokenizers.source().encode(text), golden.all_ours(source), "{text:?} as a source");
        assert_eq!(tokenizers.target().encode(text), golden.all_ours(target), "{text:?} as a target");
    }
    let unknown = tokenizers.source().unknown(">>xyz<< the Dog");
    assert_eq!(unknown, [">>xyz<<", "D"]);
    assert_eq!(tokenizers.source().decode(&tokenizers.source().encode("when  the tide ")), "when the tide");
}

#[test]
fn an_imported_marian_has_the_logits_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    for adapter in host_backends() {
        let loaded = Run::open(&dir.path().join("run")).unwrap().load_model(&adapter, None, |_| ()).unwrap();
        let source = Padded::sources([&golden.all_ours(&golden.source)], &adapter.device);
        let given: Vec<u32> = std::iter::once(BOS).chain(golden.all_ours(&golden.target)).collect();
        let given = Padded::new(&[given], 0, &adapter.device);
        for is_fused in [false, true] {
            let logits = loaded.model.forward(&source, &given, &mut Pass::inference().fused(is_fused));
            let (what, [_, len, vocab_size]) = (adapter.backend.to_string(), logits.dims());
            assert_eq!([len, vocab_size - 1], golden.shape);
            let ours = assert_logits(&what, logits, golden.shape[1], |id| golden.ours(id), &golden.logits);
            assert!(ours.chunks(vocab_size).all(|row| row[BOS as usize] < -1e8), "the start follows nothing");
        }
    }
}

#[test]
fn an_imported_marian_writes_the_words_of_the_original() {
    let (golden, dir) = (Golden::read(), imported());
    let lines: String = golden.decoded.iter().map(|decoded| decoded.text.clone() + "\n").collect();
    fs::write(dir.path().join("in.txt"), lines).unwrap();
    let beam = succeed(dir.path(), &["translate", "--run", "run", "--input", "in.txt"]);
    let greedy = succeed(dir.path(), &["translate", "--run", "run", "--input", "in.txt", "--beam", "1"]);
    let theirs =
        |which: fn(&Decoded) -> &Written| golden.decoded.iter().map(|one| which(one).text.clone()).collect::<Vec<_>>();
    // There unknown words are left out, here they are shown.
    let [beam, greedy] = [beam, greedy].map(|text| text.replace("<unk>", ""));
    assert_eq!(greedy.lines().collect::<Vec<_>>(), theirs(|one| &one.greedy));
    assert_eq!(beam.lines().collect::<Vec<_>>(), theirs(|one| &one.beam), "with the beam of generation_config.json");
    assert_ne!(beam, greedy, "else the beam shows nothing");
}

#[test]
fn both_files_of_parameters_are_the_same_model() {
    let dir = imported();
    let from = dir.path().join("old");
    copy_folder(&folder("marian"), &from);
    fs::remove_file(from.join("model.safetensors")).unwrap();
    import_marian(&from, &dir.path().join("of-pytorch")).unwrap();
    let model = |run: &str| fs::read(dir.path().join(run).join("model.safetensors")).unwrap();
    assert!(model("run") == model("of-pytorch"));
    let bytes = fs::read(from.join("pytorch_model.bin")).unwrap();
    fs::write(from.join("pytorch_model.bin"), &bytes[..bytes.len() / 2]).unwrap();
    let said = fail(dir.path(), &["import", "marian", "old", "--run", "cut"]);
    assert_says(&said, &["pytorch_model.bin", "is no file of torch.save"]);
}

#[test]
fn an_imported_marian_is_a_model_like_any_other() {
    let dir = imported();
    fs::write(dir.path().join("a.txt"), "the dog\nthe stars\n".repeat(20)).unwrap();
    fs::write(dir.path().join("b.txt"), "der Hund\ndie Sterne\n".repeat(20)).unwrap();
    let test = "data.test={source=\"a.txt\",target=\"b.txt\"}";
    assert_says(&succeed(dir.path(), &["evaluate", "--run", "run", "--set", test]), &["BLEU"]);
    let explained = succeed(dir.path(), &["explain", "--run", "run", "the dog looks"]);
    assert_says(&explained, &["silu(W_1 x + b_1)", "softmax(b_o + E "]);
    succeed(dir.path(), &["export", "run", "--run", "run", "--out", "small", "--int8"]);
    fs::write(dir.path().join("in.txt"), "the dog\n").unwrap();
    succeed(dir.path(), &["translate", "--run", "small", "--input", "in.txt"]);
    let settings = [
        "data.train={source=\"a.txt\",target=\"b.txt\"}",
        "data.valid={source=\"a.txt\",target=\"b.txt\"}",
        "training.max_updates=2",
        "training.batch_tokens=40",
    ];
    fine_tune(&dir, &settings);
    let arguments = [&["train", "more.toml", "--run", "fresh"][..], &with_set(&settings)].concat();
    assert_says(&fail(dir.path(), &arguments), &["tokenizer.kind", "unigram", "--init-from"]);
}

#[test]
fn what_is_no_marian_is_refused_with_the_reason() {
    let dir = TempDir::new().unwrap();
    let copy = |name: &str, changes: &[(&str, &str, &str)]| refused(&dir, "marian", name, changes);
    let config = "config.json";
    assert_says(&copy("bart", &[(config, "\"marian\"", "\"bart\"")]), &[config, "model_type = \"bart\""]);
    let wide = copy("wide", &[(config, "\"decoder_ffn_dim\": 24", "\"decoder_ffn_dim\": 32")]);
    assert_says(&wide, &["decoder_ffn_dim = 32"]);
    let heads = copy("heads", &[(config, "\"encoder_attention_heads\": 2", "\"encoder_attention_heads\": 3")]);
    assert_says(&heads, &["decoder_attention_heads = 2, other than the encoder's 3"]);
    let deep = copy("deep", &[(config, "\"encoder_layers\": 2", "\"encoder_layers\": 1")]);
    assert_says(&deep, &["model.encoder.layers.1.", "which config.json does not describe"]);
    let activation = copy("activation", &[(config, "\"swish\"", "\"tanh\"")]);
    assert_says(&activation, &["activation_function = tanh"]);
    let words = copy("words", &[("vocab.json", "\"<unk>\"", "\"<huh>\"")]);
    assert_says(&words, &["vocab.json", "has no token <unk>"]);
    let ends = copy("ends", &[(config, "\"eos_token_id\": 0", "\"eos_token_id\": 7")]);
    assert_says(&ends, &["vocab.json", "</s> as 0", "eos_token_id = 7"]);
    // A model file of SentencePiece that is none, and one of another kind.
    let to = dir.path().join("pieces");
    copy_folder(&folder("marian"), &to);
    fs::write(to.join("target.spm"), "no model").unwrap();
    assert_says(
        &fail(dir.path(), &["import", "marian", "pieces", "--run", "out"]),
        &["target.spm", "is no SentencePiece model"],
    );
    fs::remove_file(to.join("target.spm")).unwrap();
    assert_says(&fail(dir.path(), &["import", "marian", "pieces", "--run", "out"]), &["target.spm"]);
    assert!(!dir.path().join("out").exists(), "nothing is left of what was refused");
}
