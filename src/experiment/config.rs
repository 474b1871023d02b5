//! What a user writes: one TOML file, one struct for each section.
//!
//! Every default stands once, in an `impl Default`. A config file lists only what its experiment chooses; the resolved
//! config, with every field, is written into the run directory before the first update.

mod fault;
mod keys;
mod paths;
mod reader;
mod values;

use self::fault::Fault;
use self::keys::LARGEST;
use crate::backend::Backend;
use crate::data::{DataConfig, MASK, TextConfig, TokenizerConfig, TokenizersConfig};
use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::models::{ModelConfig, TransformerConfig};
use crate::training::{Criterion, ScheduledSampling, TrainingConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The largest number of a model.
const MOST_OF_A_SIZE: u64 = 1_000_000_000;

/// The most layers of a stack: each is made before anything is known of the memory that they take together.
const MOST_LAYERS: u64 = 1000;

/// The configuration used when none is given: a small Transformer that learns to reverse, in a few minutes on two cores.
pub const QUICK_START: &str = include_str!("../../config/quick-start.toml");

/// A whole experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Seed of the initial weights, the order of the data, dropout and sampling, at most 2^63 - 1.
    pub seed: u64,
    /// Where the tensors live.
    pub backend: Backend,
    /// What is learnt.
    pub data: DataConfig,
    /// How text becomes tokens.
    pub tokenizer: TokenizersConfig,
    /// What learns.
    pub model: ModelConfig,
    /// How it learns.
    pub training: TrainingConfig,
    /// How it writes.
    pub decoding: DecodingConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            backend: Backend::default(),
            data: DataConfig::default(),
            tokenizer: TokenizersConfig::default(),
            model: ModelConfig::Transformer(TransformerConfig::default()),
            training: TrainingConfig::default(),
            decoding: DecodingConfig::default(),
        }
    }
}

impl Config {
    /// Reads a config file, or the quick start if there is none, and applies `key.path=value` overrides. Paths in the file are
    /// relative to its folder, those of overrides to the working directory or to `data.dir`; what comes back is relative to the
    /// working directory.
    ///
    /// # Errors
    /// Names the file, the line, the key, the allowed values and the nearest spelling.
    pub fn load(path: Option<&Path>, overrides: &[String]) -> Result<Self> {
        let (name, text) = match path {
            Some(path) => (path.to_path_buf(), std::fs::read_to_string(path).map_err(Error::io(path))?),
            None => (PathBuf::from("quick-start.toml"), QUICK_START.to_string()),
        };
        let folder = name.parent().unwrap_or(Path::new("")).to_path_buf();
        Self::checked(&name, &folder, &text, overrides)
    }

    /// Reads a config that is part of this program, and applies overrides.
    ///
    /// # Errors
    /// As [`Config::load`], with `name` in place of the file.
    pub fn embedded(name: &str, text: &str, overrides: &[String]) -> Result<Self> {
        Self::checked(Path::new(name), Path::new(""), text, overrides)
    }

    /// The config in `text`, which is called `name` and has paths relative to `folder`, if every value keeps its rule.
    fn checked(name: &Path, folder: &Path, text: &str, overrides: &[String]) -> Result<Self> {
        let config = reader::parse(text, folder, overrides).map_err(|fault| fault.at(name, text))?;
        config.validate().map_err(|error| fault::locate(error, name, text, overrides))?;
        Ok(config)
    }

    /// Reads a config that this program, or an older version that `upgrade` knows, wrote, and applies overrides, which are
    /// in the words of today; its values are not checked.
    /// Besides, the keys that the file does not have.
    pub(crate) fn read(
        path: &Path,
        text: &str,
        overrides: &[String],
        upgrade: impl FnOnce(&mut toml::Table),
    ) -> Result<(Self, Vec<String>)> {
        let mut table: toml::Table =
            toml::from_str(text).map_err(|error| Fault::of_text(&error, text).at(path, text))?;
        upgrade(&mut table);
        let read = |overrides| reader::parse_table(table.clone(), overrides).map_err(|fault| fault.at(path, text));
        let missing = unset(&table, &read(&[])?);
        Ok((read(overrides)?, missing))
    }

