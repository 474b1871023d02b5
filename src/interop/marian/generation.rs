//! The search of transformers, as `generation_config.json` describes it.

use crate::error::{Error, Result};
use crate::interop::hugging_face::Folder;
use serde::Deserialize;
use serde_json::Value;

/// What `generation_config.json` says, or, in old folders, `config.json`.
#[derive(Deserialize)]
pub(super) struct GenerationConfig {
    pub(super) num_beams: Option<usize>,
    pub(super) length_penalty: Option<f64>,
    pub(super) max_length: Option<usize>,
    pub(super) forced_eos_token_id: Option<usize>,
    pub(super) early_stopping: Option<Value>,
    renormalize_logits: Option<bool>,
}

/// The values with which a setting leaves the output as it is, besides `null`.
enum Neutral {
    Null,
    False,
    Number(f64),
    /// A list without words.
    NoWord,
    /// A list of words that are never written here: padding and the start symbol.
    NeverWritten,
}

/// Settings that change the output of transformers in a way that the search here does not have.
const OTHERS: [(&str, Neutral); 20] = [
    ("no_repeat_ngram_size", Neutral::Number(0.0)),
    ("encoder_no_repeat_ngram_size", Neutral::Number(0.0)),
    ("repetition_penalty", Neutral::Number(1.0)),
    ("encoder_repetition_penalty", Neutral::Number(1.0)),
    ("diversity_penalty", Neutral::Number(0.0)),
    ("num_beam_groups", Neutral::Number(1.0)),
    ("min_length", Neutral::Number(0.0)),
    ("min_new_tokens", Neutral::Null),
    ("max_new_tokens", Neutral::Null),
    ("bad_words_ids", Neutral::NeverWritten),
    ("forced_bos_token_id", Neutral::Null),
    ("suppress_tokens", Neutral::NoWord),
    ("begin_suppress_tokens", Neutral::NoWord),
    ("sequence_bias", Neutral::Null),
    ("force_words_ids", Neutral::Null),
    ("constraints", Neutral::Null),
    ("exponential_decay_length_penalty", Neutral::Null),
    ("do_sample", Neutral::False),
    ("guidance_scale", Neutral::Number(1.0)),
    ("penalty_alpha", Neutral::Number(0.0)),
];

impl Neutral {
    /// Whether a setting with this value leaves the output as it is; `never` are the words that are never written here.
    fn has(&self, value: &Value, never: &[usize]) -> bool {
        let is_never = |word: &Value| match word.as_array().map(Vec::as_slice) {
            Some([id]) => id.as_u64().is_some_and(|id| never.iter().any(|own| *own as u64 == id)),
            _ => false,
        };
        value.is_null()
            || match self {
                Self::Null => false,
                Self::False => *value == false,
                Self::Number(neutral) => value.as_f64() == Some(*neutral),
                Self::NoWord => value.as_array().is_some_and(Vec::is_empty),
                Self::NeverWritten => value.as_array().is_some_and(|words| words.iter().all(is_never)),
            }
    }
}

impl GenerationConfig {
    /// The settings of a folder; `never` are the words that are never written here.
    ///
    /// # Errors
    /// If the file is not what it should be, or a setting changes the output in a way that the search here does not
    /// have.
    pub(super) fn read(folder: &Folder, never: &[usize]) -> Result<Self> {
        let file = match folder.file("generation_config.json").is_file() {
            true => "generation_config.json",
            false => "config.json",
        };
        let value = folder.json(file)?;
        if let Some((key, _)) = OTHERS.iter().find(|(key, neutral)| !neutral.has(&value[*key], never)) {
            let message = format!(
                "has {key} = {}, which the search here does not have; remove {key} to import the model without it",
                value[*key]
            );
            return Err(Error::file(folder.file(file), message));
        }
        let fault = |error: serde_json::Error| Error::file(folder.file(file), format!("is no such file: {error}"));
        serde_json::from_value(value).map_err(fault)
    }

    /// Whether probabilities are those among the words that may be written, so that padding takes no part of them.
    pub(super) fn leaves_out_padding(&self) -> bool {
        self.renormalize_logits == Some(true)
    }
}
