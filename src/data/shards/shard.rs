//! Reading one shard.

use super::Counts;
use crate::data::corpus::sha256_hex;
use crate::error::{Error, Result};
use crate::mapped::Mapped;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MAGIC: &[u8; 8] = b"LBSHARD1";
const HEADER: usize = 8 + 9 * 8;
/// Bytes that have one checksum.
const BLOCK: usize = 1 << 16;
/// Bytes of a checksum.
const SUM: usize = 32;

/// How an id is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// In two bytes: a vocabulary of at most 65,536 tokens.
    Two,
    /// In four bytes.
    Four,
}

impl Width {
    /// The least that vocabularies of these sizes need.
    pub fn of(largest_vocabulary: usize) -> Self {
        if largest_vocabulary <= 1 << 16 { Self::Two } else { Self::Four }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }
}

/// The beginning of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) width: Width,
    pub(super) n_offsets: usize,
    pub(super) counts: Counts,
}

impl Header {
    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let Self { width, n_offsets, counts } = *self;
        bytes.extend(MAGIC);
        let Counts { units, ids, source_ids, longest_source, longest_target, unknown_source, unknown_target } = counts;
        let (width, n_offsets) = (width.bytes() as u64, n_offsets as u64);
        let lengths = [longest_source, longest_target, unknown_source, unknown_target];
        let numbers = [width, units, ids, n_offsets, source_ids].into_iter().chain(lengths);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.get(..HEADER)?.strip_prefix(MAGIC)?.as_chunks().0;
        let number = |i: usize| u64::from_le_bytes(numbers[i]);
        let counts = Counts {
            units: number(1),
            ids: number(2),
            source_ids: number(4),
            longest_source: number(5),
            longest_target: number(6),
            unknown_source: number(7),
            unknown_target: number(8),
        };
        let width = match number(0) {
            2 => Width::Two,
            4 => Width::Four,
            _ => return None,
        };
        let n_offsets = usize::try_from(number(3)).ok()?;
        let expected = counts.units.checked_mul(2)?.checked_add(1)?;
        (n_offsets == 0 || n_offsets as u64 == expected).then_some(Self { width, n_offsets, counts })
    }

    fn ids_start(&self) -> Option<usize> {
        self.n_offsets.checked_mul(4)?.checked_add(HEADER)
    }

    /// Bytes before the checksums.
    pub(super) fn body_len(&self) -> Option<usize> {
        let ids = usize::try_from(self.counts.ids).ok()?.checked_mul(self.width.bytes())?;
        ids.checked_add(self.ids_start()?)
    }
}

/// The checksums of the blocks of `body`.
pub(super) fn table_of(body: &[u8]) -> Vec<u8> {
    body.par_chunks(BLOCK).map(sum_of).collect::<Vec<_>>().into_flattened()
}

fn sum_of(block: &[u8]) -> [u8; SUM] {
    Sha256::digest(block).into()
}

/// What the manifest says of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardEntry {
    /// The name of its file.
    pub name: String,
    /// The size of its file.
    pub bytes: u64,
    /// The SHA-256 of the checksums of its blocks.
    pub sha256: String,
    /// What it holds.
    pub counts: Counts,
}

#[derive(Debug)]
enum Bytes {
    Held(Vec<u8>),
    Mapped(Mapped),
}

/// A shard, in memory or in a file.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    /// Which blocks have been checked; nothing where that is needless.
    checked: Vec<AtomicBool>,
}

impl Shard {
    /// What [`Builder::take`](super::Builder::take) gave.
    pub(super) fn held(bytes: Vec<u8>) -> Self {
        let header = Header::read(&bytes).expect("what a builder has written");
        Self { path: PathBuf::new(), bytes: Bytes::Held(bytes), header, checked: Vec::new() }
    }

    fn map(path: &Path) -> Result<Self> {
        let map = Mapped::open(path).map_err(Error::io(path))?;
        let header = Header::read(&map).filter(|header| {
            let body = header.body_len().filter(|len| *len <= map.len());
            body.is_some_and(|len| len + SUM * len.div_ceil(BLOCK) == map.len())
        });
        let header = header.ok_or_else(|| damaged(path, "it is cut off, or no shard"))?;
        let n_blocks = header.body_len().unwrap_or(0).div_ceil(BLOCK);
        let checked = std::iter::repeat_with(|| AtomicBool::new(false)).take(n_blocks).collect();
        Ok(Self { path: path.to_path_buf(), bytes: Bytes::Mapped(map), header, checked })
    }

    /// The shard in the file of `folder` that `entry` names. Its ids are checked when they are first read, all else now.
    ///
    /// # Errors
    /// If it is not there, or not the one that the manifest means.
    pub fn open(folder: &Path, entry: &ShardEntry) -> Result<Self> {
        let path = folder.join(&entry.name);
        let shard = Self::map(&path)?;
        if shard.entry(&entry.name) != *entry {
            return Err(damaged(&path, "its checksum is not that of the manifest"));
        }
        shard.check(0..shard.header.ids_start().unwrap_or(0))?;
        shard.check_lengths()?;
        Ok(shard)
    }

