//! Checkpoints: folders that are either whole or not there.
//!
//! A checkpoint is written into a temporary folder, its manifest with the SHA-256 of every file last, and renamed into
//! place; a full disk or a kill leaves the previous one as it was.

use super::format::{FORMAT_VERSION, upgrade_weights};
use super::optimizer::Adam;
use crate::error::{Error, Result};
use crate::models::weights::{self, Weights};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where training stands, apart from the numbers of model and optimizer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrainingState {
    /// Updates made.
    pub update: u64,
    /// The epoch in progress, counted from 0.
    pub epoch: u64,
    /// Micro-batches of that epoch that have been used.
    pub position: usize,
    /// Target tokens learnt from.
    pub tokens: u64,
    /// Seconds spent, those before interruptions included.
    pub seconds: f64,
    /// The best value of the criterion so far.
    pub best: Option<f64>,
    /// The checkpoint that has it.
    pub best_checkpoint: Option<String>,
    /// Validations since then.
    pub stalled: usize,
    /// Checkpoints made at validations, oldest first: what is averaged.
    pub validated: Vec<String>,
    /// Updates that were skipped because the loss or the gradient was not finite.
    pub skipped: u64,
    /// What the schedule's learning rate is multiplied by; each rollback halves it.
    pub rate_factor: f64,
    /// Rollbacks after repeated losses that were not finite.
    pub rollbacks: u32,
}

/// What stands in `manifest.json`.
#[derive(Serialize, Deserialize)]
struct Manifest {
    format_version: u32,
    sha256: BTreeMap<String, String>,
}

/// A checkpoint read back.
pub struct Checkpoint {
    /// The model's parameters.
    pub model: Weights,
    /// The optimizer's state and its count of updates; averaged checkpoints have none.
    pub optimizer: Option<(Weights, u64)>,
    /// Where training stood.
    pub state: TrainingState,
}

/// Writes a checkpoint into `folder`, which appears whole or not at all.
///
/// # Errors
/// If the disk refuses, or a parameter is not finite; an older checkpoint is then untouched.
pub fn save(folder: &Path, model: &Weights, optimizer: Option<&Adam>, state: &TrainingState) -> Result<()> {
    if let Some(path) = not_finite(model) {
        return Err(Error::file(folder, format!("was not written: {path} has a value that is not finite")));
    }
    let parent = folder.parent().expect("a checkpoint lies in a folder");
    let name = folder.file_name().expect("a checkpoint has a name").to_string_lossy().into_owned();
    let temporary = parent.join(format!(".{name}.tmp"));
    if temporary.exists() {
        fs::remove_dir_all(&temporary).map_err(Error::io(&temporary))?;
    }
    fs::create_dir_all(&temporary).map_err(Error::io(&temporary))?;
    // One entry, as a map of several is written in random order: equal states are equal bytes.
    let about = |what: &str| HashMap::from([("format".to_string(), format!("lookback {what}"))]);
    let mut files = vec![("model.safetensors", weights::to_safetensors(model, about("model"))?)];
    if let Some(adam) = optimizer {
        files.push(("optimizer.safetensors", weights::to_safetensors(&adam.state(), about("optimizer"))?));
        let updates = serde_json::json!({ "updates": adam.updates() });
        files.push(("optimizer.json", updates.to_string().into_bytes()));
    }
    let state = serde_json::to_vec_pretty(state).expect("the state is plain data");
    files.push(("state.json", state));
    let mut manifest = Manifest { format_version: FORMAT_VERSION, sha256: BTreeMap::new() };
    for (name, bytes) in files {
        manifest.sha256.insert(name.to_string(), hash(&bytes));
        write_file(&temporary.join(name), &bytes)?;
    }
    let bytes = serde_json::to_vec_pretty(&manifest).expect("the manifest is plain data");
    write_file(&temporary.join("manifest.json"), &bytes)?;
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(Error::io(folder))?;
    }
    fs::rename(&temporary, folder).map_err(Error::io(folder))?;
    sync_folder(parent);
    Ok(())
}

