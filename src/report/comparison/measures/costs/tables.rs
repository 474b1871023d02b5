//! Costs, growth and crossings in numbers.

use crate::report::comparison::data::Comparison;
use crate::report::comparison::table::{Cell, Table};

pub(super) fn costs(comparison: &Comparison) -> Table {
    let columns = [
        "model",
        "of",
        "length",
        "seconds",
        "from",
        "to",
        "visits",
        "peak memory (MiB)",
        "before (MiB)",
        "sequential steps",
        "state (KiB)",
        "not finished",
        "measured with",
    ];
    let about = "One sentence pair with as many tokens on each side and random weights, each measured in processes of its own, in turns with \
                 the other models, until the 95 % interval of its seconds is narrow. \
                 Sequential steps and state are in closed form. Models of one architecture are measured once.";
    let mut table = Table::new("costs", "What a sentence costs", about, &columns);
    let mebibytes = |bytes: u64| Cell::short(bytes as f64 / (1 << 20) as f64);
    for row in &comparison.costs {
        table.rows.push(vec![
            Cell::text(&row.contestant),
            Cell::text(row.kind.name()),
            Cell::count(row.length),
            Cell::maybe(row.seconds, Cell::short),
            Cell::maybe(row.interval.map(|interval| interval[0]), Cell::short),
            Cell::maybe(row.interval.map(|interval| interval[1]), Cell::short),
            Cell::count(row.visits),
            row.peak_bytes.map_or_else(Cell::default, mebibytes),
            row.base_bytes.map_or_else(Cell::default, mebibytes),
            Cell::count(row.sequential_steps),
            Cell::short(row.state_bytes as f64 / 1024.0),
            Cell::text(row.unfinished.clone().unwrap_or_default()),
            Cell::text(row.same_as.clone().unwrap_or_default()),
        ]);
    }
    table
}

pub(super) fn growth(comparison: &Comparison) -> Table {
    let columns = ["model", "of", "what", "exponent", "from", "to", "theory", "fitted to lengths"];
    let about = "Cost grows like length to the power of the exponent: the slope of a least-squares line between logarithms over the \
                 longer half of the lengths, with the interval that those of the times leave. Theory is for \
                 sentences so long that nothing else counts; memory is what was added to that of the idle process.";
    let exponent = |value: f64| Cell::number(format!("{value:.2}"), value);
    let mut table = Table::new("growth", "How costs grow", about, &columns);
    for row in &comparison.growth {
        let (first, last) = (row.lengths.first().unwrap_or(&0), row.lengths.last().unwrap_or(&0));
        table.rows.push(vec![
            Cell::text(&row.contestant),
            Cell::text(row.kind.name()),
            Cell::text(&row.of),
            exponent(row.exponent),
            row.interval.map_or_else(Cell::default, |[low, _]| exponent(low)),
            row.interval.map_or_else(Cell::default, |[_, high]| exponent(high)),
            Cell::number(format!("{}", row.theory), row.theory),
            Cell::text(format!("{first}-{last}")),
        ]);
    }
    table
}

pub(super) fn crossings(comparison: &Comparison) -> Table {
    let columns = ["of", "what", "dearer beyond", "than", "length", "from", "to"];
    let about = "Between measured lengths, on a straight line between logarithms, with the interval that those of the times leave; pairs that do not \
         clearly cross are not listed.";
    let mut table = Table::new("crossings", "Where one becomes dearer than another", about, &columns);
    for row in &comparison.crossings {
        table.rows.push(vec![
            Cell::text(row.kind.name()),
            Cell::text(&row.of),
            Cell::text(&row.dearer),
            Cell::text(&row.cheaper),
            Cell::number(format!("{:.0}", row.length), row.length),
            Cell::maybe(row.interval.map(|interval| interval[0]), |x| Cell::number(format!("{x:.0}"), x)),
            Cell::maybe(row.interval.map(|interval| interval[1]), |x| Cell::number(format!("{x:.0}"), x)),
        ]);
    }
    table
}
