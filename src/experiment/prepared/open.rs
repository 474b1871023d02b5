//! Training with prepared data.

use super::content::{self, ANEW, GIVEN};
use super::manifest::Manifest;
use crate::data::batch::MAX_EXAMPLES;
use crate::data::shards::{Examples, Tokens};
use crate::data::{DataConfig, Split, Tokenizer, Tokenizers};
use crate::error::{Error, Result};
use crate::experiment::Config;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

/// Prepared pairs.
pub(in crate::experiment) struct OpenedPairs {
    pub(in crate::experiment) tokenizers: Tokenizers,
    pub(in crate::experiment) train: Examples,
    /// The SHA-256 of what they were made of.
    pub(in crate::experiment) sha256: BTreeMap<String, String>,
    /// How many the filter left out.
    pub(in crate::experiment) dropped: usize,
}

/// Prepared plain text.
pub(in crate::experiment) struct OpenedText {
    pub(in crate::experiment) tokenizers: Tokenizers,
    pub(in crate::experiment) train: Tokens,
    pub(in crate::experiment) sha256: BTreeMap<String, String>,
    pub(in crate::experiment) lines: u64,
    pub(in crate::experiment) characters: u64,
}

/// The prepared pairs in `folder`, if they are those of `config` and of the tokenizers that are `known`.
pub(in crate::experiment) fn pairs(config: &Config, folder: &Path, known: Option<&Tokenizers>) -> Result<OpenedPairs> {
    let (manifest, tokenizers) = open(config, folder, known)?;
    let vocabularies = [tokenizers.source(), tokenizers.target()].map(Tokenizer::vocab_size);
    let train = Examples::open(folder, &manifest.shards, vocabularies)?;
    if train.len() as u64 != manifest.counts.units {
        return Err(Error::file(folder, format!("has not as many pairs as its manifest says; {ANEW}")));
    }
    if train.is_empty() {
        return Err(Error::file(folder, format!("has no pairs; {ANEW}")));
    }
    if train.len() > MAX_EXAMPLES {
        let message = format!("has {} pairs, more than the {MAX_EXAMPLES} that can be counted", train.len());
        return Err(Error::file(folder, message));
    }
    Ok(OpenedPairs { tokenizers, train, sha256: manifest.data_sha256, dropped: manifest.dropped.total() })
}

/// The same of plain text.
pub(in crate::experiment) fn text(config: &Config, folder: &Path, known: Option<&Tokenizers>) -> Result<OpenedText> {
    let (manifest, tokenizers) = open(config, folder, known)?;
    let train = Tokens::open(folder, &manifest.shards, tokenizers.target().vocab_size())?;
    if train.len() as u64 != manifest.counts.ids {
        return Err(Error::file(folder, format!("has not as many tokens as its manifest says; {ANEW}")));
    }
    if train.is_empty() {
        return Err(Error::file(folder, format!("has no text; {ANEW}")));
    }
    let Manifest { data_sha256: sha256, lines, characters, .. } = manifest;
    Ok(OpenedText { tokenizers, train, sha256, lines, characters })
}

fn open(config: &Config, folder: &Path, known: Option<&Tokenizers>) -> Result<(Manifest, Tokenizers)> {
    let manifest = Manifest::load(folder)?;
    content::check_data(folder, &manifest, &config.data, Some(config.seed))?;
    content::check(folder, &manifest, &content::of_tokens(config))?;
    let path = folder.join(super::TOKENIZER);
    let tokenizers = Tokenizers::load(&path).ok().filter(|own| own.fingerprint() == manifest.tokenizer);
    let Some(tokenizers) = tokenizers else {
        return Err(Error::file(
            path,
            format!("is not what was written: its SHA-256 is not that of the manifest; {ANEW}"),
        ));
    };
    let is_given = manifest.content.contains_key(GIVEN);
    let fault = match known {
        Some(known) if known.fingerprint() != manifest.tokenizer => {
            "was prepared with another tokenizer than that of the run; `lookback data prepare CONFIG --init-from RUN` makes it \
             anew with that"
        }
        None if is_given => {
            "was prepared with the tokenizer of another run; give that as --init-from, or prepare without it"
        }
        _ => return Ok((manifest, tokenizers)),
    };
    Err(Error::config("data.prepared", format!("{} {fault}", folder.display())))
}

/// What was held out of the training data for a split, where data are prepared; nothing where files are named for the split, or
/// data are not prepared. What does not depend on the `seed` is asked for without one.
pub(in crate::experiment) fn held_out<T: DeserializeOwned>(
    data: &DataConfig,
    seed: Option<u64>,
    split: Split,
) -> Result<Option<Vec<T>>> {
    let folder = data.prepared.as_ref().filter(|_| data.held_out().contains(&split));
    // Where nothing has been prepared yet, or nothing is left of it, the training files have it all.
    let Some(folder) = folder.filter(|folder| Manifest::is_finished(folder)) else { return Ok(None) };
    let manifest = Manifest::load(folder)?;
    content::check_data(folder, &manifest, data, seed)?;
    let path = folder.join(format!("{split}.jsonl"));
    let text = std::fs::read(&path).map_err(Error::io(&path))?;
    let damaged = |what: &str| Error::file(&path, format!("is damaged: {what}; {ANEW}"));
    let sum = manifest.held_out.get(split.name()).map(|held_out| held_out.sha256.as_str());
    if sum != Some(&crate::data::corpus::sha256_hex(&text)) {
        return Err(damaged("its SHA-256 is not that of the manifest"));
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = lines.map(|line| serde_json::from_slice(line).map_err(|error| damaged(&error.to_string())));
    read.collect::<Result<Vec<T>>>().map(Some)
}
