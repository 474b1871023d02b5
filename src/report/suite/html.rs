//! A suite as one self-contained page: the matrix first.

use super::charts::{by_length, by_state, costs};
use super::data::{Standing, Suite, SuiteTask};
use super::matrix::{chance, columns, score_in, shown, table};
use super::words::{self, findings, place};
use crate::report::comparison::chart::Chart;
use crate::report::comparison::html::{figure, folded};
use crate::report::comparison::{Comparison, Group, score};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE, escape};
use std::fmt::Write;

/// The page of a suite; `comparisons` are those of its tasks, in their order.
pub fn page(suite: &Suite, comparisons: &[Comparison]) -> Page {
    let sections = [
        ("lengths", "Accuracy by length", LENGTHS, by_length(suite, comparisons)),
        ("state", "Quality against bytes of state", STATE, by_state(suite)),
        ("cost", "Time and memory by length", COST, costs(suite, comparisons)),
    ];
    let shown: Vec<_> = sections.into_iter().filter(|(.., charts)| !charts.is_empty()).collect();
    let contents: Vec<(&str, &str)> = shown.iter().map(|(id, title, ..)| (*id, *title)).collect();
    let mut body = head(suite, &contents);
    body += &matrix(suite);
    for (id, title, about, charts) in &shown {
        body += &section((id, title), about, charts);
    }
    body += "<details class=\"section\"><summary><h2 id=\"cells\">Every cell, and how it was made</h2></summary>\n";
    body += &folded(&table(suite));
    body += &facts(suite);
    body += "</details>\n";
    Page {
        title: format!("{} families, {} tasks", suite.families.len(), suite.tasks.len()),
        heading: String::new(),
        body,
        style: [VIEW_STYLE, include_str!("../comparison/page.css"), include_str!("page.css")].concat(),
        script: [VIEW_SCRIPT, include_str!("../comparison/page.js")].concat(),
        data: String::new(),
        ..Page::default()
    }
}

const LENGTHS: &str =
    "The shaded part is longer than any source of training: what a model does there it was never shown.";
const STATE: &str = "Writing carries its state from step to step. Attention keeps every token, so that its state grows with the text; a \
                     recurrence has one size for all. The sources are the longest of the test.";
const COST: &str = "One pair of sentences with random weights: only the size of the model and the length count.";

fn head(suite: &Suite, contents: &[(&str, &str)]) -> String {
    let seeds = match suite.n_seeds() {
        1 => "one seed each".to_string(),
        n => format!("{n} seeds each, scores are their means"),
    };
    let lead = format!("{} {seeds}.", suite.about.trim_end());
    let mut text = format!("<p class=\"lead about\">{}</p>\n", escape(&lead));
    text += "<nav class=\"contents controls\" aria-label=\"Sections\">";
    for (id, title) in contents.iter().chain(&[("cells", "Every cell")]) {
        let _ = write!(text, "<a href=\"#{id}\">{}</a>", escape(title));
    }
    for task in &suite.tasks {
        let name = escape(&task.name);
        let _ = write!(text, "<a href=\"../{name}/report/index.html\">all of {name}</a>");
    }
    text + "<span id=\"tools\" class=\"toolbar tools\" role=\"group\" aria-label=\"copy and wall\"></span></nav>\n"
}

