//! Making shards.

use super::Counts;
use super::shard::{Header, Width, table_of};
use crate::data::UNK;

/// A shard that is being filled.
#[derive(Debug)]
pub struct Builder {
    width: Width,
    /// Where sources and targets begin; nothing of text.
    offsets: Option<Vec<u32>>,
    ids: Vec<u8>,
    counts: Counts,
}

impl Builder {
    /// An empty shard of pairs.
    pub fn of_pairs(width: Width) -> Self {
        Self { width, offsets: Some(vec![0]), ids: Vec::new(), counts: Counts::default() }
    }

    /// An empty piece of a stream of text.
    pub fn of_text(width: Width) -> Self {
        Self { width, offsets: None, ids: Vec::new(), counts: Counts::default() }
    }

    /// Ids so far.
    pub fn n_ids(&self) -> usize {
        self.counts.ids as usize
    }

    fn push(&mut self, ids: &[u32]) -> u64 {
        match self.width {
            Width::Two => self.ids.extend(ids.iter().flat_map(|id| (*id as u16).to_le_bytes())),
            Width::Four => self.ids.extend(ids.iter().flat_map(|id| id.to_le_bytes())),
        }
        self.counts.ids += ids.len() as u64;
        let end = u32::try_from(self.counts.ids).expect("a shard is closed long before");
        self.offsets.iter_mut().for_each(|offsets| offsets.push(end));
        ids.iter().filter(|id| **id == UNK).count() as u64
    }

    /// Adds a pair.
    pub fn push_pair(&mut self, source: &[u32], target: &[u32]) {
        self.counts.unknown_source += self.push(source);
        self.counts.unknown_target += self.push(target);
        self.counts.units += 1;
        self.counts.source_ids += source.len() as u64;
        self.counts.longest_source = self.counts.longest_source.max(source.len() as u64);
        self.counts.longest_target = self.counts.longest_target.max(target.len() as u64);
    }

    /// Adds a piece of text.
    pub fn push_text(&mut self, ids: &[u32]) {
        self.counts.unknown_target += self.push(ids);
        self.counts.units += 1;
    }

    /// The bytes of the shard without its checksums; what comes next begins a new one.
    pub fn take(&mut self) -> Vec<u8> {
        let next = Self {
            width: self.width,
            offsets: self.offsets.as_ref().map(|_| vec![0]),
            ids: Vec::new(),
            counts: Counts::default(),
        };
        let Self { width, offsets, ids, counts } = std::mem::replace(self, next);
        let offsets = offsets.unwrap_or_default();
        let header = Header { width, n_offsets: offsets.len(), counts };
        let mut bytes = Vec::with_capacity(header.body_len().unwrap_or(0));
        header.write(&mut bytes);
        bytes.extend(offsets.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(ids);
        bytes
    }

    /// The bytes of the shard with its checksums, for a file; what comes next begins a new one.
    pub fn take_file(&mut self) -> Vec<u8> {
        let mut bytes = self.take();
        let table = table_of(&bytes);
        bytes.extend(table);
        bytes
    }
}
