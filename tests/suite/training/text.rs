//! Language models of plain text: learning, going on, resuming, measuring, writing.

use super::{assert_same_end, assert_says, fail, metrics, named, read, succeed, train_in};
use crate::support::{SAME_TOLERANCE, assert_close, flex, shared_dir};
use lookback::data::batch::Padded;
use lookback::data::{EOS, TokenStream};
use lookback::decoding::{Continuation, SamplingConfig, score_text};
use lookback::experiment::{Config, LoadedModel, Run};
use lookback::layers::Pass;
use lookback::models::weights::to_vec;
use lookback::models::{ModelConfig, Seq2Seq, Vocabularies};
use lookback::ranks::Alone;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

pub(super) const TEXT: &str = r#"
seed = 3
backend = "flex"
[data]
hold_out_per_mille = 100
[data.text]
train = ["verse.txt"]
context = 12
[tokenizer]
kind = "char"
[model]
kind = "decoder-only"
reads_source = false
d_model = 16
d_feed_forward = 24
n_heads = 2
n_layers = 1
dropout_rate = 0.1
tied_embeddings = "target-output"
[training]
max_updates = 12
batch_tokens = 60
accumulation = 2
learning_rate = 0.01
warmup_updates = 3
label_smoothing = 0.0
validate_every = 4
save_every = 1
"#;

/// A folder with the config and a text in which each line is one of two.
fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    write_text(dir.path());
    dir
}

/// The config `text.toml`, and the text that it names.
fn write_text(dir: &Path) {
    std::fs::write(dir.join("text.toml"), TEXT).unwrap();
    let lines = (0..60).map(|i| if i * i % 7 < 3 { "abcdef\n" } else { "gabe\n" });
    std::fs::write(dir.join("verse.txt"), lines.collect::<String>()).unwrap();
}

fn config(dir: &Path) -> Config {
    let mut config: Config = toml::from_str(TEXT).unwrap();
    config.data.dir = Some(dir.to_path_buf());
    config
}

/// A model that knows the text well; tests must not write into its folder.
pub(super) static TRAINED: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = shared_dir();
    write_text(dir.path());
    let settings = ["training.max_updates=150", "training.accumulation=1", "model.dropout_rate=0.0"];
    let mut arguments = vec!["train", "text.toml", "--run", "run", "--set", "training.validate_every=150"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let shown = succeed(dir.path(), &arguments);
    assert_says(&shown, &["a sample of its text:", "lookback generate --run run", "lookback evaluate --run run"]);
    dir
});

pub(super) fn loaded() -> LoadedModel {
    let adapter = lookback::backend::Backend::Flex.open().unwrap();
    Run::open(&TRAINED.path().join("run")).unwrap().load_model(&adapter, None, |_| ()).unwrap()
}

#[test]
fn a_run_that_goes_on_ends_with_the_same_bytes() {
    let dir = folder();
    let whole = config(dir.path());
    train_in(&dir.path().join("whole"), &whole).unwrap();
    let mut half = whole.clone();
    half.training.max_updates = 5;
    train_in(&dir.path().join("parts"), &half).unwrap();
    train_in(&dir.path().join("parts"), &whole).unwrap();
    // The shorter stretch ended with a validation of its own, so that only the end is the same.
    let last = |run: &str| metrics(&dir.path().join(run)).pop().unwrap();
    assert_eq!(last("whole"), last("parts"));
    let model = |run: &str| {
        let run = dir.path().join(run);
        std::fs::read(run.join("checkpoints").join(named(&run, "last")).join("model.safetensors")).unwrap()
    };
    assert!(model("whole") == model("parts"), "the parameters differ");
    train_in(&dir.path().join("again"), &whole).unwrap();
    assert_same_end(&dir.path().join("whole"), &dir.path().join("again"), "a second run");
}

