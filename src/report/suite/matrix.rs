//! The matrix: a row for each family, a column for each task and length.

use super::data::{CellScore, Standing, Suite, SuiteTask};
use crate::report::columns::width;
use crate::report::comparison::table::{Cell, Table};
use crate::report::comparison::{Claim, Group, metric_of, score};
use crate::scoring::Metric;

/// The columns: tasks with each of their groups.
pub fn columns(suite: &Suite) -> Vec<(&SuiteTask, &Group)> {
    suite.tasks.iter().flat_map(|task| task.groups.iter().map(move |group| (task, group))).collect()
}

/// The score of a family in a column.
pub fn score_in<'a>(suite: &'a Suite, family: &str, (task, group): (&SuiteTask, &Group)) -> Option<&'a CellScore> {
    suite.cell(&task.name, family)?.score(&group.id)
}

/// How a family stands beside the best of a column, as a reader is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// No other has a better score.
    Best,
    /// The difference is too small to matter.
    Equivalent,
    /// The interval of the difference includes zero.
    Level,
    /// It does, and the family has nothing right.
    Nothing,
    /// It does not, but after correction the difference is not significant.
    Behind,
    /// The difference is significant.
    Worse,
    /// No family has anything right, so there is no best.
    Unsolved,
}

impl Beside {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Best => "best",
            Self::Equivalent => "equivalent to the best",
            Self::Level => "not significantly worse than the best",
            Self::Nothing => "nothing right, and not significantly worse than the best",
            Self::Behind => "behind the best, but not significantly after correction",
            Self::Worse => "significantly worse than the best",
            Self::Unsolved => "no family has anything right",
        }
    }

    /// Whether it is marked as the best or perhaps as good.
    pub fn is_level(self) -> bool {
        matches!(self, Self::Best | Self::Equivalent | Self::Level)
    }
}

/// How a score stands beside the best of its column.
pub fn beside(score: &CellScore, task: &SuiteTask) -> Beside {
    let has_any = metric_of(&task.metric).lower_is_better() || score.score > 0.0;
    // Sure, and too small to matter.
    if score.standing == Standing::Behind && score.claim.as_ref().is_some_and(|claim| claim.is_small) {
        return Beside::Equivalent;
    }
    let includes_zero = score.claim.as_ref().is_none_or(|claim| claim.low <= 0.0 && claim.high >= 0.0);
    match score.standing {
        Standing::Best => Beside::Best,
        Standing::Equivalent => Beside::Equivalent,
        Standing::Undecided if !includes_zero => Beside::Behind,
        Standing::Undecided if !has_any => Beside::Nothing,
        Standing::Undecided => Beside::Level,
        Standing::Behind => Beside::Worse,
        Standing::Unsolved => Beside::Unsolved,
    }
}

/// Whether a family is marked in a column.
pub fn is_level(suite: &Suite, family: &str, column: (&SuiteTask, &Group)) -> bool {
    score_in(suite, family, column).is_some_and(|score| beside(score, column.0).is_level())
}

/// A score as a reader sees it; fractions are percentages.
pub(in crate::report) fn shown(metric: &str, value: f64) -> String {
    format!("{:.1}", score::percent(metric, value))
}

/// What guessing comes to in a column, where its score counts right answers and that is known.
pub(in crate::report) fn chance((task, group): (&SuiteTask, &Group)) -> Option<f64> {
    group.chance.filter(|_| metric_of(&task.metric) == Metric::SequenceAccuracy)
}

/// The matrix for a terminal: a star stands at the best of a column and at all that may be as good.
pub fn text(suite: &Suite) -> String {
    let columns = columns(suite);
    let mut rows = vec![std::iter::once(String::new()).chain(columns.iter().map(|(t, g)| t.column(g))).collect()];
    for family in &suite.families {
        let mut row = vec![family.name.clone()];
        row.extend(columns.iter().map(|column| match score_in(suite, &family.name, *column) {
            Some(cell) => {
                let star = if is_level(suite, &family.name, *column) { "*" } else { " " };
                shown(&column.0.metric, cell.score) + star
            }
            None => "- ".into(),
        }));
        rows.push(row);
    }
    let guesses =
        columns.iter().map(|column| chance(*column).map_or("-".into(), |chance| shown(&column.0.metric, chance)) + " ");
    rows.push(std::iter::once("guessing".to_string()).chain(guesses).collect());
    let widths: Vec<usize> =
        (0..=columns.len()).map(|i| rows.iter().map(|row: &Vec<String>| width(&row[i])).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (i, (cell, room)) in row.iter().zip(&widths).enumerate() {
            let room = " ".repeat(room - width(cell));
            text += &if i == 0 { format!("{cell}{room}") } else { format!("  {room}{cell}") };
        }
        text = text.trim_end().to_string() + "\n";
    }
    text
}

/// The score of a family minus that of the best, by the claim about both.
fn gap(claim: &Claim, family: &str) -> f64 {
    if claim.operands[0] == family { -claim.estimate } else { claim.estimate }
}

/// Every cell of the matrix with all that is known of it, as a table.
pub fn table(suite: &Suite) -> Table {
    let names = [
        "task",
        "family",
        "sentences",
        "score",
        "from",
        "to",
        "guessing",
        "standing",
        "from the best",
        "p, corrected",
        "longest at 90 %",
        "parameters",
        "learning rate",
        "dropout",
        "seeds",
        "bytes of state",
        "seconds of training",
    ];
    let about = format!(
        "One row for each cell: the score with its 95 % interval {}, and how it stands beside the best of the task on the same sentences. \
         Accuracies are percentages; guessing knows how many words an answer has, and which words answers are made of.",
        suite.samples()
    );
    let mut table = Table::new("matrix", "Every cell", &about, &names);
    for (task, group) in columns(suite) {
        for family in &suite.families {
            let Some(cell) = suite.cell(&task.name, &family.name) else { continue };
            let Some(score) = cell.score(&group.id) else { continue };
            let number = |value: f64| Cell::number(shown(&task.metric, value), value);
            let claim = score.claim.as_ref();
            let p = claim.and_then(|claim| claim.p_corrected);
            table.rows.push(vec![
                Cell::text(&task.name),
                Cell::text(&family.name),
                Cell::text(task.column(group)),
                number(score.score),
                number(score.low),
                number(score.high),
                chance((task, group)).map_or_else(Cell::default, number),
                Cell::text(beside(score, task).name()),
                claim.map_or_else(Cell::default, |claim| number(gap(claim, &family.name))),
                p.map_or_else(Cell::default, Cell::p),
                cell.longest_good.map_or_else(Cell::default, Cell::count),
                Cell::count(cell.parameters as u64),
                Cell::number(cell.learning_rate.to_string(), cell.learning_rate),
                cell.dropout_rate.map_or_else(Cell::default, |rate| Cell::number(rate.to_string(), rate)),
                Cell::count(cell.seeds.len() as u64),
                Cell::count(cell.state_bytes),
                Cell::short(cell.train_seconds),
            ]);
        }
    }
    table
}
