//! The data of an experiment, ready to learn from.

use crate::data::batch::Example;
use crate::data::corpus::{Dropped, LineHasher, for_each_pair};
use crate::data::shards::Examples;
use crate::data::{
    DataConfig, Pair, Sentence, Split, SplitFiles, Tokenizers, add_references, read_pairs, sha256_of_file,
};
use crate::error::{Error, Result};
use crate::experiment::prepared;
use crate::memory::{self, Budget};
use crate::models::{LengthLimit, ModelConfig};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

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

/// What is known of data beside the training pairs.
pub(super) struct Beside {
    pub(super) valid: Vec<Pair>,
    pub(super) valid_sentences: Vec<Sentence>,
    pub(super) sha256: BTreeMap<String, String>,
}

/// Reads or generates training and validation data.
pub fn load(config: &DataConfig, seed: u64) -> Result<Corpus> {
    let mut train = pairs_of(config, Split::Train, seed)?;
    let mut dropped = Dropped::default();
    let mut sha256 = BTreeMap::new();
    if config.task.is_none() {
        (train, dropped) = config.filter.apply(train)?;
        sha256 = sums_of_files(config, Split::Train);
        if is_read_once(config, Split::Train) {
            sha256.insert("train/read".into(), hash_of(&train));
        }
        if config.held_out().len() == 1 {
            // Runs of format 2 held out a share for the named split too; with more pairs they would be other runs.
            sha256.insert("train/pairs".into(), hash_of(&train));
        }
    } else {
        sha256.insert("train".into(), hash_of(&train));
    }
    if train.is_empty() {
        return Err(Error::config("data.train", "has no pair left to learn from; check the files and data.filter"));
    }
    let Beside { valid, valid_sentences, sha256 } = beside(config, seed, sha256, train.len())?;
    Ok(Corpus { train, valid, valid_sentences, dropped, sha256 })
}

/// Reads or generates all but the training data, of which there are `n_train` pairs with the checksums `sha256`.
pub(super) fn beside(
    config: &DataConfig,
    seed: u64,
    mut sha256: BTreeMap<String, String>,
    n_train: usize,
) -> Result<Beside> {
    let mut valid = pairs_of(config, Split::Valid, seed)?;
    let valid_sentences = sentences_from(config, Split::Valid, &valid)?;
    // An empty answer to an empty source is right and says nothing.
    valid.retain(|pair| !pair.is_blank());
    let valid_sentences = valid_sentences.into_iter().filter_map(Sentence::without_blanks).collect();
    if config.task.is_none() {
        [Split::Valid, Split::Test].iter().for_each(|split| sha256.extend(sums_of_files(config, *split)));
        if is_read_once(config, Split::Valid) {
            sha256.insert("valid/read".into(), hash_of(&valid));
        }
    } else {
        sha256.insert("valid".into(), hash_of(&valid));
    }
    if valid.is_empty() {
        let message = match config.hold_out_per_mille {
            Some(n) if config.valid.is_none() => {
                format!(
                    "has no pair: data.hold_out_per_mille = {n} of {n_train} training pairs holds out none; raise it, or hold out others with \
                     data.hold_out_seed = 1: files of `data generate` and `data fetch` have lost what is held out without"
                )
            }
            _ => "has no pair; check the files".into(),
        };
        return Err(Error::config("data.valid", message));
    }
    Ok(Beside { valid, valid_sentences, sha256 })
}

/// The files of a split, each with its role.
fn roles(config: &DataConfig, split: Split) -> Vec<(String, PathBuf)> {
    let files = match split {
        Split::Train => &config.train,
        Split::Valid => &config.valid,
        Split::Test => &config.test,
    };
    let Some(files) = files.as_ref().map(|files| config.resolve(files)) else { return Vec::new() };
    // By role, not by name: files may be renamed, and may not change sides.
    let roles = [("source", files.source), ("target", files.target), ("tsv", files.tsv)];
    let roles = roles.map(|(role, path)| (role.to_string(), path)).into_iter();
    let more = files.more_targets.into_iter().enumerate();
    let roles = roles.chain(more.map(|(i, path)| (format!("more_targets[{i}]"), Some(path))));
    roles.filter_map(|(role, path)| Some((role, path?))).collect()
}

/// The SHA-256 of the files of a split.
fn sums_of_files(config: &DataConfig, split: Split) -> BTreeMap<String, String> {
    let files = roles(config, split).into_iter().filter(|(_, path)| path.is_file());
    // A test file that is not there yet is no reason not to train.
    files.filter_map(|(role, path)| Some((format!("{split}/{role}"), sha256_of_file(path).ok()?))).collect()
}

