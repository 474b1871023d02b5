//! A run folder: everything that `translate`, `evaluate` and a resumed `train` need, and nothing else.
//!
//! ```text
//! run/
//!   config.toml        resolved, every field; its SHA-256 in the first line
//!   tokenizer.json     environment.json
//!   checkpoints/NNNNNN/   model, optimizer, state; manifest with sha256
//!   best, last         text files naming a checkpoint
//!   metrics.jsonl      one line for each update and each validation
//!   tensorboard/       the same for TensorBoard
//!   log.txt            samples/ (validation translations)
//! ```

use super::checkpoint::{self, Checkpoint, Parameters};
use super::{format, pointer};
use crate::backend::Adapter;
use crate::config::Config;
use crate::data::{Scaling, Tokenizer, Tokenizers};
use crate::error::{Error, Result};
use crate::models::{Model, Vocabularies, weights};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// How often a checkpoint is looked for in a run that changes.
const MAX_ATTEMPTS: usize = 100;

/// A run folder that exists.
#[derive(Clone, Debug)]
pub struct Run {
    path: PathBuf,
}

/// What made a run, in `environment.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The version of the run folder's format.
    pub format_version: u32,
    /// The version of this program.
    pub version: String,
    /// The backend.
    pub backend: String,
    /// Its device.
    pub device: String,
    /// Operating system and processor.
    pub platform: String,
    /// The command line.
    pub command: String,
    /// The SHA-256 of every data file, or of the generated pairs, by split.
    pub data_sha256: std::collections::BTreeMap<String, String>,
    /// The number of parameters.
    pub n_parameters: usize,
    /// The run whose parameters were the start of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init_from: Option<String>,
}

impl Run {
    /// The run in `path`.
    ///
    /// # Errors
    /// If it is not a run folder.
    pub fn open(path: &Path) -> Result<Self> {
        let run = Self { path: path.to_path_buf() };
        if !path.is_dir() {
            return Err(Error::file(path, "is no folder; give the run folder that `lookback train` wrote"));
        }
        for file in ["config.toml", "tokenizer.json"] {
            if !path.join(file).is_file() {
                return Err(Error::file(
                    path,
                    format!("has no {file}, so it is no run folder that `lookback train` wrote"),
                ));
            }
        }
        Ok(run)
    }

    /// The folder `path`, made if need be.
    pub fn create(path: &Path) -> Result<Self> {
        let checkpoints = path.join("checkpoints");
        fs::create_dir_all(&checkpoints).map_err(Error::io(&checkpoints))?;
        let samples = path.join("samples");
        fs::create_dir_all(&samples).map_err(Error::io(&samples))?;
        Ok(Self { path: path.to_path_buf() })
    }

    /// Whether training has begun in `path`.
    pub fn has_begun(path: &Path) -> bool {
        path.join("config.toml").is_file()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file or folder of the run.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of the checkpoint called `name`.
    pub fn checkpoint(&self, name: &str) -> PathBuf {
        self.path.join("checkpoints").join(name)
    }

    /// Keeps others from training in the same folder until the returned value is dropped.
    ///
    /// # Errors
    /// If another process is training there.
    pub fn lock(&self) -> Result<Lock> {
        Lock::of(&self.path, "is in use by another `lookback train`; wait for it or give another --run")
    }

    /// The resolved config.
    ///
    /// # Errors
    /// If it is not what was written.
    pub fn config(&self) -> Result<Config> {
        self.read_config(&[])
    }

    /// The resolved config with `key.path=value` overrides, its values checked.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn config_with(&self, overrides: &[String]) -> Result<Config> {
        let config = self.read_config(overrides)?;
        config.validate_for_use()?;
        Ok(config)
    }

    fn read_config(&self, overrides: &[String]) -> Result<Config> {
        let path = self.join("config.toml");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let is_sealed = format::check_seal(&text).map_err(|fault| Error::file(&path, fault))?;
        if !is_sealed && self.environment().is_ok_and(|environment| environment.format_version >= format::SEALED) {
            let message = "has lost its first line, which says what the others are; put the file back";
            return Err(Error::file(&path, message));
        }
        let (config, missing) = Config::read(&path, &text, overrides, format::upgrade_config)?;
        if !is_sealed {
            format::check_whole(&missing).map_err(|fault| Error::file(&path, fault))?;
        }
        Ok(config)
    }

    /// The tokenizers.
    pub fn tokenizers(&self) -> Result<Tokenizers> {
        Tokenizers::load(self.join("tokenizer.json"))
    }

    /// What made the run, if it is written down.
    pub fn environment(&self) -> Result<Environment> {
        let path = self.join("environment.json");
        let text = fs::read_to_string(&path).map_err(Error::io(&path))?;
        serde_json::from_str(&text).map_err(|error| Error::file(&path, format!("is damaged: {error}")))
    }

    /// The checkpoint that a pointer file names: `best` or `last`.
    ///
    /// # Errors
    /// If there is such a file, and it names none.
    pub fn pointer(&self, name: &str) -> Result<Option<String>> {
        pointer::read(&self.join(name), &self.join("checkpoints"))
    }

    /// The newest checkpoint that is whole and was made before update `before`, with its folder; `warn` is told of damaged ones.
    pub fn newest_checkpoint(&self, before: u64, mut warn: impl FnMut(String)) -> Option<(PathBuf, Checkpoint)> {
        let there = checkpoint::list(&self.path.join("checkpoints"));
        for (_, folder) in there.into_iter().rev().filter(|(update, _)| *update < before) {
            match checkpoint::load(&folder) {
                Ok(checkpoint) => return Some((folder, checkpoint)),
                Err(error) => warn(format!("{error}; trying the checkpoint before it")),
            }
        }
        None
    }

