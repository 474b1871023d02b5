//! Beginning a run folder, and what may change when it is continued.

use super::format::{check_seal, seal};
use super::options::TrainOptions;
use super::run::{Environment, Run};
use super::{Config, differences};
use crate::backend::Adapter;
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use crate::files;
use crate::models::weights::Weights;
use crate::training::RunFolder;
use crate::training::checkpoint::{self, TrainingState};
use crate::training::format::FORMAT_VERSION;
use crate::training::hash;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Keys that may change between two stretches of one run: limits, cadence, where it runs, how it decodes, where data lies.
const CHANGEABLE: [&str; 23] = [
    "backend",
    "data.dir",
    "data.n_test",
    "data.prepared",
    "data.train.source",
    "data.train.target",
    "data.train.tsv",
    "data.valid.source",
    "data.valid.target",
    "data.valid.tsv",
    "data.valid.more_targets",
    "data.test",
    "data.text.train",
    "data.text.valid",
    "data.text.test",
    "decoding",
    "training.max_updates",
    "training.max_minutes",
    "training.patience",
    "training.validate_every",
    "training.save_every",
    "training.keep_checkpoints",
    "training.log_every",
];

/// What training leaves in a folder before its first checkpoint, besides temporary files.
const LEFT_EARLY: [&str; 12] = [
    "auto.json",
    "best",
    "checkpoints",
    "diverged-batch.tsv",
    "environment.json",
    "last",
    "lock",
    "log.txt",
    "metrics.jsonl",
    "samples",
    "tensorboard",
    "tokenizer.json",
];

/// Whether training gives a file this name before its first checkpoint.
fn is_own(name: &str) -> bool {
    name == "config.toml" || LEFT_EARLY.contains(&name)
}

fn names_in(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Refuses a folder that is no run and has somebody else's files: those of a run would be written over them. So would be what links in a
/// run folder lead to, which may have come from anybody.
pub(super) fn check_folder(path: &Path) -> Result<()> {
    if let Some(link) = link_in(path) {
        let message = "is a link, and training would write where it leads; put the whole run folder there and link that, or copy it";
        return Err(Error::file(link, message));
    }
    let there = checkpoint::list(&path.join("checkpoints"));
    if there.iter().any(|(_, folder)| checkpoint::has_manifest(folder)) {
        return Ok(());
    }
    if let Some((_, folder)) = there.first() {
        let message = "is no checkpoint of a training, and would be written over; give --run a new folder";
        return Err(Error::file(folder, message));
    }
    // The mean of checkpoints that have been removed can be used, and is no place to go on from.
    let mean = names_in(&path.join("checkpoints")).find(|name| name.starts_with("averaged-"));
    if let Some(mean) = mean {
        let message = format!("has no checkpoint to go on from, and would lose {mean}; give another --run");
        return Err(Error::file(path, message));
    }
    // Its metrics and samples would be those of another training. Parameters to begin with, which those of update 0 are, are no loss.
    let named = ["last", "best"].map(|name| RunFolder::at(path).named(name));
    if let Some(lost) = named.into_iter().flatten().find(|name| *name != checkpoint::name_of(0)) {
        let message = "is not there any more, and the metrics of the training up to it would be lost; give another --run, or remove the \
                       run folder";
        return Err(Error::file(path.join("checkpoints").join(lost), message));
    }
    let is_of_run = |name: &str| match name {
        // A config that training wrote has a seal.
        "config.toml" => std::fs::read_to_string(path.join(name)).is_ok_and(|text| check_seal(&text).unwrap_or(true)),
        _ => is_own(files::temporary_of(name).unwrap_or(name)),
    };
    let mut others: Vec<String> = names_in(path).filter(|name| !is_of_run(name)).collect();
    others.sort_unstable();
    match others.first() {
        Some(first) => {
            let more = if others.len() > 1 { " and other files" } else { "" };
            let message =
                format!("is no run and has {first}{more}; give --run a new folder, so that nothing is written over");
            Err(Error::file(path, message))
        }
        None => Ok(()),
    }
}

/// A link where training writes files or exchanges folders.
fn link_in(run: &Path) -> Option<PathBuf> {
    let own = LEFT_EARLY.iter().chain(&["config.toml"]).map(|name| run.join(name));
    if let Some(link) = own.into_iter().find(|path| path.is_symlink()) {
        return Some(link);
    }
    let folders = ["checkpoints", "samples", "tensorboard", "tensorboard/train", "tensorboard/valid"];
    let entries = folders.into_iter().filter_map(|name| std::fs::read_dir(run.join(name)).ok()).flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_symlink()).min()
}

/// A new folder, which is removed again if training in it never begins; what has content stays. Whoever has it holds the lock.
pub(super) struct Stub(pub(super) PathBuf);

impl Drop for Stub {
    fn drop(&mut self) {
        let Self(path) = self;
        if !Run::has_begun(path) {
            let _ = std::fs::remove_file(path.join("lock"));
            ["checkpoints", "samples", ""].iter().for_each(|name| drop(std::fs::remove_dir(path.join(name))));
        }
    }
}

/// The config of a run that can go on; nothing where training is to begin.
///
/// What ended before its first checkpoint begins anew, with whatever config: nothing is lost. So does what was to be fine-tuned
/// and has only the parameters that it starts from.
pub(super) fn begun(run: &Run, is_given_start: bool) -> Result<Option<Config>> {
    files::remove_temporary(run.path(), is_own);
    files::remove_temporary(&run.join("checkpoints"), |_| true);
    let there = checkpoint::list(&run.join("checkpoints"));
    let is_trained = there.iter().any(|(update, _)| *update > 0);
    match (Run::has_begun(run.path()), is_trained) {
        (true, true) if is_given_start => {
            let message = "has begun already; --init-from is for a new run, give another --run";
            Err(Error::file(run.path(), message))
        }
        (false, true) => {
            let message =
                "has checkpoints but no config.toml, so it is no whole run; put the file back, or give another --run";
            Err(Error::file(run.path(), message))
        }
        (true, _) if !there.is_empty() && !is_given_start => run.config().map(Some),
        // `begin` replaces the parameters to start from, after everything that can be refused has been checked.
        _ => Ok(None),
    }
}

