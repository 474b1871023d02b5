//! Accuracy by tenth of the sentence.

use super::rows::PositionAccuracy;
use crate::report::comparison::chart::{Axis, Chart, Point};
use crate::report::comparison::data::{Comparison, Group, GroupKind};
use crate::report::comparison::measures::lines::of_contestants;

pub(super) fn charts(comparison: &Comparison) -> Vec<Chart> {
    let groups = comparison.groups.iter().filter(|group| group.kind != GroupKind::Bucket);
    let unit = comparison.task.length_unit.name();
    let chart = |group: &Group| {
        let rows = || comparison.positions.iter().filter(|row| row.group == group.id);
        let of = rows().next().map_or("source", |row| row.of.as_str());
        let points = |name: &str| {
            let of_contestant = rows().filter(|row| row.contestant == name);
            let point = |row: &PositionAccuracy| {
                let y = 100.0 * row.accuracy;
                let tip = format!("{name}, tenth {}: {y:.1} % of {} tokens", row.tenth, row.tokens);
                Point { x: row.tenth as f64, y, interval: None, tip }
            };
            of_contestant.map(point).collect()
        };
        let which = match group.kind {
            GroupKind::All => "the test set".to_string(),
            _ if group.is_seen => format!("sources of {} {unit}", group.label()),
            _ => format!("sources of {} {unit} (never seen)", group.label()),
        };
        let axis = match of {
            "source" => "place of the needed token in the source (tenths)",
            _ => "place of the token in the target (tenths)",
        };
        Chart {
            id: format!("positions-{}", group.id),
            title: format!("What is forgotten: {which}"),
            caption: "How often the right token is the likeliest when all before it are given.".into(),
            x: Axis::between(axis, 1.0, 10.0),
            y: Axis::between("tokens right (%)", 0.0, 100.0),
            series: of_contestants(comparison, true, points),
            shaded: None,
        }
    };
    groups.map(chart).collect()
}
