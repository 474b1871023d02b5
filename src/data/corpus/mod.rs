//! Reading text: sentence pairs from parallel files or a TSV, and plain lines.
//!
//! Files are UTF-8, plain or compressed with gzip or zstd (detected by content, not by name), one sentence a line. Whitespace around a sentence,
//! carriage returns included, and a byte order mark are dropped. Whatever else is wrong is an error with file and line.

mod filter;
mod lines;
mod packed;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use filter::nothing_left;
pub use filter::{Dropped, LengthFilter};
pub(crate) use lines::{LineHasher, sha256_hex};
pub use lines::{Lines, MAX_LINE_BYTES, for_each_line, read_lines, sha256_of_file, sha256_of_file_with};

use super::{Pair, Sentence};
use crate::error::{Error, Result};
use crate::memory::Budget;

/// Where the sentence pairs of one split are: either `source` and `target`, or `tsv`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitFiles {
    /// File of source sentences, one a line, plain or packed by gzip or zstd. Needs `target`.
    pub source: Option<PathBuf>,
    /// File of target sentences; line n translates line n of `source`.
    pub target: Option<PathBuf>,
    /// File of lines `source TAB target`, plain or packed by gzip or zstd, instead of `source` and `target`.
    pub tsv: Option<PathBuf>,
    /// Further files of target sentences that are as right as those of `target`; for validation and test data only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<PathBuf>,
    /// Read the TSV's columns, or the two files, the other way round: target first.
    pub swap: bool,
    /// Ignore columns of the TSV after the second, such as Tatoeba's attributions, instead of refusing the line.
    pub ignore_extra_columns: bool,
}

impl SplitFiles {
    /// Two parallel files.
    pub fn parallel(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self { source: Some(source.into()), target: Some(target.into()), ..Self::default() }
    }

    /// One TSV file.
    pub fn tsv(path: impl Into<PathBuf>) -> Self {
        Self { tsv: Some(path.into()), ..Self::default() }
    }

    /// Checks that one complete way of naming files is used; `key` is the section for messages, such as `data.train`.
    ///
    /// # Errors
    ///
    /// Says which field is missing or too many.
    pub fn validate(&self, key: &str) -> Result<()> {
        let named = [&self.source, &self.target, &self.tsv].into_iter().flatten().chain(&self.more_targets);
        let has_nameless = named.into_iter().any(|path| path.as_os_str().is_empty());
        let problem = match (&self.source, &self.target, &self.tsv) {
            _ if has_nameless => "a file has an empty name; give its path, or leave the key out",
            (Some(_), Some(_), None) if self.ignore_extra_columns => {
                "ignore_extra_columns is for a tsv; parallel files have no columns"
            }
            (Some(_), Some(_), None) if self.swap && !self.more_targets.is_empty() => {
                "swap and more_targets do not go together: there would be several sources"
            }
            (None, None, None) => "no file; give source and target (two parallel files), or tsv",
            (None, None, Some(_)) if !self.more_targets.is_empty() => {
                "more_targets is for parallel files; in a tsv, write further targets on lines of their own and set \
                 data.several_references"
            }
            (Some(_), Some(_), None) | (None, None, Some(_)) => return Ok(()),
            (_, _, Some(_)) => "give either source and target, or tsv, not both",
            (Some(_), None, None) => "source is given but target is missing; parallel files come in two",
            (None, Some(_), None) => "target is given but source is missing; parallel files come in two",
        };
        Err(Error::config(key, problem))
    }

    /// The files that are read, for checksums.
    pub fn paths(&self) -> Vec<&Path> {
        let files = [&self.source, &self.target, &self.tsv].into_iter().flatten();
        files.chain(&self.more_targets).map(PathBuf::as_path).collect()
    }
}

/// Reads the pairs of a split, in order; blank ones too.
///
/// # Errors
///
/// As [`for_each_pair`]; also where they do not fit into memory.
pub fn read_pairs(files: &SplitFiles) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    let mut budget = Budget::new();
    let path = files.paths().first().map_or_else(PathBuf::new, |path| path.to_path_buf());
    for_each_pair(files, |at, pair| {
        let bytes = size_of::<Pair>() + pair.source.len() + pair.target.len();
        budget.take(bytes).map_err(|fault| Error::line(&path, at.line, fault))?;
        pairs.push(pair);
        Ok(())
    })?;
    Ok(pairs)
}