/// Whether some of a split comes from a pipe, which is empty when it has been read.
fn is_read_once(config: &DataConfig, split: Split) -> bool {
    roles(config, split).iter().any(|(_, path)| !path.is_file())
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
        (_, Some(_)) => {
            if let Some(pairs) = prepared::held_out::<(String, String)>(config, Some(seed), split)? {
                return Ok(pairs.into_iter().map(|(source, target)| Pair { source, target }).collect());
            }
            let mut pairs = Vec::new();
            let mut budget = Budget::new();
            for_each_pair(&config.resolve(train()?), |_, pair| {
                if config.split_of(&pair) == split {
                    let bytes = size_of::<Pair>() + pair.source.len() + pair.target.len();
                    budget.take(bytes).map_err(|fault| Error::config("data.train", fault))?;
                    pairs.push(pair);
                }
                Ok(())
            })?;
            Ok(pairs)
        }
        (None, None) => Err(Error::config(
            format!("data.{split}"),
            "is missing: name its files, as in --set data.test.source=FILE --set data.test.target=FILE or --set data.test.tsv=FILE",
        )),
    }
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
    let lengths = (examples[i].source.len(), examples[i].target.len());
    Err(wrong_answer(model, split, lengths, &pairs[i]))
}

/// The same of training pairs whose text is not at hand.
pub(super) fn check_answers_of(model: &ModelConfig, train: &Examples, tokenizers: &Tokenizers) -> Result<()> {
    let is_wrong = |(source, target): (usize, usize)| model.family().answer_len(source).is_some_and(|n| n != target);
    if model.family().answer_len(1).is_none() {
        return Ok(());
    }
    let Some(i) = (0..train.len()).find(|i| is_wrong(train.lengths_of(*i))) else { return Ok(()) };
    let Example { source, target } = train.get(i)?;
    let pair = Pair::new(tokenizers.source().decode(&source), tokenizers.target().decode(&target));
    Err(wrong_answer(model, Split::Train, (source.len(), target.len()), &pair))
}

fn wrong_answer(model: &ModelConfig, split: Split, (n_source, n_target): (usize, usize), pair: &Pair) -> Error {
    let expected = model.family().answer_len(n_source).unwrap_or_default();
    let message = format!(
        "has a pair with {n_source} source tokens and {n_target} target tokens, where this model answers with {expected}: \"{}\" \
         and \"{}\"; look at model.output and at the tokenizers",
        pair.source, pair.target
    );
    Error::config(format!("data.{split}"), message)
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
    // A seed has no say in which lines are held out, only in the vocabulary of much text.
    match prepared::held_out::<String>(config, None, split)? {
        Some(lines) if !lines.is_empty() => Ok(lines),
        Some(_) => Err(text.nothing_held_out(split, config.hold_out_per_mille)),
        None => text.lines(split, config.dir.as_deref(), config.hold_out_per_mille),
    }
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

/// Pairs that are encoded at once.
const AT_ONCE: usize = 1 << 14;

/// The token ids of training pairs, whose text is given up piece by piece.
pub(super) fn encode_all(pairs: Vec<Pair>, tokenizers: &Tokenizers, model: &ModelConfig) -> Result<Examples> {
    let mut pairs = pairs.into_iter();
    let pieces = std::iter::from_fn(|| {
        let piece: Vec<Pair> = pairs.by_ref().take(AT_ONCE).collect();
        (!piece.is_empty()).then_some(piece)
    });
    let encode = |piece: Vec<Pair>| {
        let examples = encode(&piece, tokenizers);
        check_answers(model, Split::Train, &piece, &examples).map(|()| examples)
    };
    Examples::hold(largest_vocabulary(tokenizers), pieces.map(encode))
}

/// The tokens of the larger vocabulary.
pub(super) fn largest_vocabulary(tokenizers: &Tokenizers) -> usize {
    tokenizers.source().vocab_size().max(tokenizers.target().vocab_size())
}

/// The SHA-256 of pairs that no file holds.
pub(crate) fn hash_of(pairs: &[Pair]) -> String {
    let mut hasher = LineHasher::default();
    pairs.iter().for_each(|pair| hasher.add_pair(pair));
    hasher.finish()
}

/// The SHA-256 of lines of text.
pub(super) fn hash_of_lines(lines: &[String]) -> String {
    let mut hasher = LineHasher::default();
    lines.iter().for_each(|line| hasher.add(line));
    hasher.finish()
}
