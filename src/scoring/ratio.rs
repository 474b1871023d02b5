//! Sums and ratios: the statistics behind every score that is a mean, and what makes statistics summable.

use std::ops::AddAssign;

/// Statistics of one sentence that can be added up to those of a corpus, a bucket or a bootstrap resample.
///
/// Implemented for everything that has a zero (`Default`) and can be added to.
pub trait Summable: Default + Send + Sync + for<'a> AddAssign<&'a Self> {
    /// The sum of `statistics`; zero where there are none.
    fn total<'a>(statistics: impl IntoIterator<Item = &'a Self>) -> Self
    where
        Self: 'a,
    {
        let mut total = Self::default();
        for statistic in statistics {
            total += statistic;
        }
        total
    }
}

impl<T: Default + Send + Sync + for<'a> AddAssign<&'a T>> Summable for T {}

/// A numerator and a denominator, added up separately: the statistics of accuracies, error rates and mean losses.
///
/// A perplexity, for one, is `exp` of the ratio of the summed loss in nats to the number of target tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ratio {
    /// What is counted: matches, errors, or a loss in nats.
    pub numerator: f64,
    /// What it is divided by: tokens, characters or sentences.
    pub denominator: f64,
}

impl Ratio {
    /// The ratio of two counts.
    pub fn of(numerator: usize, denominator: usize) -> Self {
        Self { numerator: numerator as f64, denominator: denominator as f64 }
    }

    /// The numerator over the denominator; `empty` where the denominator is zero.
    pub fn value_or(&self, empty: f64) -> f64 {
        if self.denominator == 0.0 { empty } else { self.numerator / self.denominator }
    }
}

impl AddAssign<&Ratio> for Ratio {
    fn add_assign(&mut self, other: &Self) {
        self.numerator += other.numerator;
        self.denominator += other.denominator;
    }
}
