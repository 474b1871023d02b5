//! What a run writes down as it goes: `metrics.jsonl` and samples of what the model writes.

use super::checkpoint::{self, TrainingState};
use super::metrics::Stats;
use super::run::Run;
use crate::error::{Error, Result};
use crate::{files, memory};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// The open `metrics.jsonl` of a run.
pub(super) struct Record {
    run: Run,
    file: File,
}

impl Record {
    /// Opens the file; new lines come after those that are there.
    pub(super) fn open(run: &Run) -> Result<Self> {
        let path = run.join("metrics.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(path))?;
        Ok(Self { run: run.clone(), file })
    }

    /// Adds the line of an update or a validation.
    pub(super) fn write(&mut self, split: &str, state: &TrainingState, seconds: f64, stats: &Stats) -> Result<()> {
        let mut line = serde_json::json!({ "split": split, "update": state.update, "epoch": state.epoch });
        let numbers = serde_json::to_value(stats).expect("stats are plain data");
        let object = line.as_object_mut().expect("an object");
        object.extend(numbers.as_object().expect("an object").clone());
        object.insert("seconds".into(), seconds.into());
        if let Some(bytes) = memory::in_use() {
            object.insert("memory_mib".into(), (bytes >> 20).into());
        }
        writeln!(self.file, "{line}").map_err(Error::io(self.run.join("metrics.jsonl")))
    }

    /// Writes down what the model wrote at a validation.
    pub(super) fn write_sample(&self, update: u64, sample: &str) -> Result<()> {
        let path = self.run.join(&format!("samples/{}.txt", checkpoint::name_of(update)));
        files::replace(&path, sample.as_bytes())
    }
}

/// Removes the lines of updates after `update`, which will be made again.
pub(super) fn cut(run: &Run, update: u64) -> Result<()> {
    let path = run.join("metrics.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
    let is_kept = |line: &&str| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|line| line["update"].as_u64().is_some_and(|u| u <= update))
    };
    let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    if kept == text { Ok(()) } else { files::replace(&path, kept.as_bytes()) }
}