/// Refuses a config that would make another experiment of a run that has begun.
pub(super) fn check_config(old: &Config, new: &Config) -> Result<()> {
    let is_changeable = |key: &str| CHANGEABLE.iter().any(|free| key == *free || key.starts_with(&format!("{free}.")));
    match differences(old, new).into_iter().find(|(key, _, _)| !is_changeable(key)) {
        Some((key, old, new)) => Err(Error::config(
            key,
            format!("is {new} here, but the run was begun with {old}; give another --run, or put it back"),
        )),
        None => Ok(()),
    }
}

/// Refuses data that is not the data of the run.
pub(super) fn check_data(old: &Environment, new: &Environment) -> Result<()> {
    let of_nothing = hash(b"");
    // Files may have moved, so that only the contents are compared. Earlier runs did not write down further references, nor what came
    // from pipes.
    let is_later = |name: &str| name.contains("/more_targets") || name.ends_with("/read");
    let is_known = |name: &str| !is_later(name) || old.data_sha256.contains_key(name);
    let contents = |environment: &Environment, split: &str| -> Vec<String> {
        let of_split = environment.data_sha256.iter().filter(|(name, _)| name.split('/').next() == Some(split));
        // A pipe that has been read looks empty, which is what earlier runs wrote down of it.
        let known = of_split.filter(|(name, hash)| is_known(name) && **hash != of_nothing);
        known.map(|(_, hash)| hash.clone()).collect()
    };
    for split in ["train", "valid"] {
        if contents(old, split) != contents(new, split) {
            return Err(Error::config(
                format!("data.{split}"),
                "is not the data that the run was begun with (the SHA-256 differs); put it back, or give another --run",
            ));
        }
    }
    Ok(())
}

/// What is written down about where and how the run was made.
pub(super) fn environment(
    adapter: &Adapter,
    options: &TrainOptions,
    data_sha256: BTreeMap<String, String>,
    n_parameters: usize,
) -> Environment {
    Environment {
        format_version: FORMAT_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        backend: adapter.backend.to_string(),
        device: adapter.name.clone(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        command: options.command.clone(),
        data_sha256,
        n_parameters,
        init_from: options.init_from.as_ref().map(|run| run.display().to_string()),
        ranks: options.ranks.size(),
    }
}

/// Writes what a run needs before its first update, the parameters `start` of another run included; `config.toml` last, since
/// it says that the run has begun.
pub(super) fn begin(
    run: &Run,
    config: &Config,
    tokenizers: &Tokenizers,
    environment: &Environment,
    start: Option<&Weights>,
) -> Result<()> {
    tokenizers.save(run.join("tokenizer.json"))?;
    write_environment(run, environment)?;
    let there = checkpoint::list(&run.join("checkpoints"));
    // The start that is given is put in the place of the one before.
    for (_, folder) in there.into_iter().filter(|(update, _)| *update > 0 || start.is_none()) {
        std::fs::remove_dir_all(&folder).map_err(Error::io(&folder))?;
    }
    if let Some(start) = start {
        // Known where minutes do not decide; a later config may name more updates.
        let horizon = config.training.max_minutes.is_none().then_some(config.training.max_updates);
        let horizon = horizon.filter(|_| config.training.schedule.has_end());
        let state = TrainingState { rate_factor: 1.0, horizon, ..TrainingState::default() };
        checkpoint::save(&run.folder().checkpoint(&checkpoint::name_of(0)), start, None, &state)?;
    }
    write_config(run, config)
}

/// Notes in the log what differs from the last time, and takes the new values over.
///
/// # Errors
/// If fewer updates are to be made than were.
pub(super) fn note_changes(run: &Run, config: &Config, environment: &Environment) -> Result<()> {
    let planned = config.training.max_updates;
    let is_above = checkpoint::list(&run.join("checkpoints")).iter().any(|(update, _)| *update > planned);
    // Damaged ones do not count, which takes reading them.
    let newest = if is_above { run.newest_checkpoint(u64::MAX, |_| ()) } else { None };
    let made = newest.map_or(0, |(_, checkpoint)| checkpoint.state.update);
    if planned < made {
        let message = format!("is {planned} here, and the run has made {made} updates; give as many, or another --run");
        return Err(Error::config("training.max_updates", message));
    }
    for (key, old, new) in differences(&run.config()?, config) {
        run.folder().log(&format!("continued with {key} = {new}, before {old}"))?;
    }
    let old = run.environment()?;
    if old.device != environment.device || old.version != environment.version {
        run.folder().log(&format!(
            "continued by version {} on {} ({})",
            environment.version, environment.backend, environment.device
        ))?;
    }
    // The config first: the environment says of which format it is.
    write_config(run, config)?;
    // What it was begun with stays as it was first written.
    write_environment(run, &Environment { init_from: old.init_from, ranks: old.ranks, ..environment.clone() })
}

fn write_config(run: &Run, config: &Config) -> Result<()> {
    files::replace(&run.join("config.toml"), seal(&config.to_toml()).as_bytes())
}

pub(super) fn write_environment(run: &Run, environment: &Environment) -> Result<()> {
    let text = serde_json::to_string_pretty(environment).expect("the environment is plain data");
    files::replace(&run.join("environment.json"), text.as_bytes())
}
