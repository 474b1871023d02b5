//! The data of an experiment, ready to learn from.

use crate::data::batch::Example;
use crate::data::corpus::Dropped;
use crate::data::{
    DataConfig, Pair, Sentence, Split, SplitFiles, Tokenizers, add_references, read_pairs, sha256_of_file,
};
use crate::error::{Error, Result};
use crate::memory;
use crate::models::{LengthLimit, ModelConfig};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Sentence pairs of the three splits.
pub struct Corpus {
    /// What is learnt from.
    pub train: Vec<Pair>,
    /// What training is watched with.
    pub valid: Vec<Pair>,
    /// The same with all references of each source, for scores.
    pub valid_sentences: Vec<Sentence>,
    /// Training pairs that the filter left out.
    pub dropped: Dropped,
    /// The SHA-256 of each file, or of the generated pairs.
    pub sha256: BTreeMap<String, String>,
}

/// Reads or generates training and validation data.
pub fn load(config: &DataConfig, seed: u64) -> Result<Corpus> {
    let mut sha256 = BTreeMap::new();
    let mut train = pairs_of(config, Split::Train, seed)?;
    let valid = pairs_of(config, Split::Valid, seed)?;
    let valid_sentences = sentences_from(config, Split::Valid, &valid)?;
    let mut dropped = Dropped::default();
    if config.task.is_none() {
        (train, dropped) = config.filter.apply(train)?;
        for (split, files) in [("train", &config.train), ("valid", &config.valid), ("test", &config.test)] {
            let Some(files) = files.as_ref().map(|files| config.resolve(files)) else { continue };
            // By role, not by name: files may be renamed, and may not change sides.
            for (role, path) in [("source", &files.source), ("target", &files.target), ("tsv", &files.tsv)] {
                // A test file that is not there yet is no reason not to train.
                if let Some(Ok(hash)) = path.as_ref().map(sha256_of_file) {
                    sha256.insert(format!("{split}/{role}"), hash);
                }
            }
        }
        if config.hold_out_per_mille.is_some() && held_out(config).len() == 1 {
            // Runs of format 2 held out a share for the named split too; with more pairs they would be other runs.
            sha256.insert("train/pairs".into(), hash_of(&train));
        }
    } else {
        sha256.insert("train".into(), hash_of(&train));
        sha256.insert("valid".into(), hash_of(&valid));
    }
    if train.is_empty() {
        return Err(Error::config("data.train", "has no pair left to learn from; check the files and data.filter"));
    }
    if valid.is_empty() {
        let message = match config.hold_out_per_mille {
            Some(n) if config.valid.is_none() => format!(
                "has no pair: data.hold_out_per_mille = {n} of {} training pairs holds out none; raise it",
                train.len()
            ),
            _ => "has no pair; check the files".into(),
        };
        return Err(Error::config("data.valid", message));
    }
    Ok(Corpus { train, valid, valid_sentences, dropped, sha256 })
}

/// The pairs of one split, unfiltered. Where there is a task, validation and test files that are named come before it.
///
/// # Errors
/// If the config names no data for that split.
pub fn pairs_of(config: &DataConfig, split: Split, seed: u64) -> Result<Vec<Pair>> {
    let (files, n_generated): (Option<&SplitFiles>, usize) = match split {
        Split::Train => (config.train.as_ref(), config.n_train),
        Split::Valid => (config.valid.as_ref(), config.n_valid),
        Split::Test => (config.test.as_ref(), config.n_test),
    };
    if let (Some(task), None) = (&config.task, files) {
        memory::check_pairs(&format!("data.n_{split}"), n_generated)?;
        return task.generate(split, n_generated, seed);
    }
    let train = || config.train.as_ref().ok_or_else(|| Error::config("data.train", "is missing"));
    match (files, config.hold_out_per_mille) {
        (Some(files), None) => read_pairs(&config.resolve(files)),
        (Some(files), Some(_)) if split != Split::Train => read_pairs(&config.resolve(files)),
        (_, Some(per_mille)) => {
            let pairs = read_pairs(&config.resolve(train()?))?;
            let held_out = held_out(config);
            let split_of = |pair: &Pair| {
                let split = Split::of_source(&pair.source, per_mille);
                // What nothing is held out for stays in training.
                if held_out.contains(&split) { split } else { Split::Train }
            };
            Ok(pairs.into_iter().filter(|pair| split_of(pair) == split).collect())
        }
        (None, None) => Err(Error::config(
            format!("data.{split}"),
            "is missing: name its files, as in --set data.test.source=FILE --set data.test.target=FILE",
        )),
    }
}

