//! Every key of `[training]` reaches a training and does what it says; two trainings with the same code cannot show that.

use super::own_model::{one_update, train_with_scores};
use super::*;
use crate::models::fields::keys;
use crate::reliability::files;
use lookback::data::SplitFiles;
use lookback::experiment::Run;
use lookback::models::ModelConfig;
use lookback::scoring::Metric;
use lookback::training::TrainingConfig;
use std::collections::BTreeSet;
use std::fs;
use tempfile::TempDir;

/// What another value of a key changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// What is learnt.
    Parameters,
    /// What is measured, kept or tried beside it; what is learnt stays.
    Folder,
    /// What training says or when it stops; the test that is named looks at it.
    Elsewhere,
}

/// Another value of every key.
const CHANGES: [(&str, &str, Change); 25] = [
    ("max_updates", "5", Change::Parameters),
    // `training_ends_when_the_minutes_are_over_and_counts_those_before_an_interruption`.
    ("max_minutes", "0.000001", Change::Parameters),
    ("batch_tokens", "60", Change::Parameters),
    ("accumulation", "1", Change::Parameters),
    ("learning_rate", "0.02", Change::Parameters),
    ("schedule", "cosine", Change::Parameters),
    ("warmup_updates", "2", Change::Parameters),
    ("final_fraction", "0.5", Change::Parameters),
    ("optimizer.beta_1", "0.8", Change::Parameters),
    ("optimizer.beta_2", "0.9", Change::Parameters),
    ("optimizer.epsilon", "0.01", Change::Parameters),
    ("optimizer.weight_decay", "0.1", Change::Parameters),
    ("label_smoothing", "0.2", Change::Parameters),
    ("scheduled_sampling", "{ kind = \"exponential\", k = 0.5 }", Change::Parameters),
    ("clip_norm", "0.1", Change::Parameters),
    ("fused", "false", Change::Parameters),
    ("validate_every", "3", Change::Folder),
    ("sample_size", "1", Change::Folder),
    ("score", "wer", Change::Folder),
    // `the_best_checkpoint_is_the_one_with_the_best_score`.
    ("criterion", "score", Change::Elsewhere),
    // `training_ends_when_validation_has_not_become_better_for_as_long_as_patience_allows`.
    ("patience", "1", Change::Elsewhere),
    ("save_every", "2", Change::Folder),
    ("keep_checkpoints", "1", Change::Folder),
    ("average_checkpoints", "2", Change::Folder),
    // `a_line_is_shown_for_every_so_many_updates`.
    ("log_every", "7", Change::Elsewhere),
];

/// What there is after a training: the parameters in the end, and metrics without times, checkpoints, samples and the log.
type Left = (Vec<u8>, (Vec<Value>, Vec<String>, Vec<String>, String));

fn left(run: &Path) -> Left {
    let last = run.join("checkpoints").join(named(run, "last"));
    let samples = files(&run.join("samples")).iter().map(read).collect();
    (fs::read(last.join("model.safetensors")).unwrap(), (metrics(run), checkpoints(run), samples, log(run)))
}

#[test]
fn no_key_of_training_is_without_effect() {
    let mut all = BTreeSet::new();
    keys("", &serde_json::to_value(TrainingConfig::default()).unwrap(), &mut all);
    assert_eq!(all, CHANGES.iter().map(|(key, _, _)| key.to_string()).collect(), "each key is changed here");
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), BAHDANAU);
    let train = |name: &str, setting: Option<String>| {
        let base = ["training.max_updates=6", "training.validate_every=2", "training.schedule=linear"];
        let settings: Vec<String> = base.iter().map(|text| text.to_string()).chain(setting).collect();
        let run = dir.path().join(name);
        train_in(&run, &Config::load(Some(&path), &settings).unwrap()).unwrap();
        left(&run)
    };
    let expected = train("as it is", None);
    assert!(train("again", None) == expected, "the same twice");
    for (key, value, change) in CHANGES {
        if change == Change::Elsewhere {
            continue;
        }
        let found = train(key, Some(format!("training.{key}={value}")));
        assert_eq!(found.0 != expected.0, change == Change::Parameters, "{key} = {value}: what is learnt");
        assert!(found.1 != expected.1, "{key} = {value} changes nothing that is measured or kept");
    }
}

#[test]
fn gradients_are_shortened_to_the_norm_that_is_asked_for() {
    let first_moments = |clip_norm| {
        let dir = TempDir::new().unwrap();
        let checkpoint = one_update(dir.path(), clip_norm);
        let norm = numbers(dir.path(), "train", "gradient_norm")[0];
        let (moments, updates) = checkpoint.optimizer.unwrap();
        assert_eq!(updates, 1);
        let first = moments.into_iter().filter(|(name, _)| name.ends_with(".first"));
        (norm, first.flat_map(|(_, weight)| weight.values).map(f64::from).collect::<Vec<_>>())
    };
    let (norm, whole) = first_moments(0.0);
    // A mean that has seen one gradient is a tenth of it.
    let length = 10.0 * whole.iter().map(|value| value * value).sum::<f64>().sqrt();
    assert!(norm > 0.5 && (length / norm - 1.0).abs() < 1e-5, "a gradient of length {norm}, moments of {length}");
    for (clip_norm, expected) in [(0.25, 0.25 / norm), (norm * 2.0, 1.0)] {
        let (of_all, shortened) = first_moments(clip_norm);
        assert_eq!(of_all, norm, "what is told is the norm before it");
        for (found, whole) in shortened.iter().zip(&whole) {
            assert!((found / (expected * whole) - 1.0).abs() < 1e-5, "{clip_norm}: {found}, unclipped {whole}");
        }
    }
}

