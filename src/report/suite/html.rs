//! A suite as one self-contained page: the matrix first.

use super::charts::{by_length, by_state, costs, with_comparison};
use super::data::{Suite, SuiteTask};
use super::matrix::{beside, chance, columns, score_in, shown, table};
use super::words::{findings, marks, place};
use crate::report::comparison::html::{contents, facts, figure, folded, section};
use crate::report::comparison::{Comparison, Group, score};
use crate::report::page::{Page, VIEW_SCRIPT, VIEW_STYLE};
use maud::{Markup, html};

/// The page of a suite; `comparisons` are those of its tasks, in their order, as far as they are there.
pub fn page(suite: &Suite, comparisons: &[Option<Comparison>]) -> Page {
    let sections = [
        ("lengths", "Accuracy by length", LENGTHS, by_length(suite, comparisons)),
        ("state", "Quality against bytes of state", STATE, by_state(suite)),
        ("cost", "Time and memory by length", COST, costs(suite, comparisons)),
    ];
    let shown: Vec<_> = sections.into_iter().filter(|(.., charts)| !charts.is_empty()).collect();
    let titles: Vec<(&str, &str)> = shown.iter().map(|(id, title, ..)| (*id, *title)).collect();
    let body = html! {
        (head(suite, &titles, with_comparison(suite, comparisons).map(|(task, _)| task.name.as_str())))
        (matrix(suite))
        @for (id, title, about, charts) in &shown {
            (section((id, title), true, html! {
                p.muted { (about) }
                div.charts { @for chart in charts { (figure(chart, "chart-")) } }
            }))
        }
        (section(("cells", "Every cell, and how it was made"), false, html! {
            (folded(&table(suite)))
            (made(suite))
        }))
    };
    let several = |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let families = several(suite.families.len(), "family", "families");
    Page {
        title: format!("{families}, {}", several(suite.tasks.len(), "task", "tasks")),
        body,
        style: [VIEW_STYLE, include_str!("../comparison/page.css"), include_str!("page.css")].concat(),
        script: [VIEW_SCRIPT, include_str!("../comparison/page.js")].concat(),
        ..Page::default()
    }
}

const LENGTHS: &str =
    "The shaded part is longer than any source of training: what a model does there it was never shown.";
const STATE: &str = "Writing carries its state from step to step. Attention keeps every token, so that its state grows with the text; a \
                     recurrence has one size for all. The sources are the longest of the test.";
const COST: &str = "One pair of sentences with random weights: only the size of the model and the length count.";

/// What the page is about, and its contents; `tasks` are those whose reports lie beside it.
fn head<'a>(suite: &Suite, sections: &[(&str, &str)], tasks: impl Iterator<Item = &'a str>) -> Markup {
    let seeds = match suite.n_seeds() {
        1 => "One seed each".to_string(),
        n => format!("{n} seeds each, scores are their means"),
    };
    let sections = sections.iter().chain(&[("cells", "Every cell")]);
    let here = sections.map(|(id, title)| (format!("#{id}"), title.to_string()));
    let tasks = tasks.map(|name| (format!("../{name}/report/index.html"), format!("all of {name}")));
    html! {
        p.lead.about { (suite.about.trim_end()) " " (seeds) "." }
        (contents(here.chain(tasks)))
    }
}

/// The matrix, and what is claimed of it.
fn matrix(suite: &Suite) -> Markup {
    let columns = columns(suite);
    let mut labels: Vec<String> = suite.tasks.iter().map(|task| score::metric_label(&task.metric)).collect();
    labels.dedup();
    html! {
        div #first .suite {
            div.scroll {
                table.sortable #overview {
                    thead { tr {
                        th scope="col" { button type="button" { "family" } }
                        @for (task, group) in &columns {
                            @let label = score::metric_label(&task.metric);
                            th.number scope="col" data-tip={ (place(task, group)) ": " (task.about) "; " (label) } {
                                button type="button" { (task.column(group)) }
                            }
                        }
                    } }
                    tbody {
                        @for (i, family) in suite.families.iter().enumerate() {
                            "\n"
                            tr data-series=(i) {
                                th scope="row" data-tip=(family.model) { (family.name) }
                                @for column in &columns { (cell(suite, &family.name, *column)) }
                            }
                        }
                    }
                    (guessing(&columns))
                }
                p.muted {
                    (score::capitalized(&labels.join(", ")))
                    ", with 95 % intervals " (suite.samples()) ". Underlined: " (marks(suite))
                    " Guessing knows how many words an answer has, and which words answers are made of."
                }
            }
        }
        ul #findings { @for finding in findings(suite) { "\n" li { (finding) } } }
        "\n"
    }
}

/// What a family has in a column, and where it stands there.
fn cell(suite: &Suite, family: &str, column: (&SuiteTask, &Group)) -> Markup {
    let metric = &column.0.metric;
    let Some(cell) = score_in(suite, family, column) else {
        return html! { td.number data-tip="not made, or takes no part" { "–" } };
    };
    let [value, low, high] = [cell.score, cell.low, cell.high].map(|value| shown(metric, value));
    let standing = beside(cell, column.0);
    let class = if standing.is_level() { "level" } else { "behind" };
    let share = (score::percent(metric, cell.score) / 100.0).clamp(0.0, 1.0);
    let share = if score::metric_of(metric).lower_is_better() { 1.0 - share } else { share };
    let style = format!("--share: {share:.3}");
    html! {
        td.number.(class) style=(style) data-value=(cell.score) data-tip=(standing.name()) {
            b { (value) } " "
            span.small.muted { (low) " to " (high) }
        }
    }
}

/// A last row of the matrix: what guessing comes to, where that is known.
fn guessing(columns: &[(&SuiteTask, &Group)]) -> Markup {
    html! {
        tfoot { tr {
            th.muted scope="row" { "guessing" }
            @for column in columns {
                td.number.muted { (chance(*column).map_or("–".into(), |chance| shown(&column.0.metric, chance))) }
            }
        } }
    }
}

fn made(suite: &Suite) -> Markup {
    let named = [
        ("suite", suite.name.clone()),
        ("measured on", format!("{} ({}), {}", suite.backend, suite.device, suite.platform)),
        ("command", suite.command.clone()),
        ("version", suite.version.clone()),
    ];
    facts(named.into_iter())
}