/// The splits that are taken out of the training files, because no files are named for them.
fn held_out(config: &DataConfig) -> Vec<Split> {
    let named = [(Split::Valid, config.valid.is_some()), (Split::Test, config.test.is_some())];
    named.into_iter().filter(|(_, is_named)| !is_named).map(|(split, _)| split).collect()
}

/// The sentences of a split with all their references, blank ones too.
///
/// # Errors
/// As [`pairs_of`].
pub fn sentences_of(config: &DataConfig, split: Split, seed: u64) -> Result<Vec<Sentence>> {
    sentences_from(config, split, &pairs_of(config, split, seed)?)
}

/// The sentences of `pairs`, which [`pairs_of`] gave for `split`, with all their references.
///
/// # Errors
/// If further reference files cannot be read, or have other numbers of lines.
pub fn sentences_from(config: &DataConfig, split: Split, pairs: &[Pair]) -> Result<Vec<Sentence>> {
    let files = match split {
        Split::Train => None,
        Split::Valid => config.valid.as_ref(),
        Split::Test => config.test.as_ref(),
    };
    let mut sentences: Vec<Sentence> = pairs.iter().cloned().map(Sentence::from).collect();
    if let Some(files) = files {
        add_references(&mut sentences, &config.resolve(files))?;
    }
    Ok(if config.several_references { Sentence::merge_by_source(sentences) } else { sentences })
}

/// Refuses answers that are not as long as an encoder-only model writes them: a tag for each token, or one class.
///
/// # Errors
/// Names the split and shows the first such pair.
pub fn check_answers(model: &ModelConfig, split: Split, pairs: &[Pair], examples: &[Example]) -> Result<()> {
    let is_wrong =
        |example: &Example| model.family().answer_len(example.source.len()).is_some_and(|n| n != example.target.len());
    let Some(i) = examples.iter().position(is_wrong) else { return Ok(()) };
    let (n_source, n_target) = (examples[i].source.len(), examples[i].target.len());
    let expected = model.family().answer_len(n_source).unwrap_or_default();
    let message = format!(
        "has a pair with {n_source} source tokens and {n_target} target tokens, where this model answers with {expected}: \"{}\" \
         and \"{}\"; look at model.output and at the tokenizers",
        pairs[i].source, pairs[i].target
    );
    Err(Error::config(format!("data.{split}"), message))
}

/// The lines of a split of plain text.
///
/// # Errors
/// If the config names no files for that split, or they cannot be read.
pub fn lines_of(config: &DataConfig, split: Split) -> Result<Vec<String>> {
    let text = config
        .text
        .as_ref()
        .ok_or_else(|| Error::config("data.text", "is missing: this config names no plain text"))?;
    text.lines(split, config.dir.as_deref(), config.hold_out_per_mille)
}

/// Refuses a context of more tokens than the model can take, `n_more` besides.
///
/// # Errors
/// Names the key and both numbers.
pub fn check_context(context: usize, n_more: usize, limit: Option<LengthLimit>) -> Result<()> {
    match limit {
        Some(limit) if limit.len < context + n_more => {
            let besides = if n_more > 0 { " less one for the end symbol" } else { "" };
            let message =
                format!("is {context}, more than {} = {}{besides}; lower it, or raise that", limit.key, limit.len);
            Err(Error::config("data.text.context", message))
        }
        _ => Ok(()),
    }
}

/// Token ids of `pairs`.
pub fn encode(pairs: &[Pair], tokenizers: &Tokenizers) -> Vec<Example> {
    pairs
        .par_iter()
        .map(|pair| Example {
            source: tokenizers.source().encode(&pair.source),
            target: tokenizers.target().encode(&pair.target),
        })
        .collect()
}

/// The SHA-256 of pairs that no file holds.
pub(crate) fn hash_of(pairs: &[Pair]) -> String {
    hash_of_lines(pairs.iter().map(|pair| format!("{}\t{}", pair.source, pair.target)))
}

/// The SHA-256 of lines of text.
pub(super) fn hash_of_lines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> String {
    let mut hasher = Sha256::new();
    for line in lines {
        hasher.update(line.as_ref());
        hasher.update("\n");
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
