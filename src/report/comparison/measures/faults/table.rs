//! Faults by group, in numbers.

use crate::report::comparison::data::Comparison;
use crate::report::comparison::table::{Cell, Table};

pub(super) fn table(comparison: &Comparison) -> Table {
    let columns = [
        "model",
        "group",
        "length ratio",
        "repeated (%)",
        "repeated in references (%)",
        "ended early (%)",
        "cut (%)",
        "source tokens hardly looked at (%)",
    ];
    let about = "Repeated: 4-grams that occurred before in the sentence. Ended early: with less than 90 % of the reference's words. \
                 Cut: not ended within the limit. Hardly looked at: a total weight below 0.1, in the mean of all heads; in ten \
                 sentences of each group.";
    let mut table = Table::new("faults", "What goes wrong", about, &columns);
    for row in &comparison.faults {
        table.rows.push(vec![
            Cell::text(&row.contestant),
            Cell::group(comparison, &row.group),
            Cell::number(format!("{:.2}", row.length_ratio), row.length_ratio),
            Cell::percent(row.repetition),
            Cell::percent(row.reference_repetition),
            Cell::percent(row.early_stop),
            Cell::percent(row.cut),
            Cell::maybe(row.omission, Cell::percent),
        ]);
    }
    table
}
