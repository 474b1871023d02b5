//! Two of everything: processes that use one folder at a time, and folders that move.

use crate::cli::trained;
use crate::training::{
    BAHDANAU, Finished, TRANSFORMER, assert_same_end, assert_says, finish, lookback, read, succeed, write_tiny,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

#[test]
fn a_run_is_translated_with_while_its_checkpoints_come_and_go() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    fs::write(dir.path().join("in"), "a b\nb c a\n").unwrap();
    // Every update makes a checkpoint, is validated, and removes the one before.
    let settings = ["max_updates=1000000", "validate_every=1", "save_every=1", "keep_checkpoints=1", "patience=0"];
    let settings: Vec<String> = settings.iter().map(|setting| format!("training.{setting}")).collect();
    let mut arguments = vec!["train", "tiny.toml", "--run", "run", "--dashboard", "none"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let mut training = lookback(dir.path(), &arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !dir.path().join("run/best").is_file() {
        assert!(start.elapsed() < Duration::from_secs(120) && training.try_wait().unwrap().is_none(), "no checkpoint");
        std::thread::sleep(Duration::from_millis(10));
    }
    for i in 0..8 {
        let found = finish(dir.path(), &["translate", "--run", "run", "--input", "in"]);
        assert_eq!((found.code, found.stdout.lines().count()), (Some(0), 2), "{i}: {}", found.stderr);
    }
    let refused = finish(dir.path(), &arguments);
    assert_eq!(refused.code, Some(1));
    assert_says(refused.fault(), &["run: is in use by another `lookback train`"]);
    assert!(training.try_wait().unwrap().is_none(), "nobody disturbed it");
    training.kill().unwrap();
    training.wait().unwrap();
}

#[test]
fn of_two_trainings_that_begin_at_once_one_is_refused_and_the_other_is_whole() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let train = |run: &'static str| ["train", "tiny.toml", "--run", run, "--dashboard", "none"];
    succeed(dir.path(), &train("alone"));
    let mut children: Vec<_> = (0..4)
        .map(|_| {
            let mut command = lookback(dir.path(), &train("shared"));
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let ends: Vec<Finished> =
        children.drain(..).map(|child| Finished::from(child.wait_with_output().unwrap())).collect();
    assert!(ends.iter().any(|end| end.code == Some(0)), "{ends:?}");
    for end in ends.iter().filter(|end| end.code != Some(0)) {
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        assert_says(end.fault(), &["is in use by another `lookback train`"]);
    }
    assert_same_end(&dir.path().join("alone"), &dir.path().join("shared"), "with others who tried");
}

/// What every file of a folder is, and when it was last written.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => state(&path).into_iter().collect::<Vec<_>>(),
            false => vec![(path.clone(), (fs::read(&path).unwrap(), path.metadata().unwrap().modified().unwrap()))],
        })
        .collect()
}

#[test]
fn commands_that_use_a_run_write_nothing_into_it_so_that_it_may_lie_on_a_read_only_disk() {
    let run = trained().join("run");
    let before = state(&run);
    fs::write(trained().join("two"), "a b\nc\n").unwrap();
    for arguments in [
        &["translate", "--run", "run", "--input", "two"][..],
        &["evaluate", "--run", "run"],
        &["explain", "--run", "run", "a b", "--html", "read-only.html"],
        &["inspect", "attention", "--run", "run", "--input", "two", "--out", "read-only.svg"],
        &["inspect", "states", "--run", "run", "--input", "two"],
        &["export", "run", "--run", "run", "--out", "read-only-export"],
    ] {
        succeed(trained(), arguments);
        assert!(state(&run) == before, "{arguments:?} wrote into the run");
    }
}

#[test]
fn a_run_that_was_moved_renamed_or_copied_is_the_same_run() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    fs::write(dir.path().join("in"), "a b\n").unwrap();
    let train = |run: &'static str, updates: &'static str| ["train", "tiny.toml", "--run", run, "--set", updates];
    succeed(dir.path(), &train("whole", "training.max_updates=12"));
    succeed(dir.path(), &train("first", "training.max_updates=4"));
    let translate = |run: &'static str| finish(dir.path(), &["translate", "--run", run, "--input", "in"]).stdout;
    let expected = translate("first");
    fs::create_dir(dir.path().join("ein Ordner")).unwrap();
    fs::rename(dir.path().join("first"), dir.path().join("ein Ordner/zweiter")).unwrap();
    assert_eq!(translate("ein Ordner/zweiter"), expected);
    succeed(dir.path(), &train("ein Ordner/zweiter", "training.max_updates=12"));
    assert_same_end(&dir.path().join("whole"), &dir.path().join("ein Ordner/zweiter"), "moved and gone on with");
    assert!(read(dir.path().join("ein Ordner/zweiter/config.toml")).contains("max_updates = 12"));
}
