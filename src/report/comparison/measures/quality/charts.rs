//! Scores by length.

use crate::report::comparison::chart::{Axis, Chart, Point};
use crate::report::comparison::data::{Comparison, Group};
use crate::report::comparison::measures::lines::{length_axis, of_contestants, shaded};
use crate::report::comparison::score::{capitalized, metric_label, metric_of, noun, percent};
use crate::scoring::Metric;

pub(super) fn charts(comparison: &Comparison) -> Vec<Chart> {
    let groups = comparison.by_length();
    let unit = comparison.task.length_unit.name();
    let chart = |metric: &String| {
        let points = |name: &str| {
            let point = |group: &&Group| {
                let score = comparison.score(name, &group.id, metric)?;
                let [y, low, high] = [score.score, score.low, score.high].map(|value| percent(metric, value));
                let tip = format!(
                    "{name}, {} {unit}: {y:.1} [{low:.1}, {high:.1}], {} sentences",
                    group.label(),
                    group.sentences
                );
                Some(Point { x: group.mean_length, y, interval: Some([low, high]), tip })
            };
            groups.iter().filter_map(point).collect()
        };
        Chart {
            id: format!("quality-{}", metric.replace('_', "-")),
            title: format!("{} by source length", capitalized(&noun(metric))),
            caption: format!(
                "Each point is a group of test sentences at its mean length; bands are 95 % intervals over sentences{}.",
                if comparison.has_seeds() { " and seeds" } else { " of these runs" }
            ),
            x: length_axis(comparison),
            y: match metric_of(metric) {
                Metric::SequenceAccuracy | Metric::SequenceError | Metric::TokenAccuracy => {
                    Axis::between(&metric_label(metric), 0.0, 100.0)
                }
                _ => Axis::linear(&metric_label(metric)),
            },
            series: of_contestants(comparison, true, points),
            shaded: shaded(comparison),
        }
    };
    comparison.metrics.iter().take(2).map(chart).collect()
}