/// Reads a checkpoint and checks every file against the manifest.
///
/// # Errors
/// Names the file that is missing, cut short or changed.
pub fn load(folder: &Path) -> Result<Checkpoint> {
    let path = folder.join("manifest.json");
    let bytes = fs::read(&path).map_err(Error::io(&path))?;
    let manifest: Manifest = serde_json::from_slice(&bytes)
        .map_err(|error| Error::file(&path, format!("is damaged ({error}); delete {} and go on", folder.display())))?;
    if manifest.format_version > FORMAT_VERSION {
        let message = format!(
            "has format {}, written by a newer version; this one reads {FORMAT_VERSION}",
            manifest.format_version
        );
        return Err(Error::file(&path, message));
    }
    let read = |name: &str| -> Result<Vec<u8>> {
        let path = folder.join(name);
        let bytes = fs::read(&path).map_err(Error::io(&path))?;
        match manifest.sha256.get(name) {
            Some(expected) if *expected == hash(&bytes) => Ok(bytes),
            Some(_) => Err(Error::file(&path, "is not what was saved: its SHA-256 differs from manifest.json")),
            None => Err(Error::file(&path, "is not listed in manifest.json")),
        }
    };
    let weights_of = |name: &str| -> Result<Weights> {
        let weights = weights::from_safetensors(&read(name)?, &folder.join(name))?;
        Ok(upgrade_weights(weights, manifest.format_version))
    };
    let json_fault = |name: &str| {
        let path = folder.join(name);
        move |error: serde_json::Error| Error::file(path, format!("is damaged: {error}"))
    };
    let state: TrainingState = serde_json::from_slice(&read("state.json")?).map_err(json_fault("state.json"))?;
    let optimizer = if manifest.sha256.contains_key("optimizer.safetensors") {
        let numbers: serde_json::Value =
            serde_json::from_slice(&read("optimizer.json")?).map_err(json_fault("optimizer.json"))?;
        Some((weights_of("optimizer.safetensors")?, numbers["updates"].as_u64().unwrap_or(state.update)))
    } else {
        None
    };
    let model = weights_of("model.safetensors")?;
    match not_finite(&model) {
        Some(path) => {
            Err(Error::file(folder.join("model.safetensors"), format!("has a value in {path} that is not finite")))
        }
        None => Ok(Checkpoint { model, optimizer, state }),
    }
}

/// The first parameter with a value that is not finite.
fn not_finite(model: &Weights) -> Option<&str> {
    let bad = model.iter().find(|(_, weight)| weight.values.iter().any(|value| !value.is_finite()));
    bad.map(|(path, _)| path.as_str())
}

/// The name of the checkpoint after `update` updates.
pub fn name_of(update: u64) -> String {
    format!("{update:06}")
}

/// The checkpoints in `folder`, oldest first; averaged ones are left out.
pub fn list(folder: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .filter(|(_, path)| path.is_dir())
        .collect();
    found.sort();
    found
}

/// Renames damaged checkpoints to `NNNNNN.damaged`, so that they neither count among those that are kept nor stand in the way
/// of the ones that will be made in their place.
pub fn set_aside(damaged: impl IntoIterator<Item = (u64, PathBuf)>) -> Result<()> {
    for (_, folder) in damaged {
        let aside = folder.with_extension("damaged");
        if aside.exists() {
            fs::remove_dir_all(&aside).map_err(Error::io(&aside))?;
        }
        fs::rename(&folder, &aside).map_err(Error::io(&folder))?;
    }
    Ok(())
}

/// Replaces a small text file, such as `best`, in one step.
pub fn write_pointer(path: &Path, text: &str) -> Result<()> {
    let temporary = path.with_extension("tmp");
    write_file(&temporary, format!("{text}\n").as_bytes())?;
    fs::rename(&temporary, path).map_err(Error::io(path))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path).map_err(Error::io(path))?;
    file.write_all(bytes).map_err(Error::io(path))?;
    file.sync_all().map_err(Error::io(path))
}

/// Makes a rename durable where folders can be synced; elsewhere there is nothing to do.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