/// The matrix, and what is claimed of it.
fn matrix(suite: &Suite) -> String {
    let columns = columns(suite);
    let mut text = "<div id=\"first\" class=\"suite\">\n<div class=\"scroll\"><table class=\"sortable\" id=\"overview\"><thead><tr><th \
                    scope=\"col\"><button type=\"button\">family</button></th>"
        .to_string();
    for (task, group) in &columns {
        let label = score::metric_label(&task.metric);
        let _ = write!(
            text,
            "<th scope=\"col\" class=\"number\" data-tip=\"{}: {}; {}\"><button type=\"button\">{}</button></th>",
            escape(&place(task, group)),
            escape(&task.about),
            escape(&label),
            escape(&task.column(group))
        );
    }
    text += "</tr></thead><tbody>\n";
    for (i, family) in suite.families.iter().enumerate() {
        let _ = write!(
            text,
            "<tr data-series=\"{i}\"><th scope=\"row\" data-tip=\"{}\">{}</th>",
            escape(&family.model),
            escape(&family.name)
        );
        for column in &columns {
            let metric = &column.0.metric;
            let Some(cell) = score_in(suite, &family.name, *column) else {
                text += "<td class=\"number\">–</td>";
                continue;
            };
            let [value, low, high] = [cell.score, cell.low, cell.high].map(|value| shown(metric, value));
            let (class, standing) = match cell.standing {
                Standing::Best => ("level", "the best"),
                Standing::Equivalent => ("level", "equal to the best"),
                Standing::Undecided => ("level", "not told apart from the best"),
                Standing::Behind => ("behind", "worse than the best"),
                Standing::Unsolved => ("behind", "no family has anything right here"),
            };
            let share = (score::percent(metric, cell.score) / 100.0).clamp(0.0, 1.0);
            let share = if score::metric_of(metric).lower_is_better() { 1.0 - share } else { share };
            let _ = write!(
                text,
                "<td class=\"number {class}\" style=\"--share: {share:.3}\" data-value=\"{}\" data-tip=\"{standing}\"><b>{value}</b> \
                 <span class=\"small muted\">{low} to {high}</span></td>",
                cell.score
            );
        }
        text += "</tr>\n";
    }
    let mut labels: Vec<String> = suite.tasks.iter().map(|task| score::metric_label(&task.metric)).collect();
    labels.dedup();
    let _ = write!(
        text,
        "</tbody>{}</table>\n<p class=\"muted\">{}, with 95 % intervals over sentences and seeds. Underlined: the best of the column, or not \
         told apart from it; not underlined: worse than the best. Guessing knows how many words an answer has, and which words answers are made of.</p></div>\n\
         </div>\n<ul id=\"findings\">\n",
        guessing(&columns),
        escape(&words::capitalized(&labels.join(", ")))
    );
    for finding in findings(suite) {
        let _ = writeln!(text, "<li>{}</li>", escape(&finding));
    }
    text + "</ul>\n"
}

/// A last row of the matrix: what guessing comes to, where that is known.
fn guessing(columns: &[(&SuiteTask, &Group)]) -> String {
    let cell =
        |column: &(&SuiteTask, &Group)| chance(*column).map_or("–".into(), |chance| shown(&column.0.metric, chance));
    let cells: Vec<String> =
        columns.iter().map(|column| format!("<td class=\"number muted\">{}</td>", escape(&cell(column)))).collect();
    format!("<tfoot><tr><th scope=\"row\" class=\"muted\">guessing</th>{}</tr></tfoot>", cells.concat())
}

fn section((id, title): (&str, &str), about: &str, charts: &[Chart]) -> String {
    let mut text =
        format!("<details class=\"section\" open><summary><h2 id=\"{id}\">{}</h2></summary>\n", escape(title));
    let _ = writeln!(text, "<p class=\"muted\">{}</p>\n<div class=\"charts\">", escape(about));
    charts.iter().for_each(|chart| text += &figure(chart, "chart-"));
    text + "</div>\n</details>\n"
}

fn facts(suite: &Suite) -> String {
    let mut text = "<dl class=\"facts\">\n".to_string();
    let facts = [
        ("suite", suite.name.clone()),
        ("measured on", format!("{} ({}), {}", suite.backend, suite.device, suite.platform)),
        ("command", suite.command.clone()),
        ("version", suite.version.clone()),
    ];
    for (what, value) in facts {
        let _ = writeln!(text, "<dt>{what}</dt><dd>{}</dd>", escape(&value));
    }
    text + "</dl>\n"
}
