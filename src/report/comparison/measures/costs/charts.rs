//! Seconds, memory and state by length, on logarithmic axes.

use super::names::{cost_name, is_shared};
use super::rows::{Cost, CostKind};
use crate::report::comparison::chart::{Axis, Chart, Point};
use crate::report::comparison::data::Comparison;
use crate::report::comparison::measures::lines::of_contestants;
use crate::report::comparison::scale::{Division, short};

pub(super) fn charts(comparison: &Comparison) -> Vec<Chart> {
    type Pick = fn(&Cost) -> Option<f64>;
    let memory: Pick = |row| Some(row.peak_bytes? as f64 / (1 << 20) as f64);
    let kinds: [(&str, &str, &str, CostKind, Pick); 5] = [
        ("update-seconds", "Time of a training update", "seconds", CostKind::Update, |row| row.seconds),
        ("update-memory", "Memory of a training update", "peak memory (MiB)", CostKind::Update, memory),
        ("decode-seconds", "Time of writing a sentence", "seconds", CostKind::Decode, |row| row.seconds),
        ("decode-memory", "Memory of writing a sentence", "peak memory (MiB)", CostKind::Decode, memory),
        ("state", "What decoding carries", "KiB", CostKind::Decode, |row| Some(row.state_bytes as f64 / 1024.0)),
    ];
    let chart = |(id, title, label, kind, pick): (&str, &str, &str, CostKind, Pick)| {
        let points = |name: &str| {
            let rows = comparison.costs.iter().filter(|row| row.contestant == name && row.kind == kind);
            let point = |row: &Cost| {
                let y = pick(row)?;
                let interval = row.interval.filter(|_| label == "seconds");
                let range = interval.map_or(String::new(), |[low, high]| format!(" [{}, {}]", short(low), short(high)));
                let tip = format!("{name}, {} tokens: {} {label}{range}", row.length, short(y));
                Some(Point { x: row.length as f64, y, interval, tip })
            };
            rows.filter_map(point).collect()
        };
        // One line for contestants that were measured together.
        let mut series = of_contestants(comparison, true, points);
        series.retain(|series| !is_shared(comparison, &series.name));
        for series in &mut series {
            series.name = cost_name(comparison, &series.name);
        }
        Chart {
            id: format!("cost-{id}"),
            title: title.into(),
            caption: "One sentence pair, as many tokens on each side; both axes are logarithmic.".into(),
            x: Axis::logarithmic("length (tokens)", Division::PowersOfTwo),
            y: Axis::logarithmic(label, Division::PowersOfTen),
            series,
            shaded: None,
        }
    };
    kinds.into_iter().map(chart).collect()
}
