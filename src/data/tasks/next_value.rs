//! The next value of a noisy oscillation, an autoregressive process of order 2: `x_t = 1.5 x_(t-1) - 0.9 x_(t-2) + e_t`, with
//! independent shocks `e_t` of mean 0 and variance 1.
//!
//! The source is `x_1 .. x_n`, the target `x_2 .. x_(n+1)`: at each step the value of the next. The process swings with a period of
//! 9.5 steps, so that the last value alone does not say whether it rises or falls. Its variance is
//! `v = 1.9 / (0.1 (1.9^2 - 1.5^2)) = 475/34`, the correlation of neighbours `r = 1.5 / 1.9 = 15/19`. Mean squared errors:
//!
//! | forecast of `x_(t+1)` | formula | error |
//! | --- | --- | ---: |
//! | the best there is, from two values or more | variance of the shocks | 1 |
//! | the best from one value, `r x_t`; at the first step there is no better one | `v (1 - r^2)` = 100/19 | 5.26 |
//! | the value last seen, `x_t` | `2 v (1 - r)` = 100/17 | 5.88 |
//! | the mean, 0 | `v` | 13.97 |
//!
//! So of `n` steps the best mean error is `(100/19 + n - 1) / n`. Who sees the whole source reads the next value off it, with an
//! error of 0 at all steps but the last, where it is 1 (`n > 1`): `1 / n`.
//!
//! # Reference
//!
//! Box, Jenkins, Reinsel and Ljung, *Time Series Analysis*, fifth edition, 2015, section 3.2.4 (variance and correlations of a
//! second-order autoregressive process). Shocks are sums of twelve uniform numbers instead of normal ones: the errors above
//! depend on their variance alone, and the generated numbers are the same on every machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validate_lengths;
use crate::data::{Pair, Rng};
use crate::error::Result;

/// The weights of the last value and of the one before it.
const WEIGHTS: [f64; 2] = [1.5, -0.9];
/// The variance of the process, `v`.
const VARIANCE: f64 = 475.0 / 34.0;
/// The correlation of neighbours, `r`.
const CORRELATION: f64 = 15.0 / 19.0;
/// The longest source that may be asked for, in steps.
const LONGEST: usize = 100_000;

/// Settings of the next value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NextValueConfig {
    /// Shortest source, in steps, at least 1. Every length up to `max_len` is equally likely.
    pub min_len: usize,
    /// Longest source, in steps.
    pub max_len: usize,
}

impl Default for NextValueConfig {
    fn default() -> Self {
        Self { min_len: 10, max_len: 30 }
    }
}

impl NextValueConfig {
    pub(super) fn validate(&self) -> Result<()> {
        validate_lengths(self.min_len, self.max_len, LONGEST, "steps")
    }
}

/// One random pair.
pub(super) fn draw(config: &NextValueConfig, rng: &mut Rng) -> Pair {
    let len = rng.between(config.min_len, config.max_len);
    // The first two values are those of a process that has been going on for ever.
    let first = VARIANCE.sqrt() * shock(rng);
    let second = CORRELATION * first + (VARIANCE * (1.0 - CORRELATION * CORRELATION)).sqrt() * shock(rng);
    let mut values = vec![first, second];
    for t in 2..=len {
        values.push(WEIGHTS[0] * values[t - 1] + WEIGHTS[1] * values[t - 2] + shock(rng));
    }
    let text: Vec<String> = values.iter().map(|value| written(*value)).collect();
    Pair::new(text[..len].join(" "), text[1..].join(" "))
}

/// A number of mean 0 and variance 1, nearly normal.
fn shock(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// To three decimals, without the sign of a zero.
fn written(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}
