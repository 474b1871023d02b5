//! How training ends, and what is the best then; what a run that has ended keeps.

use super::*;
use lookback::experiment::{Run, export};
use lookback::training::schedule::Schedule;
use lookback::training::{Lock, Stop};
use tempfile::TempDir;

#[test]
fn what_ends_between_two_validations_is_examined_at_its_end() {
    let dir = TempDir::new().unwrap();
    let (whole, run) = (dir.path().join("whole"), dir.path().join("run"));
    let mut config = tiny(BAHDANAU);
    train_in(&whole, &config).unwrap();

    interrupted(&run, &config, 6);
    assert_eq!((named(&run, "last"), named(&run, "best")), ("000006".into(), "000004".into()));
    config.training.max_updates = 6;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.stop, outcome.state.update), (Stop::Updates, 6));
    assert_says(&read(run.join("log.txt")), &["update 6, the last: loss", "better than all before"]);
    assert_eq!((named(&run, "last"), named(&run, "best")), ("000006".into(), "000006".into()));
    assert_eq!(outcome.state.best_checkpoint.as_deref(), Some("000006"));
    // The card of its export has its numbers.
    let own: Value = serde_json::from_str(&read(run.join("checkpoints/000006/validation.json"))).unwrap();
    let perplexity = format!("| validation perplexity | {:.3} ", own["perplexity"].as_f64().unwrap());
    let exported = dir.path().join("exported");
    export(&Run::open(&run).unwrap(), &exported, &Default::default(), |warning| panic!("{warning}")).unwrap();
    assert_says(&read(exported.join("README.md")), &[&perplexity]);
    // The same command finds it so, and a longer one goes on as if nothing had been examined.
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "000006");
    config.training.max_updates = 12;
    train_in(&run, &config).unwrap();
    assert_same_end(&whole, &run, "after an end between two validations");
}

#[test]
fn a_mean_that_is_the_best_stays_it_until_training_goes_on() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.validate_every = 2;
    config.training.average_checkpoints = 3;
    // Jumps to and fro around a minimum, whose middle is better.
    config.training.learning_rate = 0.05;
    config.training.max_updates = 40;
    train_in(&run, &config).unwrap();
    assert_eq!(named(&run, "best"), "averaged-000040");
    interrupted(&run, &config, 0);
    assert_eq!(named(&run, "best"), "averaged-000040", "nothing has been learnt since");
}

#[test]
fn what_is_interrupted_before_its_first_update_can_begin_with_other_settings() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    assert_eq!(interrupted(&run, &config, 0).state.update, 0);
    assert!(checkpoints(&run).is_empty());
    config.training.learning_rate *= 0.5;
    assert_eq!(train_in(&run, &config).unwrap().state.update, 12);
}

#[test]
fn a_run_without_its_checkpoints_keeps_its_metrics() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let config = tiny(BAHDANAU);
    train_in(&run, &config).unwrap();
    let before = read(run.join("metrics.jsonl"));
    for name in checkpoints(&run) {
        std::fs::remove_dir_all(run.join("checkpoints").join(name)).unwrap();
    }
    let message = train_in(&run, &config).unwrap_err().to_string();
    assert_says(&message, &["run/checkpoints/000012: is not there any more", "give another --run"]);
    assert_eq!(read(run.join("metrics.jsonl")), before);
}

#[test]
fn the_end_of_a_falling_rate_outlives_a_return_to_the_parameters_of_another_run() {
    let dir = TempDir::new().unwrap();
    let (first, run) = (dir.path().join("first"), dir.path().join("run"));
    let mut config = tiny(BAHDANAU);
    train_in(&first, &config).unwrap();
    config.training.schedule = Schedule::Cosine;
    config.training.warmup_updates = 0;
    config.training.learning_rate = 1e30;
    config.training.save_every = 100;
    config.training.validate_every = 100;
    config.training.max_updates = 200;
    let message = train_from(&run, &config, Some(&first)).unwrap_err().to_string();
    assert_says(&message, &["training diverged"]);
    let state: Value = serde_json::from_str(&read(run.join("checkpoints/000000/state.json"))).unwrap();
    assert_eq!((&state["rollbacks"], &state["horizon"]), (&3.into(), &200.into()));
}