    /// Whether one of `overrides` sets `key`, or the table that it is in.
    pub fn is_set(key: &str, overrides: &[String]) -> bool {
        let parts: Vec<String> = key.split('.').map(String::from).collect();
        overrides.iter().any(|setting| keys::sets(setting, &parts))
    }

    /// Checks every value against its rule, for training.
    ///
    /// # Errors
    /// Names the key, the value and the rule.
    pub fn validate(&self) -> Result<()> {
        self.data.check_learnable()?;
        self.validate_for_use()?;
        self.model.check_sharing(self.tokenizer.is_shared())
    }

    /// The same for a model that is trained; its config may name no training data, as that of an imported one.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn validate_for_use(&self) -> Result<()> {
        if self.seed > LARGEST {
            let message = format!("must be at most {LARGEST}, got {}", self.seed);
            return Err(Error::config("seed", message));
        }
        self.data.validate()?;
        self.tokenizer.validate()?;
        self.check_sizes()?;
        self.model.validate()?;
        self.training.validate()?;
        self.validate_text_model()?;
        self.validate_values()?;
        if self.training.scheduled_sampling != ScheduledSampling::default() && !self.model.family().reads_own_words() {
            let message = "is for recurrent decoders: a Transformer reads all target words at once and has no last word of its own";
            return Err(Error::config("training.scheduled_sampling", message));
        }
        self.decoding.validate()
    }

    /// Refuses numbers of the model that no machine can hold; memory is counted in products of two of them.
    fn check_sizes(&self) -> Result<()> {
        fn too_large(value: &serde_json::Value, key: String) -> Option<(String, u64, u64)> {
            match value {
                serde_json::Value::Number(number) => {
                    let most = if key.ends_with("layers") { MOST_LAYERS } else { MOST_OF_A_SIZE };
                    number.as_u64().filter(|n| *n > most).map(|n| (key, most, n))
                }
                serde_json::Value::Array(values) => {
                    values.iter().enumerate().find_map(|(i, value)| too_large(value, format!("{key}[{i}]")))
                }
                serde_json::Value::Object(fields) => {
                    fields.iter().find_map(|(name, value)| too_large(value, format!("{key}.{name}")))
                }
                _ => None,
            }
        }
        let model = serde_json::to_value(&self.model).expect("plain data");
        match too_large(&model, "model".into()) {
            Some((key, most, n)) => Err(Error::config(key, format!("must be at most {most}, got {n}"))),
            None => Ok(()),
        }
    }

    /// Plain text is for models without a source and for those of masked words, and they for plain text.
    fn validate_text_model(&self) -> Result<()> {
        let is_word_piece = |own: &TokenizerConfig| matches!(own, TokenizerConfig::WordPiece(_));
        if !self.model.has_masks() && [self.tokenizer.source(), self.tokenizer.target()].into_iter().any(is_word_piece)
        {
            let message = "is \"word-piece\", which begins every text with <s>, as BERT does, and no model writes that: it is for \
                           model.output = \"masked-words\"; take \"bpe\" or \"unigram\"";
            return Err(Error::config("tokenizer.kind", message));
        }
        let text = match (&self.data.text, self.model.learns_from_text()) {
            (None, false) => return Ok(()),
            (None, true) if self.model.has_masks() => {
                let message =
                    "is \"masked-words\", so that the model learns from plain text: name it in data.text.train";
                return Err(Error::config("model.output", message));
            }
            (None, true) => {
                let message =
                    "is false, so that the model learns from plain text: name it in data.text.train, or leave this out";
                return Err(Error::config("model.reads_source", message));
            }
            (Some(_), false) => {
                let message = "is plain text, which has no source: set model.kind = \"decoder-only\" and model.reads_source = \
                               false, or model.kind = \"encoder-only\" and model.output = \"masked-words\"";
                return Err(Error::config("data.text", message));
            }
            (Some(text), true) => text,
        };
        if !self.model.has_masks() && text.masked_rate != TextConfig::default().masked_rate {
            let message = "is for models of masked words, and this one goes on with text; leave it out";
            return Err(Error::config("data.text.masked_rate", message));
        }
        if self.training.criterion == Criterion::Score {
            let message = "is \"score\", but plain text has no right answer to be compared with: leave it at \"loss\"";
            return Err(Error::config("training.criterion", message));
        }
        Ok(())
    }

    /// The most tokens that a language model has in sight as it writes: those that it was trained with. Where it has a state of fixed
    /// size, which has no limit, that is nothing, unless its positions end somewhere.
    pub fn context_of_writing(&self) -> Option<usize> {
        let text = self.data.text.as_ref()?;
        match &self.model {
            ModelConfig::DecoderOnly(model) if !model.has_attention() => model.positions.max_len(),
            _ => Some(text.context),
        }
    }

    /// The command that has the model answer, and what that is called.
    pub fn use_of(&self, run: &str) -> (&'static str, String) {
        match &self.model {
            model if model.has_masks() => ("predict", format!("lookback predict --run {run} 'TEXT with a {MASK}'")),
            model if model.family().answers().is_some() => {
                let input = if self.model.answers_with_numbers() { "NUMBERS" } else { "TEXT" };
                ("predict", format!("lookback predict --run {run} '{input}'"))
            }
            model if model.reads_source() => ("translate", format!("lookback translate --run {run} 'TEXT'")),
            _ => ("generate", format!("lookback generate --run {run} 'BEGINNING' --sample")),
        }
    }

    /// The command that evaluates the model, on validation data where there are no others.
    pub fn evaluation_of(&self, run: &str) -> String {
        let split = if self.data.has_test() { "" } else { " --split valid" };
        format!("lookback evaluate --run {run}{split}")
    }

    /// This config with the value that `other` has for a dotted key.
    ///
    /// # Errors
    /// If the two do not go together.
    pub(crate) fn with_key_of(&self, other: &Self, key: &str) -> Result<Self> {
        let table = |config: &Self| toml::Table::try_from(config).expect("every field of a config is a TOML value");
        reader::with_key_of(table(self), &table(other), key).map_err(|message| Error::config(key, message))
    }

    /// The config with every field, as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("every field of a config is a TOML value")
    }
}

