//! The runs that are served, and the pair of languages that chooses one.

use super::fault::Fault;
use crate::data::Tokenizers;
use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::models::{LengthLimits, ModelConfig};
use serde_json::{Value, json};

/// The source language that leaves the choice to the server.
const AUTO: &str = "auto";

/// A source and a target language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The code of the source language.
    pub source: String,
    /// The code of the target language.
    pub target: String,
}

impl Pair {
    /// Reads `SOURCE-TARGET`, or `SOURCE:TARGET` where a code has a hyphen.
    ///
    /// # Errors
    /// If it is not two codes.
    pub fn parse(text: &str) -> Result<Self> {
        let codes: Vec<&str> = text.split(if text.contains(':') { ':' } else { '-' }).collect();
        match codes[..] {
            [source, target] if !source.is_empty() && !target.is_empty() => {
                Ok(Self { source: source.to_string(), target: target.to_string() })
            }
            _ => Err(Error::message(format!(
                "--languages {text}: give two codes as de-en, or as zh-Hans:en where a code has a hyphen"
            ))),
        }
    }
}

/// What is known of a run without its model.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) pair: Pair,
    pub(super) tokenizers: Tokenizers,
    pub(super) config: ModelConfig,
    pub(super) limits: LengthLimits,
    pub(super) decoding: DecodingConfig,
    pub(super) seed: u64,
    /// What `/info` says of it.
    pub(super) info: Value,
}

/// All runs.
#[derive(Debug)]
pub(super) struct Catalogue(pub(super) Vec<Entry>);

impl Catalogue {
    /// The run for a pair of languages. What is missing, and the source `auto`, fits every run.
    pub(super) fn choose(&self, source: Option<&str>, target: Option<&str>) -> Result<usize, Fault> {
        let source = source.filter(|source| !source.is_empty() && *source != AUTO);
        let target = target.filter(|target| !target.is_empty());
        let fits = |entry: &Entry| {
            source.is_none_or(|code| code == entry.pair.source) && target.is_none_or(|code| code == entry.pair.target)
        };
        let found: Vec<usize> = (0..self.0.len()).filter(|i| fits(&self.0[*i])).collect();
        match found[..] {
            [run] => Ok(run),
            [] => {
                let any = |code: Option<&str>| code.unwrap_or("any language").to_string();
                let message = format!("no model from {} to {}; there is {}", any(source), any(target), self.pairs());
                Err(Fault::bad(message))
            }
            _ => Err(Fault::bad(format!("several models fit; give source and target: there is {}", self.pairs()))),
        }
    }

    fn pairs(&self) -> String {
        let pairs: Vec<String> =
            self.0.iter().map(|entry| format!("{} to {}", entry.pair.source, entry.pair.target)).collect();
        pairs.join(", ")
    }

    /// The answer to `/languages`: each source language with its targets.
    pub(super) fn languages(&self) -> Value {
        let mut sources: Vec<&str> = Vec::new();
        for entry in &self.0 {
            if !sources.contains(&entry.pair.source.as_str()) {
                sources.push(&entry.pair.source);
            }
        }
        let language = |source: &str| {
            let pairs = self.0.iter().map(|entry| &entry.pair).filter(|pair| pair.source == source);
            let targets: Vec<&str> = pairs.map(|pair| pair.target.as_str()).collect();
            json!({ "code": source, "name": source, "targets": targets })
        };
        sources.into_iter().map(language).collect()
    }
}
