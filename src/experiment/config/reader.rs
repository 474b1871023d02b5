//! From TOML and `--set` to a [`Config`].

use super::fault::Fault;
use super::keys::{apply, insert, remove, sets};
use super::{Config, paths};
use crate::models::Answers;
use crate::scoring::Metric;
use serde::Deserialize;
use std::path::Path;

/// Reads a config whose paths are relative to `folder`, and applies overrides, whose paths are the user's own.
pub(super) fn parse(text: &str, folder: &Path, overrides: &[String]) -> Result<Config, Fault> {
    let mut table = toml::from_str(text).map_err(|error| Fault::of_text(&error, text))?;
    if !folder.as_os_str().is_empty() {
        let is_overridden = |key: &[String]| overrides.iter().any(|setting| sets(setting, key));
        paths::place(&mut table, folder, is_overridden).map_err(|(key, message)| Fault::of_key(key, message))?;
    }
    parse_table(table, overrides)
}

/// Applies overrides to a config that is read already.
pub(super) fn parse_table(mut table: toml::Table, overrides: &[String]) -> Result<Config, Fault> {
    for setting in overrides {
        apply(&mut table, setting).map_err(|message| Fault::of_setting(setting, message))?;
    }
    resolve(table.clone()).map_err(|error| Fault::of_table(error.message(), &table, overrides))
}

/// The config of a table. Where it names no score, tags are judged one by one and classes whole, and all else, which is text, by the
/// default.
fn resolve(table: toml::Table) -> Result<Config, toml::de::Error> {
    let names_score = table.get("training").and_then(|training| training.get("score")).is_some();
    let mut config = Config::deserialize(table)?;
    config.training.score = match config.model.family().answers() {
        Some(Answers::Tags) if !names_score => Metric::TokenAccuracy,
        Some(Answers::Class) if !names_score => Metric::SequenceAccuracy,
        _ => config.training.score,
    };
    Ok(config)
}

/// The config `table` with the value that `other` has for a dotted key, or without the key if it has none.
pub(super) fn with_key_of(mut table: toml::Table, other: &toml::Table, key: &str) -> Result<Config, String> {
    let parts: Vec<String> = key.split('.').map(String::from).collect();
    let (last, sections) = parts.split_last().expect("a key has a name");
    let value = sections.iter().try_fold(other, |table, name| table.get(name)?.as_table()).and_then(|t| t.get(last));
    match value {
        None => remove(&mut table, &parts),
        Some(value) => insert(&mut table, sections, last, value.clone())?,
    }
    resolve(table).map_err(|error| error.message().to_string())
}
