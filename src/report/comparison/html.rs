//! The report as one self-contained page.

mod first;
pub(super) mod parts;

use super::chart::Chart;
use super::contestants;
use super::data::{Comparison, GroupKind};
use super::measures::{MEASURES, Measure};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE};
use maud::{Markup, html};

use parts::sortable;
pub(in crate::report) use parts::{contents, facts, figure, folded, section};

/// The address of the last section, and its title.
const FAIRNESS: (&str, &str) = ("fairness", "How fair it is");

/// The page of a comparison.
pub fn page(comparison: &Comparison) -> Page {
    // What was not measured has no charts and no pictures, and no section.
    let shown: Vec<(&Measure, Vec<Chart>, Option<Markup>)> = MEASURES
        .iter()
        .map(|measure| (measure, measure.drawn(comparison), (measure.pictures)(comparison)))
        .filter(|(_, charts, pictures)| !charts.is_empty() || pictures.is_some())
        .collect();
    let mut contents: Vec<(&str, &str)> = shown.iter().map(|(measure, ..)| (measure.id, measure.title)).collect();
    contents.push(FAIRNESS);
    let by_length = shown.iter().flat_map(|(_, charts, _)| charts).find(|chart| chart.id.starts_with("quality-"));
    let body = html! {
        (head(comparison, &contents))
        (first::first_screen(comparison, by_length))
        @for (measure, charts, pictures) in &shown {
            (section((measure.id, measure.title), false, html! {
                p.muted { (measure.about) }
                @if !charts.is_empty() { div.charts { @for chart in charts { (figure(chart, "chart-")) } } }
                @if let Some(pictures) = pictures { (pictures) }
                @for table in measure.listed(comparison) { (folded(&table)) }
            }))
        }
        (section(FAIRNESS, false, html! {
            @for table in contestants::tables(comparison) {
                h3 { (table.title) }
                (sortable(&table))
            }
            (same(comparison))
        }))
    };
    Page {
        title: title(comparison),
        body,
        style: [VIEW_STYLE, include_str!("page.css")].concat(),
        script: [VIEW_SCRIPT, include_str!("page.js")].concat(),
        ..Page::default()
    }
}

fn title(comparison: &Comparison) -> String {
    /// More names than a title can hold.
    const MANY: usize = 5;
    let names: Vec<&str> = comparison.contestants.iter().map(|contestant| contestant.name.as_str()).collect();
    let who = if names.len() < MANY { names.join(", ") } else { format!("{} models", names.len()) };
    format!("{}: {who}", comparison.task.name)
}

/// With how many seeds each model was trained.
fn seeds(counts: &[(&str, usize)]) -> String {
    let count = |n: usize| if n == 1 { "one seed".to_string() } else { format!("{n} seeds") };
    let each = if counts.len() == 1 { "" } else { " each" };
    let n = counts.iter().map(|(_, n)| *n).max().unwrap_or(1);
    let mut text = if counts.iter().all(|(_, other)| *other == n) {
        format!("{}{each}", count(n))
    } else {
        counts.iter().map(|(name, n)| format!("{} of {name}", count(*n))).collect::<Vec<_>>().join(", ")
    };
    text[..1].make_ascii_uppercase();
    if n > 1 { format!("{text}; scores are means over the seeds. ") } else { format!("{text}. ") }
}

/// What the page is about, and its contents.
fn head(comparison: &Comparison, sections: &[(&str, &str)]) -> Markup {
    let task = &comparison.task;
    let models = match comparison.contestants.len() {
        1 => "1 model".to_string(),
        n => format!("{n} models"),
    };
    let seeds = seeds(&comparison.contestants.iter().map(|c| (c.name.as_str(), c.seeds.len())).collect::<Vec<_>>());
    let lead = format!(
        "{models}, {} training pairs of up to {} {}, {}. {seeds}Decoding: {}.",
        task.train_pairs,
        task.trained_length,
        task.length_unit.name(),
        test_sentences(comparison),
        comparison.decoding
    );
    let links = sections.iter().map(|(id, title)| (format!("#{id}"), title.to_string()));
    html! {
        p.lead.about { (lead) }
        (contents(links))
    }
}

/// The test set proper, and what was made for single lengths.
pub fn test_sentences(comparison: &Comparison) -> String {
    let proper = comparison.task.test_sentences;
    let of_length: Vec<_> = comparison.groups.iter().filter(|group| group.kind == GroupKind::Length).collect();
    let lengths: Vec<String> = of_length.iter().map(|group| group.label()).collect();
    match &lengths[..] {
        [] => format!("{proper} test sentences"),
        [length] => {
            let unit = comparison.task.length_unit.name();
            format!("{proper} test sentences and {} of {length} {unit}", of_length[0].sentences)
        }
        [lengths @ .., last] => {
            let (n, lengths) = (of_length[0].sentences, lengths.join(", "));
            format!("{proper} test sentences and {n} of each of the lengths {lengths} and {last}")
        }
    }
}

fn same(comparison: &Comparison) -> Markup {
    let r = &comparison.resampling;
    let named = [
        ("test data", format!("SHA-256 {}", comparison.task.test_sha256)),
        ("decoding", comparison.decoding.clone()),
        ("resampling", format!("{} resamples of the test sentences, seed {}", r.n_samples, r.seed)),
        ("measured on", format!("{} ({}), {}", comparison.backend, comparison.device, comparison.platform)),
        ("command", comparison.command.clone()),
        ("version", comparison.version.clone()),
    ];
    let found = comparison.same.iter().map(|same| (same.what.as_str(), same.value.clone()));
    html! {
        h3 { "What is the same" }
        (facts(found.chain(named)))
        @for note in &comparison.notes { p.muted { (note) } }
    }
}
