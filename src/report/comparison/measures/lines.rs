//! What the charts of most measures share: a line for each contestant, an axis of lengths, the part that was never seen.

use crate::report::comparison::chart::{Axis, Point, Series};
use crate::report::comparison::data::Comparison;

pub(super) fn of_contestants(
    comparison: &Comparison,
    is_marked: bool,
    points: impl Fn(&str) -> Vec<Point>,
) -> Vec<Series> {
    let series = comparison.contestants.iter().enumerate().map(|(place, contestant)| {
        let name = contestant.name.clone();
        Series { points: points(&name), name, place, is_marked }
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

pub(super) fn shaded(comparison: &Comparison) -> Option<(f64, String)> {
    let is_needed = comparison.groups.iter().any(|group| !group.is_seen);
    is_needed.then(|| (comparison.task.trained_length as f64, "never seen in training".into()))
}

pub(super) fn length_axis(comparison: &Comparison) -> Axis {
    Axis::linear(&format!("source length ({})", comparison.task.length_unit.name()))
}
