//! Pairs of source and target.

use super::{Prepared, SequenceLessons};
use crate::data::batch::{Batch, Example, plan_epoch};
use crate::data::{Sentence, Split, Tokenizers, UNK};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::dataset::{self, Corpus, encode};
use crate::experiment::validation::{sample_score, validate};
use crate::models::{LengthLimits, Model};
use crate::ranks::Ranks;
use crate::training::{Lessons, Measured, Scalar, Stats};
use burn::tensor::Device;
use std::sync::Arc;

/// Learning to write a target for a source: the loss of the target's words, and a score of what is written for held-out sources.
pub(in crate::experiment) struct PairLessons {
    config: Config,
    tokenizers: Arc<Tokenizers>,
    train: Vec<Example>,
    lengths: Vec<(usize, usize)>,
    valid: Vec<Example>,
    /// The validation sentences that are translated.
    sample: Vec<Sentence>,
}

impl PairLessons {
    /// Reads or generates the data of `config`, whose length cap is fitted to it; `tokenizers` makes the vocabularies, or reads
    /// them.
    pub(in crate::experiment) fn prepare(
        config: &mut Config,
        tokenizers: impl FnOnce(&Corpus) -> Result<Tokenizers>,
    ) -> Result<Prepared> {
        let corpus = dataset::load(&config.data, config.seed)?;
        let dropped = corpus.dropped.total();
        let dropped = if dropped > 0 { format!(", {dropped} left out by the filter") } else { String::new() };
        let said = format!("{} training pairs{dropped}, {} validation pairs", corpus.train.len(), corpus.valid.len());
        let own = Arc::new(tokenizers(&corpus)?);
        let (train, valid) = (encode(&corpus.train, &own), encode(&corpus.valid, &own));
        for (split, pairs, examples) in [(Split::Train, &corpus.train, &train), (Split::Valid, &corpus.valid, &valid)] {
            dataset::check_answers(&config.model, split, pairs, examples)?;
        }
        let lengths: Vec<_> = train.iter().map(|example| (example.source.len(), example.target.len())).collect();
        config.decoding.fit_cap(lengths.iter().copied());
        let lessons = Self {
            config: config.clone(),
            lengths,
            train,
            valid,
            sample: corpus.valid_sentences.iter().take(config.training.sample_size).cloned().collect(),
            tokenizers: own.clone(),
        };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers: own, sha256: corpus.sha256, said })
    }
}

impl Lessons<Model> for PairLessons {
    fn plan(&self, epoch: u64) -> Vec<Vec<usize>> {
        plan_epoch(&self.lengths, self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn batch(&self, _epoch: u64, numbers: &[usize], device: &Device) -> Batch {
        let examples: Vec<&Example> = numbers.iter().map(|i| &self.train[*i]).collect();
        Batch::new(&examples, device)
    }

    fn text(&self, _epoch: u64, numbers: &[usize]) -> String {
        let line = |i: &usize| {
            let example = &self.train[*i];
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
        let examples = || self.train.iter().chain(&self.valid);
        let longest_source = examples().map(|e| e.source.len() + 1).max().unwrap_or(0);
        let longest_target = examples().map(|e| e.target.len() + 1).max().unwrap_or(0);
        for (limit, longest, side) in
            [(limits.source, longest_source, "source"), (limits.target, longest_target, "target")]
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
