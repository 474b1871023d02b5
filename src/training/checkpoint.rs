//! Checkpoints: folders that are either whole or not there.
//!
//! A checkpoint has a manifest with the SHA-256 of every file, and of those beside the checkpoints that its parameters mean
//! nothing without; it appears in one step.

use super::format::{FORMAT_VERSION, upgrade_weights};
use super::manifest::{MANIFEST, Manifest, hash, read};
use super::optimizer::Adam;
use crate::error::{Error, Result};
use crate::models::weights::{self, Weight, Weights};
use burn::tensor::Device;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
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
    /// The validation loss there, which decides between equal scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_loss: Option<f64>,
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
    /// The update at which a falling learning rate reaches its end: fixed when the run begins, or once the speed of updates is
    /// known where minutes decide. Runs of format 2 have none written down.
    #[serde(default)]
    pub horizon: Option<u64>,
}

/// What a mean of checkpoints, or the end of training, was measured to be, which no line of `metrics.jsonl` says.
pub(crate) const VALIDATION: &str = "validation.json";

/// A checkpoint read back.
pub struct Checkpoint {
    /// The model's parameters.
    pub model: Weights,
    /// The optimizer's state and its count of updates; averaged checkpoints have none.
    pub optimizer: Option<(Weights, u64)>,
    /// Where training stood.
    pub state: TrainingState,
}

impl Checkpoint {
    /// Lets the optimizer go on where it stood; it stays as it is where nothing of it was saved.
    ///
    /// # Errors
    /// If what was saved in `folder` does not belong to these parameters.
    pub(super) fn restore(&self, adam: &mut Adam, folder: &Path, device: &Device) -> Result<()> {
        let Some((moments, updates)) = &self.optimizer else { return Ok(()) };
        adam.restore(moments.clone(), *updates, &self.model, device)
            .map_err(|fault| Error::file(folder.join(OPTIMIZER), fault))
    }
}

/// Writes a checkpoint into `folder`, which appears whole or not at all.
///
/// # Errors
/// If the disk refuses, or a parameter is not finite; an older checkpoint is then untouched.
pub fn save(folder: &Path, model: &Weights, optimizer: Option<&Adam>, state: &TrainingState) -> Result<()> {
    let run = run_of(folder);
    let of_run = OF_RUN.iter().filter(|name| run.join(name).is_file());
    let hashes = of_run.map(|name| Ok((name.to_string(), hash(&read(&run.join(name))?))));
    let run = hashes.collect::<Result<BTreeMap<String, String>>>()?;
    if let Some(path) = not_finite(model) {
        let message = format!(
            "was not written: {path} has a value that is not finite, so training has diverged; lower training.learning_rate or \
             raise training.warmup_updates in a new run, or go on from the checkpoint before"
        );
        return Err(Error::file(folder, message));
    }
    // One entry, as a map of several is written in random order: equal states are equal bytes.
    let about = |what: &str| HashMap::from([("format".to_string(), format!("lookback {what}"))]);
    let none = BTreeMap::new();
    let mut files = vec![(MODEL, weights::to_safetensors(model, &none, about("model"))?)];
    if let Some(adam) = optimizer {
        files.push((OPTIMIZER, weights::to_safetensors(&adam.state(), &none, about("optimizer"))?));
        let updates = serde_json::json!({ "updates": adam.updates() });
        files.push((OPTIMIZER_NUMBERS, updates.to_string().into_bytes()));
    }
    files.push((STATE, serde_json::to_vec_pretty(state).expect("the state is plain data")));
    Manifest::new(None, run).write(folder, files)
}

/// The parameters of a model, for its use.
pub struct Parameters {
    /// By path.
    pub weights: Weights,
    /// The file that they come from.
    pub file: PathBuf,
    /// Updates made, where it is written down.
    pub updates: u64,
    /// Whether matrices are stored in 8 bits.
    pub is_int8: bool,
}