    /// What a manifest has to say of the shard in the file `name` of `folder`, if it is whole, all of it.
    pub fn whole(folder: &Path, name: &str) -> Option<ShardEntry> {
        let shard = Self::map(&folder.join(name)).ok()?;
        let len = shard.header.body_len()?;
        let is_whole = table_of(&shard.bytes()[..len]) == shard.bytes()[len..];
        is_whole.then(|| shard.entry(name))
    }

    fn entry(&self, name: &str) -> ShardEntry {
        let bytes = self.bytes();
        let table = bytes.get(self.header.body_len().unwrap_or(bytes.len())..).unwrap_or_default();
        let counts = self.header.counts;
        ShardEntry { name: name.into(), bytes: bytes.len() as u64, sha256: sha256_hex(table), counts }
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Held(bytes) => bytes,
            Bytes::Mapped(map) => map,
        }
    }

    /// The error of a shard that is not what was written, in words that follow its name.
    pub(super) fn damaged(&self, what: &str) -> Error {
        damaged(&self.path, what)
    }

    /// What it holds.
    pub fn counts(&self) -> Counts {
        self.header.counts
    }

    /// Whether it is of pairs.
    pub(super) fn has_pairs(&self) -> bool {
        self.header.n_offsets > 0
    }

    /// An offset, which has been checked when the shard was opened.
    pub(super) fn offset(&self, i: usize) -> usize {
        let start = HEADER + 4 * i;
        let bytes = self.bytes().get(start..start + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
    }

    /// Appends some of the ids to `found`.
    pub(super) fn read(&self, ids: Range<usize>, found: &mut Vec<u32>) -> Result<()> {
        let (start, width) = (self.header.ids_start().unwrap_or(0), self.header.width.bytes());
        let range = start + ids.start * width..start + ids.end * width;
        self.check(range.clone())?;
        let bytes = self.bytes().get(range).ok_or_else(|| damaged(&self.path, "it has not as many ids as it says"))?;
        match self.header.width {
            Width::Two => found.extend(bytes.as_chunks().0.iter().map(|id| u32::from(u16::from_le_bytes(*id)))),
            Width::Four => found.extend(bytes.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id))),
        }
        Ok(())
    }

    /// Refuses offsets that do not fit together, or not to what the header says: a checksum is that of whoever wrote the file, and
    /// models make room for the longest.
    fn check_lengths(&self) -> Result<()> {
        let counts = self.header.counts;
        if !self.has_pairs() {
            return Ok(());
        }
        let mut place = self.offset(0) as u64;
        let mut found = Counts { units: counts.units, ids: counts.ids, ..Counts::default() };
        let mut is_right = place == 0;
        for i in 1..self.header.n_offsets {
            let next = self.offset(i) as u64;
            is_right &= place <= next;
            let len = next.saturating_sub(place);
            if i % 2 == 1 {
                found.source_ids += len;
                found.longest_source = found.longest_source.max(len);
            } else {
                found.longest_target = found.longest_target.max(len);
            }
            place = next;
        }
        let of_header = Counts { unknown_source: 0, unknown_target: 0, ..counts };
        if is_right && place == counts.ids && found == of_header {
            return Ok(());
        }
        Err(damaged(&self.path, "its lengths are not those that it says"))
    }

    /// Refuses ids that are not in a vocabulary of this size.
    pub(super) fn check_ids(&self, ids: &[u32], vocabulary: usize) -> Result<()> {
        match ids.iter().max() {
            Some(id) if *id as usize >= vocabulary => {
                Err(damaged(&self.path, &format!("it has token {id}, and the vocabulary has {vocabulary}")))
            }
            _ => Ok(()),
        }
    }

    /// Checks those blocks of a range that have not been.
    fn check(&self, range: Range<usize>) -> Result<()> {
        if self.checked.is_empty() || range.is_empty() {
            return Ok(());
        }
        let bytes = self.bytes();
        let len = self.header.body_len().unwrap_or(bytes.len());
        let is_right = |block: usize| {
            let is_checked = || self.checked.get(block).is_some_and(|checked| checked.load(Relaxed));
            let own = || {
                let own = bytes.get(block * BLOCK..len.min((block + 1) * BLOCK)).map(sum_of);
                own.is_some_and(|own| bytes.get(len + SUM * block..len + SUM * (block + 1)) == Some(&own))
            };
            let is_right = is_checked() || own();
            if let Some(checked) = self.checked.get(block).filter(|_| is_right) {
                checked.store(true, Relaxed);
            }
            is_right
        };
        let mut blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        match blocks.find(|block| !is_right(*block)) {
            None => Ok(()),
            Some(block) => {
                let what = format!("a checksum is wrong, of what stands from byte {} on", block * BLOCK);
                Err(damaged(&self.path, &what))
            }
        }
    }
}

/// The error of a shard that is not what was written.
fn damaged(path: &Path, what: &str) -> Error {
    Error::file(path, format!("is damaged: {what}; `lookback data prepare CONFIG` makes it anew"))
}
