//! What documents say of a suite.

use super::cell;
use crate::report::comparison::score::{capitalized, metric_label};
use crate::report::suite::matrix::{chance, columns, is_level, score_in, shown};
use crate::report::suite::{Suite, words};

/// The parts that there are.
pub(super) const PARTS: &str = "about, matrix, matrix intervals, findings, source";

/// What a mark asks for; nothing if a suite has no such part.
pub(super) fn part(suite: &Suite, kind: &str, rest: &str) -> Option<String> {
    match kind {
        "about" => Some(about(suite)),
        "matrix" if ["", "intervals"].contains(&rest) => Some(matrix(suite, !rest.is_empty())),
        "findings" => Some(words::findings(suite).iter().map(|finding| format!("- {finding}\n")).collect()),
        _ => None,
    }
}

/// What the numbers of the matrix are.
fn about(suite: &Suite) -> String {
    let mut labels: Vec<String> = suite.tasks.iter().map(|task| metric_label(&task.metric)).collect();
    labels.sort_unstable();
    labels.dedup();
    let labels = capitalized(&labels.join(", "));
    let n = suite.n_seeds();
    let seeds = if n == 1 { "one seed each".to_string() } else { format!("means of {n} seeds each") };
    format!("{labels}, {seeds}. Bold: {}\n", words::marks(suite))
}

/// A row for each family, a column for each task and length.
fn matrix(suite: &Suite, has_intervals: bool) -> String {
    let columns = columns(suite);
    let mut text = "| family |".to_string();
    columns.iter().for_each(|(task, group)| text += &format!(" {} |", cell(&task.column(group))));
    text += &format!("\n| --- |{}\n", " ---: |".repeat(columns.len()));
    for family in &suite.families {
        text += &format!("| {} |", cell(&family.name));
        for column in &columns {
            text += &match score_in(suite, &family.name, *column) {
                Some(score) => {
                    let [value, low, high] =
                        [score.score, score.low, score.high].map(|value| shown(&column.0.metric, value));
                    let value = if is_level(suite, &family.name, *column) { format!("**{value}**") } else { value };
                    if has_intervals { format!(" {value} ({low} to {high}) |") } else { format!(" {value} |") }
                }
                None => " - |".into(),
            };
        }
        text.push('\n');
    }
    text += "| *guessing* |";
    for column in &columns {
        text += &format!(" {} |", chance(*column).map_or("-".into(), |chance| shown(&column.0.metric, chance)));
    }
    text.push('\n');
    text
}
