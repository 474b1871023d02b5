//! What may be said about a score and about the difference of two: sentences and seeds are both samples.
//!
//! Another set of test sentences would give another score, and so would another seed. A statement about a model, rather than about
//! the runs at hand, has to reckon with both: the variance of a mean over seeds is the sum of
//!
//! - that over sentences, by resampling them (Koehn 2004), with one degree of freedom less than there are sentences, and
//! - that over seeds, s^2 / n, with n - 1 degrees of freedom, for each model.
//!
//! Its degrees of freedom follow Welch and Satterthwaite, and intervals and tests use Student's t. What depends on sentences and seeds
//! together is counted in both parts, so that statements are rather too careful than too bold; a simulation in the tests shows by
//! how much. A single seed says nothing about others: then the second part is missing, and the statement is about these runs.
//!
//! # References
//! - Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are Involved", 1947
//! - Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927
//! - Newcombe, "Interval Estimation for the Difference Between Independent Proportions", 1998
//! - Bonett and Price, "Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on Paired Data", 2012
//! - Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};

/// The part of repetitions in which an interval holds what it is an interval of.
pub const CONFIDENCE: f64 = 0.95;
/// The most false claims of a difference that a family of tests may make: one in twenty families.
pub const LEVEL: f64 = 0.05;
/// Fewer sentences than these say nothing about others: whatever they show, a coin could have shown.
pub const LEAST_SENTENCES: usize = 6;
/// Smaller p-values are not told apart.
const LEAST_P: f64 = 1e-15;

/// A part of a variance, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// The variance of the estimate that comes from here.
    pub variance: f64,
    /// Degrees of freedom, at least 1.
    pub freedom: f64,
}

impl Part {
    /// That of `n` sentences, by the variance over resamples.
    pub fn of_sentences(variance: f64, n: usize) -> Self {
        Self { variance, freedom: n.saturating_sub(1).max(1) as f64 }
    }

    /// That behind an interval of this half width, made with Student's factor of `n` values.
    pub fn of_interval(half: f64, n: usize) -> Self {
        let freedom = n.saturating_sub(1).max(1) as f64;
        Self { variance: (half / quantile(freedom)).powi(2), freedom }
    }

    /// That of the mean over seeds; nothing for a single one, which has no spread.
    pub fn of_seeds(scores: &[f64]) -> Option<Self> {
        let n = scores.len();
        (n > 1).then(|| Self { variance: variance(scores) / n as f64, freedom: (n - 1) as f64 })
    }
}

/// The variance of a sample (n - 1); 0 for fewer than two values.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// The sum of all parts, its degrees of freedom after Welch and Satterthwaite.
fn total(parts: &[Part]) -> Part {
    let variance: f64 = parts.iter().map(|part| part.variance).sum();
    let spread: f64 = parts.iter().map(|part| part.variance.powi(2) / part.freedom).sum();
    // Without any variance the least that is known is taken for all.
    let least = parts.iter().map(|part| part.freedom).fold(f64::INFINITY, f64::min);
    let freedom = if spread > 0.0 { variance.powi(2) / spread } else { least };
    Part { variance, freedom: freedom.max(1.0) }
}

fn student(freedom: f64) -> StudentsT {
    // Beyond this it is the normal distribution to all digits that are shown.
    StudentsT::new(0.0, 1.0, freedom.min(1e6)).expect("degrees of freedom are at least 1")
}

/// The factor of the standard error at the ends of an interval.
fn quantile(freedom: f64) -> f64 {
    quantile_at(freedom, 1.0 - CONFIDENCE)
}

