//! Beginning a run folder, and what may change when it is continued.

use super::TrainOptions;
use super::dataset::Corpus;
use super::format::FORMAT_VERSION;
use super::run::{Environment, Run};
use crate::backend::Adapter;
use crate::config::{Config, differences};
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Keys that may change between two stretches of one run: limits, cadence, where it runs, how it decodes, where data lies.
const CHANGEABLE: [&str; 18] = [
    "backend",
    "data.dir",
    "data.train.source",
    "data.train.target",
    "data.train.tsv",
    "data.valid.source",
    "data.valid.target",
    "data.valid.tsv",
    "data.valid.more_targets",
    "data.test",
    "decoding",
    "training.max_updates",
    "training.max_minutes",
    "training.patience",
    "training.validate_every",
    "training.save_every",
    "training.keep_checkpoints",
    "training.log_every",
];

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
    // Files may have moved, so that only the contents are compared.
    let contents = |environment: &Environment, split: &str| -> Vec<String> {
        let of_split = environment.data_sha256.iter().filter(|(name, _)| name.split('/').next() == Some(split));
        of_split.map(|(_, hash)| hash.clone()).collect()
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
    _config: &Config,
    adapter: &Adapter,
    options: &TrainOptions,
    corpus: &Corpus,
    n_parameters: usize,
) -> Environment {
    Environment {
        format_version: FORMAT_VERSION,
        version: env!("CARGO_PKG_VERSION").into(),
        backend: adapter.backend.to_string(),
        device: adapter.name.clone(),
        platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        command: options.command.clone(),
        data_sha256: corpus.sha256.clone(),
        n_parameters,
    }
}

/// Writes what a run needs before its first update; `config.toml` last, since it says that the run has begun.
pub(super) fn begin(run: &Run, config: &Config, tokenizers: &Tokenizers, environment: &Environment) -> Result<()> {
    tokenizers.save(run.join("tokenizer.json"))?;
    write_environment(run, environment)?;
    write(&run.join("config.toml"), &config.to_toml())
}

/// Notes in the log what differs from the last time, and takes the new values over.
pub(super) fn note_changes(run: &Run, config: &Config, environment: &Environment) -> Result<()> {
    for (key, old, new) in differences(&run.config()?, config) {
        log(run, &format!("continued with {key} = {new}, before {old}"))?;
    }
    let old = run.environment()?;
    if old.device != environment.device || old.version != environment.version {
        log(
            run,
            &format!(
                "continued by version {} on {} ({})",
                environment.version, environment.backend, environment.device
            ),
        )?;
    }
    write_environment(run, environment)?;
    write(&run.join("config.toml"), &config.to_toml())
}

fn write_environment(run: &Run, environment: &Environment) -> Result<()> {
    let text = serde_json::to_string_pretty(environment).expect("the environment is plain data");
    write(&run.join("environment.json"), &text)
}

/// Replaces a small file in one step.
fn write(path: &Path, text: &str) -> Result<()> {
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text).map_err(Error::io(&temporary))?;
    std::fs::rename(&temporary, path).map_err(Error::io(path))
}

/// Adds a line to `log.txt`.
pub(super) fn log(run: &Run, line: &str) -> Result<()> {
    let path = run.join("log.txt");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(&path))?;
    writeln!(file, "{line}").map_err(Error::io(&path))
}
