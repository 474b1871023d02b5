//! Scores by their names in `results.json`: what a reader calls them, and which way is better.

use crate::scoring::Metric;

/// The name of a score in `results.json`.
pub fn key_of(metric: Metric) -> String {
    metric.name().replace('-', "_")
}

/// The score that a name in `results.json` stands for.
pub fn metric_of(key: &str) -> Metric {
    key.replace('_', "-").parse().unwrap_or(Metric::SequenceAccuracy)
}

/// What a score is called, with what it is a percentage of: `sequence accuracy (%)`, `PER (% of phones)`.
pub fn metric_label(key: &str) -> String {
    let metric = metric_of(key);
    match metric.unit() {
        None => noun(key),
        // Its name says it.
        Some(unit) if metric.label().contains(unit.trim_end_matches('s')) => format!("{} (%)", noun(key)),
        Some(unit) => format!("{} (% of {unit})", noun(key)),
    }
}

/// What a score is called.
pub(super) fn noun(key: &str) -> String {
    metric_of(key).label().to_string()
}

/// Fractions are shown as percentages.
pub fn percent(key: &str, value: f64) -> f64 {
    if metric_of(key).unit().is_some() { 100.0 * value } else { value }
}

/// A score as a reader sees it, such as `93.1 %`.
pub(super) fn shown(key: &str, value: f64) -> String {
    format!("{:.1}{}", percent(key, value), metric_of(key).sign())
}

/// Whether `one` is a better score than `other`.
pub(super) fn is_better(key: &str, one: f64, other: f64) -> bool {
    if metric_of(key).lower_is_better() { one < other } else { one > other }
}

/// A text with a capital at its beginning.
pub(in crate::report) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
