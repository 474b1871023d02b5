//! Which charts a comparison has.

use super::chart::{Axis, Chart, Point, Series};
use super::data::{Comparison, Group, GroupKind};
use super::measured::{Cost, CostKind, CurvePoint, Faults};
use super::scale::{Division, short};
use super::score::{metric_label, metric_of, noun, percent};
use crate::scoring::Metric;

/// Every chart that there is something to draw for, in the order of the report.
pub fn charts(comparison: &Comparison) -> Vec<Chart> {
    let mut found = quality(comparison);
    found.extend(positions(comparison));
    found.extend(faults(comparison));
    found.extend(costs(comparison));
    found.extend(curves(comparison));
    found.retain(|chart| !chart.is_empty());
    found
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn of_contestants(comparison: &Comparison, is_marked: bool, points: impl Fn(&str) -> Vec<Point>) -> Vec<Series> {
    let series = comparison.contestants.iter().enumerate().map(|(place, contestant)| {
        let name = contestant.name.clone();
        Series { points: points(&name), name, place, is_marked }
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

fn shaded(comparison: &Comparison) -> Option<(f64, String)> {
    let is_needed = comparison.groups.iter().any(|group| !group.is_seen);
    is_needed.then(|| (comparison.task.trained_length as f64, "never seen in training".into()))
}

fn length_axis(comparison: &Comparison) -> Axis {
    Axis::linear(&format!("source length ({})", comparison.task.length_unit.name()))
}

fn quality(comparison: &Comparison) -> Vec<Chart> {
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
            caption: "Each point is a group of test sentences at its mean length; bands are 95 % intervals over sentences and seeds."
                .into(),
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

fn positions(comparison: &Comparison) -> Vec<Chart> {
    let groups = comparison.groups.iter().filter(|group| group.kind != GroupKind::Bucket);
    let unit = comparison.task.length_unit.name();
    let chart = |group: &Group| {
        let rows = || comparison.positions.iter().filter(|row| row.group == group.id);
        let of = rows().next().map_or("source", |row| row.of.as_str());
        let points = |name: &str| {
            let of_contestant = rows().filter(|row| row.contestant == name);
            let point = |row: &super::PositionAccuracy| {
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

fn faults(comparison: &Comparison) -> Vec<Chart> {
    type Pick = fn(&Faults) -> Option<f64>;
    let kinds: [(&str, &str, &str, Pick); 5] = [
        ("length-ratio", "Length of the answers", "written words / reference words", |row| Some(row.length_ratio)),
        ("repetition", "Repetition", "4-grams written before (%)", |row| Some(100.0 * row.repetition)),
        ("early-stop", "Early stop", "sentences ended too early (%)", |row| Some(100.0 * row.early_stop)),
        ("cut", "Cut answers", "sentences cut at the length cap (%)", |row| Some(100.0 * row.cut)),
        ("omission", "Omission", "source words hardly looked at (%)", |row| row.omission.map(|part| 100.0 * part)),
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

fn costs(comparison: &Comparison) -> Vec<Chart> {
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

/// Whether the costs of a contestant are those measured of another.
pub(super) fn is_shared(comparison: &Comparison, name: &str) -> bool {
    comparison.costs.iter().any(|cost| cost.contestant == name && cost.same_as.is_some())
}

/// The names of all contestants whose costs are those of `name`.
pub(super) fn cost_name(comparison: &Comparison, name: &str) -> String {
    let is_same = |other: &str| {
        let as_name = |cost: &Cost| cost.contestant == other && cost.same_as.as_deref() == Some(name);
        other == name || comparison.costs.iter().any(as_name)
    };
    let names = comparison.contestants.iter().map(|contestant| contestant.name.as_str());
    names.filter(|other| is_same(other)).collect::<Vec<_>>().join(", ")
}

fn curves(comparison: &Comparison) -> Vec<Chart> {
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
