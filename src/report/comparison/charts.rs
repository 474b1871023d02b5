//! Which charts a comparison has.

use super::chart::{Axis, Chart, Point, Series};
use super::data::{Comparison, Group, GroupKind};
use super::measured::{Cost, CostKind, CurvePoint, Faults};
use super::scale::{Division, short};

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

/// What a score is called, and its axis.
pub fn metric_label(metric: &str) -> &'static str {
    match metric {
        "bleu" => "BLEU",
        "chrf" => "chrF",
        "token_accuracy" => "tokens right (%)",
        _ => "sentences right (%)",
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Fractions are shown as percentages.
pub fn percent(metric: &str, value: f64) -> f64 {
    if metric.ends_with("accuracy") { 100.0 * value } else { value }
}

fn of_contestants(comparison: &Comparison, is_marked: bool, points: impl Fn(&str) -> Vec<Point>) -> Vec<Series> {
    let series = comparison.contestants.iter().enumerate().map(|(place, contestant)| {
        let name = contestant.name.clone();
        Series { points: points(&name), name, place, is_marked }
    });
    series.filter(|series| !series.points.is_empty()).collect()
}

/// The groups of a chart over lengths, from short to long: the buckets, and single lengths where no bucket reaches.
fn by_length(comparison: &Comparison) -> Vec<&Group> {
    let longest = comparison.groups.iter().filter(|g| g.kind == GroupKind::Bucket).map(|g| g.to).max().unwrap_or(0);
    let is_drawn = |g: &&Group| g.kind == GroupKind::Bucket || g.kind == GroupKind::Length && g.from > longest;
    let mut groups: Vec<&Group> = comparison.groups.iter().filter(is_drawn).collect();
    groups.sort_by(|a, b| a.mean_length.total_cmp(&b.mean_length));
    groups
}

fn shaded(comparison: &Comparison) -> Option<(f64, String)> {
    let is_needed = comparison.groups.iter().any(|group| !group.is_seen);
    is_needed.then(|| (comparison.task.trained_length as f64, "never seen in training".into()))
}

fn quality(comparison: &Comparison) -> Vec<Chart> {
    let groups = by_length(comparison);
    let chart = |metric: &String| {
        let points = |name: &str| {
            let point = |group: &&Group| {
                let score = comparison.score(name, &group.id, metric)?;
                let [y, low, high] = [score.score, score.low, score.high].map(|value| percent(metric, value));
                let tip = format!(
                    "{name}, {} words: {y:.1} [{low:.1}, {high:.1}], {} sentences",
                    group.label(),
                    group.sentences
                );
                Some(Point { x: group.mean_length, y, interval: Some([low, high]), tip })
            };
            groups.iter().filter_map(point).collect()
        };
        Chart {
            id: format!("quality-{}", metric.replace('_', "-")),
            title: format!("{} by source length", capitalized(metric_label(metric).trim_end_matches(" (%)"))),
            caption: "Each point is a group of test sentences at its mean length; bands are 95 % intervals over resampled sentences."
                .into(),
            x: Axis::linear("source length (words)"),
            y: if metric.ends_with("accuracy") {
                Axis::between(metric_label(metric), 0.0, 100.0)
            } else {
                Axis::linear(metric_label(metric))
            },
            series: of_contestants(comparison, true, points),
            shaded: shaded(comparison),
        }
    };
    comparison.metrics.iter().take(2).map(chart).collect()
}

fn positions(comparison: &Comparison) -> Vec<Chart> {
    let groups = comparison.groups.iter().filter(|group| group.kind != GroupKind::Bucket);
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
            _ if group.is_seen => format!("sources of {} words", group.label()),
            _ => format!("sources of {} words, never so long in training", group.label()),
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
    let kinds: [(&str, &str, &str, Pick); 4] = [
        ("length-ratio", "Length of the answers", "written words / reference words", |row| Some(row.length_ratio)),
        ("repetition", "Repetition", "4-grams written before (%)", |row| Some(100.0 * row.repetition)),
        ("early-stop", "Early stop", "sentences ended too early (%)", |row| Some(100.0 * row.early_stop)),
        ("omission", "Omission", "source words hardly looked at (%)", |row| row.omission.map(|part| 100.0 * part)),
    ];
    let groups = by_length(comparison);
    let chart = |(id, title, label, pick): (&str, &str, &str, Pick)| {
        let points = |name: &str| {
            let point = |group: &&Group| {
                let row = comparison.faults.iter().find(|row| row.contestant == name && row.group == group.id)?;
                let y = pick(row)?;
                let tip = format!("{name}, {} words: {}", group.label(), short(y));
                Some(Point { x: group.mean_length, y, interval: None, tip })
            };
            groups.iter().filter_map(point).collect()
        };
        let y = if id == "length-ratio" { Axis::linear(label) } else { Axis::between(label, 0.0, 100.0) };
        Chart {
            id: format!("faults-{id}"),
            title: title.into(),
            caption: String::new(),
            x: Axis::linear("source length (words)"),
            y,
            series: of_contestants(comparison, true, points),
            shaded: shaded(comparison),
        }
    };
    kinds.into_iter().map(chart).collect()
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
                let tip = format!("{name}, {} tokens: {} {label}", row.length, short(y));
                Some(Point { x: row.length as f64, y, interval: None, tip })
            };
            rows.filter_map(point).collect()
        };
        Chart {
            id: format!("cost-{id}"),
            title: title.into(),
            caption: "One sentence pair, as many tokens on each side; both axes are logarithmic.".into(),
            x: Axis::logarithmic("length (tokens)", Division::PowersOfTwo),
            y: Axis::logarithmic(label, Division::PowersOfTen),
            series: of_contestants(comparison, true, points),
            shaded: None,
        }
    };
    kinds.into_iter().map(chart).collect()
}

fn curves(comparison: &Comparison) -> Vec<Chart> {
    type Pick = fn(&CurvePoint) -> f64;
    let kinds: [(&str, &str, &str, Pick); 2] = [
        ("updates", "Learning, by updates", "updates", |point| point.update as f64),
        ("seconds", "Learning, by time", "seconds of training", |point| point.seconds),
    ];
    let chart = |(id, title, label, pick): (&str, &str, &str, Pick)| {
        let mut series = Vec::new();
        for (place, contestant) in comparison.contestants.iter().enumerate() {
            let own = comparison.curves.iter().filter(|curve| curve.contestant == contestant.name);
            for curve in own {
                let who = match contestant.seeds.len() {
                    1 => contestant.name.clone(),
                    _ => format!("{}, seed {}", contestant.name, curve.seed),
                };
                let point = |point: &CurvePoint| {
                    let tip = format!("{who}, update {}: {} nats", point.update, short(point.loss));
                    Point { x: pick(point), y: point.loss, interval: None, tip }
                };
                let points = curve.train.iter().map(point).collect();
                series.push(Series { name: contestant.name.clone(), place, points, is_marked: false });
            }
        }
        Chart {
            id: format!("curves-{id}"),
            title: title.into(),
            caption: "Cross-entropy of the training batches, means of stretches of updates.".into(),
            x: Axis::linear(label),
            y: Axis::linear("nats per target token"),
            series,
            shaded: None,
        }
    };
    kinds.into_iter().map(chart).collect()
}
