//! Pairs of series of numbers.

use super::{Prepared, SequenceLessons};
use crate::data::batch::{Batch, Plan, plan_epoch};
use crate::data::{SeriesPair, Split, Tokenizers};
use crate::decoding::predict_series;
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::experiment::dataset;
use crate::experiment::series::{length_fault, scalings, series_of};
use crate::models::{LengthLimits, Model};
use crate::ranks::Ranks;
use crate::scoring::{ErrorScores, ErrorSums};
use crate::training::{Lessons, Measured, Scalar, Shown, Stats};
use burn::tensor::Device;
use std::sync::Arc;

/// Learning to answer a series with numbers for each step: the squared error of the scaled numbers.
pub(in crate::experiment) struct SeriesLessons {
    config: Config,
    tokenizers: Arc<Tokenizers>,
    train: Vec<SeriesPair>,
    valid: Vec<SeriesPair>,
}

impl SeriesLessons {
    /// Reads or generates the data of `config`. The scale of each channel is what is `known`, or found here, from all pairs.
    pub(in crate::experiment) fn prepare(config: &Config, known: Option<Tokenizers>) -> Result<Prepared> {
        let corpus = dataset::load(&config.data, config.seed)?;
        let read = |split, pairs, own: Option<&Tokenizers>| series_of(&config.data, split, pairs, own);
        // A fault of the data has its line before the scale is looked for.
        read(Split::Train, &corpus.train, None)?;
        let new = || Tokenizers::train(&corpus.train, &config.tokenizer);
        let own = Arc::new(known.map_or_else(new, Ok)?);
        let train = read(Split::Train, &corpus.train, Some(&own))?;
        let valid = read(Split::Valid, &corpus.valid, Some(&own))?;
        let steps = |pairs: &[SeriesPair]| pairs.iter().map(|pair| pair.target.n_steps()).sum::<usize>();
        let dropped = match corpus.dropped.total() {
            0 => String::new(),
            n => format!(", {n} left out by the filter"),
        };
        let said = format!(
            "{} training series with {} steps{dropped}, {} validation series with {} steps",
            train.len(),
            steps(&train),
            valid.len(),
            steps(&valid)
        );
        let lessons = Self { config: config.clone(), train, valid, tokenizers: own.clone() };
        Ok(Prepared { lessons: Arc::new(lessons), tokenizers: own, sha256: corpus.sha256, said })
    }
}

impl Lessons<Model> for SeriesLessons {
    fn plan(&self, epoch: u64) -> Plan {
        plan_epoch(
            self.train.len(),
            |i| self.train[i].lengths(),
            self.config.training.batch_tokens,
            self.config.seed,
            epoch,
        )
    }

    fn batch(&self, _epoch: u64, numbers: &[u32], device: &Device) -> Result<Batch> {
        let (source, target) = scalings(&self.tokenizers);
        let pairs: Vec<&SeriesPair> = numbers.iter().map(|i| &self.train[*i as usize]).collect();
        Ok(Batch::of_series(&pairs, source, target, device))
    }

    fn text(&self, _epoch: u64, numbers: &[u32]) -> String {
        let pairs = numbers.iter().map(|i| &self.train[*i as usize]);
        pairs.map(|pair| format!("{}\t{}\n", pair.source, pair.target)).collect()
    }

    fn n_targets(&self, batch: &Batch) -> usize {
        batch.n_target_tokens()
    }

    fn measure(&self, model: &Model, ranks: &dyn Ranks) -> Measured {
        let (source, target) = scalings(&self.tokenizers);
        let training = &self.config.training;
        let series: Vec<_> = self.valid.iter().map(|pair| &pair.source).collect();
        let found = predict_series(model, &series, source, target, training.batch_tokens, ranks);
        let (mut errors, mut scaled) = (ErrorSums::default(), ErrorSums::default());
        for (predicted, pair) in found.iter().zip(&self.valid) {
            let numbers = predicted.values().iter().zip(pair.target.values());
            for ((prediction, truth), unit) in numbers.zip(target.divisor().iter().cycle()) {
                errors.add(prediction - truth);
                scaled.add((prediction - truth) / unit);
            }
        }
        let ErrorScores { mse, mae, .. } = errors.scores();
        let stats = Stats {
            loss: scaled.scores().mse,
            mse: Some(mse),
            mae: Some(mae),
            tokens: self.valid.iter().map(|pair| pair.target.n_steps()).sum(),
            ..Stats::default()
        };
        let shown = self.valid.iter().zip(&found).take(training.sample_size).map(|(pair, predicted)| {
            let predicted = target.rounded(predicted);
            format!("source     {}\ntarget     {}\nmodel      {predicted}\n\n", pair.source, pair.target)
        });
        Measured { stats, sample: shown.collect() }
    }

    fn metric(&self) -> Option<Scalar> {
        Some(Scalar::root_mse())
    }

    fn shown(&self) -> Shown {
        Shown::of_numbers()
    }
}

impl SequenceLessons for SeriesLessons {
    fn check_lengths(&self, limits: LengthLimits) -> Result<()> {
        let longest = self.train.iter().chain(&self.valid).map(|pair| pair.source.n_steps()).max().unwrap_or(0);
        match (length_fault(longest, limits.source), limits.source) {
            (Some(_), Some(limit)) => {
                let message = format!(
                    "is {}, but the data has a series of {longest} steps; raise it, filter with data.filter.max_len, or choose a \
                     scheme without a limit",
                    limit.len
                );
                Err(Error::config(limit.key, message))
            }
            _ => Ok(()),
        }
    }

    fn unknown(&self) -> Option<String> {
        None
    }
}
