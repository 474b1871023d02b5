//! Shards together.

use super::builder::Builder;
use super::shard::{Shard, ShardEntry, Width};
use crate::data::batch::Example;
use crate::error::Result;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// Ids above which a shard in memory is closed.
const HELD_IDS: usize = 1 << 24;

/// Where one finds something of which every shard has some.
#[derive(Debug)]
struct Shards {
    shards: Vec<Shard>,
    /// How many are before each shard.
    starts: Vec<usize>,
    n: usize,
}

impl Shards {
    fn new(shards: Vec<Shard>, count: fn(&Shard) -> usize) -> Self {
        let mut n = 0;
        let mut starts = Vec::new();
        for shard in &shards {
            starts.push(n);
            n += count(shard);
        }
        Self { shards, starts, n }
    }

    fn open(folder: &Path, entries: &[ShardEntry]) -> Result<Vec<Shard>> {
        entries.par_iter().map(|entry| Shard::open(folder, entry)).collect()
    }

    /// The shard that has number `i`, and its place there.
    fn find(&self, i: usize) -> (usize, usize) {
        let shard = self.starts.partition_point(|start| *start <= i).saturating_sub(1);
        (shard, i - self.starts[shard])
    }
}

/// Pairs as token ids.
#[derive(Debug)]
pub struct Examples {
    shards: Shards,
    /// The sizes of the vocabularies of sources and targets, below which all ids lie.
    vocabularies: [usize; 2],
}

impl Examples {
    /// Those of shards in files, with vocabularies of these sizes for sources and targets. Lengths are checked now, ids when they
    /// are read.
    ///
    /// # Errors
    /// If a shard is not what the manifest says.
    pub fn open(folder: &Path, entries: &[ShardEntry], vocabularies: [usize; 2]) -> Result<Self> {
        let shards = Shards::open(folder, entries)?;
        match shards.iter().find(|shard| !shard.has_pairs()) {
            Some(text) => Err(text.damaged("it has a text, and no pairs")),
            None => Ok(Self::new(shards, vocabularies)),
        }
    }

    fn new(shards: Vec<Shard>, vocabularies: [usize; 2]) -> Self {
        Self { shards: Shards::new(shards, |shard| shard.counts().units as usize), vocabularies }
    }

    /// Those that `chunks` gives, in memory; ids are below `vocabulary`.
    ///
    /// # Errors
    /// What a chunk is.
    pub fn hold(vocabulary: usize, chunks: impl Iterator<Item = Result<Vec<Example>>>) -> Result<Self> {
        let mut builder = Builder::of_pairs(Width::of(vocabulary));
        let mut shards = Vec::new();
        for chunk in chunks {
            for Example { source, target } in chunk? {
                builder.push_pair(&source, &target);
                if builder.n_ids() >= HELD_IDS {
                    shards.push(Shard::held(builder.take()));
                }
            }
        }
        shards.push(Shard::held(builder.take()));
        Ok(Self::new(shards, [vocabulary; 2]))
    }

    /// How many pairs there are.
    pub fn len(&self) -> usize {
        self.shards.n
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shards.n == 0
    }

    fn bounds(&self, i: usize) -> (&Shard, [usize; 3]) {
        let (shard, i) = self.shards.find(i);
        let shard = &self.shards.shards[shard];
        (shard, [2 * i, 2 * i + 1, 2 * i + 2].map(|i| shard.offset(i)))
    }

    /// The lengths of the source and the target of a pair, in tokens.
    pub fn lengths_of(&self, i: usize) -> (usize, usize) {
        let (_, [source, target, end]) = self.bounds(i);
        (target.saturating_sub(source), end.saturating_sub(target))
    }

    /// Those of all pairs.
    pub fn lengths(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        self.shards.shards.iter().flat_map(|shard| {
            let bounds =
                (0..shard.counts().units as usize).map(|i| [2 * i, 2 * i + 1, 2 * i + 2].map(|i| shard.offset(i)));
            bounds.map(|[source, target, end]| (target.saturating_sub(source), end.saturating_sub(target)))
        })
    }

    /// The longest source and the longest target.
    pub fn longest(&self) -> (usize, usize) {
        let counts = self.shards.shards.iter().map(Shard::counts);
        let all = counts.fold(super::Counts::default(), super::Counts::with);
        (all.longest_source as usize, all.longest_target as usize)
    }

    /// A pair.
    ///
    /// # Errors
    /// If what it stands in is damaged.
    pub fn get(&self, i: usize) -> Result<Example> {
        let (shard, [source, target, end]) = self.bounds(i);
        let mut ids = Vec::with_capacity(end.saturating_sub(source));
        shard.read(source..end, &mut ids)?;
        let target = ids.split_off(target.saturating_sub(source).min(ids.len()));
        for (ids, vocabulary) in [&ids, &target].into_iter().zip(self.vocabularies) {
            shard.check_ids(ids, vocabulary)?;
        }
        Ok(Example { source: ids, target })
    }
}

/// A stream of text as token ids.
#[derive(Debug)]
pub struct Tokens {
    shards: Shards,
    /// The size of the vocabulary, below which all ids lie.
    vocabulary: usize,
}

impl Tokens {
    /// That of shards in files, with a vocabulary of this size. Ids are checked when they are read.
    ///
    /// # Errors
    /// If a shard is not what the manifest says.
    pub fn open(folder: &Path, entries: &[ShardEntry], vocabulary: usize) -> Result<Self> {
        Ok(Self::new(Shards::open(folder, entries)?, vocabulary))
    }

    fn new(shards: Vec<Shard>, vocabulary: usize) -> Self {
        Self { shards: Shards::new(shards, |shard| shard.counts().ids as usize), vocabulary }
    }

    /// `ids` in memory, all below `vocabulary`.
    pub fn hold(vocabulary: usize, ids: &[u32]) -> Self {
        let mut builder = Builder::of_text(Width::of(vocabulary));
        let held = |ids: &[u32]| {
            builder.push_text(ids);
            Shard::held(builder.take())
        };
        Self::new(ids.chunks(HELD_IDS).map(held).collect(), vocabulary)
    }

    /// How many ids there are.
    pub fn len(&self) -> usize {
        self.shards.n
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shards.n == 0
    }

    /// Some of them.
    ///
    /// # Errors
    /// If what they stand in is damaged.
    pub fn read(&self, range: Range<usize>) -> Result<Vec<u32>> {
        let mut found = Vec::with_capacity(range.len());
        let (mut shard, mut start) = self.shards.find(range.start);
        let shards = &self.shards.shards;
        while found.len() < range.len() && shard < shards.len() {
            let (end, n_before) = (shards[shard].counts().ids as usize, found.len());
            shards[shard].read(start..end.min(start + range.len() - n_before), &mut found)?;
            shards[shard].check_ids(&found[n_before..], self.vocabulary)?;
            (shard, start) = (shard + 1, 0);
        }
        Ok(found)
    }
}
