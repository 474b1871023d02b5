//! The report as one self-contained page.

mod alignments;
mod first;

use super::chart::{Chart, SHADE};
use super::charts::charts;
use super::data::{Comparison, GroupKind};
use super::marker::COLOURS;
use super::tables::{Cell, Table, tables};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE, escape};
use crate::report::svg::{INK, LINE, MUTED, number};
use std::fmt::Write;

pub use alignments::map_svg;

/// Sections: the beginning of the names of their charts, their tables, their title, and what they show.
const SECTIONS: [(&str, &[&str], &str, &str); 5] = [
    (
        "quality",
        &["quality", "claims"],
        "Quality by source length",
        "The shaded part is longer than any sentence of training: what a model does there it was never shown.",
    ),
    (
        "positions",
        &["positions"],
        "What is forgotten",
        "Accuracy by the place of what a token needs. A model that forgets what it read first is low on the left, or on the right if it \
         reads the source backwards.",
    ),
    (
        "faults",
        &["faults"],
        "What goes wrong with length",
        "Answers that are too long or too short, that repeat themselves, end early, or leave words of the source unread.",
    ),
    (
        "cost",
        &["costs", "growth", "crossings"],
        "Cost by length",
        "One pair of sentences with random weights: only the size of the model and the length count.",
    ),
    ("curves", &[], "Learning", "How fast the models learnt, by updates and by time."),
];

/// Sections without charts: the end of their address, and their title.
const ALIGNMENTS: (&str, &str) = ("alignments", "What they looked at");
const FAIRNESS: (&str, &str) = ("fairness", "How fair it is");