/// A folder of files with their SHA-256: a checkpoint, or an exported model.
struct Folder<'a> {
    path: &'a Path,
    /// Absent where only files were copied.
    manifest: Option<Manifest>,
}

impl<'a> Folder<'a> {
    /// Reads the manifest. A folder without one is read unchecked, unless it `must_have` one.
    fn open(path: &'a Path, must_have: bool) -> Result<Self> {
        if !must_have && !path.join(MANIFEST).exists() {
            return Ok(Self { path, manifest: None });
        }
        let manifest = Manifest::read(path)?;
        let folder = Self { path, manifest: Some(manifest) };
        folder.check_run()?;
        Ok(folder)
    }

    /// Refuses a run that is no longer the one whose checkpoint this is.
    fn check_run(&self) -> Result<()> {
        let run = run_of(self.path);
        for (name, expected) in self.manifest.iter().flat_map(|manifest| &manifest.run) {
            // A name from elsewhere could lead to any file.
            if !OF_RUN.contains(&name.as_str()) {
                let message = format!("names {name}, which is no file of a run");
                return Err(Error::file(self.path.join(MANIFEST), message));
            }
            let path = run.join(name);
            if hash(&read(&path)?) != *expected {
                let message = format!("is not the one that the checkpoint {} was trained with", self.path.display());
                return Err(Error::file(&path, format!("{message}: its SHA-256 differs from {MANIFEST}")));
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        match &self.manifest {
            Some(manifest) => manifest.sha256.contains_key(name),
            None => self.path.join(name).is_file(),
        }
    }

    /// The bytes of a file, checked against the manifest.
    fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path.join(name);
        let bytes = read(&path)?;
        let Some(manifest) = &self.manifest else { return Ok(bytes) };
        match manifest.sha256.get(name) {
            Some(expected) if *expected == hash(&bytes) => Ok(bytes),
            Some(_) => Err(Error::file(&path, format!("is not what was saved: its SHA-256 differs from {MANIFEST}"))),
            None => Err(Error::file(&path, format!("is not listed in {MANIFEST}"))),
        }
    }

    fn weights(&self, name: &str, bytes: &[u8]) -> Result<Weights> {
        let version = self.manifest.as_ref().map_or(FORMAT_VERSION, |manifest| manifest.format_version);
        Ok(upgrade_weights(weights::from_safetensors(bytes, &self.path.join(name))?, version))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        serde_json::from_slice(&self.read(name)?)
            .map_err(|error| Error::file(self.path.join(name), format!("is damaged: {error}")))
    }

    /// The parameters of the model, all of them finite.
    fn model(&self) -> Result<(Weights, bool)> {
        let bytes = self.read(MODEL)?;
        let model = self.weights(MODEL, &bytes)?;
        match not_finite(&model) {
            Some(path) => Err(Error::file(self.path.join(MODEL), format!("has a value in {path} that is not finite"))),
            None => Ok((model, weights::is_int8(&bytes))),
        }
    }
}

/// Where training stood at a checkpoint.
///
/// # Errors
/// If that file is damaged.
pub fn state(folder: &Path) -> Result<TrainingState> {
    Folder::open(folder, true)?.json(STATE)
}

/// Reads a checkpoint and checks every file against the manifest.
///
/// # Errors
/// Names the file that is missing, cut short or changed.
pub fn load(folder: &Path) -> Result<Checkpoint> {
    let folder = Folder::open(folder, true)?;
    let state: TrainingState = folder.json(STATE)?;
    let optimizer = if folder.has(OPTIMIZER) {
        let numbers: serde_json::Value = folder.json(OPTIMIZER_NUMBERS)?;
        let moments = folder.weights(OPTIMIZER, &folder.read(OPTIMIZER)?)?;
        Some((moments, numbers["updates"].as_u64().unwrap_or(state.update)))
    } else {
        None
    };
    Ok(Checkpoint { model: folder.model()?.0, optimizer, state })
}

/// Reads the parameters of a checkpoint alone, checked against the manifest.
///
/// # Errors
/// As [`load`].
pub(super) fn load_model(folder: &Path) -> Result<Weights> {
    Ok(Folder::open(folder, true)?.model()?.0)
}

/// Reads the parameters of a checkpoint or of an exported model, and nothing of the optimizer. Files that someone copied
/// without their manifest are read too; `warn` is told.
///
/// # Errors
/// As [`load`].
pub fn load_parameters(folder: &Path, warn: impl FnOnce(String)) -> Result<Parameters> {
    let files = Folder::open(folder, false)?;
    let (weights, is_int8) = files.model()?;
    let file = folder.join(MODEL);
    let updates = match &files.manifest {
        None => {
            warn(format!("{} has no {MANIFEST} beside it, so it was not checked for damage", file.display()));
            None
        }
        Some(manifest) => {
            // An exported model has its config and tokenizer in the same folder.
            for name in manifest.sha256.keys().filter(|name| EXPORTED_BESIDES.contains(&name.as_str())) {
                files.read(name)?;
            }
            manifest.updates
        }
    };
    let of_state = || files.json::<TrainingState>(STATE).ok().map(|state| state.update);
    let of_name = || folder.file_name()?.to_str()?.rsplit('-').next()?.parse().ok();
    Ok(Parameters { weights, file, updates: updates.or_else(of_state).or_else(of_name).unwrap_or(0), is_int8 })
}

/// Writes a model for use into `folder`, which appears whole or not at all: its parameters, the files `besides`, and a manifest
/// of all. Matrices that have `scales` are written in 8 bits.
///
/// # Errors
/// If the disk refuses.
pub fn export(
    folder: &Path,
    parameters: &Parameters,
    scales: &BTreeMap<String, Weight>,
    besides: &[(&str, Vec<u8>)],
) -> Result<()> {
    let format = if scales.is_empty() { "lookback model" } else { "lookback model in 8 bits" };
    let about = HashMap::from([("format".to_string(), format.to_string())]);
    let mut files = vec![(MODEL, weights::to_safetensors(&parameters.weights, scales, about)?)];
    files.extend(besides.iter().cloned());
    Manifest::new(Some(parameters.updates), BTreeMap::new()).write(folder, files)
}

/// Files of a run that its checkpoints belong to. Its config has a checksum of its own, since some of its keys may change.
const OF_RUN: [&str; 1] = ["tokenizer.json"];
/// Files of an exported model that inference reads besides its parameters.
const EXPORTED_BESIDES: [&str; 2] = ["config.toml", "tokenizer.json"];
/// The file of the parameters.
pub const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const OPTIMIZER_NUMBERS: &str = "optimizer.json";
const STATE: &str = "state.json";

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

/// Whether a folder says of itself that it is a checkpoint, whole or not.
pub fn has_manifest(folder: &Path) -> bool {
    folder.join(MANIFEST).is_file()
}

/// Renames damaged checkpoints to `NNNNNN.damaged`, so that they neither count among those that are kept nor stand in the way
/// of the ones that will be made in their place.
pub fn set_aside(damaged: impl IntoIterator<Item = (u64, PathBuf)>) -> Result<()> {
    damaged.into_iter().try_for_each(|(_, folder)| rename(&folder, &folder.with_extension("damaged")))
}

/// Gives a checkpoint another name; what had that name is removed.
pub(super) fn rename(folder: &Path, other: &Path) -> Result<()> {
    if other.exists() {
        fs::remove_dir_all(other).map_err(Error::io(other))?;
    }
    fs::rename(folder, other).map_err(Error::io(folder))
}

/// The run whose checkpoint lies in `folder`.
fn run_of(folder: &Path) -> &Path {
    folder.parent().and_then(Path::parent).unwrap_or(folder)
}
