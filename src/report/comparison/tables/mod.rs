//! The tables of a comparison: for the page and as CSV.

mod costs;
mod faults;

use super::data::{Comparison, Group};
use super::measured::ClaimKind;
use super::scale::short;
use super::score::{self, metric_label, percent};
use crate::scoring::Verdict;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its name in files.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// What its numbers mean.
    pub about: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell: what a reader sees, and the number behind it, by which the column is sorted and which the CSV has in full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// The number.
    pub value: Option<f64>,
    /// What the CSV has in place of the text: the id of a group, by which tables can be joined.
    pub id: Option<String>,
}

impl Cell {
    pub(in crate::report) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(in crate::report) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), value: Some(value), id: None }
    }

    /// A group of test sentences as a reader calls it, or whatever else has this id.
    fn group(comparison: &Comparison, id: &str) -> Self {
        let group = comparison.groups.iter().find(|group| group.id == id);
        Self { text: group.map_or(id.into(), Group::name), value: None, id: Some(id.into()) }
    }

    pub(in crate::report) fn count(value: impl TryInto<u64>) -> Self {
        let value = value.try_into().unwrap_or_default();
        Self::number(value.to_string(), value as f64)
    }

    pub(in crate::report) fn short(value: f64) -> Self {
        Self::number(short(value), value)
    }

    fn percent(part: f64) -> Self {
        Self::number(format!("{:.1}", 100.0 * part), part)
    }

    fn maybe(value: Option<f64>, cell: impl Fn(f64) -> Self) -> Self {
        value.map_or_else(Self::default, cell)
    }
}

impl Table {
    pub(in crate::report) fn new(id: &str, title: &str, about: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| name.to_string()).collect();
        Self { id: id.into(), title: title.into(), about: about.into(), columns, rows: Vec::new() }
    }

    /// The table as CSV (RFC 4180), numbers in full.
    pub fn csv(&self) -> String {
        let field = |text: &str| {
            let is_plain = !text.contains([',', '"', '\n', '\r']);
            if is_plain { text.to_string() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
        };
        let line = |fields: Vec<String>| fields.join(",") + "\n";
        // Numbers stand in full here, and fractions as what they are: only a reader sees percentages.
        let of_number = |name: &String| field(&name.replace("(%)", "(fraction)").replace("(% of ", "(fraction of "));
        let mut text = line(self.columns.iter().map(of_number).collect());
        for row in &self.rows {
            text += &line(
                row.iter()
                    .map(|c| c.value.map_or_else(|| field(c.id.as_ref().unwrap_or(&c.text)), |v| v.to_string()))
                    .collect(),
            );
        }
        text
    }
}

/// Every table that has rows, in the order of the report.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let mut found = vec![
        contestants(comparison),
        fairness(comparison),
        trials(comparison),
        quality(comparison),
        claims(comparison),
        faults::positions(comparison),
        faults::faults(comparison),
        costs::costs(comparison),
        costs::growth(comparison),
        costs::crossings(comparison),
    ];
    found.retain(|table| !table.rows.is_empty());
    found
}

fn contestants(comparison: &Comparison) -> Table {
    let columns = [
        "model",
        "what it is",
        "parameters",
        "updates",
        "target tokens",
        "seconds",
        "answers cut",
        "learning rate",
        "dropout",
        "training FLOP per token",
        "decoding FLOP per token",
    ];
    let about = format!(
        "Updates, tokens, seconds and answers are means over the seeds. Answers cut: of {} answers to test sentences, those that the \
         model had not ended at the length cap. Operations are in closed form at the trained length.",
        comparison.n_sentences()
    );
    let mut table = Table::new("contestants", "The models", &about, &columns);
    for c in &comparison.contestants {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let of_counts = |values: &[u64]| mean(&values.iter().map(|value| *value as f64).collect::<Vec<_>>());
        table.rows.push(vec![
            Cell::text(&c.name),
            Cell::text(&c.model),
            Cell::count(c.parameters),
            Cell::short(of_counts(&c.updates)),
            Cell::short(of_counts(&c.train_tokens)),
            Cell::short(mean(&c.train_seconds)),
            Cell::short(mean(&c.cut_answers.iter().map(|n| *n as f64).collect::<Vec<_>>())),
            Cell::number(c.learning_rate.to_string(), c.learning_rate),
            Cell::number(c.dropout_rate.to_string(), c.dropout_rate),
            Cell::short(c.training_flops_per_token),
            Cell::short(c.decoding_flops_per_token),
        ]);
    }
    table
}

