//! Training what is not yet trained.

use super::progress::{Progress, check_stop};
use crate::backend::Adapter;
use crate::error::{Error, Result};
use crate::experiment::{Config, Run, TrainOptions, differences, train};
use crate::files;
use crate::training::checkpoint::TrainingState;
use crate::training::{RunFolder, Stop};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a finished run came to, in its `finished.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Why it ended.
    pub why: String,
    /// Updates made.
    pub updates: u64,
    /// Target tokens learnt from.
    pub tokens: u64,
    /// Seconds.
    pub seconds: f64,
}

/// Trains a run to its end, or goes on with it; nothing to do if it is finished.
///
/// # Errors
/// If training fails, or is interrupted.
pub fn run_to_end(
    config: &Config,
    folder: &Path,
    adapter: &Adapter,
    command: &str,
    progress: &mut Progress,
    (what, work): (&str, f64),
) -> Result<()> {
    check_stop(&**progress.observer())?;
    if Run::has_begun(folder) {
        check_same(folder, config)?;
        if is_finished(folder) {
            progress.skip(work);
            return Ok(());
        }
    }
    let options = TrainOptions { command: command.into(), ..TrainOptions::new(folder) };
    let outcome =
        progress.watch(what, work, |observer| train(config, adapter, &TrainOptions { observer, ..options }))?;
    if outcome.stop == Stop::Interrupted {
        return Err(Error::Interrupted("interrupted and saved; the same command goes on from there".into()));
    }
    let why = match outcome.stop {
        Stop::Updates => "all updates made",
        Stop::Minutes => "the time was up",
        Stop::Patience => "validation no longer got better",
        Stop::Interrupted => "interrupted",
    };
    let TrainingState { update, tokens, seconds, .. } = outcome.state;
    let finished = Finished { why: why.into(), updates: update, tokens, seconds };
    let text = serde_json::to_string_pretty(&finished).expect("plain data");
    files::replace(&folder.join(MARK), text.as_bytes())
}

/// Says in a run folder how its training ended.
const MARK: &str = "finished.json";

/// Whether a comparison has trained this run to its end.
pub fn is_finished(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// A folder that was trained for something else is never gone on with: a longer budget, for one, gives another schedule, and
/// not the run that a new comparison would have made.
fn check_same(folder: &Path, config: &Config) -> Result<()> {
    const FREE: [&str; 5] = ["backend", "decoding.", "data.test", "training.log_every", "training.keep_checkpoints"];
    let found = differences(&Run::open(folder)?.config()?, config);
    match found.into_iter().find(|(key, _, _)| !FREE.iter().any(|free| key.starts_with(free))) {
        Some((key, old, new)) => Err(Error::file(
            folder,
            format!("was trained with {key} = {old} and is now to have {new}; give another --out, or put it back"),
        )),
        None => Ok(()),
    }
}

/// What a run came to: trained here, or by `lookback train`.
///
/// # Errors
/// If the run has no whole checkpoint.
pub fn finished(folder: &Path, config: &Config) -> Result<Finished> {
    let mark = std::fs::read_to_string(folder.join(MARK)).ok();
    let finished: Option<Finished> = mark.and_then(|text| serde_json::from_str(&text).ok());
    // It may have been trained on since, by `lookback train`.
    let last = RunFolder::at(folder).pointer("last").ok().flatten().and_then(|name| name.parse::<u64>().ok());
    if let Some(finished) = finished.filter(|finished| last.is_none_or(|last| last == finished.updates)) {
        return Ok(finished);
    }
    let newest = Run::open(folder)?.newest_checkpoint(u64::MAX, |_| ());
    let (_, checkpoint) = newest.ok_or_else(|| Error::file(folder, "has no whole checkpoint; train it first"))?;
    let TrainingState { update, tokens, seconds, .. } = checkpoint.state;
    let is_whole = update >= config.training.max_updates;
    let why = if is_whole { "all updates made" } else { "stopped before its last update" };
    Ok(Finished { why: why.into(), updates: update, tokens, seconds })
}
