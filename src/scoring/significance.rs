//! Bootstrap resampling: how far a score depends on which sentences happened to be in the test set, and whether one
//! system is better than another or only luckier.
//!
//! Works on the per-sentence statistics of any score: [`BleuStatistics`](super::BleuStatistics),
//! [`ChrfStatistics`](super::ChrfStatistics), or [`Ratio`](super::Ratio) for means.

use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Summable;
use crate::error::{Error, Result};

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

/// Two systems on the same sentences.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The system to compare with.
    pub baseline: Estimate,
    /// The system in question.
    pub system: Estimate,
    /// The score of the system minus that of the baseline.
    pub difference: Estimate,
    /// One-sided: the share of resamples in which the difference is zero or has the other sign; 1 where there is no
    /// difference. One resample against the difference is taken for granted, so that this is never 0.
    pub p_value: f64,
    /// The number of resamples.
    pub n_samples: usize,
}

/// Draws resamples: as many sentences as the corpus has, with replacement.
///
/// # Reference
/// Koehn, "Statistical Significance Tests for Machine Translation Evaluation", 2004,
/// <https://aclanthology.org/W04-3250>. **Differs from the paper:** one is added to the numerator and the denominator
/// of the p-value.
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

    /// Compares two systems by their statistics of the same sentences. `score` has to rise with quality or to fall with
    /// it: the test only asks whether the difference keeps its sign.
    ///
    /// # Errors
    /// Where the systems differ in their number of sentences, or there are no sentences or no resamples.
    pub fn compare<S: Summable>(
        &self,
        baseline: &[S],
        system: &[S],
        score: impl Fn(&S) -> f64 + Sync,
    ) -> Result<Comparison> {
        if baseline.len() != system.len() {
            return Err(Error::message(format!(
                "the baseline has {} sentences and the system {}; compare translations of the same text",
                baseline.len(),
                system.len(),
            )));
        }
        let resamples = self
            .resample(system.len(), |indices| (score(&sum_at(baseline, indices)), score(&sum_at(system, indices))))?;
        let (of_baseline, of_system) = (score(&S::total(baseline)), score(&S::total(system)));
        let difference = of_system - of_baseline;
        let differences: Vec<f64> = resamples.iter().map(|(baseline, system)| system - baseline).collect();
        // All else is against the difference: no change, not a number, anything where there is no difference at all.
        let in_favour = differences.iter().filter(|&resampled| resampled * difference > 0.0).count();
        let (baselines, systems) = resamples.into_iter().unzip();
        Ok(Comparison {
            baseline: estimate(of_baseline, baselines),
            system: estimate(of_system, systems),
            difference: estimate(difference, differences),
            p_value: (self.n_samples - in_favour + 1) as f64 / (self.n_samples + 1) as f64,
            n_samples: self.n_samples,
        })
    }

    /// The variance of a score over resamples: `score` gets the places of the chosen sentences, `n` of them.
    ///
    /// # Errors
    /// Where there are no sentences or no resamples.
    pub fn variance(&self, n: usize, score: impl Fn(&[usize]) -> f64 + Sync) -> Result<f64> {
        Ok(super::variance(&self.resample(n, score)?))
    }

    /// `score` of every resample of `n_sentences` indices.
    fn resample<T: Send>(&self, n_sentences: usize, score: impl Fn(&[usize]) -> T + Sync) -> Result<Vec<T>> {
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
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
