//! Learning curves: means over the seeds, with their range.

use super::rows::CurvePoint;
use crate::report::comparison::chart::{Axis, Chart, Point};
use crate::report::comparison::data::Comparison;
use crate::report::comparison::measures::lines::of_contestants;
use crate::report::comparison::scale::short;

pub(super) fn charts(comparison: &Comparison) -> Vec<Chart> {
    type Pick = fn(&CurvePoint) -> f64;
    let kinds: [(&str, &str, &str, Pick); 2] = [
        ("updates", "Learning, by updates", "updates", |point| point.update as f64),
        ("seconds", "Learning, by time", "seconds of training", |point| point.seconds),
    ];
    let chart = |(id, title, label, pick): (&str, &str, &str, Pick)| {
        let points = |name: &str| {
            let own = comparison.curves.iter().filter(|curve| curve.contestant == name);
            let lines: Vec<Vec<[f64; 2]>> = own
                .map(|curve| curve.train.iter().map(|point| [pick(point), point.loss]).collect())
                .filter(|line: &Vec<_>| !line.is_empty())
                .collect();
            let point = |(x, mean, interval): (f64, f64, Option<[f64; 2]>)| {
                let range = interval.map_or(String::new(), |[low, high]| {
                    format!(" (from {} to {} over the seeds)", short(low), short(high))
                });
                let tip = format!("{name}, {} {label}: {} nats{range}", short(x), short(mean));
                Point { x, y: mean, interval, tip }
            };
            band(&lines).into_iter().map(point).collect()
        };
        let over_seeds = if comparison.has_seeds() {
            " Lines are means over the seeds, bands reach from the least to the greatest of them; where some have ended, of the \
             others."
        } else {
            ""
        };
        Chart {
            id: format!("curves-{id}"),
            title: title.into(),
            caption: format!("Cross-entropy of the training batches, means of groups of updates.{over_seeds}"),
            x: Axis::linear(label),
            y: Axis::linear("nats per target token"),
            series: of_contestants(comparison, false, points),
            shaded: None,
        }
    };
    kinds.into_iter().map(chart).collect()
}

/// Mean and range of several lines, at the places of the one with the most points and then of the one that goes on longest:
/// each line is straight between its points, and counts as far as it goes. A single line has no range.
pub fn band(lines: &[Vec<[f64; 2]>]) -> Vec<(f64, f64, Option<[f64; 2]>)> {
    let last = |line: &[[f64; 2]]| line.last().map_or(f64::MIN, |point| point[0]);
    let densest = lines.iter().max_by_key(|line| line.len());
    let longest = lines.iter().max_by(|a, b| last(a).total_cmp(&last(b)));
    let (Some(grid), Some(longest)) = (densest, longest) else { return Vec::new() };
    let rest = longest.iter().map(|point| point[0]).filter(|x| *x > last(grid));
    let of_place = |x: f64| {
        let values: Vec<f64> = lines.iter().filter_map(|line| interpolated(line, x)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)));
        (x, mean, (lines.len() > 1).then_some([low, high]))
    };
    grid.iter().map(|point| point[0]).chain(rest).map(of_place).collect()
}

/// The height of a line at `x`; none beyond its end. Before its first point it is as high as there.
fn interpolated(line: &[[f64; 2]], x: f64) -> Option<f64> {
    let next = line.iter().position(|point| point[0] >= x)?;
    let [x1, y1] = line[next];
    let [x0, y0] = line[next.saturating_sub(1)];
    Some(if x1 > x0 { y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).max(0.0) } else { y1 })
}
