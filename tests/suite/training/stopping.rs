//! Why training ends: patience, time, divergence; and how an update is made of parts.

use super::*;
use burn::module::Module;
use lookback::data::batch::{Batch, Example};
use lookback::models::weights::collect;
use lookback::models::{ModelConfig, Vocabularies};
use lookback::training::optimizer::GradientSet;
use lookback::training::{Progress, Stop, UpdatePart, gradients};
use tempfile::TempDir;

/// How far the sums of one gradient may be apart that were added in another order, as a part of its norm: 32-bit roundings
/// of some hundred terms.
const ORDER_TOLERANCE: f64 = 1e-5;

#[test]
fn the_gradients_of_uneven_parts_add_up_to_that_of_the_whole_batch() {
    for model in [TRANSFORMER, BAHDANAU] {
        let adapter = lookback::backend::Backend::Flex.open().unwrap();
        let vocabularies = Vocabularies { source: 11, target: 13, shared: false };
        let mut config = tiny(model).model;
        match &mut config {
            ModelConfig::Rnn(config) => config.dropout_rate = 0.0,
            ModelConfig::Transformer(config) => {
                (config.dropout_rate, config.attention_dropout_rate, config.activation_dropout_rate) = (0.0, 0.0, 0.0);
            }
            ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => unreachable!("neither of the two"),
        }
        let model = config.init(vocabularies, 3, &adapter.device).unwrap().train();
        let examples: Vec<Example> = [(1, 4), (3, 1), (2, 2), (5, 3), (4, 6)]
            .map(|(s, t)| Example { source: (4..4 + s).collect(), target: (6..6 + t).collect() })
            .to_vec();
        let device = adapter.device.clone().autodiff();
        let n_total: usize = examples.iter().map(|example| example.target.len() + 1).sum();
        let gradient = |parts: &[&[Example]]| {
            let mut total = GradientSet::default();
            for (i, part) in parts.iter().enumerate() {
                let batch = Batch::new(&part.iter().collect::<Vec<_>>(), &device);
                let part = UpdatePart {
                    batch,
                    n_total,
                    smoothing: 0.1,
                    seed: 1,
                    place: (0, i as u64),
                    is_fused: true,
                    replacement_rate: 0.0,
                };
                total.add(GradientSet::new(&model, gradients(&model, &part).0, true));
            }
            total
        };
        let (whole, parts) = (gradient(&[&examples]), gradient(&[&examples[..1], &examples[1..4], &examples[4..]]));
        assert!((whole.norm() - parts.norm()).abs() <= ORDER_TOLERANCE * whole.norm());
        for path in collect(&model.valid()).keys() {
            let (Some(a), Some(b)) = (whole.get(path), parts.get(path)) else { panic!("no gradient of {path}") };
            let gap = a.iter().zip(&b).map(|(a, b)| ((a - b) as f64).powi(2)).sum::<f64>().sqrt();
            assert!(gap <= ORDER_TOLERANCE * whole.norm(), "{path}: {gap} apart, the whole norm is {}", whole.norm());
        }
    }
}

#[test]
fn many_micro_batches_learn_what_one_large_batch_learns() {
    let dir = TempDir::new().unwrap();
    let text = BAHDANAU.replace("dropout_rate = 0.2", "dropout_rate = 0.0");
    let run = |name: &str, batch_tokens: usize, accumulation: usize| {
        let mut config = tiny(&text);
        config.training.batch_tokens = batch_tokens;
        config.training.accumulation = accumulation;
        config.training.max_updates = 5;
        let path = dir.path().join(name);
        let outcome = train_in(&path, &config).unwrap();
        assert_eq!(outcome.state.epoch, 5, "every update takes the whole epoch");
        path
    };
    let (large, micro) = (run("large", 100_000, 1), run("micro", 40, 1000));
    assert_eq!(numbers(&large, "train", "tokens"), numbers(&micro, "train", "tokens"));
    for key in ["loss", "smoothed_loss", "gradient_norm"] {
        for (a, b) in numbers(&large, "train", key).iter().zip(numbers(&micro, "train", key)) {
            // Adam divides by the root of the squares, so that roundings of small gradients come back as changes of weights.
            assert!((a - b).abs() <= 1e-3 * a.abs(), "{key}: {a} and {b}");
        }
    }
}

#[test]
fn training_ends_when_validation_has_not_become_better_for_as_long_as_patience_allows() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    // So fast that it gets worse.
    config.training.learning_rate = 0.3;
    config.training.patience = 2;
    config.training.max_updates = 1000;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!(outcome.stop, Stop::Patience);
    let losses = numbers(&run, "valid", "loss");
    let best = (0..losses.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b])).unwrap();
    assert_eq!(losses.len(), best + 1 + 2, "two validations after the best: {losses:?}");
    assert_eq!(outcome.state.update as usize, 4 * losses.len());

    let again = train_in(&run, &config).unwrap();
    assert_eq!((again.stop, again.state.update), (Stop::Patience, outcome.state.update), "it does not begin again");
    config.training.patience = 3;
    let further = train_in(&run, &config).unwrap();
    assert!(further.state.update > outcome.state.update, "more patience goes on");
}

#[test]
fn training_ends_when_the_minutes_are_over_and_counts_those_before_an_interruption() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.max_updates = 1_000_000;
    // No checkpoint but that of the end, which has all the time.
    (config.training.save_every, config.training.validate_every) = (1_000_000, 1_000_000);
    config.training.max_minutes = Some(0.5 / 60.0);
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!(outcome.stop, Stop::Minutes);
    assert!((0.5..10.0).contains(&outcome.state.seconds), "{} seconds", outcome.state.seconds);
    assert_eq!(named(&run, "last"), format!("{:06}", outcome.state.update), "what was reached is saved");
    let again = train_in(&run, &config).unwrap();
    assert_eq!((again.stop, again.state.update), (Stop::Minutes, outcome.state.update), "the time is up already");
}

