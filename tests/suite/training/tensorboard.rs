//! The event files of a run. `tests/clients/event_files.py` reads them with TensorBoard itself.

use super::{BAHDANAU, succeed, write_tiny};
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// The fields of TensorBoard's `Event` that a curve is drawn from.
#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
    #[prost(message, optional, tag = "7")]
    session_log: Option<SessionLog>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    #[prost(int32, tag = "1")]
    status: i32,
}

/// The messages of a file.
fn events(path: &Path) -> Vec<Event> {
    let bytes = fs::read(path).unwrap();
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let n = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        found.push(Event::decode(&rest[12..12 + n]).unwrap());
        rest = &rest[12 + n + 4..];
    }
    found
}

/// What TensorBoard shows of a folder: the numbers by step and name, without those that a later file takes back.
fn shown(folder: &Path) -> BTreeMap<(i64, String), f32> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut shown = BTreeMap::new();
    for event in files.iter().flat_map(|file| events(file)) {
        if event.session_log.is_some_and(|log| log.status == 1) {
            shown.retain(|(step, _), _| *step < event.step);
        }
        for Number { tag, simple_value } in event.summary.into_iter().flat_map(|summary| summary.values) {
            shown.insert((event.step, tag), simple_value.expect("zeros are written too"));
        }
    }
    shown
}

/// What `metrics.jsonl` says of a split.
fn written(run: &Path, split: &str) -> BTreeMap<(i64, String), f32> {
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut found = BTreeMap::new();
    for line in lines.filter(|line| line["split"] == split) {
        let numbers = line.as_object().unwrap().iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        let numbers = numbers.filter(|(name, _)| !["update", "epoch", "seconds"].contains(&name.as_str()));
        found.extend(numbers.map(|(name, value)| ((line["update"].as_i64().unwrap(), name.clone()), value as f32)));
    }
    found
}

#[test]
fn tensorboard_shows_what_metrics_jsonl_says_also_of_a_run_that_went_on() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let run = dir.path().join("run");
    let train = |updates: &str| {
        let updates = format!("training.max_updates={updates}");
        succeed(dir.path(), &["train", "tiny.toml", "--run", "run", "--set", &updates]);
    };
    train("4");
    // As after a kill: two updates were measured and not saved.
    let last = fs::read_dir(run.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let saved: i64 = last.file_name().unwrap().to_str().unwrap().parse().unwrap();
    fs::remove_dir_all(last).unwrap();
    assert_eq!(saved, 4);
    train("6");
    for split in ["train", "valid"] {
        let shown = shown(&run.join("tensorboard").join(split));
        assert_eq!(shown, written(&run, split), "{split}");
        assert!(shown.keys().any(|(step, name)| *step == 6 && name == "loss"), "{split}");
        let n_files = fs::read_dir(run.join("tensorboard").join(split)).unwrap().count();
        assert_eq!(n_files, 2, "a file for each time it ran");
    }
}