#[test]
fn a_file_of_the_name_of_the_lock_keeps_its_content() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("lock"), "mine").unwrap();
    let lock = Lock::of(dir.path(), "is in use").unwrap();
    assert_says(&Lock::of(dir.path(), "is in use").unwrap_err().to_string(), &["is in use"]);
    drop(lock);
    assert_eq!(read(dir.path().join("lock")), "mine");
}

#[test]
fn a_task_without_enough_test_sources_is_refused_before_training() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let many = ["train", "tiny.toml", "--run", "run", "--set", "data.n_test=100000"];
    assert_says(&fail(dir.path(), &many), &["data.n_test", "is too small", "100000 are asked for"]);
    assert!(!dir.path().join("run").exists());
    let check = ["config", "check", "tiny.toml", "--data", "--set", "data.n_test=100000"];
    assert_says(&fail(dir.path(), &check), &["data.n_test", "is too small"]);
    // It has no part in training, so that it may change.
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--dashboard", "none"]);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--dashboard", "none", "--set", "data.n_test=2"]);
}

#[test]
fn a_check_of_the_data_asks_whether_the_model_takes_them() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let check = |settings: &[&str]| fail(dir.path(), &[&["config", "check", "tiny.toml"], settings].concat());
    let tied = ["--set", "model.tied_embeddings=all", "--set", "tokenizer.shared=false"];
    assert_says(&check(&tied), &["model.tied_embeddings", "needs one vocabulary for both sides"]);
    for (setting, key) in [
        ("model.positions={ kind = \"learned\", max_len = 3 }", "model.positions.max_len"),
        ("model.randomized_positions=3", "model.randomized_positions"),
    ] {
        succeed(dir.path(), &["config", "check", "tiny.toml", "--set", setting]);
        assert_says(&check(&["--data", "--set", setting]), &[key]);
    }
}

#[test]
#[cfg(unix)]
fn training_does_not_write_through_links_in_a_run_folder() {
    let dir = TempDir::new().unwrap();
    let (run, elsewhere) = (dir.path().join("run"), dir.path().join("elsewhere"));
    let config = tiny(BAHDANAU);
    train_in(&run, &config).unwrap();
    std::fs::write(&elsewhere, "mine").unwrap();
    for name in ["lock", "metrics.jsonl", "log.txt", "auto.json"] {
        let _ = std::fs::remove_file(run.join(name));
        std::os::unix::fs::symlink(&elsewhere, run.join(name)).unwrap();
        let message = train_in(&run, &config).unwrap_err().to_string();
        assert_says(&message, &[name, "is a link"]);
        assert_eq!(read(&elsewhere), "mine");
        std::fs::remove_file(run.join(name)).unwrap();
    }
    // What is further in is exchanged or written over as well.
    std::fs::create_dir(dir.path().join("thesis")).unwrap();
    std::fs::write(dir.path().join("thesis/text"), "mine").unwrap();
    for (name, target) in [
        ("checkpoints/averaged-000012", "thesis"),
        ("samples/000016.txt", "elsewhere"),
        ("tensorboard/train/events", "elsewhere"),
    ] {
        std::os::unix::fs::symlink(dir.path().join(target), run.join(name)).unwrap();
        assert_says(&train_in(&run, &config).unwrap_err().to_string(), &[name, "is a link"]);
        std::fs::remove_file(run.join(name)).unwrap();
    }
    assert_eq!((read(&elsewhere), read(dir.path().join("thesis/text"))), ("mine".into(), "mine".into()));
    // The folder itself may be one.
    let linked = dir.path().join("linked");
    std::os::unix::fs::symlink(&run, &linked).unwrap();
    train_in(&linked, &config).unwrap();
}