fn fairness(comparison: &Comparison) -> Table {
    let names = comparison.contestants.iter().map(|c| c.name.as_str());
    let columns: Vec<&str> = std::iter::once("what").chain(names).collect();
    let mut table = Table::new("differences", "What is not the same", "What is the same is listed below.", &columns);
    for difference in &comparison.differences {
        let values = difference.values.iter().map(Cell::text);
        table.rows.push(std::iter::once(Cell::text(&difference.what)).chain(values).collect());
    }
    table
}

fn trials(comparison: &Comparison) -> Table {
    let columns = ["model", "trial", "learning rate", "dropout", "updates", "validation loss", "taken"];
    let about = "The first trial has the settings of the model's own config; the others are the same for every model. The least \
                 cross-entropy on the validation data (nats per target token) decided.";
    let mut table = Table::new("trials", "The search for a learning rate and dropout", about, &columns);
    for t in &comparison.trials {
        table.rows.push(vec![
            Cell::text(&t.contestant),
            Cell::count(t.trial),
            Cell::number(t.learning_rate.to_string(), t.learning_rate),
            Cell::number(t.dropout_rate.to_string(), t.dropout_rate),
            Cell::number(
                t.run_updates.map_or(t.updates.to_string(), |whole| format!("{} of {whole}", t.updates)),
                t.updates as f64,
            ),
            Cell::number(format!("{:.4}", t.valid_loss), t.valid_loss),
            Cell::text(if t.is_chosen { "yes" } else { "" }),
        ]);
    }
    table
}

fn quality(comparison: &Comparison) -> Table {
    let mut columns = vec!["model".to_string(), "group".into(), comparison.task.length_unit.name().into()];
    columns.extend(["sentences".into(), "seen in training".into()]);
    for metric in &comparison.metrics {
        columns.extend([metric_label(metric), "low".into(), "high".into()]);
        if comparison.has_seeds() {
            columns.push("deviation over seeds".into());
        }
    }
    let about = "Low and high are the ends of the 95 % interval over sentences and, where there are several, seeds; Wilson's for fractions.";
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let mut table = Table::new("quality", "Quality by source length", about, &columns);
    for row in &comparison.quality {
        let Some(group) = comparison.groups.iter().find(|group| group.id == row.group) else { continue };
        let mut cells = vec![
            Cell::text(&row.contestant),
            Cell::group(comparison, &group.id),
            Cell::number(group.label(), group.mean_length),
            Cell::count(group.sentences),
            Cell::text(if group.is_seen { "yes" } else { "no" }),
        ];
        for score in &row.scores {
            let shown = |value: f64| Cell::number(format!("{:.1}", percent(&score.metric, value)), value);
            cells.extend([score.score, score.low, score.high].map(shown));
            if comparison.has_seeds() {
                cells.push(Cell::maybe(score.seed_deviation, shown));
            }
        }
        table.rows.push(cells);
    }
    table
}

fn claims(comparison: &Comparison) -> Table {
    let columns = [
        "on",
        "score",
        "first",
        "second",
        "second minus first",
        "low",
        "high",
        "sentences",
        "seeds",
        "p",
        "p corrected",
        "verdict",
        "family",
    ];
    let about = "Every statement about a difference, or about a score and a level. Its variance is that over test sentences (by resampling) and that over seeds; \
                 p is two-sided, by Student's t with Welch's degrees of freedom, and corrected by Holm for all tests of its \
                 family. Different: the corrected p is below 0.05. Equivalent: the 95 % interval lies within 1 point of BLEU \
                 or chrF, or 2 points of a percentage. Undecided: neither. With a single seed a statement is about these runs.";
    let mut table = Table::new("claims", "What is different, what is equal, and what cannot be said", about, &columns);
    for claim in &comparison.claims {
        let shown = |value: f64| Cell::number(format!("{:+.1}", percent(&claim.metric, value)), value);
        let p = |p: f64| Cell::number(format!("{p:.3}"), p);
        let [first, second] = &claim.operands;
        let first = match claim.kind {
            ClaimKind::Level => {
                Cell::text(first.parse::<f64>().map_or(first.clone(), |level| score::shown(&claim.metric, level)))
            }
            _ => Cell::group(comparison, first),
        };
        let [one, other] = claim.n_seeds;
        let verdict = match claim.verdict {
            Verdict::Different => "different",
            Verdict::Equivalent => "equivalent",
            Verdict::Undecided => "undecided",
        };
        table.rows.push(vec![
            Cell::group(comparison, &claim.group),
            Cell::text(metric_label(&claim.metric)),
            first,
            Cell::group(comparison, second),
            shown(claim.estimate),
            shown(claim.low),
            shown(claim.high),
            Cell::count(claim.n_sentences),
            Cell::text(if one == other { one.to_string() } else { format!("{one} and {other}") }),
            Cell::maybe(claim.p_value, p),
            Cell::maybe(claim.p_corrected, p),
            Cell::text(verdict),
            Cell::text(&claim.family),
        ]);
    }
    table
}