#[test]
fn progress_is_that_of_the_limit_that_will_be_reached_first() {
    let part = |update, seconds_before, max_seconds| {
        let since = std::time::Instant::now();
        Progress { update, start: 0, total: 100, since, seconds_before, max_seconds, unshown: Default::default() }
            .part()
    };
    assert_eq!((part(20, 50.0, None), part(100, 0.0, None)), (0.2, 1.0));
    let of_time = part(20, 50.0, Some(100.0));
    assert!((0.5..0.6).contains(&of_time), "{of_time}");
    assert_eq!((part(80, 50.0, Some(100.0)), part(80, 200.0, Some(100.0))), (0.8, 1.0));
}

#[test]
fn a_run_that_diverges_skips_rolls_back_halves_the_rate_and_stops_with_the_batch_written_down() {
    let dir = TempDir::new().unwrap();
    let path = write_tiny(dir.path(), BAHDANAU);
    let text = read(&path).replace("save_every = 1", "save_every = 2").replace("max_updates = 12", "max_updates = 4");
    std::fs::write(&path, &text).unwrap();
    let arguments = ["train", "tiny.toml", "--run", "run"];
    succeed(dir.path(), &arguments);
    let good = metrics(&dir.path().join("run"));

    // From update 5 on the rate is absurd: in the file, and behind the run's back, which would refuse the change.
    let wild = text
        .replace("learning_rate = 0.01", "learning_rate = 1e30\nclip_norm = 0")
        .replace("max_updates = 4", "max_updates = 50");
    std::fs::write(&path, wild).unwrap();
    let resolved = dir.path().join("run/config.toml");
    let changed = read(&resolved)
        .replace("learning_rate = 0.01", "learning_rate = 1e30")
        .replace("clip_norm = 1.0", "clip_norm = 0.0");
    std::fs::write(&resolved, sealed(&changed)).unwrap();
    let message = fail(dir.path(), &arguments);
    assert_says(
        &message,
        &[
            "training diverged",
            "after update 3 and 3 rollbacks",
            "diverged-batch.tsv",
            "lower training.learning_rate",
            "in a new run",
        ],
    );

    let log = read(dir.path().join("run/log.txt"));
    let skipped = |update: u32| {
        let line = format!("update {update}: the gradient is not finite; skipped");
        log.lines().filter(|other| **other == line).count()
    };
    assert_eq!((skipped(6), skipped(4)), (20, 20), "ten for each rollback, and ten more:\n{log}");
    let back_to: Vec<_> =
        log.lines().filter_map(|line| line.split_once("back to update ")?.1.split(' ').next()).collect();
    assert_eq!(
        back_to,
        ["4", "2", "2"],
        "one further back where the last has been tried, as far as there are any:\n{log}"
    );
    let after = metrics(&dir.path().join("run"));
    assert_eq!(after[..2], good[..2]);
    let rates: Vec<_> = after[2..].iter().map(|line| (line["update"].clone(), line["learning_rate"].clone())).collect();
    // The line of the last attempt: at the end of the warm-up, halved three times.
    let rate = 1e30 / 8.0;
    assert_eq!(rates.len(), 1, "{rates:?}");
    assert_eq!(rates[0].0, 3);
    assert!((rates[0].1.as_f64().unwrap() / rate - 1.0).abs() < 1e-12, "{rates:?}, expected {rate}");

    let batch = read(dir.path().join("run/diverged-batch.tsv"));
    assert!(batch.lines().count() >= 1);
    for line in batch.lines() {
        let (source, target) = line.split_once('\t').expect("source TAB target");
        assert!(!source.is_empty() && source == target, "a pair to be copied: {line:?}");
    }
    // Whoever goes on begins where this process went back to, and with its rate; what it left has another name.
    assert_eq!(named(&dir.path().join("run"), "last"), "000002");
    let checkpoints = dir.path().join("run/checkpoints");
    let state: serde_json::Value = serde_json::from_str(&read(checkpoints.join("000002/state.json"))).unwrap();
    assert_eq!((&state["rollbacks"], &state["rate_factor"]), (&3.into(), &0.125.into()));
    // That was the best, and stays so: going back does not lose it.
    assert!(!checkpoints.join("000004").exists() && !checkpoints.join("000004.damaged").exists());
    assert_eq!(named(&dir.path().join("run"), "best"), "left-000004");
    assert_says(&log, &["the best checkpoint is of the course that is left: it is left-000004 now"]);
    let evaluate = ["evaluate", "--run", "run", "--split", "valid"];
    let best = succeed(dir.path(), &evaluate);
    assert_eq!(succeed(dir.path(), &[&evaluate[..], &["--checkpoint", "left-000004"]].concat()), best);
    let again = finish(dir.path(), &arguments);
    assert_says(&again.stderr, &["starting at update 3", "and 3 rollbacks"]);
}

#[test]
fn a_run_that_diverges_before_any_checkpoint_says_so() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let wild =
        ["--set", "training.learning_rate=1e30", "--set", "training.clip_norm=0", "--set", "training.save_every=100"];
    let message = fail(dir.path(), &[&["train", "tiny.toml", "--run", "run"][..], &wild].concat());
    assert_says(&message, &["training diverged", "0 rollbacks", "diverged-batch.tsv"]);
    // Nothing is lost that could be gone on with, so that the same folder takes what is put right.
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run"]);
    let fresh = dir.path().join("fresh");
    succeed(dir.path(), &["train", "tiny.toml", "--run", "fresh"]);
    assert_same_end(&fresh, &dir.path().join("run"), "after a start that was refused");
}
