//! What the command refuses: models that cannot be compared, and options that have no effect.

use super::command::{COMPARED, arguments, write_configs};
use crate::training::{TRANSFORMER, assert_says, fail, finish, tiny_text};
use tempfile::TempDir;

#[test]
fn what_cannot_be_compared_is_refused_with_a_reason() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    // Only what changes the test data is named, whatever else differs.
    let more = tiny_text(TRANSFORMER).replace("n_train = 50", "n_train = 60").replace("n_test = 3", "n_test = 40");
    std::fs::write(dir.path().join("more.toml"), more).unwrap();
    let message = fail(dir.path(), &["compare", "rnn.toml", "more.toml"]);
    assert_says(
        &message,
        &["rnn and more have different test data: data.n_test is 30 in the one and 40 in the other;"],
    );
    let other = tiny_text(TRANSFORMER).replace("max_len = 5", "max_len = 6").replace("n_test = 3", "n_test = 30");
    std::fs::write(dir.path().join("other.toml"), other).unwrap();
    let message = fail(dir.path(), &["compare", "rnn.toml", "other.toml"]);
    assert_says(
        &message,
        &["rnn and other have different test data", "data.task.max_len is 5 in the one and 6 in the other"],
    );
    assert_says(&fail(dir.path(), &["compare", "rnn.toml", "rnn.toml"]), &["two contestants are called \"rnn\""]);
    std::fs::copy(dir.path().join("rnn.toml"), dir.path().join("again.toml")).unwrap();
    assert_says(
        &fail(dir.path(), &["compare", "rnn.toml", "again.toml"]),
        &["rnn and again are the same experiment", "--seeds"],
    );
    for (option, value) in
        [("--budget", "hours=2"), ("--seeds", "0"), ("--sweep", "model.d_hidden"), ("--per-length", "0")]
    {
        let finished = finish(dir.path(), &["compare", "rnn.toml", "transformer.toml", option, value]);
        assert_eq!(finished.code, Some(2), "{option} {value}: {}", finished.stderr);
    }
    let message = fail(dir.path(), &["compare", "rnn.toml", "transformer.toml", "--cell-seconds", "0"]);
    assert_says(&message, &["--cell-seconds must be above 0 and finite, got 0"]);
    let seeds = ["compare", "rnn.toml", "transformer.toml", "--seeds", "3", "--set", "seed=9223372036854775806"];
    assert_says(&fail(dir.path(), &seeds), &["rnn, --seeds 3 from seed 9223372036854775806 on: seed: must be at most"]);
    assert!(!dir.path().join("runs").exists(), "nothing was written");
}

#[test]
fn options_without_effect_are_refused() {
    let dir = TempDir::new().unwrap();
    write_configs(dir.path());
    for (option, value) in
        [("--set", "seed=2"), ("--sweep", "seed=2,3"), ("--seeds", "2"), ("--budget", "updates=2"), ("--tune", "2")]
    {
        let message = fail(dir.path(), &["compare", "--run", "r", option, value]);
        assert_says(&message, &[&format!("{option} is for configs to train")]);
    }
    let message = fail(dir.path(), &["compare", "rnn.toml", "--max-cost-length", "0", "--cell-seconds", "3"]);
    assert_says(&message, &["--cell-seconds has no effect under --max-cost-length 0"]);
    let finished = finish(dir.path(), &["compare", "rnn.toml", "--max-cost-length", "15"]);
    assert_eq!(finished.code, Some(2));
    assert_says(&finished.stderr, &["must be 0 or at least 16"]);
    for (own, key, value) in [
        ("--budget=updates=2", "training.max_updates", "3"),
        ("--backend=flex", "backend", "ndarray"),
        ("--beam=2", "decoding.beam_size", "3"),
        ("--tune=2", "training.learning_rate", "0.1,0.2"),
        ("--match-parameters", "model.d_hidden", "8,16"),
    ] {
        let option = own.split('=').next().unwrap();
        let message = fail(dir.path(), &["compare", "rnn.toml", own, "--sweep", &format!("{key}={value}")]);
        assert_says(&message, &[&format!("{key} is set, and {option} sets it to something else")]);
    }
    for option in ["--task", "--family"] {
        let message = fail(dir.path(), &["compare", "--run", "r", "--run", "s", option, "copy"]);
        assert_says(&message, &[&format!("{option} is a part of a suite")]);
    }
    let message = fail(dir.path(), &["compare", "rnn.toml", "--match-parameters"]);
    assert_says(&message, &["--match-parameters has no effect on a single model"]);
    for option in ["--lengths", "--per-length"] {
        let dates = ["compare", "rnn.toml", "--set", "data.task={kind=\"dates\"}", option, "5"];
        assert_says(&fail(dir.path(), &dates), &[&format!("{option} is for generated tasks with lengths")]);
    }
}

#[test]
fn a_folder_of_another_comparison_is_not_gone_on_with() {
    let dir = TempDir::new().unwrap();
    crate::training::copy_folder(COMPARED.path(), dir.path());
    let message = fail(dir.path(), &arguments(&["--out", "out", "--budget", "updates=20"]));
    assert_says(&message, &["was trained with", "give another --out"]);
}
