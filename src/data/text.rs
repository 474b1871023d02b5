//! Plain text for language models: files as one stream of tokens, and the windows that are cut from it.
//!
//! The end of a line is the token `</s>`, so that a model of text knows where lines end, whatever the tokenizer makes of spaces,
//! and a text that is one sentence a line is learnt like any other; for a tokenizer of bytes it is a byte as any. A stream begins
//! with `</s>`, as if a line had just ended: that is what the first word of a text follows.

use super::batch::{Plan, shuffled};
use super::corpus::for_each_line;
use super::tokenizer::chunks_of;
use super::{EOS, Split, Tokenizer, UNK};
use crate::error::{Error, Result};
use crate::memory::Budget;
use crate::random::{Purpose, Stream};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Stages of [`Purpose::Shuffle`] that windows use; batches of pairs use 0 and 1.
const STAGE_OFFSET: u64 = 2;
const STAGE_ORDER: u64 = 3;

/// `[data.text]`: files of plain text, which a decoder-only model without a source learns to continue, and an encoder-only one
/// with `output = "masked-words"` to fill in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TextConfig {
    /// Files to learn from, read one after the other; plain or packed by gzip or zstd, UTF-8.
    pub train: Vec<PathBuf>,
    /// Files that training is watched with; without them, `data.hold_out_per_mille` holds lines out.
    pub valid: Vec<PathBuf>,
    /// Files for the end; as with `valid`.
    pub test: Vec<PathBuf>,
    /// Tokens of one piece of text that is learnt from: as far as the model can look back.
    pub context: usize,
    /// The part of the tokens that is hidden, for models of masked words (Devlin 2019, 3.1).
    pub masked_rate: f64,
}

/// [`TextConfig::masked_rate`].
const MASKED_RATE: f64 = 0.15;

impl Default for TextConfig {
    fn default() -> Self {
        Self { train: Vec::new(), valid: Vec::new(), test: Vec::new(), context: 128, masked_rate: MASKED_RATE }
    }
}

impl TextConfig {
    /// The files of a split.
    pub fn files(&self, split: Split) -> &[PathBuf] {
        match split {
            Split::Train => &self.train,
            Split::Valid => &self.valid,
            Split::Test => &self.test,
        }
    }

    /// Checks what can be checked without the files.
    ///
    /// # Errors
    /// Names the key and the rule.
    pub fn validate(&self, hold_out_per_mille: Option<u64>) -> Result<()> {
        if self.context < 2 {
            let message = format!("must be at least 2, got {}", self.context);
            return Err(Error::config("data.text.context", message));
        }
        if !(self.masked_rate > 0.0 && self.masked_rate < 1.0) {
            let message = format!("must lie between 0 and 1, both left out, got {}", self.masked_rate);
            return Err(Error::config("data.text.masked_rate", message));
        }
        match hold_out_per_mille {
            None if self.valid.is_empty() && !self.train.is_empty() => Err(Error::config(
                "data.text.valid",
                "is missing: name its files, or set data.hold_out_per_mille to hold out the last lines of the training text",
            )),
            Some(_) if !self.valid.is_empty() && !self.test.is_empty() => Err(Error::config(
                "data.hold_out_per_mille",
                "has nothing to hold out for: files are named for both data.text.valid and data.text.test; leave it out",
            )),
            Some(n) if n == 0 || n > 400 => {
                Err(Error::config("data.hold_out_per_mille", format!("must be between 1 and 400, got {n}")))
            }
            _ => Ok(()),
        }
    }

    /// The lines of a split. Lines are held out from the end of the training files: the last for test, those before them for
    /// validation, so that nothing of a held-out passage is learnt from.
    ///
    /// # Errors
    /// If a file cannot be read, or there is nothing in it.
    pub fn lines(&self, split: Split, dir: Option<&Path>, hold_out_per_mille: Option<u64>) -> Result<Vec<String>> {
        let own = self.files(split);
        if split != Split::Train && !own.is_empty() {
            return read(own, dir);
        }
        if self.train.is_empty() {
            let (key, what) = match split {
                Split::Train => ("train".to_string(), "learn from"),
                other => (other.to_string(), "measure on"),
            };
            let message = format!("names no file to {what}: --set 'data.text.{key}=[\"FILE\"]'");
            return Err(Error::config(format!("data.text.{key}"), message));
        }
        let mut lines = read(&self.train, dir)?;
        let n_held_out = lines.len() * hold_out_per_mille.unwrap_or(0) as usize / 1000;
        let n_of = |split: Split| if self.files(split).is_empty() { n_held_out } else { 0 };
        let end_of_valid = lines.len() - n_of(Split::Test);
        let end_of_train = end_of_valid - n_of(Split::Valid);
        let kept = match split {
            Split::Train => lines.drain(..end_of_train).collect(),
            Split::Valid => lines.drain(end_of_train..end_of_valid).collect(),
            Split::Test => lines.drain(end_of_valid..).collect::<Vec<_>>(),
        };
        if kept.is_empty() { Err(self.nothing_held_out(split, hold_out_per_mille)) } else { Ok(kept) }
    }

    /// The error of a split that has no line.
    pub(crate) fn nothing_held_out(&self, split: Split, hold_out_per_mille: Option<u64>) -> Error {
        let message = match hold_out_per_mille {
            Some(n) if split != Split::Train => {
                format!("has no line: data.hold_out_per_mille = {n} of the training text holds out none; raise it")
            }
            _ => "is missing: name its files, as in --set data.text.test=[\"FILE\"]".to_string(),
        };
        Error::config(format!("data.text.{split}"), message)
    }
}