#[test]
fn the_rate_of_noam_is_that_of_the_models_own_width() {
    // The width of the Transformer, and of the recurrent model the hidden one.
    for (model, width) in [(TRANSFORMER, 16f64), (BAHDANAU, 12.0)] {
        let dir = TempDir::new().unwrap();
        let run = dir.path().join("run");
        let mut config = tiny(model);
        config.training.schedule = serde_json::from_value("noam".into()).unwrap();
        config.training.max_updates = 4;
        train_in(&run, &config).unwrap();
        // Vaswani et al. 2017, equation 3, with a warm-up of 3 updates and a factor of 0.01.
        let expected = |update: f64| 0.01 * width.powf(-0.5) * (update * 3f64.powf(-1.5)).min(update.powf(-0.5));
        for (found, update) in numbers(&run, "train", "learning_rate").into_iter().zip([1.0, 2.0, 3.0, 4.0]) {
            let expected = expected(update);
            assert!((found / expected - 1.0).abs() < 1e-9, "{width} wide, update {update}: {found}, not {expected}");
        }
    }
}

#[test]
fn what_is_minimised_has_the_smoothing_that_is_asked_for() {
    let losses = |label_smoothing| {
        let dir = TempDir::new().unwrap();
        let mut config = tiny(TRANSFORMER);
        (config.training.label_smoothing, config.training.max_updates) = (label_smoothing, 1);
        train_in(&dir.path().join("run"), &config).unwrap();
        ["loss", "smoothed_loss"].map(|key| numbers(&dir.path().join("run"), "train", key)[0])
    };
    let [loss, smoothed] = losses(0.0);
    assert_eq!(smoothed, loss);
    let [same, at_a_tenth] = losses(0.1);
    let [_, at_a_half] = losses(0.5);
    assert_eq!(same, loss, "what is told as loss has none");
    // It goes from the cross-entropy of the right word to the mean of those of all words along a straight line.
    assert!((at_a_tenth - loss).abs() > 1e-4 * loss);
    let [near, far] = [(at_a_tenth - loss) / 0.1, (at_a_half - loss) / 0.5];
    assert!((near / far - 1.0).abs() < 1e-3, "{near} and {far}");
}

/// The losses of the first two epochs, apart: of parameters that stay as they are.
fn losses_of_epochs(run: &Path, mut config: Config) -> [Vec<f64>; 2] {
    config.training.learning_rate = 1e-30;
    config.training.validate_every = 1000;
    config.training.save_every = 1000;
    config.training.max_updates = 24;
    train_in(run, &config).unwrap();
    let lines: Vec<Value> = metrics(run).into_iter().filter(|line| line["split"] == "train").collect();
    let of = |epoch: u64| -> Vec<f64> {
        let own = lines.iter().filter(|line| line["epoch"] == epoch);
        own.map(|line| line["loss"].as_f64().unwrap()).collect()
    };
    // An update that ends an epoch is told with the epochs that are over then.
    let n_first = of(0).len() + 1;
    let losses: Vec<f64> = lines.iter().map(|line| line["loss"].as_f64().unwrap()).collect();
    assert!(n_first > 1 && losses.len() >= 2 * n_first, "{n_first} updates in an epoch, {} in all", losses.len());
    [losses[..n_first].to_vec(), losses[n_first..2 * n_first].to_vec()]
}

#[test]
fn no_two_parts_and_no_two_epochs_drop_the_same_units() {
    // Every micro-batch has the same sentences, so that only what is dropped can tell them apart.
    let losses = |is_dropped: bool| {
        let dir = TempDir::new().unwrap();
        let text = "a b c d\n".repeat(40);
        ["train", "valid"].iter().for_each(|name| fs::write(dir.path().join(name), &text).unwrap());
        let mut config = tiny(TRANSFORMER);
        config.data.task = None;
        config.data.dir = Some(dir.path().to_path_buf());
        config.data.train = Some(SplitFiles::parallel("train", "train"));
        config.data.valid = Some(SplitFiles::parallel("valid", "valid"));
        if !is_dropped {
            config.model = undropped(&config.model);
        }
        config.training.accumulation = 1;
        losses_of_epochs(&dir.path().join("run"), config)
    };
    let [first, second] = losses(false);
    let is_same = |other: &f64| (other / first[0] - 1.0).abs() < 1e-5;
    assert!(first.iter().chain(&second).all(is_same), "without dropout all are alike: {first:?}, {second:?}");
    let found = losses(true).concat();
    let bits: BTreeSet<u64> = found.iter().map(|loss| loss.to_bits()).collect();
    assert_eq!(bits.len(), found.len(), "of all parts each drops units of its own: {found:?}");
}

