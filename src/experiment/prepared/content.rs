//! What decides what is in the shards, and whether that is what a config means.

use super::manifest::{Content, FileRead, Manifest};
use crate::data::{DataConfig, Split};
use crate::error::{Error, Result};
use crate::experiment::Config;
use serde::Serialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The key under which a tokenizer of hidden words is recorded.
const MASKED: &str = "model.output = \"masked-words\"";
/// The key of the vocabularies that a run brings along.
pub(super) const GIVEN: &str = "--init-from";

/// The training files of a config, with their keys.
pub(super) fn files_of(data: &DataConfig) -> Vec<(String, PathBuf)> {
    if let Some(text) = &data.text {
        let under = |file: &PathBuf| data.dir.iter().collect::<PathBuf>().join(file);
        let numbered = text.train.iter().enumerate();
        return numbered.map(|(i, file)| (format!("data.text.train[{i}]"), under(file))).collect();
    }
    let Some(files) = data.train.as_ref().map(|files| data.resolve(files)) else { return Vec::new() };
    let roles = [("source", files.source), ("target", files.target), ("tsv", files.tsv)];
    roles.into_iter().filter_map(|(role, path)| Some((format!("data.train.{role}"), path?))).collect()
}

fn value_of(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("every part of a config is plain data")
}

/// What decides which pairs or lines there are, without the files.
pub(super) fn of_data(data: &DataConfig, seed: u64) -> Content {
    let mut content = Content::new();
    let mut put = |key: &str, value: Value| content.insert(key.into(), value);
    if let Some(task) = &data.task {
        put("data.task", value_of(task));
        put("data.n_train", json!(data.n_train));
        put("seed", json!(seed));
        return content;
    }
    if let Some(files) = &data.train {
        put("data.train.swap", json!(files.swap));
        put("data.filter", value_of(&data.filter));
    }
    let splits: Vec<&str> = data.held_out().into_iter().map(Split::name).collect();
    if !splits.is_empty() {
        let mut held_out = json!({ "per_mille": data.hold_out_per_mille, "for": splits });
        // Those that were prepared before there was a seed have none.
        if data.hold_out_seed != 0 {
            held_out["seed"] = json!(data.hold_out_seed);
        }
        put("data.hold_out_per_mille", held_out);
    }
    content
}

/// What decides how they are cut into tokens, besides.
pub(super) fn of_tokens(config: &Config) -> Content {
    let mut content = Content::from([("tokenizer".to_string(), value_of(&config.tokenizer))]);
    if config.data.text.is_some() {
        content.insert(MASKED.into(), json!(config.model.has_masks()));
    }
    content
}

/// The size of a file, and when it was last changed.
pub(super) fn stamp(path: &Path) -> Option<(u64, String)> {
    let metadata = path.metadata().ok()?;
    let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some((metadata.len(), modified.as_nanos().to_string()))
}

/// Refuses a folder that was prepared of other data, by `expected`: what a config says, without the files.
pub(super) fn check(folder: &Path, manifest: &Manifest, expected: &Content) -> Result<()> {
    for (key, new) in expected {
        // A seed counts only where something was drawn by it.
        match manifest.content.get(key) {
            Some(old) if old == new => {}
            None if key == "seed" => {}
            old => return Err(differs(folder, key, old, Some(new))),
        }
    }
    Ok(())
}

/// Refuses a folder that was prepared of other data, keys that only one of the two has included; without a `seed`, whichever it was.
pub(super) fn check_data(folder: &Path, manifest: &Manifest, data: &DataConfig, seed: Option<u64>) -> Result<()> {
    let mut expected = of_data(data, seed.unwrap_or_default());
    let is_of_data = |key: &str| key.starts_with("data.") && !manifest.files.iter().any(|file| file.key == key);
    if let Some((key, old)) =
        manifest.content.iter().find(|(key, _)| is_of_data(key) && !expected.contains_key(key.as_str()))
    {
        return Err(differs(folder, key, Some(old), None));
    }
    if let Some(seed) = seed {
        expected.insert("seed".into(), json!(seed));
    }
    check(folder, manifest, &expected)?;
    check_files(folder, manifest, &files_of(data))
}

/// Refuses files that have changed since. What has neither another size nor another time is what it was; what has is read. A
/// file that is gone is not needed any more.
fn check_files(folder: &Path, manifest: &Manifest, files: &[(String, PathBuf)]) -> Result<()> {
    let keys = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<String>>().join(", ");
    let (old, new) = (manifest.files.iter().map(|file| &file.key), files.iter().map(|(key, _)| key));
    let (old, new) = (keys(old.collect()), keys(new.collect()));
    if old != new {
        let message = format!("{} was prepared from {old}, and here there is {new}; {ANEW}", folder.display());
        return Err(Error::config("data.prepared", message));
    }
    for (FileRead { bytes, modified, sha256, .. }, (key, path)) in manifest.files.iter().zip(files) {
        let Some((n, time)) = stamp(path) else { continue };
        let is_same = n == *bytes && (time == *modified || crate::data::sha256_of_file(path)? == *sha256);
        if !is_same {
            let message = format!(
                "{} was prepared from another {key}: {} has changed (its SHA-256 differs); {ANEW}",
                folder.display(),
                path.display()
            );
            return Err(Error::config("data.prepared", message));
        }
    }
    Ok(())
}

/// What to do about it.
pub(super) const ANEW: &str = "`lookback data prepare CONFIG` makes it anew";

fn differs(folder: &Path, key: &str, old: Option<&Value>, new: Option<&Value>) -> Error {
    let shown = |value: Option<&Value>| value.map_or("nothing".into(), Value::to_string);
    let message =
        format!("{} was prepared with {key} = {}, and here it is {}; {ANEW}", folder.display(), shown(old), shown(new));
    Error::config("data.prepared", message)
}
