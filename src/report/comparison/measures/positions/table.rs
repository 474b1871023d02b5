//! Accuracy by tenth, in numbers.

use crate::report::comparison::data::Comparison;
use crate::report::comparison::table::{Cell, Table};

pub(super) fn table(comparison: &Comparison) -> Table {
    let columns = ["model", "group", "position of", "tenth", "tokens", "right (%)"];
    let about =
        "How often the right token is the likeliest when all before it are given, by the place of what it needs.";
    let mut table = Table::new("positions", "What is forgotten", about, &columns);
    for row in &comparison.positions {
        table.rows.push(vec![
            Cell::text(&row.contestant),
            Cell::group(comparison, &row.group),
            Cell::text(&row.of),
            Cell::count(row.tenth),
            Cell::count(row.tokens),
            Cell::percent(row.accuracy),
        ]);
    }
    table
}
