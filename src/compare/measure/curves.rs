//! Learning curves, from what training wrote down.

use crate::experiment::Run;
use crate::report::comparison::CurvePoint;

/// Points of the training curve: each is the mean of a stretch of updates.
const MOST_POINTS: usize = 60;

/// The curves of training and of validation; empty where nothing was written down.
pub fn read(run: &Run) -> (Vec<CurvePoint>, Vec<CurvePoint>) {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
    let (mut train, mut valid) = (Vec::new(), Vec::new());
    // The last line of a run that was killed may be cut.
    for line in text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()) {
        let (Some(update), Some(seconds), Some(loss)) =
            (line["update"].as_u64(), line["seconds"].as_f64(), line["loss"].as_f64())
        else {
            continue;
        };
        let point = CurvePoint { update, seconds, loss, score: line["score"].as_f64() };
        if line["split"] == "train" { train.push(point) } else { valid.push(point) }
    }
    (thinned(&train), valid)
}

/// Means of equal stretches.
fn thinned(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let stretch = points.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[CurvePoint]| {
        let last = points.last().expect("a chunk has elements");
        let loss = points.iter().map(|point| point.loss).sum::<f64>() / points.len() as f64;
        CurvePoint { loss, ..last.clone() }
    };
    points.chunks(stretch).map(mean).collect()
}
