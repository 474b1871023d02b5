//! Reading text: sentence pairs from parallel files or a TSV, and plain lines.
//!
//! Files are UTF-8, plain or gzip (told by content, not by name), one sentence a line. Whitespace around a sentence,
//! carriage returns included, and a byte order mark are dropped. Whatever else is wrong is an error with file and line.

mod filter;
mod lines;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use filter::{Dropped, LengthFilter};
pub(super) use lines::sha256_hex;
pub use lines::{MAX_LINE_BYTES, for_each_line, read_lines, sha256_of_file};

use super::{Pair, Sentence};
use crate::error::{Error, Result};
use crate::memory::Budget;

/// Where the sentence pairs of one split are: either `source` and `target`, or `tsv`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SplitFiles {
    /// File of source sentences, one a line, plain or gzip. Needs `target`.
    pub source: Option<PathBuf>,
    /// File of target sentences; line n translates line n of `source`.
    pub target: Option<PathBuf>,
    /// File of lines `source TAB target`, plain or gzip, instead of `source` and `target`.
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
        let problem = match (&self.source, &self.target, &self.tsv) {
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
/// A file that cannot be read or is not what it should be, with the line where there is one; parallel files of unequal
/// length, with both counts; a corpus without pairs.
pub fn read_pairs(files: &SplitFiles) -> Result<Vec<Pair>> {
    files.validate("data")?;
    let mut pairs = match (&files.tsv, &files.source, &files.target) {
        (Some(tsv), _, _) => read_tsv(tsv, files.ignore_extra_columns)?,
        (None, Some(source), Some(target)) => read_parallel(source, target)?,
        _ => Vec::new(),
    };
    if !pairs.iter().any(|pair| !pair.source.is_empty() && !pair.target.is_empty()) {
        let path = files.paths().first().map_or_else(PathBuf::new, |path| path.to_path_buf());
        return Err(Error::file(path, "the corpus is empty: there is no pair with text on both sides"));
    }
    if files.swap {
        for pair in &mut pairs {
            std::mem::swap(&mut pair.source, &mut pair.target);
        }
    }
    Ok(pairs)
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

fn read_parallel(source: &Path, target: &Path) -> Result<Vec<Pair>> {
    let (sources, targets) = (read_lines(source)?, read_lines(target)?);
    if sources.len() != targets.len() {
        let message = format!(
            "{} lines, but {} has {}; line n of one has to translate line n of the other",
            sources.len(),
            target.display(),
            targets.len()
        );
        return Err(Error::file(source, message));
    }
    Ok(sources.into_iter().zip(targets).map(|(source, target)| Pair { source, target }).collect())
}

fn read_tsv(path: &Path, ignore_extra_columns: bool) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    let mut budget = Budget::new();
    lines::for_each_line(path, |number, line| {
        budget.take(size_of::<Pair>() + line.len()).map_err(|fault| Error::line(path, number, fault))?;
        // Trimming the whole line first would swallow the TAB beside an empty column.
        let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
        match columns[..] {
            [""] => pairs.push(Pair::new("", "")),
            [source, target] => pairs.push(Pair::new(source, target)),
            [source, target, ..] if ignore_extra_columns => pairs.push(Pair::new(source, target)),
            [_] => return Err(Error::line(path, number, "1 column instead of 2; a line is `source TAB target`")),
            _ => {
                let message = format!(
                    "{} columns instead of 2; a line is `source TAB target` \
                     (ignore_extra_columns = true ignores those after the second)",
                    columns.len()
                );
                return Err(Error::line(path, number, message));
            }
        }
        Ok(())
    })?;
    Ok(pairs)
}
