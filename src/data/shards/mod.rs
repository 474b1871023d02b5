//! Token ids packed tightly: in memory, or in files that training reads what it needs of.
//!
//! A shard holds some thousands of pairs, or a piece of a stream of text. All numbers are little-endian:
//!
//! ```text
//! LBSHARD1                     8 bytes
//! header                       9 numbers of 8 bytes: bytes of an id, pairs or pieces, ids, offsets, and counts
//! offsets                      of pairs: 4 bytes for the beginning of every source and target, and one for the end
//! ids                          2 or 4 bytes each; of pairs source, target, source, ...
//! checksums                    the SHA-256 of every 64 KiB before them
//! ```
//!
//! The checksum of a shard is the SHA-256 of those of its blocks, so that opening it need not read it: a block is checked when
//! it is first read.

mod builder;
mod shard;
mod store;

pub use builder::Builder;
pub use shard::{Shard, ShardEntry, Width};
pub use store::{Examples, Tokens};

use serde::{Deserialize, Serialize};

/// What some shards hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Pairs; of text, pieces that were tokenized one by one.
    pub units: u64,
    /// Token ids.
    pub ids: u64,
    /// Those of sources.
    pub source_ids: u64,
    /// The longest source in tokens.
    pub longest_source: u64,
    /// The longest target in tokens.
    pub longest_target: u64,
    /// Unknown tokens of sources.
    pub unknown_source: u64,
    /// Unknown tokens of targets, or of text.
    pub unknown_target: u64,
}

impl Counts {
    /// Both together.
    pub fn with(self, other: Self) -> Self {
        Self {
            units: self.units.saturating_add(other.units),
            ids: self.ids.saturating_add(other.ids),
            source_ids: self.source_ids.saturating_add(other.source_ids),
            longest_source: self.longest_source.max(other.longest_source),
            longest_target: self.longest_target.max(other.longest_target),
            unknown_source: self.unknown_source.saturating_add(other.unknown_source),
            unknown_target: self.unknown_target.saturating_add(other.unknown_target),
        }
    }
}