    /// Whether this is an exported model and not the folder of a run that can go on.
    pub fn is_exported(&self) -> bool {
        self.join(checkpoint::MODEL).is_file()
    }

    /// The parameters for use, with the name of their checkpoint: those of an exported model, or of the checkpoint `asked`, else
    /// of the best, else of the newest. Nothing of the optimizer is read.
    ///
    /// # Errors
    /// If there are none, or they are damaged: others would give other answers, so that the user has to choose them.
    pub fn parameters(&self, asked: Option<&str>, warn: impl FnOnce(String)) -> Result<(String, Parameters)> {
        if self.is_exported() {
            if let Some(name) = asked {
                return Err(Error::file(&self.path, format!("is an exported model, which has no checkpoint {name}")));
            }
            let parameters = checkpoint::load_parameters(&self.path, warn)?;
            return Ok((checkpoint::name_of(parameters.updates), parameters));
        }
        if let Some(name) = asked.filter(|name| !self.checkpoints().iter().any(|known| known == name)) {
            return Err(Error::file(&self.path, format!("has no checkpoint {name}; {}", self.what_there_is())));
        }
        let attempt = || {
            let name = asked.map_or_else(|| self.checkpoint_for_use(), |name| Ok(name.to_string()))?;
            let mut warning = None;
            let parameters = checkpoint::load_parameters(&self.checkpoint(&name), |text| warning = Some(text))?;
            Ok((name, parameters, warning))
        };
        // Where somebody trains, the best of just now may have been replaced and removed in the meantime.
        let marks = || ["best", "last"].map(|name| fs::read(self.join(name)).ok());
        for _ in 0..MAX_ATTEMPTS {
            let before = marks();
            match attempt() {
                Ok((name, parameters, warning)) => {
                    if let Some(warning) = warning {
                        warn(warning);
                    }
                    return Ok((name, parameters));
                }
                Err(error) if marks() == before => return Err(self.with_choice(error)),
                Err(_) => {}
            }
        }
        Err(Error::file(&self.path, "changes all the time; wait until training there is over"))
    }

    /// The best checkpoint, or the newest where none is marked.
    fn checkpoint_for_use(&self) -> Result<String> {
        if let Some(best) = self.pointer("best")? {
            return Ok(best);
        }
        let Some((update, folder)) = checkpoint::list(&self.join("checkpoints")).pop() else {
            let message = "has no checkpoint, and no model.safetensors of an exported model; train it first";
            return Err(Error::file(&self.path, message));
        };
        match checkpoint::state(&folder)?.best_checkpoint {
            None => Ok(checkpoint::name_of(update)),
            Some(best) => {
                Err(Error::file(self.join("best"), format!("is not there, but {best} was the best checkpoint")))
            }
        }
    }

    /// The names of all checkpoints that are there, averaged ones after the others.
    fn checkpoints(&self) -> Vec<String> {
        let entries = fs::read_dir(self.join("checkpoints")).into_iter().flatten().flatten();
        let names =
            entries.filter(|entry| entry.path().is_dir()).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| !name.contains('.')).collect();
        names.sort();
        names
    }

    fn what_there_is(&self) -> String {
        match self.checkpoints()[..] {
            [] => "there are none".into(),
            ref names => format!("there are {}", names.join(", ")),
        }
    }

    fn with_choice(&self, error: Error) -> Error {
        if self.checkpoints().is_empty() {
            return error;
        }
        Error::message(format!("{error}; --checkpoint NAME takes the one that you name: {}", self.what_there_is()))
    }

    /// The model for use, with its tokenizers and config.
    ///
    /// # Errors
    /// As [`Self::parameters`]; also if parameters, tokenizers and config do not belong together.
    pub fn load_model(&self, adapter: &Adapter, asked: Option<&str>, warn: impl FnOnce(String)) -> Result<LoadedModel> {
        let config = self.config()?;
        let tokenizers = self.tokenizers()?;
        let (checkpoint, parameters) = self.parameters(asked, warn)?;
        let model = config.model.blank(vocabularies(&tokenizers), &adapter.device)?;
        let model = weights::apply(model, &parameters.weights, &parameters.file)?;
        let Parameters { updates, is_int8, .. } = parameters;
        Ok(LoadedModel { model, tokenizers, config, checkpoint, updates, is_int8 })
    }
}

/// A folder that nobody else writes into.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Keeps others from locking `folder` until the returned value is dropped; `fault` is what they are told.
    ///
    /// # Errors
    /// If somebody else has locked it.
    pub fn of(folder: &Path, fault: &str) -> Result<Self> {
        let path = folder.join("lock");
        let file = File::create(&path).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(Error::file(folder, fault)),
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is just being started may still have a copy of it.
        let _ = self.0.unlock();
    }
}

/// A model ready for use.
pub struct LoadedModel {
    /// The model.
    pub model: Model,
    /// Its tokenizers.
    pub tokenizers: Tokenizers,
    /// How it was trained.
    pub config: Config,
    /// The checkpoint that it comes from.
    pub checkpoint: String,
    /// Updates made by then.
    pub updates: u64,
    /// Whether its matrices are stored in 8 bits.
    pub is_int8: bool,
}

/// The sizes of the vocabularies; of numbers, the channels.
pub fn vocabularies(tokenizers: &Tokenizers) -> Vocabularies {
    let size = |side: &Tokenizer| side.scaling().map_or(side.vocab_size(), Scaling::n_channels);
    Vocabularies {
        source: size(tokenizers.source()),
        target: size(tokenizers.target()),
        shared: tokenizers.is_shared(),
    }
}
