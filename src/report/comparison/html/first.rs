//! The first screen: what is claimed of the models in at most three sentences, and one table of them beside the chart by length.

use super::parts::{column, figure, in_theme};
use crate::report::comparison::chart::Chart;
use crate::report::comparison::claims::rows::Threshold;
use crate::report::comparison::data::Comparison;
use crate::report::comparison::marker::key;
use crate::report::comparison::measures::costs::rows::CostKind;
use crate::report::comparison::measures::costs::words::{cost_at, cost_length};
use crate::report::comparison::measures::quality::lengths::reached;
use crate::report::comparison::measures::quality::words::ranked;
use crate::report::comparison::scale::short;
use crate::report::comparison::score::{metric_label, shown};
use crate::report::comparison::words::{findings, first_sentences};
use maud::{Markup, html};

/// Everything that is seen before anything is unfolded.
pub(super) fn first_screen(comparison: &Comparison, chart: Option<&Chart>) -> Markup {
    let all = findings(comparison);
    html! {
        ul #headlines { @for sentence in first_sentences(comparison) { "\n" li { (sentence) } } }
        "\n"
        div #first {
            (overview(comparison))
            @if let Some(chart) = chart { (figure(chart, "first-")) }
        }
        "\n"
        details {
            summary { "Everything that was found, in " (all.len()) " sentences" }
            ul #findings { @for finding in all { "\n" li { (finding) } } }
        }
        "\n"
    }
}

/// A cell of the table: what is shown, and the number by which it is sorted.
fn cell(shown: &str, value: Option<f64>) -> Markup {
    html! { td.number data-value=[value] { (shown) } }
}

/// One row for each model, the best first.
fn overview(comparison: &Comparison) -> Markup {
    let metric = comparison.headline();
    let length = cost_length(comparison);
    let threshold = comparison.thresholds.first();
    let unit = comparison.task.length_unit.name();
    let mut columns = vec!["model".to_string(), metric_label(metric)];
    columns
        .extend(threshold.map(|row| format!("longest significantly above {} ({unit})", shown(&row.metric, row.level))));
    if let Some(length) = length {
        columns.push(format!("seconds, update of {length} tokens"));
        columns.push("its memory (MiB)".into());
        columns.push(format!("bytes of state, {length} tokens"));
    }
    html! {
        div.scroll {
            table.sortable #overview {
                thead { tr { @for (i, name) in columns.iter().enumerate() { (column(name, i > 0)) } } }
                tbody {
                    @for (name, _) in ranked(comparison) {
                        "\n" (row(comparison, name, length))
                    }
                }
            }
        }
        "\n"
    }
}

/// One model: its score, how far it reaches, what it costs at `length` tokens.
fn row(comparison: &Comparison, name: &str, length: Option<usize>) -> Markup {
    let metric = comparison.headline();
    let place = comparison.contestants.iter().position(|contestant| contestant.name == name).unwrap_or_default();
    html! {
        tr data-series=(place) {
            th scope="row" { (in_theme(&key(place))) span { (name) } }
            @if let Some(score) = comparison.score(name, "all", metric) {
                @let [value, low, high] = [score.score, score.low, score.high].map(|value| shown(metric, value));
                td.number data-value=(score.score) {
                    b { (value) } " "
                    span.small.muted { (low.trim_end_matches(" %")) " to " (high.trim_end_matches(" %")) }
                }
            }
            @if !comparison.thresholds.is_empty() {
                (reach(comparison, comparison.thresholds.iter().find(|row| row.contestant == name)))
            }
            @for value in length.map(|length| costs(comparison, name, length)).into_iter().flatten() {
                (cell(&value.map_or("–".into(), short), value))
            }
        }
    }
}

/// Seconds and MiB of an update, and the bytes that writing carries.
fn costs(comparison: &Comparison, name: &str, length: usize) -> [Option<f64>; 3] {
    let update = cost_at(comparison, name, CostKind::Update, length);
    let state = cost_at(comparison, name, CostKind::Decode, length).or(update).map(|row| row.state_bytes as f64);
    let memory = update.and_then(|row| row.peak_bytes).map(|bytes| bytes as f64 / f64::from(1 << 20));
    [update.and_then(|row| row.seconds), memory, state]
}

/// The longest length at which a model is claimed to be good.
fn reach(comparison: &Comparison, row: Option<&Threshold>) -> Markup {
    match row.map(|row| row.longest_above) {
        Some(Some(above)) => cell(&reached(comparison, above, ""), Some(above as f64)),
        Some(None) => cell("none", Some(0.0)),
        None => cell("–", None),
    }
}