/// The factor beyond which a value lies, on either side, with the probability `outside`. The crate's own search does not end for many
/// degrees of freedom; this is Newton's on the logarithms of both, which are a line far out and bent one way before, and halves what is
/// left where a step would leave it.
fn quantile_at(freedom: f64, outside: f64) -> f64 {
    if outside >= 1.0 {
        return 0.0;
    }
    let student = student(freedom);
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), f64::MAX.ln());
    let mut log = 0.0_f64;
    for _ in 0..100 {
        let t = log.exp();
        let beyond = student.sf(t);
        let excess = (2.0 * beyond / outside).ln();
        // As near as the probability itself is known.
        if excess.abs() <= 4.0 * f64::EPSILON {
            break;
        }
        if excess > 0.0 {
            low = log;
        } else {
            high = log;
        }
        let mut next = log + excess * beyond / (t * student.pdf(t));
        if !(next > low && next < high) {
            next = 0.5 * (low + high);
        }
        let step = (next - log).abs();
        log = next;
        if step <= 4.0 * f64::EPSILON {
            break;
        }
    }
    log.exp()
}

/// An interval around a score without bounds, such as BLEU.
pub fn interval(estimate: f64, parts: &[Part]) -> [f64; 2] {
    let Part { variance, freedom } = total(parts);
    let half = quantile(freedom) * variance.sqrt();
    [estimate - half, estimate + half]
}

/// An interval around a fraction of 1 over `n` sentences, the first part of whose variance is that over sentences. It is Wilson's for
/// as many sentences as would have that variance, so that it has a width where all are right, too: 100 of 100 may be 97 of 100 next
/// time. What seeds add is added as squares of distances (Newcombe 1998), with Student's factor for so many seeds.
pub fn interval_of_fraction(fraction: f64, n: usize, parts: &[Part]) -> [f64; 2] {
    let [below, above] = distances(fraction, n, parts, 1.0 - CONFIDENCE);
    // All or none is within, whatever rounding makes of it.
    let low = if fraction <= 0.0 { 0.0 } else { (fraction - below).max(0.0) };
    let high = if fraction >= 1.0 { 1.0 } else { (fraction + above).min(1.0) };
    [low, high]
}

/// How far the ends of an interval are from the fraction that it is of, the lower and the upper one, where a value lies outside with the
/// probability `outside`.
fn distances(fraction: f64, n: usize, parts: &[Part], outside: f64) -> [f64; 2] {
    let Some((sentences, seeds)) = parts.split_first() else { return [f64::INFINITY; 2] };
    let own = fraction * (1.0 - fraction);
    let n = effective(fraction, n, sentences);
    let t = quantile_at(sentences.freedom, outside);
    let scale = 1.0 + t * t / n;
    let centre = (fraction + t * t / (2.0 * n)) / scale;
    let half = t * (own / n + t * t / (4.0 * n * n)).sqrt() / scale;
    let of_seeds: f64 = seeds.iter().map(|part| quantile_at(part.freedom, outside).powi(2) * part.variance).sum();
    [centre - half, centre + half].map(|end| ((fraction - end).powi(2) + of_seeds).sqrt())
}

/// Independent sentences that would have the variance of a fraction over `n` sentences.
fn effective(fraction: f64, n: usize, sentences: &Part) -> f64 {
    let own = fraction * (1.0 - fraction);
    if own > 0.0 && sentences.variance > 0.0 { own / sentences.variance } else { n.max(1) as f64 }
}

/// A difference between two scores of the same sentences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// The one score minus the other.
    pub estimate: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The probability of a difference as large as this, in either direction, where there is none; nothing where there are too few
    /// sentences to say.
    pub p_value: Option<f64>,
}

/// The difference of two scores of the same `n` sentences, the first part of whose variance is that over sentences. Fractions are
/// shrunk towards no difference by two sentences that speak against each other (Bonett and Price): else a handful of equal outcomes
/// would have no variance at all.
pub fn contrast(difference: f64, is_fraction: bool, n: usize, parts: &[Part]) -> Contrast {
    let mut parts = parts.to_vec();
    let mut centre = difference;
    if is_fraction && let Some(sentences) = parts.first_mut() {
        let (n, more) = (n as f64, n as f64 + 2.0);
        centre = difference * n / more;
        sentences.variance = sentences.variance * (n / more).powi(2) + 2.0 / more.powi(2);
    }
    let Part { variance, freedom } = total(&parts);
    let error = variance.sqrt();
    let half = quantile(freedom) * error;
    let p_value = match error {
        _ if n < LEAST_SENTENCES => None,
        0.0 if centre == 0.0 => Some(1.0),
        0.0 => Some(0.0),
        _ => Some(2.0 * student(freedom).sf((centre / error).abs())),
    };
    // A few seeds that differ much have an interval without end; two fractions of 1 do not differ by more than 1.
    let most = if is_fraction { 1.0 } else { f64::INFINITY };
    Contrast { estimate: difference, low: (centre - half).max(-most), high: (centre + half).min(most), p_value }
}

