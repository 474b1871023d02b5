//! What lies in a folder before training is kept: the start of a fine-tuned run, what it has planned, and files of others.

use super::*;
use lookback::experiment::Run;
use std::fs;
use tempfile::TempDir;

#[test]
fn a_start_that_is_refused_does_not_take_the_one_that_was_there() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    succeed(dir.path(), &["train", "tiny.toml", "--run", "first", "--set", "training.max_updates=2"]);
    let train = |run: &'static str, more: &[&'static str]| {
        [&["train", "tiny.toml", "--run", run, "--set", "seed=77", "--set", "training.max_updates=1"][..], more]
            .concat()
    };
    succeed(dir.path(), &train("expected", &["--init-from", "first"]));
    // As after a process that has died before its first checkpoint.
    let finished = finish_on_full_disk(dir.path(), 60, &train("tuned", &["--init-from", "first"]));
    assert_eq!((finished.code, checkpoints(&dir.path().join("tuned"))), (Some(1), vec!["000000".to_string()]));
    assert_says(&fail(dir.path(), &train("tuned", &["--init-from", "nowhere"])), &["nowhere: is no folder"]);
    succeed(dir.path(), &train("tuned", &[]));
    assert_same_end(&dir.path().join("expected"), &dir.path().join("tuned"), "after a mistyped --init-from");
    let environment = Run::open(&dir.path().join("tuned")).unwrap().environment().unwrap();
    assert_eq!(environment.init_from.as_deref(), Some("first"));
}

#[test]
fn where_the_rate_of_a_fine_tuned_run_ends_is_known_from_its_start() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let linear = ["--set", "training.schedule=linear", "--set", "training.max_updates=6"];
    succeed(dir.path(), &[&["train", "tiny.toml", "--run", "first"][..], &linear].concat());
    let begin = [&["train", "tiny.toml", "--run", "tuned", "--init-from", "first"][..], &linear].concat();
    assert_eq!(finish_on_full_disk(dir.path(), 60, &begin).code, Some(1));
    let more = [
        "train",
        "tiny.toml",
        "--run",
        "tuned",
        "--set",
        "training.schedule=linear",
        "--set",
        "training.max_updates=9",
    ];
    // Twice, of which the first dies again.
    assert_eq!(finish_on_full_disk(dir.path(), 60, &more).code, Some(1));
    let finished = finish(dir.path(), &more);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["the learning rate falls until update 6, as planned when the run began"]);
}

/// Names that a run has may be those of other programs, too.
#[test]
fn numbered_folders_of_others_are_no_checkpoints() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    for number in ["0", "12"] {
        let theirs = dir.path().join("theirs/checkpoints").join(number);
        fs::create_dir_all(&theirs).unwrap();
        fs::write(theirs.join("model.pt"), "mine").unwrap();
        fs::write(dir.path().join("theirs/metrics.jsonl"), "mine").unwrap();
        let message = fail(dir.path(), &["train", "tiny.toml", "--run", "theirs"]);
        assert_says(&message, &[number, "is no checkpoint of a training", "--run"]);
        assert_eq!(
            (read(theirs.join("model.pt")), read(dir.path().join("theirs/metrics.jsonl"))),
            ("mine".into(), "mine".into())
        );
        fs::remove_dir_all(dir.path().join("theirs")).unwrap();
    }
}

#[test]
fn the_quick_start_in_a_folder_where_no_training_had_begun_says_that_it_is_one() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("begun/checkpoints")).unwrap();
    fs::write(dir.path().join("begun/lock"), "").unwrap();
    let finished = finish(dir.path(), &["train", "--run", "begun", "--set", "training.max_updates=1"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["a training in begun had not begun yet", "this is the quick start"]);
    // Of a run that has lost its config that is said.
    fs::remove_file(dir.path().join("begun/config.toml")).unwrap();
    assert_says(&fail(dir.path(), &["train", "--run", "begun"]), &["has checkpoints but no config.toml"]);
}

/// Names of files of the run in a manifest lead to no other file.
#[test]
fn a_manifest_leads_to_no_file_outside_its_run() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.max_updates = 1;
    train_in(&run, &config).unwrap();
    change_manifests(&run, |text| {
        assert!(text.contains("\"tokenizer.json\""), "{text}");
        text.replace("\"tokenizer.json\"", "\"../../../dev/zero\"")
    });
    let message = fail(dir.path(), &["translate", "--run", "run", "a b"]);
    assert_says(&message, &["manifest.json: names ../../../dev/zero, which is no file of a run"]);
}
