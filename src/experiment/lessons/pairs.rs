//! Pairs of source and target.

use super::{Prepared, SequenceLessons};
use crate::data::batch::{Batch, Example, Plan, plan_epoch};
use crate::data::shards::Examples;
use crate::data::tokenizer::sampled;
use crate::data::{Sentence, Split, Tokenizers, UNK};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::dataset::{self, Beside, Corpus, encode};
use crate::experiment::prepared::{self, OpenedPairs};
use crate::experiment::validation::{sample_score, validate};
use crate::models::{LengthLimits, Model};
use crate::ranks::Ranks;
use crate::training::{Lessons, Measured, Scalar, Stats};
use burn::tensor::Device;
use std::path::Path;
use std::sync::Arc;

/// Learning to write a target for a source: the loss of the target's words, and a score of what is written for held-out sources.
pub(in crate::experiment) struct PairLessons {
    config: Config,
    tokenizers: Arc<Tokenizers>,
    train: Examples,
    valid: Vec<Example>,
    /// The validation sentences that are translated.
    sample: Vec<Sentence>,
}

impl PairLessons {
    /// Reads or generates the data of `config`, whose length cap is fitted to it, or takes what was prepared of them. Vocabularies
    /// are those that are `known`, or new ones.
    pub(in crate::experiment) fn prepare(config: &mut Config, known: Option<Tokenizers>) -> Result<Prepared> {
        let read = match config.data.prepared.clone() {
            Some(folder) => Read::prepared(config, &folder, known.as_ref())?,
            None => Read::corpus(config, known)?,
        };
        let Read { tokenizers, train, dropped, beside: Beside { valid: pairs, valid_sentences, sha256 } } = read;
        let dropped = if dropped > 0 { format!(", {dropped} left out by the filter") } else { String::new() };
        let said = format!("{} training pairs{dropped}, {} validation pairs", train.len(), pairs.len());
        let valid = encode(&pairs, &tokenizers);
        dataset::check_answers(&config.model, Split::Valid, &pairs, &valid)?;
        config.decoding.fit_cap(train.lengths());
        let tokenizers = Arc::new(tokenizers);
        let lessons = Self {
            config: config.clone(),
            train,
            valid,
            sample: valid_sentences.iter().take(config.training.sample_size).cloned().collect(),
            tokenizers: tokenizers.clone(),
        };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers, sha256, said })
    }
}

/// What pairs there are.
struct Read {
    tokenizers: Tokenizers,
    train: Examples,
    /// Pairs that the filter left out.
    dropped: usize,
    beside: Beside,
}

impl Read {
    fn corpus(config: &Config, known: Option<Tokenizers>) -> Result<Self> {
        let Corpus { train, valid, valid_sentences, dropped, sha256 } = dataset::load(&config.data, config.seed)?;
        let new = || Tokenizers::train(&sampled(&train, config.seed), &config.tokenizer);
        let tokenizers = known.map_or_else(new, Ok)?;
        let train = dataset::encode_all(train, &tokenizers, &config.model)?;
        let beside = Beside { valid, valid_sentences, sha256 };
        Ok(Self { tokenizers, train, dropped: dropped.total(), beside })
    }

    fn prepared(config: &Config, folder: &Path, known: Option<&Tokenizers>) -> Result<Self> {
        let OpenedPairs { tokenizers, train, sha256, dropped } = prepared::pairs(config, folder, known)?;
        dataset::check_answers_of(&config.model, &train, &tokenizers)?;
        let beside = dataset::beside(&config.data, config.seed, sha256, train.len())?;
        Ok(Self { tokenizers, train, dropped, beside })
    }
}

impl Lessons<Model> for PairLessons {
    fn plan(&self, epoch: u64) -> Plan {
        let lengths = |i| self.train.lengths_of(i);
        plan_epoch(self.train.len(), lengths, self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn batch(&self, _epoch: u64, numbers: &[u32], device: &Device) -> Result<Batch> {
        let examples: Vec<Example> = numbers.iter().map(|i| self.train.get(*i as usize)).collect::<Result<_>>()?;
        Ok(Batch::new(&examples.iter().collect::<Vec<_>>(), device))
    }

    fn text(&self, _epoch: u64, numbers: &[u32]) -> String {
        let line = |i: &u32| {
            let example = self.train.get(*i as usize).unwrap_or_default();
            let source = self.tokenizers.source().decode(&example.source);
            format!("{source}\t{}", self.tokenizers.target().decode(&example.target))
        };
        numbers.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
    }

    fn n_targets(&self, batch: &Batch) -> usize {
        batch.n_target_tokens()
    }

    fn measure(&self, model: &Model, ranks: &dyn Ranks) -> Measured {
        let training = &self.config.training;
        let sums = validate(model, &self.valid, training.batch_tokens, ranks);
        let decoding = &self.config.decoding;
        let found = sample_score(model, &self.tokenizers, &self.sample, training.score, decoding, ranks);
        let stats = Stats { score: Some(found.score), cut: Some(found.cut), ..Stats::new(sums) };
        let sample = self.sample.iter().zip(&found.translations).map(|(sentence, translation)| {
            let references: String =
                sentence.references.iter().map(|reference| format!("reference  {reference}\n")).collect();
            format!("source     {}\n{references}model      {translation}\n\n", sentence.source)
        });
        Measured { stats, sample: sample.collect() }
    }

    fn metric(&self) -> Option<Scalar> {
        Some(Scalar::score(self.config.training.score))
    }
}

impl SequenceLessons for PairLessons {
    fn check_lengths(&self, limits: LengthLimits) -> Result<()> {
        let valid = self.valid.iter().map(|example| (example.source.len(), example.target.len()));
        let longest = valid.fold(self.train.longest(), |longest, (s, t)| (longest.0.max(s), longest.1.max(t)));
        // One more for the end symbol.
        for (limit, longest, side) in
            [(limits.source, longest.0 + 1, "source"), (limits.target, longest.1 + 1, "target")]
        {
            if let Some(limit) = limit.filter(|limit| limit.len < longest) {
                let message = format!(
                    "is {}, but the data has {longest} tokens in a {side} sentence; raise it, filter with data.filter.max_len, \
                     or choose a scheme without a limit",
                    limit.len
                );
                return Err(Error::config(limit.key, message));
            }
        }
        Ok(())
    }

    fn unknown(&self) -> Option<String> {
        let share = |side: fn(&Example) -> &Vec<u32>| {
            let ids = || self.valid.iter().flat_map(side);
            100.0 * ids().filter(|id| **id == UNK).count() as f64 / ids().count().max(1) as f64
        };
        let (source, target) = (share(|example| &example.source), share(|example| &example.target));
        (source + target > 0.0).then(|| {
            format!("{source:.2} % of the source tokens and {target:.2} % of the target tokens of the validation data")
        })
    }
}
