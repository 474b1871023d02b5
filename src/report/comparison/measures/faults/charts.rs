//! Faults by length.

use super::rows::Faults;
use crate::report::comparison::chart::{Axis, Chart, Point};
use crate::report::comparison::data::{Comparison, Group};
use crate::report::comparison::measures::lines::{length_axis, of_contestants, shaded};
use crate::report::comparison::scale::short;

pub(super) fn charts(comparison: &Comparison) -> Vec<Chart> {
    type Pick = fn(&Faults) -> Option<f64>;
    let kinds: [(&str, &str, &str, Pick); 5] = [
        ("length-ratio", "Length of the answers", "written words / reference words", |row| Some(row.length_ratio)),
        ("repetition", "Repetition", "4-grams written before (%)", |row| Some(100.0 * row.repetition)),
        ("early-stop", "Early stop", "sentences ended too early (%)", |row| Some(100.0 * row.early_stop)),
        ("cut", "Cut answers", "sentences cut at the length cap (%)", |row| Some(100.0 * row.cut)),
        ("omission", "Omission", "source tokens hardly looked at (%)", |row| row.omission.map(|part| 100.0 * part)),
    ];
    let groups = comparison.by_length();
    let unit = comparison.task.length_unit.name();
    let chart = |(id, title, label, pick): (&str, &str, &str, Pick)| {
        let points = |name: &str| {
            let point = |group: &&Group| {
                let row = comparison.faults.iter().find(|row| row.contestant == name && row.group == group.id)?;
                let y = pick(row)?;
                let tip = format!("{name}, {} {unit}: {}", group.label(), short(y));
                Some(Point { x: group.mean_length, y, interval: None, tip })
            };
            groups.iter().filter_map(point).collect()
        };
        let y = if id == "length-ratio" { Axis::linear(label) } else { Axis::between(label, 0.0, 100.0) };
        Chart {
            id: format!("faults-{id}"),
            title: title.into(),
            caption: String::new(),
            x: length_axis(comparison),
            y,
            series: of_contestants(comparison, true, points),
            shaded: shaded(comparison),
        }
    };
    // Where every model ends its answers, there is nothing to see.
    let has_cut = comparison.faults.iter().any(|row| row.cut > 0.0);
    kinds.into_iter().filter(|(id, ..)| *id != "cut" || has_cut).map(chart).collect()
}