/// A recurrence sees everything, but learned positions end.
#[test]
fn a_recurrence_with_learned_positions_writes_as_far_as_they_reach_and_further() {
    let dir = folder();
    let mut arguments = vec!["train", "text.toml", "--run", "run", "--set", "training.max_updates=2"];
    let settings = ["model.mixer={ kind = \"min-gru\" }", "model.positions={ kind = \"learned\", max_len = 14 }"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    succeed(dir.path(), &arguments);
    let command = ["generate", "--run", "run", "ab", "--max-tokens", "40", "--json"];
    let written: Value = serde_json::from_str(&succeed(dir.path(), &command)).unwrap();
    assert_eq!(written["tokens"].as_array().map(Vec::len), Some(40), "{written}");
}

#[test]
fn other_text_under_the_same_name_is_refused() {
    let dir = folder();
    let config = config(dir.path());
    train_in(&dir.path().join("run"), &config).unwrap();
    std::fs::write(dir.path().join("verse.txt"), "abcdefg\n".repeat(60)).unwrap();
    let error = train_in(&dir.path().join("run"), &config).unwrap_err().to_string();
    assert_says(&error, &["data.train", "SHA-256 differs"]);
}

#[test]
fn the_scores_of_a_text_are_those_of_its_windows_by_hand() {
    let loaded = loaded();
    let lines = ["abcdef", "gabe", "abcdef", "bag"];
    let text = TokenStream::new(&lines, loaded.tokenizers.target());
    let context = 6;
    let scores = score_text(&loaded.model, &text, context, 20, &Alone, |_| ());
    let log_p = |range: std::ops::Range<usize>| -> Vec<f64> {
        let input = Padded::new(&[text.ids[range.start..range.end - 1].to_vec()], 0, &flex());
        let empty = Padded::new(&[Vec::new()], 0, &flex());
        let logits = loaded.model.forward(&empty, &input, &mut Pass::inference());
        let vocab_size = logits.dims()[2];
        let rows: Vec<f64> = to_vec(logits).into_iter().map(f64::from).collect();
        let of = |(row, id): (&[f64], &u32)| row[*id as usize] - row.iter().map(|x| x.exp()).sum::<f64>().ln();
        rows.chunks(vocab_size).zip(&text.ids[range.start + 1..range.end]).map(of).collect()
    };
    let (mut sum, mut done, mut start) = (0.0, 0, 0);
    let (mut first, mut n_windows) = (0.0, 0.0);
    while done < text.n_tokens() {
        let end = (start + context).min(text.n_tokens());
        let window = log_p(start..end + 1);
        sum -= window[done - start..].iter().sum::<f64>();
        first -= window[0];
        n_windows += 1.0;
        (done, start) = (end, start + context / 2);
    }
    assert_eq!((scores.tokens, scores.characters, scores.unknown), (text.n_tokens(), 23, 0));
    assert_close("loss", &[scores.loss], &[sum / text.n_tokens() as f64], SAME_TOLERANCE);
    assert_close("bits", &[scores.bits_per_character], &[sum / 23.0 / std::f64::consts::LN_2], SAME_TOLERANCE);
    assert_close("the first position", &[scores.by_position[0].loss], &[first / n_windows], SAME_TOLERANCE);
    let ranges: Vec<_> = scores.by_position.iter().map(|range| (range.from, range.to)).collect();
    assert_eq!(ranges, [(1, 1), (2, 2), (3, 4), (5, 6)]);
}

#[test]
fn a_model_writes_what_it_predicts_however_far_it_has_come() {
    let loaded = loaded();
    let (model, context) = (&loaded.model, 12);
    let prompt = lookback::data::text::prompt_ids("abcdef\nga", loaded.tokenizers.target());
    let mut text = prompt.clone();
    // As `Continuation` says: from the last half when the context is full.
    let mut begins = 0;
    for next in Continuation::new(model, &prompt, Some(context), None, 1).take(60) {
        if text.len() - begins > context {
            begins = text.len() - context / 2;
        }
        let input = Padded::new(&[text[begins..].to_vec()], 0, &flex());
        let logits = model.forward(&Padded::new(&[Vec::new()], 0, &flex()), &input, &mut Pass::inference());
        let [_, len, vocab_size] = logits.dims();
        let last: Vec<f32> = to_vec(logits)[(len - 1) * vocab_size..].to_vec();
        let likeliest = (2..vocab_size).max_by(|a, b| last[*a].total_cmp(&last[*b])).unwrap();
        assert_eq!(next.id as usize, likeliest, "after {:?}", &text[begins..]);
        let sum: f64 = last.iter().map(|x| f64::from(*x).exp()).sum();
        let expected = f64::from(last[likeliest]) - sum.ln();
        assert!((next.log_probability - expected).abs() < 1e-4, "{} is not {expected}", next.log_probability);
        text.push(next.id);
    }
    // Half the context is still in sight after it was read again.
    let long: Vec<u32> = prompt.iter().cycle().take(40).copied().collect();
    assert_eq!(Continuation::new(model, &long, Some(context), None, 1).take(5).count(), 5);
}

#[test]
fn a_state_of_fixed_size_goes_on_for_ever() {
    let text = toml::from_str::<toml::Table>("kind = \"decoder-only\"\nreads_source = false\nd_model = 8\nn_heads = 2\nn_layers = 2\nmixer = { kind = \"min-gru\" }\npositions = { kind = \"none\" }").unwrap();
    let model: ModelConfig = text.try_into().unwrap();
    let model = model.init(Vocabularies { source: 9, target: 9, shared: true }, 1, &flex()).unwrap();
    let written = |sampling: &SamplingConfig| -> Vec<u32> {
        Continuation::new(&model, &[EOS, 5, 6], None, Some(sampling), 4).take(40).map(|next| next.id).collect()
    };
    let ids = written(&SamplingConfig::default());
    assert_eq!(ids, written(&SamplingConfig::default()), "a seed says what is drawn");
    // The last token is predicted from all before it: the same as at once.
    let whole: Vec<u32> = [EOS, 5, 6].into_iter().chain(ids.iter().copied()).collect();
    let input = Padded::new(&[whole[..whole.len() - 1].to_vec()], 0, &flex());
    let logits = model.forward(&Padded::new(&[Vec::new()], 0, &flex()), &input, &mut Pass::inference());
    let last: Vec<f64> = to_vec(logits)[(whole.len() - 2) * 9..].iter().map(|x| f64::from(*x)).collect();
    let expected = last[*whole.last().unwrap() as usize] - last.iter().map(|x| x.exp()).sum::<f64>().ln();
    let found = Continuation::new(&model, &[EOS, 5, 6], None, Some(&SamplingConfig::default()), 4).nth(39).unwrap();
    assert!((found.log_probability - expected).abs() < 1e-4, "{} is not {expected}", found.log_probability);
}

#[test]
fn generate_writes_the_prompt_and_what_follows() {
    let dir = TRAINED.path();
    assert_eq!(succeed(dir, &["generate", "--run", "run", "abc", "--lines", "1"]), "abcdef\n");
    assert_eq!(succeed(dir, &["generate", "--run", "run", "abc", "--max-tokens", "2"]), "abcde\n");
    assert_eq!(succeed(dir, &["generate", "--run", "run", "abcdef\nga", "--lines", "1"]), "abcdef\ngabe\n");
    let arguments = ["generate", "--run", "run", "--sample", "--samples", "3", "--lines", "4", "--seed", "5"];
    let samples = succeed(dir, &arguments);
    assert_eq!(samples, succeed(dir, &arguments));
    let texts: Vec<&str> = samples.split("\n\n").collect();
    assert_eq!(texts.len(), 3, "{samples}");
    let alone = succeed(dir, &["generate", "--run", "run", "--sample", "--lines", "4", "--seed", "6"]);
    assert_eq!(texts[1], alone.trim_end(), "the second sample is that of the next seed");
    let json: Value =
        serde_json::from_str(&succeed(dir, &["generate", "--run", "run", "abc", "--lines", "1", "--json"])).unwrap();
    assert_eq!((&json["prompt"], &json["text"]), (&"abc".into(), &"def\n".into()));
    assert_eq!(json["tokens"].as_array().unwrap().len(), 4);
    assert!(json["perplexity"].as_f64().unwrap() < 2.0);
}

#[test]
fn a_line_ends_where_its_bytes_say_so() {
    let dir = folder();
    let settings = ["training.max_updates=150", "training.accumulation=1", "training.validate_every=150"];
    let bytes = ["model.dropout_rate=0.0", "tokenizer={ kind = \"byte-bpe\", vocab_size = 290 }"];
    let mut arguments = vec!["train", "text.toml", "--run", "run"];
    settings.iter().chain(&bytes).for_each(|setting| arguments.extend(["--set", setting]));
    succeed(dir.path(), &arguments);
    for n in 1..=3 {
        let lines = ["--lines", &n.to_string()];
        let written = succeed(dir.path(), &[&["generate", "--run", "run", "gabe\n"], &lines[..]].concat());
        assert_eq!(written.lines().count(), 1 + n, "{written:?}");
        assert!(written.lines().all(|line| ["abcdef", "gabe"].contains(&line)), "{written:?}");
    }
}

#[test]
fn evaluate_measures_the_text_that_was_held_out() {
    let dir = TRAINED.path();
    let json: Value = serde_json::from_str(&succeed(dir, &["evaluate", "--run", "run", "--json"])).unwrap();
    let number = |key: &str| json[key].as_f64().unwrap();
    assert_eq!((number("tokens"), number("characters"), number("unknown")), (38.0, 38.0, 0.0));
    assert_close("perplexity", &[number("perplexity")], &[number("loss").exp()], 1e-9);
    // Which line comes is anybody's guess; the letters after its first are not.
    assert!(number("loss") < 0.5 && number("token_accuracy") > 0.7, "{json}");
    let positions = json["by_position"].as_array().unwrap();
    assert!(positions[0]["loss"].as_f64() > positions.last().unwrap()["loss"].as_f64(), "{json}");
    let table = succeed(dir, &["evaluate", "--run", "run", "--split", "valid"]);
    assert_says(&table, &["bits per character", "tokens in sight", "9-12"]);
    let card = TempDir::new().unwrap();
    let chart = card.path().join("loss.svg");
    let both = ["evaluate", "--run", "run", "--run", "run", "--json", "--chart", chart.to_str().unwrap()];
    let lines = succeed(dir, &both);
    assert_eq!(lines.lines().count(), 2);
    assert_says(&lines, &["\"run\":\"run\""]);
    assert_says(&read(&chart), &["tokens in sight", "9 to 12 tokens in sight"]);
    assert_says(&fail(dir, &["evaluate", "--run", "run", "--chart", "loss.pdf"]), &["loss.pdf", ".svg"]);
    let out = card.path().join("out");
    succeed(dir, &["export", "run", "--run", "run", "--out", out.to_str().unwrap()]);
    assert_says(&read(out.join("README.md")), &["A language model", "lookback generate --run .", "bits per character"]);
    assert_eq!(succeed(&out, &["generate", "--run", ".", "abc", "--lines", "1"]), "abcdef\n");
}

#[test]
fn what_does_not_fit_a_language_model_is_refused() {
    let dir = TRAINED.path();
    assert_says(&fail(dir, &["translate", "--run", "run"]), &["is a language model", "generate"]);
    assert_says(&fail(dir, &["compare", "--run", "run", "--out", "none"]), &["run is a language model"]);
    assert_says(&fail(dir, &["evaluate", "--run", "run", "--beam", "3"]), &["--beam has no effect here"]);
    assert_says(&fail(dir, &["evaluate", "--run", "run", "--metric", "bleu"]), &["--metric has no effect here"]);
    assert_says(&fail(dir, &["evaluate", "--run", "run", "--tokenize", "13a"]), &["--tokenize has no effect here"]);
    let generate = ["generate", "--run", "run", "abc", "--max-tokens", "2", "--set"];
    for setting in ["decoding.max_len_extra=50", "decoding.beam_size=3", "training.max_updates=3"] {
        let key = setting.split('=').next().unwrap();
        let said = fail(dir, &[&generate[..], &[setting]].concat());
        assert_says(&said, &[&format!("{key}: has no effect here"), "only decoding.sampling can be set"]);
    }
    succeed(dir, &[&generate[..], &["decoding.sampling.temperature=0.5"]].concat());
    let wrong = |settings: &[&str]| {
        let mut arguments = vec!["config", "check", "text.toml"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        fail(dir, &arguments)
    };
    assert_says(&wrong(&["model.reads_source=true"]), &["data.text", "model.reads_source = false"]);
    assert_says(&wrong(&["model.sees_whole_source=true"]), &["model.sees_whole_source", "there is none"]);
    assert_says(&wrong(&["data.task.kind=copy"]), &["data.task", "plain text"]);
    assert_says(&wrong(&["data.text.context=1"]), &["data.text.context", "at least 2"]);
    let nothing = fail(dir, &["train", "text.toml", "--run", "other", "--set", "data.text.train=[]"]);
    assert_says(&nothing, &["data.text.train", "names no file to learn from"]);
    assert_says(&wrong(&["training.criterion=score"]), &["training.criterion", "loss"]);
    let positions = "model.positions={ kind = \"learned\", max_len = 8 }";
    let too_long = fail(dir, &["train", "text.toml", "--run", "other", "--set", positions]);
    assert_says(&too_long, &["data.text.context", "is 12, more than model.positions.max_len = 8"]);
    let short = fail(dir, &["train", "text.toml", "--run", "other", "--set", "data.text.context=2000"]);
    assert_says(&short, &["data.text.context", "give more text, or lower it"]);
    let data = succeed(dir, &["config", "check", "text.toml", "--data"]);
    assert_says(&data, &["training    48 lines", "validation  6 lines", "test        6 lines"]);
}