/// A model without any dropout.
fn undropped(model: &ModelConfig) -> ModelConfig {
    let mut model = serde_json::to_value(model).unwrap();
    let rates = model.as_object_mut().unwrap().iter_mut().filter(|(key, _)| key.ends_with("dropout_rate"));
    rates.for_each(|(_, rate)| *rate = 0.0.into());
    serde_json::from_value(model).unwrap()
}

#[test]
fn each_epoch_has_an_order_windows_and_hidden_words_of_its_own() {
    let dir = TempDir::new().unwrap();
    ["text.txt", "verse.txt"].iter().for_each(|name| fs::write(dir.path().join(name), masked::turns()).unwrap());
    let configs = [("pairs", tiny_text(TRANSFORMER)), ("masked", masked::CONFIG.into()), ("text", text::TEXT.into())];
    for (name, text) in configs {
        let mut config: Config = toml::from_str(&text).unwrap();
        config.model = undropped(&config.model);
        config.data.dir = Some(dir.path().to_path_buf());
        (config.training.batch_tokens, config.training.accumulation) = (80, 1);
        let [first, second] = losses_of_epochs(&dir.path().join(name), config);
        let differing = first.iter().zip(&second).filter(|(one, other)| (*one / *other - 1.0).abs() > 1e-6).count();
        assert!(2 * differing > first.len(), "{name}: {first:?}, then {second:?}");
    }
}

#[test]
fn a_line_is_shown_for_every_so_many_updates() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let arguments = ["train", "tiny.toml", "--run", "run", "--dashboard", "plain", "--set", "training.log_every=5"];
    let finished = finish(dir.path(), &arguments);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let shown: Vec<&str> = finished
        .stderr
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("update ")?.trim().split('/').next())
        .collect();
    assert_eq!(shown, ["1", "5", "10"], "{}", finished.stderr);
}

#[test]
fn the_best_checkpoint_is_the_one_with_the_best_score() {
    for (score, best) in [(Metric::Bleu, 2), (Metric::Wer, 1)] {
        let dir = TempDir::new().unwrap();
        let stalled = train_with_scores(dir.path(), score, &[10.0, 30.0, 20.0]);
        assert_eq!(named(dir.path(), "best"), format!("{best:06}"), "{score:?}");
        assert_eq!(stalled, 3 - best, "validations since, by {score:?}");
    }
}

#[test]
fn a_validation_has_the_scores_of_evaluate() {
    // Of errors and of shares, in percent.
    for (metric, key, scale) in
        [("wer", "wer", 100.0), ("chrf", "chrf", 1.0), ("token-accuracy", "token_accuracy", 100.0)]
    {
        let dir = TempDir::new().unwrap();
        write_tiny(dir.path(), BAHDANAU);
        let score = format!("training.score={metric}");
        let arguments = ["train", "tiny.toml", "--run", "run", "--set", &score, "--set", "training.sample_size=7"];
        succeed(dir.path(), &arguments);
        let run = dir.path().join("run");
        let found = *numbers(&run, "valid", "score").last().unwrap();
        let last = named(&run, "last");
        let evaluate = ["evaluate", "--run", "run", "--split", "valid", "--json", "--checkpoint", &last];
        let scores: Value = serde_json::from_str(&succeed(dir.path(), &evaluate)).unwrap();
        let expected = scale * scores[key].as_f64().unwrap();
        assert!(expected > 0.0 && (found / expected - 1.0).abs() < 1e-9, "{metric}: {found}, evaluated {expected}");
        let loss = *numbers(&run, "valid", "perplexity").last().unwrap();
        assert!((loss / scores["perplexity"].as_f64().unwrap() - 1.0).abs() < 1e-4, "{metric}: {loss}, {scores}");
    }
}

#[test]
fn every_key_that_is_not_among_these_makes_another_experiment() {
    // As the guide says: limits, cadence, where it runs, how it decodes, where data lies.
    let free = [
        "backend",
        "data.dir",
        "data.n_test",
        "data.test",
        "decoding",
        "training.keep_checkpoints",
        "training.log_every",
        "training.max_minutes",
        "training.max_updates",
        "training.patience",
        "training.save_every",
        "training.validate_every",
    ];
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut begun = tiny(TRANSFORMER);
    begun.training.max_updates = 1;
    train_in(&run, &begun).unwrap();
    let begun = Run::open(&run).unwrap().config().unwrap();
    let mut refused = 0;
    let is_bound = |key: &str| !free.iter().any(|free| key == *free || key.starts_with(&format!("{free}.")));
    for (key, changed) in crate::config::keys::changes(&begun, is_bound) {
        let message = train_in(&run, &changed).unwrap_err().to_string();
        assert_says(&message, &[": is ", " here, but the run was begun with "]);
        let section = key.strip_suffix(".kind").unwrap_or(&key);
        assert!(message.starts_with(section.split('.').next().unwrap()), "{key}: {message}");
        refused += 1;
    }
    assert!(refused > 40, "{refused} keys were tried");
}
