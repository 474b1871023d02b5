//! The training data of a config, one pair or line after the other.

use crate::data::corpus::{At, for_each_pair};
use crate::data::{DataConfig, Lines, Pair, Split, TaskConfig, TextConfig};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::path::PathBuf;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparing {
    /// What is being done.
    pub what: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is: bytes, or generated pairs.
    pub total: u64,
    /// Whether those are bytes.
    pub is_bytes: bool,
}

/// Pairs that are generated at once.
const AT_ONCE: usize = 1 << 14;

/// What it takes to read all, in the unit of [`At::bytes`]: bytes of files, or generated pairs.
pub(super) fn total(data: &DataConfig, files: &[(String, PathBuf)]) -> u64 {
    match &data.task {
        Some(_) => data.n_train as u64,
        None => files.iter().filter_map(|(_, path)| Some(path.metadata().ok()?.len())).sum(),
    }
}

/// Calls `take` with every pair of the training files, or of the task, and the split that it belongs to.
pub(super) fn pairs(data: &DataConfig, seed: u64, mut take: impl FnMut(At, Split, Pair) -> Result<()>) -> Result<()> {
    match (&data.task, &data.train) {
        (Some(task), _) => generated(task, data.n_train, seed, |at, pair| take(at, Split::Train, pair)),
        (None, Some(files)) => for_each_pair(&data.resolve(files), |at, pair| take(at, data.split_of(&pair), pair)),
        (None, None) => Err(Error::config("data.train", "is missing")),
    }
}

fn generated(task: &TaskConfig, n: usize, seed: u64, mut take: impl FnMut(At, Pair) -> Result<()>) -> Result<()> {
    for start in (0..n).step_by(AT_ONCE) {
        let numbers = start..n.min(start + AT_ONCE);
        let pairs = numbers.into_par_iter().map(|i| task.training_pair(i, n, seed)).collect::<Result<Vec<Pair>>>()?;
        for (i, pair) in (start..).zip(pairs) {
            take(At { line: i + 1, bytes: i as u64 }, pair)?;
        }
    }
    Ok(())
}

/// Calls `take` with every line of the training files of plain text. Lines are counted over all files.
pub(super) fn lines(data: &DataConfig, text: &TextConfig, mut take: impl FnMut(At, &str) -> Result<()>) -> Result<()> {
    let mut at = At::default();
    let mut before = 0;
    for file in &text.train {
        let path: PathBuf = data.dir.iter().chain([file]).collect();
        let mut lines = Lines::open(&path)?;
        let mut is_blank = true;
        loop {
            at.bytes = before + lines.bytes_read();
            let Some((_, line)) = lines.next_line()? else { break };
            is_blank &= line.trim().is_empty();
            at.line += 1;
            take(at, line)?;
        }
        if is_blank {
            return Err(Error::file(path, "has no text"));
        }
        before += lines.bytes_read();
    }
    Ok(())
}
