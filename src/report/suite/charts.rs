//! What of a suite is drawn.

use super::data::{Suite, SuiteTask};
use super::matrix::shown;
use super::words::place;
use crate::report::comparison::chart::{Axis, Chart, Point, Series};
use crate::report::comparison::measures::charts as of_comparison;
use crate::report::comparison::score::{capitalized, metric_label, percent};
use crate::report::comparison::{Comparison, Division};

/// A score by length for each task.
pub fn by_length(suite: &Suite, comparisons: &[Option<Comparison>]) -> Vec<Chart> {
    let of = |(task, comparison): (&SuiteTask, &Comparison)| {
        let id = format!("quality-{}", task.metric.replace('_', "-"));
        let chart = of_comparison(comparison).into_iter().find(|chart| chart.id == id)?;
        Some(Chart {
            id: format!("{}-{}", task.name, chart.id),
            // Titles are not broken into lines, and captions are.
            title: format!("{}: score by length", task.name),
            caption: format!("{}. {}", capitalized(task.about.trim_end_matches('.')), chart.caption),
            ..as_in_suite(suite, chart)
        })
    };
    with_comparison(suite, comparisons).filter_map(of).collect()
}

/// A chart of a task with the colours and markers that families have in the whole suite: in a task they may be fewer, or in another
/// order.
fn as_in_suite(suite: &Suite, mut chart: Chart) -> Chart {
    for series in &mut chart.series {
        series.place = suite.families.iter().position(|family| family.name == series.name).unwrap_or(series.place);
    }
    chart
}

/// The score at the longest sources against the bytes that writing carries from step to step.
pub fn by_state(suite: &Suite) -> Vec<Chart> {
    let of = |task: &SuiteTask| {
        let group = task.groups.last()?;
        let series = suite.families.iter().enumerate().filter_map(|(i, family)| {
            let cell = suite.cell(&task.name, &family.name)?;
            let score = cell.score(&group.id)?;
            let [y, low, high] = [score.score, score.low, score.high].map(|value| percent(&task.metric, value));
            let kib = cell.state_bytes as f64 / 1024.0;
            let tip = format!(
                "{}: {} [{low:.1}, {high:.1}] with {kib:.1} KiB of state",
                family.name,
                shown(&task.metric, score.score)
            );
            let points = vec![Point { x: kib, y, interval: Some([low, high]), tip }];
            Some(Series { name: family.name.clone(), place: i, points, is_marked: true })
        });
        Some(Chart {
            id: format!("{}-state", task.name),
            title: format!("{}: score against state", task.name),
            caption: format!("{}. Lines are 95 % intervals.", capitalized(&place(task, group))),
            x: Axis::logarithmic("what writing carries (KiB)", Division::PowersOfTwo),
            y: Axis::between(&metric_label(&task.metric), 0.0, 100.0),
            series: series.collect(),
            shaded: None,
        })
    };
    suite.tasks.iter().filter_map(of).collect()
}

/// Time and memory by length, of the task at which they were measured.
pub fn costs(suite: &Suite, comparisons: &[Option<Comparison>]) -> Vec<Chart> {
    let of = |(task, comparison): (&SuiteTask, &Comparison)| {
        let charts = of_comparison(comparison).into_iter().filter(|chart| chart.id.starts_with("cost-"));
        let named = |chart: Chart| Chart { id: format!("{}-{}", task.name, chart.id), ..as_in_suite(suite, chart) };
        charts.map(named).collect::<Vec<_>>()
    };
    with_comparison(suite, comparisons).flat_map(of).collect()
}

/// The tasks whose comparison is there, with all families that have a cell: a part of them would look like all.
pub(super) fn with_comparison<'a>(
    suite: &'a Suite,
    comparisons: &'a [Option<Comparison>],
) -> impl Iterator<Item = (&'a SuiteTask, &'a Comparison)> {
    let is_whole = |(task, comparison): &(&SuiteTask, &Comparison)| {
        let mut cells = suite.cells.iter().filter(|cell| cell.task == task.name);
        cells.all(|cell| comparison.contestants.iter().any(|contestant| contestant.name == cell.family))
    };
    let there = suite.tasks.iter().zip(comparisons).filter_map(|(task, comparison)| Some((task, comparison.as_ref()?)));
    there.filter(is_whole)
}
