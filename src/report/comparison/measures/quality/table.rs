//! Every score of every group.

use crate::report::comparison::data::Comparison;
use crate::report::comparison::score::{metric_label, percent};
use crate::report::comparison::table::{Cell, Table};

pub(super) fn table(comparison: &Comparison) -> Table {
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