/// The page of a comparison.
pub fn page(comparison: &Comparison) -> Page {
    let (charts, tables) = (charts(comparison), tables(comparison));
    // What was not measured has no charts, and no section.
    let charts_of = |prefix: &str| charts.iter().filter(|chart| chart.id.starts_with(prefix)).collect::<Vec<&Chart>>();
    let shown = SECTIONS.map(|section| (section, charts_of(section.0))).into_iter().filter(|(_, own)| !own.is_empty());
    let shown: Vec<_> = shown.collect();
    let mut contents: Vec<(&str, &str)> = shown.iter().map(|((id, _, title, _), _)| (*id, *title)).collect();
    if !comparison.alignments.is_empty() {
        contents.push(ALIGNMENTS);
    }
    contents.push(FAIRNESS);
    let mut body = head(comparison, &contents);
    let table = |id: &str| tables.iter().find(|table| table.id == id);
    body += &first::first_screen(comparison, &charts);
    for ((id, ids, title, about), own) in shown {
        body += &open((id, title));
        let _ = writeln!(body, "<p class=\"muted\">{}</p>", escape(about));
        body += "<div class=\"charts\">\n";
        own.iter().for_each(|chart| body += &figure(chart, "chart-"));
        body += "</div>\n";
        ids.iter().filter_map(|id| table(id)).for_each(|table| body += &folded(table));
        body += CLOSE;
    }
    if !comparison.alignments.is_empty() {
        body += &(open(ALIGNMENTS) + &alignments::alignments(comparison) + CLOSE);
    }
    body += &open(FAIRNESS);
    for id in ["contestants", "differences", "trials"] {
        body += &table(id).map(|table| html_table(table, true)).unwrap_or_default();
    }
    body += &same(comparison);
    body += CLOSE;
    Page {
        title: title(comparison),
        body,
        style: [VIEW_STYLE, include_str!("page.css")].concat(),
        script: [VIEW_SCRIPT, include_str!("page.js")].concat(),
        data: String::new(),
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

/// The beginning of a section that is folded: its title is what is clicked.
fn open((id, title): (&str, &str)) -> String {
    format!("<details class=\"section\"><summary><h2 id=\"{id}\">{}</h2></summary>\n", escape(title))
}
const CLOSE: &str = "</details>\n";

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
fn head(comparison: &Comparison, contents: &[(&str, &str)]) -> String {
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
    let mut text = format!(
        "<p class=\"lead about\">{}</p>\n<nav class=\"contents controls\" aria-label=\"Sections\">",
        escape(&lead)
    );
    for (id, title) in contents {
        let _ = write!(text, "<a href=\"#{id}\">{}</a>", escape(title));
    }
    text + "<span id=\"tools\" class=\"toolbar tools\" role=\"group\" aria-label=\"copy and wall\"></span></nav>\n"
}

/// The test set proper, and what was made for single lengths.
pub fn test_sentences(comparison: &Comparison) -> String {
    let proper = comparison.task.test_sentences;
    let of_length: Vec<_> = comparison.groups.iter().filter(|group| group.kind == GroupKind::Length).collect();
    let lengths: Vec<String> = of_length.iter().map(|group| group.label()).collect();
    match &lengths[..] {
        [] => format!("{proper} test sentences"),
        [length] => format!("{proper} test sentences and {} of {length} words", of_length[0].sentences),
        [lengths @ .., last] => {
            let (n, lengths) = (of_length[0].sentences, lengths.join(", "));
            format!("{proper} test sentences and {n} of each of the lengths {lengths} and {last}")
        }
    }
}

/// A chart whose colours follow the reader's theme. `prefix` begins its id.
pub(in crate::report) fn figure(chart: &Chart, prefix: &str) -> String {
    let caption = if chart.caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>", escape(&chart.caption))
    };
    let (id, drawing) = (escape(&chart.id), themed(&chart.svg(), &chart.title));
    format!("<figure class=\"scroll\" id=\"{prefix}{id}\">{drawing}{caption}</figure>\n")
}

/// The colours of a picture on paper become those of the page.
fn themed(svg: &str, title: &str) -> String {
    let start = svg.find("viewBox").unwrap_or(0);
    let open = svg.find('>').unwrap_or(0);
    let rest = &svg[open + 1..];
    // The first rectangle is the white ground.
    let rest = rest.find("/>").map_or(rest, |end| &rest[end + 2..]);
    let attributes = &svg[start..open];
    let least = number(least_width(svg));
    let label = escape(title);
    in_theme(&format!("<svg role=\"img\" aria-label=\"{label}\" style=\"min-width:{least}px\" {attributes}>{rest}"))
}

/// The width of a drawing below which its smallest text could not be read; narrower windows scroll.
fn least_width(svg: &str) -> f64 {
    /// Pixels.
    const LEAST_TEXT: f64 = 11.0;
    let numbers =
        |name: &'static str| svg.split(name).skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
    let width = numbers(" width=\"").next().unwrap_or_default();
    width * LEAST_TEXT / numbers(" font-size=\"").fold(LEAST_TEXT, f64::min)
}

/// The colours of drawings become those of the page.
fn in_theme(drawing: &str) -> String {
    let mut text = drawing.to_string();
    for (from, to) in [(INK, "--ink"), (MUTED, "--muted"), (LINE, "--line"), (SHADE, "--shade")] {
        text = text.replace(&format!("\"{from}\""), &format!("\"var({to})\""));
    }
    for (i, colour) in COLOURS.iter().enumerate() {
        text = text.replace(&format!("\"{colour}\""), &format!("\"var(--s{i})\""));
    }
    text
}

pub(in crate::report) fn folded(table: &Table) -> String {
    format!(
        "<details><summary>{}: {} rows<span class=\"print-only\"> in tables/{}.csv</span></summary>\n{}</details>\n",
        escape(&table.title),
        table.rows.len(),
        table.id,
        html_table(table, false)
    )
}

fn html_table(table: &Table, has_title: bool) -> String {
    let mut text = String::new();
    if has_title {
        let _ = writeln!(text, "<h3>{}</h3>", escape(&table.title));
    }
    let _ = write!(
        text,
        "<p class=\"muted\">{}</p>\n<div class=\"scroll\"><table class=\"sortable\" id=\"table-{}\"><thead><tr>",
        escape(&table.about),
        table.id
    );
    let is_number = |column: usize| table.rows.iter().any(|row| row[column].value.is_some());
    for (i, name) in table.columns.iter().enumerate() {
        let class = if is_number(i) { " class=\"number\"" } else { "" };
        let _ = write!(text, "<th scope=\"col\"{class}><button type=\"button\">{}</button></th>", escape(name));
    }
    text += "</tr></thead><tbody>\n";
    for row in &table.rows {
        text += "<tr>";
        row.iter().for_each(|cell| text += &html_cell(cell));
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}

fn html_cell(cell: &Cell) -> String {
    match cell.value {
        Some(value) => format!("<td class=\"number\" data-value=\"{value}\">{}</td>", escape(&cell.text)),
        None => format!("<td>{}</td>", escape(&cell.text)),
    }
}

fn same(comparison: &Comparison) -> String {
    let mut text = "<h3>What is the same</h3>\n<dl class=\"facts\">\n".to_string();
    let mut fact = |what: &str, value: &str| {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(what), escape(value));
    };
    for same in &comparison.same {
        fact(&same.what, &same.value);
    }
    fact("test data", &format!("SHA-256 {}", comparison.task.test_sha256));
    fact("decoding", &comparison.decoding);
    let r = &comparison.resampling;
    fact("resampling", &format!("{} resamples of the test sentences, seed {}", r.n_samples, r.seed));
    fact("measured on", &format!("{} ({}), {}", comparison.backend, comparison.device, comparison.platform));
    fact("command", &comparison.command);
    fact("version", &comparison.version);
    text += "</dl>\n";
    for note in &comparison.notes {
        let _ = writeln!(text, "<p class=\"muted\">{}</p>", escape(note));
    }
    text
}
