//! From text to shards, on all cores, with some thousands of pairs or lines in memory at once.

use crate::data::corpus::MAX_LINE_BYTES;
use crate::data::shards::{Builder, Shard, ShardEntry, Width};
use crate::data::{EOS, Pair, Tokenizers};
use crate::error::{Error, Result};
use crate::files;
use rayon::prelude::*;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Pairs or lines, and bytes of them, that are tokenized at once.
const AT_ONCE: usize = 1 << 14;
const AT_ONCE_BYTES: usize = 4 * MAX_LINE_BYTES;

/// Hands what `read` reads to `work` in pieces, but for the first `skipped` of it. One thread reads while the others work.
pub(super) fn in_pieces<U: Send>(
    skipped: u64,
    size: fn(&U) -> usize,
    work: impl FnMut(Vec<U>) -> Result<()> + Send,
    read: impl FnOnce(&mut dyn FnMut(U) -> Result<()>) -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Vec<U>>(2);
        let worker = scope.spawn(move || receiver.into_iter().try_for_each(work));
        let (mut waiting, mut bytes, mut skipped) = (Vec::new(), 0, skipped);
        let read = read(&mut |unit| {
            if skipped > 0 {
                skipped -= 1;
                return Ok(());
            }
            bytes += size(&unit);
            waiting.push(unit);
            if waiting.len() >= AT_ONCE || bytes >= AT_ONCE_BYTES {
                bytes = 0;
                let sent = sender.send(std::mem::take(&mut waiting));
                return sent.map_err(|_| Error::message("tokenizing has failed"));
            }
            Ok(())
        });
        if read.is_ok() {
            // The receiver is gone only after a failure, which has its own error.
            let _ = sender.send(waiting);
        }
        drop(sender);
        worker.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        read
    })
}

/// The shards of a folder, as they are written.
pub(super) struct Shards<'a> {
    folder: &'a Path,
    tokenizers: &'a Tokenizers,
    shard_tokens: usize,
    builder: Builder,
    entries: Vec<ShardEntry>,
}

/// The name of a shard.
fn name_of(number: usize) -> String {
    format!("{number:06}.shard")
}

impl<'a> Shards<'a> {
    /// Those of `folder`, after `entries`, which are there. They are closed after `shard_tokens` ids.
    pub(super) fn new(
        folder: &'a Path,
        tokenizers: &'a Tokenizers,
        is_text: bool,
        shard_tokens: usize,
        entries: Vec<ShardEntry>,
    ) -> Self {
        let width = Width::of(tokenizers.source().vocab_size().max(tokenizers.target().vocab_size()));
        let builder = if is_text { Builder::of_text(width) } else { Builder::of_pairs(width) };
        Self { folder, tokenizers, shard_tokens, builder, entries }
    }

    /// The first shards of a folder that are whole.
    pub(super) fn whole(folder: &Path) -> Vec<ShardEntry> {
        (0..).map_while(|number| Shard::whole(folder, &name_of(number))).collect()
    }

    /// Tokenizes some pairs.
    pub(super) fn add_pairs(&mut self, pairs: Vec<Pair>) -> Result<()> {
        let (source, target) = (self.tokenizers.source(), self.tokenizers.target());
        let encode = |pair: &Pair| (source.encode(&pair.source), target.encode(&pair.target));
        let encoded: Vec<(Vec<u32>, Vec<u32>)> = pairs.par_iter().map(encode).collect();
        encoded.into_iter().try_for_each(|(source, target)| {
            self.builder.push_pair(&source, &target);
            self.close_if_full()
        })
    }

    /// Tokenizes some pieces of text: lines, or what is tokenized as one.
    pub(super) fn add_pieces(&mut self, pieces: Vec<String>) -> Result<()> {
        let tokenizer = self.tokenizers.target();
        let end = (!tokenizer.has_lines()).then_some(EOS);
        let encode = |piece: &String| tokenizer.encode(piece).into_iter().chain(end).collect();
        let encoded: Vec<Vec<u32>> = pieces.par_iter().map(encode).collect();
        encoded.into_iter().try_for_each(|mut ids| {
            if self.entries.is_empty() && self.builder.n_ids() == 0 {
                // What the first word of a text follows.
                ids.insert(0, EOS);
            }
            self.builder.push_text(&ids);
            self.close_if_full()
        })
    }

    fn close_if_full(&mut self) -> Result<()> {
        if self.builder.n_ids() >= self.shard_tokens { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        let name = name_of(self.entries.len());
        files::replace(&self.folder.join(&name), &self.builder.take_file())?;
        let entry = Shard::whole(self.folder, &name);
        let message = "is not what was written: the disk or the memory of this machine is faulty";
        self.entries.push(entry.ok_or_else(|| Error::file(self.folder.join(&name), message))?);
        Ok(())
    }

    /// Closes the last one.
    pub(super) fn finish(mut self) -> Result<Vec<ShardEntry>> {
        if self.builder.n_ids() > 0 {
            self.close()?;
        }
        Ok(self.entries)
    }
}
