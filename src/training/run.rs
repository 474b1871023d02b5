//! A run folder: everything that `translate`, `evaluate` and a resumed `train` need, and nothing else.
//!
//! ```text
//! run/
//!   config.toml        resolved, every field          tokenizer.json    environment.json
//!   checkpoints/NNNNNN/   model, optimizer, state; manifest with sha256
//!   best, last         text files naming a checkpoint
//!   metrics.jsonl      one line for each update and each validation
//!   log.txt            samples/ (validation translations)
//! ```

use super::checkpoint::{self, Checkpoint, Parameters};
use crate::backend::Adapter;
use crate::config::Config;
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use crate::models::{Model, Vocabularies, weights};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

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
    pub fn lock(&self) -> Result<RunLock> {
        let path = self.join("lock");
        let file = File::create(&path).map_err(Error::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(RunLock(file)),
            Err(fs::TryLockError::WouldBlock) => {
                Err(Error::file(&self.path, "is in use by another `lookback train`; wait for it or give another --run"))
            }
            Err(fs::TryLockError::Error(error)) => Err(Error::io(&path)(error)),
        }
    }

    /// The resolved config.
    pub fn config(&self) -> Result<Config> {
        Config::read(&self.join("config.toml"), &[], super::format::upgrade_config)
    }

    /// The resolved config with `key.path=value` overrides, its values checked.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn config_with(&self, overrides: &[String]) -> Result<Config> {
        let config = Config::read(&self.join("config.toml"), overrides, super::format::upgrade_config)?;
        config.validate()?;
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

    /// The name in a pointer file: `best` or `last`.
    pub fn pointer(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.join(name)).ok()?;
        Some(text.trim().to_string()).filter(|text| !text.is_empty())
    }

    /// The newest checkpoint that is whole, with its folder; `warn` is told of damaged ones.
    pub fn newest_checkpoint(&self, mut warn: impl FnMut(String)) -> Option<(PathBuf, Checkpoint)> {
        for (_, folder) in checkpoint::list(&self.path.join("checkpoints")).into_iter().rev() {
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

    /// The parameters for use, with the name of their checkpoint: those of an exported model, of the best checkpoint, or of the
    /// newest whole one if none is marked. Nothing of the optimizer is read.
    ///
    /// # Errors
    /// If there are none, or they are damaged and there are no others.
    pub fn parameters(&self, mut warn: impl FnMut(String)) -> Result<(String, Parameters)> {
        if self.is_exported() {
            let parameters = checkpoint::load_parameters(&self.path, &mut warn)?;
            return Ok((checkpoint::name_of(parameters.updates), parameters));
        }
        if let Some(name) = self.pointer("best") {
            match checkpoint::load_parameters(&self.checkpoint(&name), &mut warn) {
                Ok(parameters) => return Ok((name, parameters)),
                Err(error) => warn(format!("{error}; using the newest whole checkpoint instead of the best")),
            }
        }
        for (update, folder) in checkpoint::list(&self.path.join("checkpoints")).into_iter().rev() {
            match checkpoint::load_parameters(&folder, &mut warn) {
                Ok(parameters) => return Ok((checkpoint::name_of(update), parameters)),
                Err(error) => warn(format!("{error}; trying the checkpoint before it")),
            }
        }
        let message = "has no whole checkpoint, and no model.safetensors of an exported model; train it first";
        Err(Error::file(&self.path, message))
    }

    /// The model for use, with its tokenizers and config.
    ///
    /// # Errors
    /// As [`Self::parameters`]; also if parameters, tokenizers and config do not belong together.
    pub fn load_model(&self, adapter: &Adapter, warn: impl FnMut(String)) -> Result<LoadedModel> {
        let config = self.config()?;
        let tokenizers = self.tokenizers()?;
        let (checkpoint, parameters) = self.parameters(warn)?;
        let model = config.model.blank(vocabularies(&tokenizers), &adapter.device)?;
        let model = weights::apply(model, &parameters.weights, &parameters.file)?;
        let Parameters { updates, is_int8, .. } = parameters;
        Ok(LoadedModel { model, tokenizers, config, checkpoint, updates, is_int8 })
    }
}

/// A run folder that nobody else trains in.
#[derive(Debug)]
pub struct RunLock(File);

impl Drop for RunLock {
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

/// The sizes of the vocabularies.
pub fn vocabularies(tokenizers: &Tokenizers) -> Vocabularies {
    Vocabularies {
        source: tokenizers.source().vocab_size(),
        target: tokenizers.target().vocab_size(),
        shared: tokenizers.config().is_shared(),
    }
}
