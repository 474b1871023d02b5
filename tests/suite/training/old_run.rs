//! Stored run folders of each format, a Transformer and a recurrent model with attention: what was trained once can be used and continued by
//! every later version.

use super::*;
use crate::reliability::files;
use lookback::experiment::Run;
use lookback::training::Stop;
use lookback::training::format::FORMAT_VERSION;
use std::fs;
use tempfile::TempDir;

const STORED: [&str; 8] =
    ["run-v1", "run-v1-bahdanau", "run-v2", "run-v2-luong", "run-v3", "run-v3-luong", "run-v4", "run-v4-luong"];

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// A copy, since training writes into it.
fn copied(name: &str) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    copy_folder(&stored(name), &run);
    (dir, run)
}

#[test]
fn old_runs_translate_as_they_did() {
    STORED.into_iter().for_each(check_translations);
}

fn check_translations(name: &str) {
    let (dir, run) = copied(name);
    let arguments = ["translate", "--run", "run", "--input", "run/input.txt", "--json"];
    let found: Vec<Value> =
        succeed(dir.path(), &arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<Value> =
        read(run.join("expected.jsonl")).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((found.len(), expected.len()), (6, 6));
    for (found, expected) in found.iter().zip(&expected) {
        let [ours, theirs] = [found, expected].map(|line| &line["hypotheses"][0]);
        assert_eq!(
            (&found["source"], &ours["tokens"], &ours["complete"]),
            (&expected["source"], &theirs["tokens"], &theirs["complete"])
        );
        let [ours, theirs] = [ours, theirs].map(|h| h["log_probability"].as_f64().unwrap());
        // Another processor adds 32-bit numbers in another order.
        assert!((ours - theirs).abs() <= 1e-4 * theirs.abs(), "{found}, before {expected}");
    }
}

#[test]
fn old_runs_are_evaluated_with_overrides_in_the_words_of_today() {
    for name in STORED {
        let (dir, run) = copied(name);
        let arguments = ["evaluate", "--run", "run", "--split", "valid", "--json", "--set", "decoding.beam_size=2"];
        let scores: Value = serde_json::from_str(&succeed(dir.path(), &arguments)).unwrap();
        let seen = *numbers(&run, "valid", "perplexity").last().unwrap();
        assert!((scores["perplexity"].as_f64().unwrap() / seen - 1.0).abs() < 1e-4, "{scores}, in training {seen}");
        // What is wrong is said as in a config of today.
        let message = fail(dir.path(), &["evaluate", "--run", "run", "--set", "decoding.beam_size=0"]);
        assert_says(&message, &["decoding.beam_size"]);
    }
}

#[test]
fn old_runs_go_on() {
    STORED.into_iter().for_each(check_goes_on);
}

fn check_goes_on(name: &str) {
    let (_dir, run) = copied(name);
    let before = metrics(&run);
    let mut config = Run::open(&run).unwrap().config().unwrap();
    config.training.max_updates += 2;
    let outcome = train_in(&run, &config).unwrap();
    assert_eq!((outcome.stop, outcome.state.update), (Stop::Updates, 42));
    let after = metrics(&run);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.len(), before.len() + 3);
    // Adam's moments and the place in the data have been taken up: nothing jumps.
    let losses = numbers(&run, "valid", "loss");
    let (last, next) = (losses[losses.len() - 2], losses[losses.len() - 1]);
    assert!((next / last - 1.0).abs() < 0.1, "{last}, then {next}");
}

#[test]
fn every_format_has_its_stored_runs() {
    for version in 1..=FORMAT_VERSION {
        let prefix = format!("run-v{version}");
        let of_version: Vec<&str> = STORED.into_iter().filter(|name| name.starts_with(&prefix)).collect();
        assert_eq!(of_version.len(), 2, "format {version}");
        for name in of_version {
            assert_says(&read(stored(name).join("environment.json")), &[&format!("\"format_version\": {version},")]);
        }
    }
}

#[test]
fn the_stored_runs_are_small_and_are_text_and_safetensors() {
    for name in STORED {
        let files = files(&stored(name));
        let size: u64 = files.iter().map(|path| path.metadata().unwrap().len()).sum();
        assert!(size < 60_000, "{size} bytes");
        for path in files.iter().filter(|path| path.extension().is_none_or(|extension| extension != "safetensors")) {
            assert!(std::str::from_utf8(&fs::read(path).unwrap()).is_ok(), "{} is no text", path.display());
        }
        assert_says(&read(stored(name).join("README.md")), &["lookback train", "lookback translate"]);
    }
}

#[test]
fn mistakes_in_the_config_of_a_run_name_their_line_in_the_file() {
    // Since format 4 a config that is not what was written is refused as such.
    for name in STORED.into_iter().filter(|name| !name.starts_with("run-v4")) {
        let (_dir, run) = copied(name);
        let config = run.join("config.toml");
        let text = read(&config);
        let line = text.lines().position(|line| line == "patience = 10").unwrap() + 1;
        let message_of = |wrong: &str| {
            fs::write(&config, text.replace("patience = 10", wrong)).unwrap();
            Run::open(&run).unwrap().config().unwrap_err().to_string()
        };
        assert_says(&message_of("patiense = 10"), &[&format!("config.toml:{line}: "), "did you mean `patience`?"]);
        let rule = "training.patience: must be a whole number of at least 0, got the text \"ten\"";
        assert_says(&message_of("patience = \"ten\""), &[&format!("config.toml:{line}: {rule}")]);
        assert_says(&message_of("patience ="), &[&format!("config.toml:{line}: ")]);
    }
}

#[test]
fn a_checkpoint_of_a_newer_format_is_refused_and_not_misread() {
    let (dir, run) = copied(STORED[0]);
    let name = read(run.join("last"));
    let manifest = run.join("checkpoints").join(name.trim()).join("manifest.json");
    let text = read(&manifest);
    assert!(text.contains("\"format_version\": 1"), "{text}");
    let newer = FORMAT_VERSION + 1;
    fs::write(&manifest, text.replace("\"format_version\": 1", &format!("\"format_version\": {newer}"))).unwrap();
    let finished = finish(dir.path(), &["translate", "--run", "run", "--input", "run/input.txt"]);
    assert_eq!(finished.code, Some(1));
    let fault =
        format!("manifest.json: has format {newer}, written by a newer version; this one reads {FORMAT_VERSION}");
    assert_says(&finished.stderr, &[&fault]);
}