/// The keys of a config that a table does not have, dotted.
fn unset(table: &toml::Table, config: &Config) -> Vec<String> {
    let whole = toml::Value::try_from(config).expect("every field of a config is a TOML value");
    let mut found = Vec::new();
    compare("", &toml::Value::Table(table.clone()), &whole, &mut found);
    found.into_iter().filter(|(_, old, _)| *old == UNSET).map(|(key, _, _)| key).collect()
}

/// How a key that is not there is shown.
const UNSET: &str = "\"(unset)\"";

/// The keys in which two configs differ, dotted, with both values.
pub fn differences(old: &Config, new: &Config) -> Vec<(String, String, String)> {
    let table = |config: &Config| toml::Table::try_from(config).expect("every field of a config is a TOML value");
    let mut found = Vec::new();
    compare("", &toml::Value::Table(table(old)), &toml::Value::Table(table(new)), &mut found);
    found
}

fn compare(path: &str, old: &toml::Value, new: &toml::Value, found: &mut Vec<(String, String, String)>) {
    match (old, new) {
        (toml::Value::Table(old), toml::Value::Table(new)) => {
            let missing = toml::Value::String("(unset)".into());
            let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&path, old.get(key).unwrap_or(&missing), new.get(key).unwrap_or(&missing), found);
            }
        }
        _ if old == new => {}
        _ => found.push((path.to_string(), old.to_string(), new.to_string())),
    }
}
