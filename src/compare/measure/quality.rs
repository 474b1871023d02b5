//! Scores by group, with intervals over sentences and seeds.

use super::translations::Translation;
use crate::compare::test_set::TestSet;
use crate::error::Result;
use crate::report::comparison::{Quality, Score, key_of, metric_of};
use crate::scoring::{
    Bootstrap, Metric, Part, Scorer, SentenceStatistics, Summable, interval, interval_of_fraction, variance,
};
use std::ops::AddAssign;

/// The statistics of one sentence for each seed. A score of several seeds is the mean of their scores.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BySeed(pub Vec<SentenceStatistics>);

impl AddAssign<&BySeed> for BySeed {
    fn add_assign(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), SentenceStatistics::default());
        for (sum, statistics) in self.0.iter_mut().zip(&other.0) {
            *sum += statistics;
        }
    }
}

/// A contestant and its statistics of every test sentence.
#[derive(Clone, Debug)]
pub struct Scored {
    /// Its name.
    pub name: String,
    /// Of every test sentence.
    pub sentences: Vec<BySeed>,
}

impl Scored {
    /// Scores what each seed wrote, given all references of each sentence; all of it in lower case, where one of the models writes so.
    ///
    /// # Errors
    /// If there are no sentences.
    pub fn new(name: &str, by_seed: &[Vec<Translation>], references: &[Vec<String>], lowercase: bool) -> Result<Self> {
        let scorer = Scorer::default();
        let cased = |text: &str| if lowercase { text.to_lowercase() } else { text.to_string() };
        let references: Vec<Vec<String>> =
            references.iter().map(|list| list.iter().map(|text| cased(text)).collect()).collect();
        let mut sentences = vec![BySeed::default(); references.len()];
        for translations in by_seed {
            let texts: Vec<String> = translations.iter().map(|translation| cased(&translation.text)).collect();
            for (sentence, statistics) in sentences.iter_mut().zip(scorer.statistics_any(&texts, &references)?) {
                sentence.0.push(statistics);
            }
        }
        Ok(Self { name: name.to_string(), sentences })
    }

    /// The statistics of some sentences, summed.
    pub(super) fn total(&self, indices: &[usize]) -> BySeed {
        BySeed::total(indices.iter().map(|i| &self.sentences[*i]))
    }

    /// What each score comes to on every resample of some sentences: a row for each of `metrics`. Equal places of equally many
    /// sentences are drawn for every contestant, so that their differences are paired.
    ///
    /// # Errors
    /// If there are no sentences, or the bootstrap has no resamples.
    pub(super) fn resampled<S: AsRef<str> + Sync>(
        &self,
        indices: &[usize],
        metrics: &[S],
        bootstrap: &Bootstrap,
    ) -> Result<Vec<Vec<f64>>> {
        let drawn = bootstrap.resample(indices.len(), |chosen| {
            let total = BySeed::total(chosen.iter().map(|i| &self.sentences[indices[*i]]));
            metrics.iter().map(|metric| value(metric.as_ref(), &total)).collect::<Vec<f64>>()
        })?;
        Ok((0..metrics.len()).map(|place| drawn.iter().map(|values| values[place]).collect()).collect())
    }
}

/// The names of the scores of a comparison: first the one that training is watched by, then others that fit.
pub fn metrics(score: Metric, is_generated: bool) -> Vec<String> {
    let is_of_text = matches!(score, Metric::Bleu | Metric::Chrf);
    let others: &[Metric] = match is_generated || !is_of_text {
        true => &[Metric::SequenceAccuracy, Metric::TokenAccuracy],
        false => &[Metric::Bleu, Metric::Chrf, Metric::TokenAccuracy, Metric::SequenceAccuracy],
    };
    let others = others.iter().filter(|metric| **metric != score);
    std::iter::once(&score).chain(others).map(|metric| key_of(*metric)).collect()
}

/// The mean over the seeds of the score called `metric`.
pub fn value(metric: &str, sum: &BySeed) -> f64 {
    sum.0.iter().map(|statistics| of_seed(metric, statistics)).sum::<f64>() / sum.0.len().max(1) as f64
}

/// Percentages as fractions of 1.
pub(super) fn of_seed(metric: &str, sum: &SentenceStatistics) -> f64 {
    let metric = metric_of(metric);
    let value = metric.of_statistics(sum);
    if metric.unit().is_some() { value / 100.0 } else { value }
}

/// Whether these values of a score are fractions of 1. Error rates may exceed 1, and are none then.
pub(super) fn is_fraction(metric: &str, values: &[f64]) -> bool {
    metric_of(metric).unit().is_some() && values.iter().all(|value| (0.0..=1.0).contains(value))
}

/// The scores of a contestant in every group.
///
/// # Errors
/// If a group is empty.
pub fn quality(scored: &Scored, test: &TestSet, metrics: &[String], bootstrap: &Bootstrap) -> Result<Vec<Quality>> {
    let mut rows = Vec::new();
    for (group, indices) in &test.groups {
        let (n, total) = (indices.len(), scored.total(indices));
        let mut scores = Vec::new();
        for (metric, resampled) in metrics.iter().zip(scored.resampled(indices, metrics, bootstrap)?) {
            let of_sentences = variance(&resampled);
            let score = value(metric, &total);
            let by_seed: Vec<f64> = total.0.iter().map(|sum| of_seed(metric, sum)).collect();
            let seed_deviation = deviation(&by_seed);
            let parts: Vec<Part> =
                std::iter::once(Part::of_sentences(of_sentences, n)).chain(Part::of_seeds(&by_seed)).collect();
            let [low, high] = match is_fraction(metric, &[score]) {
                true => interval_of_fraction(score, n, &parts),
                false => {
                    let [least, most] = metric_of(metric).bounds();
                    let [low, high] = interval(score, &parts);
                    [low.max(least), high.min(most)]
                }
            };
            scores.push(Score { metric: metric.clone(), score, low, high, by_seed, seed_deviation });
        }
        rows.push(Quality { contestant: scored.name.clone(), group: group.id.clone(), scores });
    }
    Ok(rows)
}

/// The standard deviation of a sample; none for fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| variance(values).sqrt())
}
