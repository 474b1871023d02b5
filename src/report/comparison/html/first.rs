//! The first screen: what is claimed of the models in at most three sentences, and one table of them beside the chart by length.

use super::figure;
use crate::report::comparison::chart::Chart;
use crate::report::comparison::data::Comparison;
use crate::report::comparison::marker::key;
use crate::report::comparison::measured::{CostKind, Threshold};
use crate::report::comparison::scale::short;
use crate::report::comparison::score::{metric_label, shown};
use crate::report::comparison::words::{cost_at, cost_length, findings, first_sentences, longest_tested, ranked};
use crate::report::page::escape;
use std::fmt::Write;

/// Everything that is seen before anything is unfolded.
pub(super) fn first_screen(comparison: &Comparison, charts: &[Chart]) -> String {
    let mut text = "<ul id=\"headlines\">\n".to_string();
    for sentence in first_sentences(comparison) {
        let _ = writeln!(text, "<li>{}</li>", escape(&sentence));
    }
    text += "</ul>\n<div id=\"first\">\n";
    text += &overview(comparison);
    if let Some(chart) = charts.iter().find(|chart| chart.id.starts_with("quality-")) {
        text += &figure(chart, "first-");
    }
    text += "</div>\n";
    let all = findings(comparison);
    let _ = writeln!(text, "<details><summary>Everything that was found, in {} sentences</summary>", all.len());
    text += "<ul id=\"findings\">\n";
    for finding in all {
        let _ = writeln!(text, "<li>{}</li>", escape(&finding));
    }
    text + "</ul>\n</details>\n"
}

/// A cell of the table: what is shown, and the number by which it is sorted.
fn cell(shown: &str, value: Option<f64>) -> String {
    match value {
        Some(value) => format!("<td class=\"number\" data-value=\"{value}\">{}</td>", escape(shown)),
        None => format!("<td class=\"number\">{}</td>", escape(shown)),
    }
}

/// One row for each model, the best first.
fn overview(comparison: &Comparison) -> String {
    let metric = comparison.headline();
    let length = cost_length(comparison);
    let threshold = comparison.thresholds.first();
    let unit = comparison.task.length_unit.name();
    let mut columns = vec!["model".to_string(), metric_label(metric)];
    columns.extend(threshold.map(|row| format!("longest surely above {} ({unit})", shown(&row.metric, row.level))));
    if let Some(length) = length {
        columns.push(format!("seconds, update of {length} tokens"));
        columns.push("its memory (MiB)".into());
        columns.push(format!("bytes of state, {length} tokens"));
    }
    let mut text = "<div class=\"scroll\"><table class=\"sortable\" id=\"overview\"><thead><tr>".to_string();
    for (i, name) in columns.iter().enumerate() {
        let class = if i == 0 { "" } else { " class=\"number\"" };
        let _ = write!(text, "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>", escape(name));
    }
    text += "</tr></thead><tbody>\n";
    let ranked = ranked(comparison);
    for (name, _) in &ranked {
        let place = comparison.contestants.iter().position(|contestant| contestant.name == *name).unwrap_or_default();
        let _ = write!(
            text,
            "<tr data-series=\"{place}\"><th scope=\"row\">{}<span>{}</span></th>",
            super::in_theme(&key(place)),
            escape(name)
        );
        if let Some(score) = comparison.score(name, "all", metric) {
            let [value, low, high] = [score.score, score.low, score.high].map(|value| shown(metric, value));
            let _ = write!(
                text,
                "<td class=\"number\" data-value=\"{}\"><b>{}</b> <span class=\"small muted\">{} to {}</span></td>",
                score.score,
                escape(&value),
                escape(low.trim_end_matches(" %")),
                escape(high.trim_end_matches(" %"))
            );
        }
        if threshold.is_some() {
            let row = comparison.thresholds.iter().find(|row| row.contestant == *name);
            text += &reach(row, longest_tested(comparison));
        }
        if let Some(length) = length {
            let update = cost_at(comparison, name, CostKind::Update, length);
            let state =
                cost_at(comparison, name, CostKind::Decode, length).or(update).map(|row| row.state_bytes as f64);
            let memory = update.and_then(|row| row.peak_bytes).map(|bytes| bytes as f64 / f64::from(1 << 20));
            for value in [update.and_then(|row| row.seconds), memory, state] {
                text += &cell(&value.map_or("–".into(), short), value);
            }
        }
        text += "</tr>\n";
    }
    text + "</tbody></table>\n</div>\n"
}

/// The longest length at which a model is claimed to be good.
fn reach(row: Option<&Threshold>, longest: usize) -> String {
    match row.map(|row| row.longest_above) {
        Some(Some(above)) if above == longest => cell(&format!("{above}, the longest tested"), Some(above as f64)),
        Some(Some(above)) => cell(&above.to_string(), Some(above as f64)),
        Some(None) => cell("none", Some(0.0)),
        None => cell("–", None),
    }
}
