//! What a run writes down as it goes: `metrics.jsonl`, the same for TensorBoard, and samples of what the model writes.

use super::checkpoint::{self, TrainingState};
use super::folder::RunFolder;
use super::metrics::Stats;
use super::tensorboard::EventFile;
use crate::error::{Error, Result};
use crate::{files, memory};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write;

/// What is no curve.
const COUNTS: [&str; 3] = ["update", "epoch", "seconds"];

/// A line of `metrics.jsonl`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "A line of metrics.jsonl")]
pub(crate) struct MetricsLine {
    /// `train` for an update, `valid` for a validation.
    split: &'static str,
    /// Updates made.
    update: u64,
    /// Whole passes over the data by then.
    epoch: u64,
    #[serde(flatten)]
    stats: Stats,
    /// Seconds of training so far.
    seconds: f64,
    /// What the process holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u64>,
}

/// The open `metrics.jsonl` of a run, and the files of events beside it; nothing where another rank writes them.
pub(super) struct Record(Option<Files>);

struct Files {
    run: RunFolder,
    file: File,
    /// The folder of each split, and what is written there.
    events: [(&'static str, EventFile); 2],
}

impl Record {
    /// Opens the file; new lines come after those that are there. Events begin behind those of `update` updates.
    pub(super) fn open(run: &RunFolder, update: u64) -> Result<Self> {
        if run.is_read_only() {
            return Ok(Self(None));
        }
        let path = run.join("metrics.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(path))?;
        let events = |split: &'static str| -> Result<_> {
            Ok((split, EventFile::create(&run.join("tensorboard").join(split), update + 1)?))
        };
        Ok(Self(Some(Files { run: run.clone(), file, events: [events("train")?, events("valid")?] })))
    }

    /// Adds the line of an update or a validation.
    pub(super) fn write(
        &mut self,
        split: &'static str,
        state: &TrainingState,
        seconds: f64,
        stats: &Stats,
    ) -> Result<()> {
        let Some(files) = &mut self.0 else { return Ok(()) };
        let memory_mib = memory::in_use().map(|bytes| bytes >> 20);
        let (update, epoch) = (state.update, state.epoch);
        let line = MetricsLine { split, update, epoch, stats: stats.clone(), seconds, memory_mib };
        let line = serde_json::to_value(line).expect("stats are plain data");
        let numbers = line.as_object().into_iter().flatten().filter(|(name, _)| !COUNTS.contains(&name.as_str()));
        let numbers = numbers.filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)));
        if let Some((_, file)) = files.events.iter_mut().find(|(own, _)| *own == split) {
            file.add(state.update, numbers)?;
        }
        writeln!(files.file, "{line}").map_err(Error::io(files.run.join("metrics.jsonl")))
    }

    /// Brings all lines to the disk, so that no checkpoint there is ahead of them after a power cut.
    pub(super) fn sync(&self) -> Result<()> {
        let Some(Files { run, file, .. }) = &self.0 else { return Ok(()) };
        file.sync_data().map_err(Error::io(run.join("metrics.jsonl")))
    }

    /// Writes down what the model wrote at a validation.
    pub(super) fn write_sample(&self, update: u64, sample: &str) -> Result<()> {
        let Some(Files { run, .. }) = &self.0 else { return Ok(()) };
        let path = run.join(&format!("samples/{}.txt", checkpoint::name_of(update)));
        files::replace(&path, sample.as_bytes())
    }
}

/// Removes the lines of updates after `update`, which will be made again.
pub(super) fn cut(run: &RunFolder, update: u64) -> Result<()> {
    if run.is_read_only() {
        return Ok(());
    }
    let path = run.join("metrics.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
    let is_kept = |line: &&str| {
        serde_json::from_str::<serde_json::Value>(line)
            .is_ok_and(|line| line["update"].as_u64().is_some_and(|u| u <= update))
    };
    let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    if kept == text { Ok(()) } else { files::replace(&path, kept.as_bytes()) }
}
