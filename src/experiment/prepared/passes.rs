//! The passes over the training data: for their number, for the vocabularies, for the shards.

use super::manifest::{HeldOut, Manifest};
use super::source::{self, Preparing};
use super::tokenize::{Shards, in_pieces};
use crate::data::corpus::{At, Dropped, LineHasher, nothing_left, sha256_hex};
use crate::data::shards::{Counts, ShardEntry};
use crate::data::tokenizer::{Chunks, LARGEST_SAMPLE, Sample};
use crate::data::{Pair, Split, TextConfig, Tokenizers};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::files;
use crate::memory::Budget;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the passes need.
pub(super) struct Passes<'a> {
    pub(super) config: &'a Config,
    pub(super) files: Vec<(String, PathBuf)>,
    pub(super) report: &'a mut dyn FnMut(Preparing) -> Result<()>,
}

/// The interval of progress reports, in pairs or lines.
const OFTEN: usize = 1 << 12;

impl Passes<'_> {
    /// Tells how far a pass has come.
    fn reporter(&mut self, what: &'static str) -> impl FnMut(At) -> Result<()> {
        let total = source::total(&self.config.data, &self.files);
        let is_bytes = self.config.data.task.is_none();
        let report = &mut self.report;
        move |at: At| match at.line % OFTEN {
            0 => report(Preparing { what, done: at.bytes, total, is_bytes }),
            _ => Ok(()),
        }
    }

    /// Calls `take` with every pair; `None` is one that the filter leaves out.
    fn pairs(&mut self, what: &'static str, mut take: impl FnMut(Split, Pair) -> Result<()>) -> Result<Dropped> {
        let config = self.config;
        let mut report = self.reporter(what);
        let mut dropped = Dropped::default();
        source::pairs(&config.data, config.seed, |at, split, pair| {
            report(at)?;
            // Held-out pairs and generated ones are what they are.
            let is_filtered = split == Split::Train && config.data.task.is_none();
            if is_filtered && !config.data.filter.keeps(&pair, &mut dropped) { Ok(()) } else { take(split, pair) }
        })?;
        Ok(dropped)
    }

    /// The splits of the lines of plain text, by their numbers from 1 on: where training and validation end.
    fn ends_of_splits(&mut self, text: &TextConfig) -> Result<[usize; 2]> {
        let data = &self.config.data;
        let held_out = data.held_out();
        let Some(per_mille) = data.hold_out_per_mille.filter(|_| !held_out.is_empty()) else {
            return Ok([usize::MAX; 2]);
        };
        let mut report = self.reporter("lines");
        let mut n = 0;
        source::lines(data, text, |at, _| {
            n = at.line;
            report(at)
        })?;
        let n_of = |split| if held_out.contains(&split) { n * per_mille as usize / 1000 } else { 0 };
        let end_of_valid = n - n_of(Split::Test);
        Ok([end_of_valid - n_of(Split::Valid), end_of_valid])
    }

    /// Vocabularies of the training data, or of a sample of them.
    pub(super) fn train_tokenizers(&mut self) -> Result<Tokenizers> {
        const WHAT: &str = "vocabulary";
        let config = self.config;
        let mut budget = Budget::new();
        let mut too_large = |bytes| budget.take(bytes).map_err(|fault| Error::message(format!("the data: {fault}")));
        if let Some(text) = &config.data.text {
            let [end_of_train, _] = self.ends_of_splits(text)?;
            let mut sample = Sample::new(LARGEST_SAMPLE, config.seed);
            let mut report = self.reporter(WHAT);
            source::lines(&config.data, text, |at, line| {
                if at.line <= end_of_train {
                    sample.offer(|| line.to_owned());
                    if !sample.is_part() {
                        too_large(size_of::<String>() + line.len())?;
                    }
                }
                report(at)
            })?;
            return Tokenizers::train_text(&sample.finish(), &config.tokenizer, config.model.has_masks());
        }
        let mut sample = Sample::new(LARGEST_SAMPLE, config.seed);
        let dropped = self.pairs(WHAT, |split, pair| {
            if split == Split::Train {
                let bytes = size_of::<Pair>() + pair.source.len() + pair.target.len();
                sample.offer(|| pair);
                if !sample.is_part() {
                    too_large(bytes)?;
                }
            }
            Ok(())
        })?;
        let pairs = sample.finish();
        if pairs.is_empty() {
            return Err(nothing_left(&dropped));
        }
        Tokenizers::train(&pairs, &config.tokenizer)
    }

    /// Writes what `kept` has not yet, and notes all of it in `manifest`.
    pub(super) fn write_shards(
        &mut self,
        folder: &Path,
        tokenizers: &Tokenizers,
        kept: Vec<ShardEntry>,
        manifest: &mut Manifest,
    ) -> Result<()> {
        const WHAT: &str = "tokenizing";
        let config = self.config;
        let n_kept = kept.iter().map(|entry| entry.counts.units).sum();
        let is_text = config.data.text.is_some();
        let mut shards = Shards::new(folder, tokenizers, is_text, manifest.shard_tokens, kept);
        let mut held_out = HeldOutLines { by_split: BTreeMap::new(), budget: Budget::new() };
        let mut hasher = LineHasher::default();
        if let Some(text) = &config.data.text {
            let [end_of_train, end_of_valid] = self.ends_of_splits(text)?;
            let mut report = self.reporter(WHAT);
            let (mut lines, mut characters) = (0, 0);
            let mut chunks = tokenizers.target().has_lines().then(Chunks::default);
            in_pieces(
                n_kept,
                String::len,
                |pieces| shards.add_pieces(pieces),
                |give| {
                    source::lines(&config.data, text, |at, line| {
                        report(at)?;
                        if at.line > end_of_train {
                            let split = if at.line <= end_of_valid { Split::Valid } else { Split::Test };
                            return held_out.add(split, &line);
                        }
                        hasher.add(line);
                        lines += 1;
                        characters += line.chars().count() as u64 + 1;
                        match &mut chunks {
                            None => give(line.to_owned()),
                            Some(chunks) => chunks.push(line).map_or(Ok(()), &mut *give),
                        }
                    })?;
                    chunks.take().and_then(Chunks::finish).map_or(Ok(()), &mut *give)
                },
            )?;
            (manifest.lines, manifest.characters) = (lines, characters);
            manifest.data_sha256 = BTreeMap::from([("train".into(), hasher.finish())]);
        } else {
            let size = |pair: &Pair| pair.source.len() + pair.target.len();
            let mut dropped = Dropped::default();
            in_pieces(
                n_kept,
                size,
                |pairs| shards.add_pairs(pairs),
                |give| {
                    dropped = self.pairs(WHAT, |split, pair| {
                        if split != Split::Train {
                            return held_out.add(split, &(&pair.source, &pair.target));
                        }
                        hasher.add_pair(&pair);
                        give(pair)
                    })?;
                    Ok(())
                },
            )?;
            manifest.dropped = dropped;
            manifest.data_sha256 = self.sums_of_pairs(manifest, hasher.finish());
        }
        manifest.shards = shards.finish()?;
        manifest.counts = manifest.shards.iter().map(|shard| shard.counts).fold(Counts::default(), Counts::with);
        if manifest.counts.units == 0 {
            return Err(nothing_left(&manifest.dropped));
        }
        manifest.held_out = held_out.write(folder, &config.data.held_out())?;
        Ok(())
    }

    /// What a run writes down of its training pairs.
    fn sums_of_pairs(&self, manifest: &Manifest, of_pairs: String) -> BTreeMap<String, String> {
        let data = &self.config.data;
        if data.task.is_some() {
            return BTreeMap::from([("train".into(), of_pairs)]);
        }
        let of_file = |file: &super::manifest::FileRead| {
            (file.key.trim_start_matches("data.").replace('.', "/"), file.sha256.clone())
        };
        let mut sums: BTreeMap<String, String> = manifest.files.iter().map(of_file).collect();
        if data.held_out().len() == 1 {
            sums.insert("train/pairs".into(), of_pairs);
        }
        sums
    }
}

/// What is held out of the training data, as lines of JSON.
struct HeldOutLines {
    by_split: BTreeMap<&'static str, (u64, String)>,
    budget: Budget,
}

impl HeldOutLines {
    fn add(&mut self, split: Split, what: &impl serde::Serialize) -> Result<()> {
        let (count, text) = self.by_split.entry(split.name()).or_default();
        let before = text.len();
        *text += &serde_json::to_string(what).expect("text is plain data");
        text.push('\n');
        *count += 1;
        let bytes = text.len() - before;
        self.budget.take(bytes).map_err(|fault| Error::message(format!("what is held out {fault}")))
    }

    fn write(mut self, folder: &Path, splits: &[Split]) -> Result<BTreeMap<String, HeldOut>> {
        let mut written = BTreeMap::new();
        for split in splits {
            let (count, text) = self.by_split.remove(split.name()).unwrap_or_default();
            files::replace(&folder.join(format!("{split}.jsonl")), text.as_bytes())?;
            written.insert(split.to_string(), HeldOut { count, sha256: sha256_hex(text.as_bytes()) });
        }
        Ok(written)
    }
}