/// Where reading stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct At {
    /// The line, counted from 1.
    pub line: usize,
    /// Bytes of all files, as stored, that have been read so far.
    pub bytes: u64,
}

/// Calls `take` with every pair of a split, in order, as soon as it is there; with blank ones too.
///
/// # Errors
///
/// A file that cannot be read or is not what it should be, with the line where there is one; parallel files of unequal
/// length, with both counts; a corpus without pairs; and what `take` returns.
pub fn for_each_pair(files: &SplitFiles, mut take: impl FnMut(At, Pair) -> Result<()>) -> Result<()> {
    files.validate("data")?;
    let mut is_empty = true;
    let swap = files.swap;
    let take = |at: At, source: &str, target: &str| {
        is_empty &= source.is_empty() || target.is_empty();
        take(at, if swap { Pair::new(target, source) } else { Pair::new(source, target) })
    };
    match (&files.tsv, &files.source, &files.target) {
        (Some(tsv), _, _) => read_tsv(tsv, files.ignore_extra_columns, take)?,
        (None, Some(source), Some(target)) => read_parallel(source, target, take)?,
        _ => {}
    }
    if is_empty {
        let path = files.paths().first().map_or_else(PathBuf::new, |path| path.to_path_buf());
        return Err(Error::file(path, "the corpus is empty: there is no pair with text on both sides"));
    }
    Ok(())
}

/// Adds what the further reference files of a split say of its sentences, line by line.
///
/// # Errors
///
/// A file that cannot be read, or does not have a line for each sentence.
pub fn add_references(sentences: &mut [Sentence], files: &SplitFiles) -> Result<()> {
    for path in &files.more_targets {
        let targets = read_lines(path)?;
        if targets.len() != sentences.len() {
            let message = format!(
                "{} lines, but the other files of the split have {}; line n of each belongs to the same sentence",
                targets.len(),
                sentences.len()
            );
            return Err(Error::file(path, message));
        }
        for (sentence, target) in sentences.iter_mut().zip(targets) {
            sentence.references.push(target);
        }
    }
    Ok(())
}

fn read_parallel(source: &Path, target: &Path, mut take: impl FnMut(At, &str, &str) -> Result<()>) -> Result<()> {
    let (mut sources, mut targets) = (Lines::open(source)?, Lines::open(target)?);
    for line in 1.. {
        let bytes = sources.bytes_read() + targets.bytes_read();
        let (left, right) = (sources.next_line()?, targets.next_line()?);
        match (left, right) {
            (Some((_, left)), Some((_, right))) => take(At { line, bytes }, left.trim(), right.trim())?,
            (None, None) => break,
            (left, right) => {
                let (has_source, has_target) = (left.is_some(), right.is_some());
                let (n_sources, n_targets) =
                    (rest(&mut sources, line - 1, has_source)?, rest(&mut targets, line - 1, has_target)?);
                let message = format!(
                    "{n_sources} lines, but {} has {n_targets}; line n of one has to translate line n of the other",
                    target.display()
                );
                return Err(Error::file(source, message));
            }
        }
    }
    Ok(())
}

/// The lines of a file, of which `n` and, if there was one more, that have been read.
fn rest(lines: &mut Lines, n: usize, had_more: bool) -> Result<usize> {
    if !had_more {
        return Ok(n);
    }
    let mut n = n + 1;
    while lines.next_line()?.is_some() {
        n += 1;
    }
    Ok(n)
}

fn read_tsv(path: &Path, ignore_extra_columns: bool, mut take: impl FnMut(At, &str, &str) -> Result<()>) -> Result<()> {
    let mut lines = Lines::open(path)?;
    loop {
        let bytes = lines.bytes_read();
        let Some((line, text)) = lines.next_line()? else { return Ok(()) };
        // Trimming the whole line first would swallow the TAB beside an empty column.
        let mut columns = text.split('\t').map(str::trim);
        let (first, second) = (columns.next().unwrap_or(""), columns.next());
        let n = 2 + columns.count();
        match (first, second) {
            ("", None) => take(At { line, bytes }, "", "")?,
            (_, None) => return Err(Error::line(path, line, "1 column instead of 2; a line is `source TAB target`")),
            (source, Some(target)) if n == 2 || ignore_extra_columns => take(At { line, bytes }, source, target)?,
            _ => {
                let message = format!(
                    "{n} columns instead of 2; a line is `source TAB target` \
                     (ignore_extra_columns = true ignores those after the second)"
                );
                return Err(Error::line(path, line, message));
            }
        }
    }
}
