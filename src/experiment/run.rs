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

use super::{Config, format};
use crate::backend::Adapter;
use crate::data::{Scaling, Tokenizer, Tokenizers, TokenizersConfig};
use crate::error::{Error, Result};
use crate::models::{Model, Vocabularies, weights};
use crate::training::RunFolder;
use crate::training::checkpoint::{Checkpoint, Parameters};
use crate::training::format::SEALED;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// A run folder: what training writes, with the config and the tokenizers that it means nothing without.
#[derive(Clone, Debug)]
pub struct Run {
    folder: RunFolder,
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
    /// The ranks that it was begun with.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub ranks: usize,
}

fn one() -> usize {
    1
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

impl Run {
    /// The run in `path`.
    ///
    /// # Errors
    /// If it is not a run folder.
    pub fn open(path: &Path) -> Result<Self> {
        let run = Self { folder: RunFolder::at(path) };
        if !path.is_dir() {
            return Err(Error::file(path, "is no folder; give the run folder that `lookback train` wrote"));
        }
        for file in ["config.toml", "tokenizer.json"] {
            let found = std::fs::metadata(path.join(file));
            if let Err(error) = &found
                && error.kind() == std::io::ErrorKind::PermissionDenied
            {
                return Err(Error::file(path, "cannot be read: permission denied"));
            }
            if !found.is_ok_and(|found| found.is_file()) {
                return Err(Error::file(
                    path,
                    format!("has no {file}, so it is no run folder that `lookback train` wrote"),
                ));
            }
        }
        Ok(run)
    }

    /// The folder `path`, made if need be.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn create(path: &Path) -> Result<Self> {
        RunFolder::create(path).map(|folder| Self { folder })
    }

    /// A run that another process writes into.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { folder: self.folder.read_only() }
    }

    /// What training writes into.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file or folder of the run.
    pub fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The newest checkpoint that is whole: [`RunFolder::newest_checkpoint`].
    pub fn newest_checkpoint(&self, before: u64, warn: impl FnMut(String)) -> Option<(PathBuf, Checkpoint)> {
        self.folder.newest_checkpoint(before, warn)
    }

    /// The parameters for use: [`RunFolder::parameters`].
    ///
    /// # Errors
    /// As there.
    pub fn parameters(&self, asked: Option<&str>, warn: impl FnOnce(String)) -> Result<(String, Parameters)> {
        self.folder.parameters(asked, warn)
    }

    /// Whether training has begun in `path`.
    pub fn has_begun(path: &Path) -> bool {
        path.join("config.toml").is_file()
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
        if !is_sealed && self.environment().is_ok_and(|environment| environment.format_version >= SEALED) {
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

/// The tokenizers of a run that is fine-tuned.
pub(super) fn tokenizers_to_go_on(from: &Path, config: &TokenizersConfig) -> Result<Tokenizers> {
    let tokenizers = Run::open(from)?.tokenizers()?;
    if tokenizers.config() != config {
        let message =
            format!("differs from that of {}; a model can only be fine-tuned with its own tokenizer", from.display());
        return Err(Error::config("tokenizer", message));
    }
    Ok(tokenizers)
}
