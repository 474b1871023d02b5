//! Learning: small models learn small tasks, and one vector does not hold a long sentence.
//!
//! | test | expected on held-out pairs | on two cores |
//! | --- | --- | --- |
//! | Transformer, copy, up to 8 symbols | 100 % of sequences | 6 s |
//! | Bahdanau RNN, reverse, up to 8 symbols | 100 % | 5 s |
//! | its attention, each letter linked to the one it looks at most | alignment error rate 0 % | the same model |
//! | the same for a Transformer of one layer with Shaw's positions, reverse, 20 letters | 0.6 % | 12 s |
//! | Bahdanau RNN, copy, up to 16 symbols, tested on 12 to 16 | 100 % | 8 s |
//! | the same without attention | 2 % | 5 s |
//!
//! The seed is fixed, so that a failure can be repeated; other seeds give the same to within a percent. What every score,
//! window, placement and position scheme can learn is in `schemes`, which takes minutes and is run by itself.

mod copying;
mod recall;
mod schemes;
mod states;

use crate::training::train_in;
use lookback::data::{Split, TaskConfig};
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::experiment::{Config, LoadedModel, Run};
use lookback::report::alignment::{AlignmentCounts, Gold, links, words_of_tokens};
use lookback::report::attention::Part;
use lookback::report::attention::collect::{Written, collect};
use lookback::report::attention::measure::Measures;
use lookback::scoring::sequence_matches;
use tempfile::TempDir;

/// Everything but the task, the model and the number of updates.
const LEARNING: &str = r#"
seed = 1
backend = "flex"
[data]
n_train = 8000
n_valid = 100
[tokenizer]
kind = "word"
shared = true
[training]
batch_tokens = 1024
learning_rate = 0.004
warmup_updates = 50
schedule = "cosine"
label_smoothing = 0.0
validate_every = 200
save_every = 1000
score = "sequence-accuracy"
"#;

const TRANSFORMER: &str = r#"
[model]
kind = "transformer"
d_model = 48
d_feed_forward = 96
n_heads = 4
n_encoder_layers = 1
n_decoder_layers = 2
dropout_rate = 0.0
tied_embeddings = "all"
"#;

const BAHDANAU: &str = r#"
[model]
kind = "rnn"
d_embedding = 32
d_hidden = 48
attention = { kind = "bahdanau", score = { kind = "additive", d_attention = 48 } }
readout = { kind = "deep-output", d_maxout = 32 }
dropout_rate = 0.0
"#;

/// Part of the sequences that have to be right to the last symbol.
const LEARNT: f64 = 0.99;

/// The largest alignment error rate of a task whose right alignment is known.
const MISALIGNED: f64 = 0.01;

/// How much better attention has to be than one fixed vector on long sentences, as a part of all sequences.
const MARGIN: f64 = 0.8;

fn task(kind: &str, min_len: usize, max_len: usize) -> TaskConfig {
    let text = format!("kind = \"{kind}\"\nn_symbols = 8\nmin_len = {min_len}\nmax_len = {max_len}\n");
    toml::from_str(&text).expect("the keys are right")
}

/// A model that has been trained on `task`.
fn learn(mut config: Config, task: TaskConfig, updates: u64) -> LoadedModel {
    let dir = TempDir::new().unwrap();
    config.data.task = Some(task);
    config.training.max_updates = updates;
    train_in(dir.path(), &config).unwrap();
    let adapter = config.backend.open().unwrap();
    Run::open(dir.path()).unwrap().load_model(&adapter, None, |warning| panic!("{warning}")).unwrap()
}

fn config(model: &str) -> Config {
    toml::from_str(&format!("{LEARNING}{model}")).expect("the keys are right")
}

/// Updates of half as many words, of which models need hardly more.
fn of_small_batches(model: &str) -> Config {
    let mut config = config(model);
    config.training.batch_tokens /= 2;
    config
}