/// The lines of some files, one file after the other, without their ends.
fn read(files: &[PathBuf], dir: Option<&Path>) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut budget = Budget::new();
    for file in files {
        let path: PathBuf = dir.into_iter().chain([file.as_path()]).collect();
        let before = lines.len();
        for_each_line(&path, |number, line| {
            budget.take(size_of::<String>() + line.len()).map_err(|fault| Error::line(&path, number, fault))?;
            lines.push(line.to_owned());
            Ok(())
        })?;
        if lines[before..].iter().all(|line: &String| line.trim().is_empty()) {
            return Err(Error::file(path, "has no text"));
        }
    }
    Ok(lines)
}

/// A text as token ids, and what it was in characters and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenStream {
    /// `</s>`, then every line with its end behind it.
    pub ids: Vec<u32>,
    /// Characters, ends of lines included.
    pub n_characters: usize,
    /// Bytes of UTF-8, ends of lines included.
    pub n_bytes: usize,
}

impl TokenStream {
    /// The tokens of some lines.
    pub fn new<S: AsRef<str> + Sync>(lines: &[S], tokenizer: &Tokenizer) -> Self {
        let ids: Vec<Vec<u32>> = if tokenizer.has_lines() {
            chunks_of(lines).par_iter().map(|chunk| tokenizer.encode(chunk)).collect()
        } else {
            let of_line = |line: &S| tokenizer.encode(line.as_ref()).into_iter().chain([EOS]).collect();
            lines.par_iter().map(of_line).collect()
        };
        Self {
            ids: std::iter::once(EOS).chain(ids.into_iter().flatten()).collect(),
            n_characters: lines.iter().map(|line| line.as_ref().chars().count() + 1).sum(),
            n_bytes: lines.iter().map(|line| line.as_ref().len() + 1).sum(),
        }
    }

    /// Tokens that are predicted: all but the first.
    pub fn n_tokens(&self) -> usize {
        self.ids.len() - 1
    }

    /// Tokens that the vocabulary does not hold.
    pub fn n_unknown(&self) -> usize {
        self.ids.iter().filter(|id| **id == UNK).count()
    }
}

/// The tokens of the beginning of a text, whose last line is not at its end.
pub fn prompt_ids(prompt: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    if tokenizer.has_lines() && !prompt.is_empty() {
        return tokenizer.encode(prompt);
    }
    let lines: Vec<&str> = prompt.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    let mut ids = TokenStream::new(&lines, tokenizer).ids;
    ids.pop();
    ids
}

/// The tokens of a line with its end, as a text that begins there: [`prompt_ids`] and what ends a line.
pub fn line_ids(line: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    prompt_ids(&format!("{line}\n"), tokenizer)
}

/// The tokens with which a text goes on after `beginning`: those of both together, as far as the cut between them is one between
/// tokens; else those of `continuation` alone.
pub fn continuation_ids(beginning: &str, continuation: &str, tokenizer: &Tokenizer) -> Vec<u32> {
    let whole = prompt_ids(&format!("{beginning}{continuation}"), tokenizer);
    match whole.strip_prefix(&prompt_ids(beginning, tokenizer)[..]) {
        Some(rest) => rest.to_vec(),
        None if tokenizer.has_lines() => tokenizer.encode(continuation),
        None => prompt_ids(continuation, tokenizer).split_off(1),
    }
}

/// The text of token ids: lines end at `</s>`.
pub fn text_of(ids: &[u32], tokenizer: &Tokenizer) -> String {
    let lines: Vec<String> = ids.split(|id| *id == EOS).map(|line| tokenizer.decode(line)).collect();
    lines.join("\n")
}

/// The windows of an epoch: pieces of `context + 1` tokens, of which each but the last is read and each but the first is
/// predicted. Neighbours share that one token, so that an epoch predicts every token once, but for an incomplete piece at
/// either end; where the first begins changes from epoch to epoch, so that the cuts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    context: usize,
    first: usize,
    n: usize,
}

impl Windows {
    /// Those of an epoch of training.
    pub fn of_epoch(n_ids: usize, context: usize, seed: u64, epoch: u64) -> Self {
        let whole = n_ids.saturating_sub(1);
        let most = context.min((whole + 1).saturating_sub(context)).max(1);
        let first = Stream::new(seed, Purpose::Shuffle, &[epoch, STAGE_OFFSET]).bits(0) % most as u64;
        let first = first as usize;
        Self { context, first, n: whole.saturating_sub(first) / context }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The place of a window in the stream.
    pub fn range(&self, window: usize) -> std::ops::Range<usize> {
        let start = self.first + window * self.context;
        start..start + self.context + 1
    }

    /// The batches of an epoch: windows in an order that depends on (seed, epoch) alone, at most `max_tokens` in a batch.
    pub fn plan(&self, max_tokens: usize, seed: u64, epoch: u64) -> Plan {
        Plan::of_equal(shuffled(self.n, seed, epoch, STAGE_ORDER), (max_tokens / self.context).max(1))
    }
}

/// Windows over a text that is scored: `counted` says from which of a window's targets on they count, so that every token of
/// the text counts once, and but for the beginning has at least half a context before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoredWindow {
    /// The place in the stream, the token before the first target included.
    pub range: std::ops::Range<usize>,
    /// The first target that counts.
    pub counted: usize,
}

/// The windows of a stream of `n_ids` tokens, half a context apart.
pub fn scored_windows(n_ids: usize, context: usize) -> Vec<ScoredWindow> {
    let n_targets = n_ids.saturating_sub(1);
    let step = (context / 2).max(1);
    let mut windows = Vec::new();
    let (mut start, mut done) = (0, 0);
    while done < n_targets {
        let end = (start + context).min(n_targets);
        windows.push(ScoredWindow { range: start..end + 1, counted: done - start });
        done = end;
        start += step;
    }
    windows
}
