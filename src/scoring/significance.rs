//! Bootstrap resampling: how far a score depends on which sentences happened to be in the test set.
//!
//! Works on the per-sentence statistics of any score: [`BleuStatistics`](super::BleuStatistics),
//! [`ChrfStatistics`](super::ChrfStatistics), or [`Ratio`](super::Ratio) for means.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Summable;
use crate::error::{Error, Result};
use crate::random::{GAMMA, mix};

/// A score and the interval that holds it with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The score of the corpus itself, in the unit of the score.
    pub score: f64,
    /// What 2.5 % of the resamples are below.
    pub low: f64,
    /// What 2.5 % of the resamples are above.
    pub high: f64,
}

/// Draws resamples: as many sentences as the corpus has, with replacement.
///
/// # Reference
/// Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004,
/// <https://aclanthology.org/W04-3250>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// The number of resamples.
    pub n_samples: usize,
    /// What the random choices start from; equal seeds give equal results, whatever the number of threads.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Self { n_samples: 1000, seed: 12345 }
    }
}

impl Bootstrap {
    /// The score of one system and its confidence interval.
    ///
    /// # Errors
    /// Where there are no sentences or no resamples.
    pub fn estimate<S: Summable>(&self, statistics: &[S], score: impl Fn(&S) -> f64 + Sync) -> Result<Estimate> {
        let resamples = self.resample(statistics.len(), |indices| score(&sum_at(statistics, indices)))?;
        Ok(estimate(score(&S::total(statistics)), resamples))
    }

    /// The variance of a score over resamples: `score` gets the places of the chosen sentences, `n` of them.
    ///
    /// # Errors
    /// Where there are no sentences or no resamples.
    pub fn variance(&self, n: usize, score: impl Fn(&[usize]) -> f64 + Sync) -> Result<f64> {
        Ok(super::variance(&self.resample(n, score)?))
    }

    /// `score` of every resample of `n_sentences` indices.
    ///
    /// # Errors
    /// Where there are no sentences or no resamples.
    pub fn resample<T: Send>(&self, n_sentences: usize, score: impl Fn(&[usize]) -> T + Sync) -> Result<Vec<T>> {
        if n_sentences == 0 || self.n_samples == 0 {
            return Err(Error::message(format!(
                "resampling needs at least one sentence and one resample, got {n_sentences} and {}",
                self.n_samples
            )));
        }
        // A generator for each resample makes the result independent of the order in which threads take them.
        let mut seeds = SplitMix64 { state: self.seed };
        let seeds: Vec<u64> = (0..self.n_samples).map(|_| seeds.next()).collect();
        let resample = |&state: &u64| {
            let mut generator = SplitMix64 { state };
            let indices: Vec<usize> = (0..n_sentences).map(|_| generator.below(n_sentences)).collect();
            score(&indices)
        };
        Ok(seeds.par_iter().map(resample).collect())
    }
}

/// The sum of the statistics at `indices`.
fn sum_at<S: Summable>(statistics: &[S], indices: &[usize]) -> S {
    S::total(indices.iter().map(|&index| &statistics[index]))
}

/// The interval between the resamples that are left after dropping a fortieth at either end.
fn estimate(score: f64, mut resamples: Vec<f64>) -> Estimate {
    resamples.sort_unstable_by(f64::total_cmp);
    let n_dropped = resamples.len() / 40;
    Estimate { score, low: resamples[n_dropped], high: resamples[resamples.len() - 1 - n_dropped] }
}

/// A small generator of random numbers whose values will never change with a new version of a library.
///
/// # Reference
/// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014; the constants are its variant
/// `splitmix64` by Vigna, <https://prng.di.unimi.it/splitmix64.c>.
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// An index below `bound`; for corpora of any practical size all are equally likely.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_gives_the_published_sequence() {
        let mut generator = SplitMix64 { state: 1234567 };
        let expected = [6457827717110365317, 3203168211198807973, 9817491932198370423];
        assert_eq!(expected.map(|_| generator.next()), expected);
    }
}
