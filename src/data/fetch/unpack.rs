//! From fetched files to readable ones: one file out of a zip archive, and the TSVs of data sets with another format.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::DeflateDecoder;

use super::another;
use super::described::{Dataset, Derived};
use crate::data::{Pair, Split, SplitFiles, read_lines, read_pairs};
use crate::error::{Error, Result};
use crate::files;

/// The contents of the file called `name` (in whatever folder) in a zip archive; `None` when the archive is damaged,
/// has no such file, or the file is longer than `bytes`.
///
/// Reads what such data sets use: one part, no encryption, below 4 GiB, stored or deflated. The caller checks the
/// contents.
pub(super) fn zip_member(archive: &[u8], name: &str, bytes: u64) -> Option<Vec<u8>> {
    const END: &[u8] = b"PK\x05\x06";
    let end = archive.windows(END.len()).rposition(|window| window == END)?;
    let mut entry = archive.get(number(archive, end + 16, 4)?..)?;
    while entry.starts_with(b"PK\x01\x02") {
        let name_len = number(entry, 28, 2)?;
        let entry_len = 46 + name_len + number(entry, 30, 2)? + number(entry, 32, 2)?;
        let path = str::from_utf8(entry.get(46..46 + name_len)?).ok()?;
        if path.rsplit('/').next() == Some(name) {
            let local = archive.get(number(entry, 42, 4)?..)?;
            let data = local.get(30 + number(local, 26, 2)? + number(local, 28, 2)?..)?;
            let packed = data.get(..number(entry, 20, 4)?)?;
            return match number(entry, 10, 2)? {
                0 => Some(packed.to_vec()),
                8 => inflate(packed, bytes),
                _ => None,
            };
        }
        entry = entry.get(entry_len..)?;
    }
    None
}

/// The little-endian number of `len` bytes at `start`.
fn number(bytes: &[u8], start: usize, len: usize) -> Option<usize> {
    Some(bytes.get(start..start + len)?.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte)))
}

fn inflate(packed: &[u8], bytes: u64) -> Option<Vec<u8>> {
    let mut contents = Vec::new();
    DeflateDecoder::new(packed).take(bytes + 1).read_to_end(&mut contents).ok()?;
    (contents.len() as u64 <= bytes).then_some(contents)
}

/// Writes what a data set needs to be read as a corpus, and says which files that is. Files with other content are replaced only
/// with `replaces`, and none is written where one may not be.
pub(super) fn derive(dataset: &Dataset, dir: &Path, replaces: bool) -> Result<Vec<PathBuf>> {
    let splits = |pairs: &[Pair], per_mille| Split::ALL.map(|split| of_split(pairs, split, per_mille, dir)).to_vec();
    let written = match dataset.derived {
        Derived::Nothing => Vec::new(),
        Derived::ScanTsv => {
            let texts = dataset.files.iter().map(|file| dir.join(file.name));
            let texts = texts.filter(|path| path.extension().is_some_and(|e| e == "txt"));
            texts.map(|path| scan_tsv(&path)).collect::<Result<_>>()?
        }
        Derived::Splits { from, per_mille } => splits(&read_pairs(&SplitFiles::tsv(dir.join(from)))?, per_mille),
        Derived::Pronunciations { from, per_mille } => splits(&pronunciations(&dir.join(from))?, per_mille),
    };
    let is_another = |(path, text): &&(PathBuf, String)| {
        path.exists() && std::fs::read(path).map_or(true, |there| there != text.as_bytes())
    };
    if let Some((path, _)) = written.iter().find(is_another).filter(|_| !replaces) {
        return Err(another(path));
    }
    written.into_iter().map(|(path, text)| files::replace(&path, text.as_bytes()).map(|()| path)).collect()
}

/// From `IN: jump twice OUT: I_JUMP I_JUMP` to `jump twice TAB I_JUMP I_JUMP`.
fn scan_tsv(path: &Path) -> Result<(PathBuf, String)> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(read_lines(path)?) {
        let sides = line.strip_prefix("IN: ").and_then(|rest| rest.split_once(" OUT: "));
        let (source, target) = sides.ok_or_else(|| Error::line(path, number, "not `IN: command OUT: actions`"))?;
        pairs.push(Pair::new(source, target));
    }
    Ok((path.with_extension("tsv"), tsv(&pairs)))
}

/// Words and phones from `word(2) P H O N E S # comment`; a pronunciation that a word has twice comes once.
fn pronunciations(path: &Path) -> Result<Vec<Pair>> {
    let mut seen = std::collections::HashSet::new();
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(read_lines(path)?) {
        let entry = line.split(" #").next().unwrap_or_default().trim();
        let (word, phones) = entry.split_once(' ').ok_or_else(|| Error::line(path, number, "not `word phones`"))?;
        let word = word.split_once('(').map_or(word, |(word, _)| word);
        let pair = Pair::new(word, phones.trim());
        if seen.insert(pair.clone()) {
            pairs.push(pair);
        }
    }
    Ok(pairs)
}

/// The file of a split, and what is in it.
fn of_split(pairs: &[Pair], split: Split, per_mille: u64, dir: &Path) -> (PathBuf, String) {
    let chosen = pairs.iter().filter(|pair| Split::of_source(&pair.source, per_mille) == split);
    (dir.join(format!("{split}.tsv")), tsv(chosen))
}

fn tsv<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> String {
    pairs.into_iter().map(|pair| format!("{}\t{}\n", pair.source, pair.target)).collect()
}
