//! A table: for the page and as CSV.

use super::data::{Comparison, Group};
use super::scale::short;

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
    pub(in crate::report) fn group(comparison: &Comparison, id: &str) -> Self {
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

    /// A p-value. None is zero: what is below a thousandth is said to be.
    pub(in crate::report) fn p(value: f64) -> Self {
        Self::number(if value < 0.001 { "<0.001".into() } else { format!("{value:.3}") }, value)
    }

    pub(in crate::report) fn percent(part: f64) -> Self {
        Self::number(format!("{:.1}", 100.0 * part), part)
    }

    pub(in crate::report) fn maybe(value: Option<f64>, cell: impl Fn(f64) -> Self) -> Self {
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
