//! What a suite found, in sentences. Each is made from its claims, whichever way they point.

use super::data::{Standing, Suite, SuiteTask};
use super::matrix::{self, Beside, beside, columns, score_in, shown, text};
use crate::report::comparison::Group;
use crate::report::comparison::score::capitalized;

/// What a mark in the matrix means.
pub fn marks(suite: &Suite) -> String {
    let wide = match suite.n_seeds() {
        ..2 => "",
        _ => " A score that differs much between seeds has a wide interval, so that a low score can be marked.",
    };
    format!(
        "the best score of a column, and every score above 0 that is not clearly worse: the 95 % interval {} of its difference from the best \
         includes zero, or the difference is too small to matter.{wide}",
        suite.samples()
    )
}

/// What the findings call significant.
const SIGNIFICANCE: &str = "Significantly worse is after Holm's correction (5 %): over all pairs of families, and in columns of a single \
                            length over the pairs at all lengths.";

/// The findings: who is level with the best everywhere, then a sentence for each column.
pub fn findings(suite: &Suite) -> Vec<String> {
    let mut found: Vec<String> = everywhere(suite).into_iter().collect();
    found.extend(columns(suite).into_iter().filter_map(|column| of_column(suite, column)));
    if found.iter().any(|finding| finding.contains("significantly")) {
        found.push(SIGNIFICANCE.into());
    }
    if suite.n_seeds() < 2 {
        found.push("A single seed: this is said of these runs, and not of what other seeds would give.".into());
    }
    found
}

/// The whole for a terminal.
pub fn summary(suite: &Suite) -> String {
    let mut summary = text(suite) + "* the best of its column, or perhaps as good\n\n";
    for finding in findings(suite) {
        summary += &format!("- {finding}\n");
    }
    summary
}

/// Whether no family has anything right in a column.
fn is_unsolved(suite: &Suite, column: (&SuiteTask, &Group)) -> bool {
    let mut cells = suite.families.iter().filter_map(|family| score_in(suite, &family.name, column));
    cells.any(|cell| cell.standing == Standing::Unsolved)
}

/// The families that take no part in a column, or have not been made in it.
fn left_out<'a>(suite: &'a Suite, column: (&SuiteTask, &Group)) -> Vec<&'a str> {
    let is_out = |name: &&str| score_in(suite, name, column).is_none();
    suite.families.iter().map(|family| family.name.as_str()).filter(is_out).collect()
}

/// Which families may be as good as the best in every column that any of them has something right in; nothing where no column has all
/// families.
fn everywhere(suite: &Suite) -> Option<String> {
    let all = columns(suite);
    let whole: Vec<_> = all.iter().filter(|column| left_out(suite, **column).is_empty()).collect();
    if whole.is_empty() {
        return None;
    }
    let columns: Vec<_> = whole.iter().filter(|column| !is_unsolved(suite, ***column)).collect();
    let which = match (whole.len() < all.len(), columns.len() < whole.len()) {
        (false, false) => "",
        (false, true) => " in which anything is right",
        (true, false) => " in which all families take part",
        (true, true) => " in which all families take part and anything is right",
    };
    let is_level = |family: &str| columns.iter().all(|column| matrix::is_level(suite, family, ***column));
    let level: Vec<&str> =
        suite.families.iter().map(|family| family.name.as_str()).filter(|name| is_level(name)).collect();
    let n = columns.len();
    let those = if n == 1 { format!("the one column{which}") } else { format!("all {n} columns{which}") };
    Some(match &level[..] {
        _ if n == 0 && whole.len() < all.len() => "No family has anything right where all take part.".into(),
        _ if n == 0 => "No family has anything right.".into(),
        [] => format!("No family is marked, as the best or perhaps as good, in {those}."),
        _ => format!("Marked, as the best or perhaps as good, in {those}: {}.", level.join("; ")),
    })
}

/// Who is best in a column, who may be, and who is not.
fn of_column(suite: &Suite, column: (&SuiteTask, &Group)) -> Option<String> {
    let (task, group) = column;
    let out = match &left_out(suite, column)[..] {
        [] => String::new(),
        names => format!("; left out: {}", names.join("; ")),
    };
    if is_unsolved(suite, column) {
        return Some(format!("{}: no family has anything right{out}.", capitalized(&place(task, group))));
    }
    let of = |family: &str| {
        let cell = score_in(suite, family, column)?;
        Some((family.to_string(), cell))
    };
    let mut cells: Vec<_> = suite.families.iter().filter_map(|family| of(&family.name)).collect();
    let is_less = crate::report::comparison::metric_of(&task.metric).lower_is_better();
    cells.sort_by(|a, b| if is_less { a.1.score.total_cmp(&b.1.score) } else { b.1.score.total_cmp(&a.1.score) });
    let with = |wanted: Beside| -> Vec<String> {
        let those = cells.iter().filter(|(_, cell)| beside(cell, task) == wanted);
        // Names of families have commas of their own.
        those.map(|(family, cell)| format!("{family} ({})", shown(&task.metric, cell.score))).collect()
    };
    let best = with(Beside::Best);
    // Others were compared with the first.
    let (best, it) = match &best[..] {
        [] => return None,
        [one] => (format!("best is {one}"), "it"),
        several => (format!("best are {}", several.join(", ")), "the first of them"),
    };
    let mut text = format!("{}: {best}", capitalized(&place(task, group)));
    let margin = cells.iter().find_map(|(_, cell)| cell.claim.as_ref()).map(|claim| shown(&task.metric, claim.margin));
    let within = margin.map_or(String::new(), |margin| format!(" within {margin} points"));
    let lists = [
        (format!("equivalent to {it}{within}"), with(Beside::Equivalent)),
        ("not significantly worse".into(), with(Beside::Level)),
        ("nothing right, and not significantly worse".into(), with(Beside::Nothing)),
        ("behind, but not significantly after correction".into(), with(Beside::Behind)),
        ("significantly worse".into(), with(Beside::Worse)),
    ];
    for (what, names) in lists {
        if !names.is_empty() {
            text += &format!("; {what}: {}", names.join(", "));
        }
    }
    Some(text + &out + ".")
}

/// What a column is about, in words.
pub(super) fn place(task: &SuiteTask, group: &Group) -> String {
    let unit = task.length_unit.name();
    match group.id == "all" {
        true => format!("{}, sources of up to {} {unit} as in training", task.name, task.trained_length),
        false => {
            format!("{}, sources of {} {unit}, learnt from up to {}", task.name, group.label(), task.trained_length)
        }
    }
}