/// The part of held-out pairs of `task` that a model gets right.
fn accuracy_on(loaded: &LoadedModel, task: &TaskConfig) -> f64 {
    let pairs = task.generate(Split::Test, 400, loaded.config.seed).unwrap();
    let requests: Vec<Request> =
        pairs.iter().map(|p| Request::new(loaded.tokenizers.source().encode(&p.source))).collect();
    let found = decode(&loaded.model, &requests, &DecodingConfig::default(), 1, |_| ());
    let is_right = |(pair, hypotheses): (&lookback::data::Pair, &Vec<lookback::decoding::Hypothesis>)| {
        sequence_matches(&loaded.tokenizers.target().decode(&hypotheses[0].tokens), &pair.target).numerator
    };
    pairs.iter().zip(&found).map(is_right).sum::<f64>() / pairs.len() as f64
}

#[test]
fn a_small_transformer_learns_to_copy() {
    let copy = task("copy", 1, 8);
    let right = accuracy_on(&learn(of_small_batches(TRANSFORMER), copy.clone(), 400), &copy);
    assert!(right > LEARNT, "{right} of the sequences are right");
}

#[test]
fn a_small_bahdanau_rnn_learns_to_reverse_along_the_anti_diagonal() {
    let learnt = learn(config(BAHDANAU), task("reverse", 1, 8), 300);
    let right = accuracy_on(&learnt, &task("reverse", 1, 8));
    assert!(right > LEARNT, "{right} of the sequences are right");
    check_aligned(&learnt, &task("reverse", 4, 8));
}

#[test]
fn a_bahdanau_rnn_copies_long_sequences_and_a_fixed_context_does_not() {
    let fixed = BAHDANAU
        .replace("{ kind = \"bahdanau\", score = { kind = \"additive\", d_attention = 48 } }", "{ kind = \"none\" }");
    assert_ne!(fixed, BAHDANAU);
    let accuracy = |model| {
        let learnt = learn(of_small_batches(model), task("copy", 1, 16), 600);
        accuracy_on(&learnt, &task("copy", 12, 16))
    };
    let with_attention = accuracy(BAHDANAU);
    assert!(with_attention > LEARNT, "{with_attention} of the sequences are right");
    let without = accuracy(&fixed);
    assert!(without < with_attention - MARGIN, "{without} without attention, {with_attention} with it");
}

#[test]
fn a_small_transformer_learns_to_reverse_along_the_anti_diagonal() {
    // One layer on each side: of several, only the last reads what it writes. More letters than elsewhere, so that a letter's
    // neighbours do not tell which it is.
    let changes = [("n_heads = 4", "n_heads = 2"), ("n_decoder_layers = 2", "n_decoder_layers = 1")];
    let model = changes.iter().fold(TRANSFORMER.to_string(), |model, (from, to)| model.replace(from, to));
    let mut config = of_small_batches(&format!("{model}positions = {{ kind = \"shaw\" }}\n"));
    config.data.n_train = 20_000;
    config.training.warmup_updates = 200;
    let twenty = |min_len: usize| -> TaskConfig {
        let text = format!("kind = \"reverse\"\nn_symbols = 20\nmin_len = {min_len}\nmax_len = 8\n");
        toml::from_str(&text).expect("the keys are right")
    };
    let learnt = learn(config, twenty(1), 1000);
    let right = accuracy_on(&learnt, &twenty(1));
    assert!(right > LEARNT, "{right} of the sequences are right");
    check_aligned(&learnt, &twenty(4));
}

/// Fails unless the letter that each target letter looks at most is the one that it repeats.
fn check_aligned(loaded: &LoadedModel, reverse: &TaskConfig) {
    let mut counts = AlignmentCounts::default();
    let mut diagonality = 0.0;
    for pair in reverse.generate(Split::Test, 100, 1).unwrap() {
        let written = Written::given(1, &pair.source, &pair.target, &loaded.tokenizers);
        let maps = collect(&loaded.model, &loaded.tokenizers, &written).unwrap();
        let map = maps.average(Part::Cross).unwrap();
        let words = |text: &str| words_of_tokens(text, loaded.tokenizers.source());
        let (source, target) = (words(&pair.source), words(&pair.target));
        let n = source.len();
        counts.add(&links(&map, &source, &target), &Gold::sure((0..n).map(|i| (n - 1 - i, i))));
        diagonality += Measures::of(&map).diagonality / 100.0;
    }
    assert!(diagonality < -0.3, "the mean correlation of rows and columns is {diagonality}");
    assert!(counts.error_rate() < MISALIGNED, "the error rate is {}", counts.error_rate());
}