/// How far a fraction of 1 over `n` sentences is from a `level` between 0 and 1, as [`interval_of_fraction`] has it. The p-value is that
/// of the test of which that interval is the inverse, so that one never says what the other does not: the probability of being outside
/// of the narrowest interval that holds the level. Over sentences alone it is the score test, with the variance that they would
/// have at the level, so that 100 of 100 have one, too.
pub fn contrast_with_level(fraction: f64, level: f64, n: usize, parts: &[Part]) -> Contrast {
    let [low, high] = interval_of_fraction(fraction, n, parts);
    let p_value = (n >= LEAST_SENTENCES && !parts.is_empty()).then(|| match parts {
        [sentences] => {
            let variance = level * (1.0 - level) / effective(fraction, n, sentences);
            2.0 * student(sentences.freedom).sf((fraction - level).abs() / variance.sqrt())
        }
        _ => outside_of_narrowest((fraction - level).abs(), |outside| {
            distances(fraction, n, parts, outside)[usize::from(level > fraction)]
        }),
    });
    Contrast { estimate: fraction - level, low: low - level, high: high - level, p_value }
}

/// The probability of being outside of an interval with an end at a `distance`; `distance_of` says how far it is for a probability: the
/// less may be outside, the farther. By false position (the Illinois algorithm) on logarithms of both, since of few seeds a distance
/// can be anything up to a million times a million.
fn outside_of_narrowest(distance: f64, distance_of: impl Fn(f64) -> f64) -> f64 {
    if distance <= 0.0 {
        return 1.0;
    }
    let excess = |log: f64| (0.5 + 0.5 * distance_of(log.exp()) / distance).ln();
    let [mut low, mut high] = [LEAST_P.ln(), 0.0].map(|log| (log, excess(log)));
    if low.1 <= 0.0 {
        return LEAST_P;
    }
    // All is outside of an interval without a width.
    if high.1 >= 0.0 {
        return 1.0;
    }
    let mut was_above = None;
    for _ in 0..60 {
        let log = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        let middle = (log, excess(log));
        if middle.1.abs() < 1e-12 {
            return log.exp();
        }
        let is_above = middle.1 > 0.0;
        // An end that stays for the second time would stay for long.
        let stays = if was_above == Some(is_above) { 0.5 } else { 1.0 };
        if is_above {
            low = middle;
            high.1 *= stays;
        } else {
            high = middle;
            low.1 *= stays;
        }
        was_above = Some(is_above);
    }
    low.0.exp()
}

/// Holm's correction: p-values that may be compared with [`LEVEL`] whatever their number, in the same order. What has none is no
/// test.
pub fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p_values.iter().enumerate().filter_map(|(i, p)| Some((i, (*p)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let n = order.len();
    let mut corrected = vec![None; p_values.len()];
    let mut least: f64 = 0.0;
    for (rank, (i, p)) in order.into_iter().enumerate() {
        least = least.max((p * (n - rank) as f64).min(1.0));
        corrected[i] = Some(least);
    }
    corrected
}

/// What a difference comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// There is one.
    Different,
    /// There may be one, but it is within the margin.
    Equivalent,
    /// It could be either.
    #[default]
    Undecided,
}

impl Verdict {
    /// From a corrected p-value and the interval; `margin` is how large a difference may be that does not matter.
    pub fn new(contrast: &Contrast, corrected: Option<f64>, margin: f64) -> Self {
        match corrected {
            None => Self::Undecided,
            Some(p) if p < LEVEL => Self::Different,
            Some(_) if contrast.low > -margin && contrast.high < margin => Self::Equivalent,
            Some(_) => Self::Undecided,
        }
    }
}
