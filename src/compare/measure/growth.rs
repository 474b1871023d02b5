//! How costs grow with length, and where one model becomes dearer than another.

use crate::report::comparison::{Cost, CostKind, Crossing, Growth};

/// The slope of a least-squares line through the logarithms of `points`, all above zero; none for fewer than two lengths.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (mean_x, mean_y) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let spread: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let product: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    (logs.len() > 1 && spread > 0.0).then(|| product / spread)
}

/// One of the two costs of a cell: `seconds`, or `memory` beyond what the process had before.
fn value(cost: &Cost, of: &str) -> Option<f64> {
    let value = match of {
        "seconds" => cost.seconds?,
        _ => cost.peak_bytes?.checked_sub(cost.base_bytes?)? as f64,
    };
    (value > 0.0).then_some(value)
}

fn points(costs: &[Cost], contestant: &str, kind: CostKind, of: &str) -> Vec<(f64, f64)> {
    let of_contestant = costs.iter().filter(|cost| cost.contestant == contestant && cost.kind == kind);
    of_contestant.filter_map(|cost| Some((cost.length as f64, value(cost, of)?))).collect()
}

/// The exponents of every contestant, fitted to the longer half of the lengths, where constant costs weigh less. `theory` gives
/// the exponents of seconds and memory for a contestant and a kind.
pub fn growth(costs: &[Cost], contestants: &[String], theory: impl Fn(&str, CostKind) -> [f64; 2]) -> Vec<Growth> {
    let mut rows = Vec::new();
    for kind in [CostKind::Update, CostKind::Decode] {
        for contestant in contestants {
            for (of, theory) in ["seconds", "memory"].into_iter().zip(theory(contestant, kind)) {
                let points = points(costs, contestant, kind, of);
                let longer = &points[points.len() / 2..];
                let longer = if longer.len() < 3 { &points[points.len().saturating_sub(3)..] } else { longer };
                // Two lengths have a slope, and no trend.
                if let Some(exponent) = exponent(longer).filter(|_| longer.len() > 2) {
                    let lengths = longer.iter().map(|point| point.0 as usize).collect();
                    let (contestant, of) = (contestant.clone(), of.to_string());
                    rows.push(Growth { contestant, kind, of, exponent, lengths, theory });
                }
            }
        }
    }
    rows
}

/// Every length at which the cheaper of two contestants changes, for every kind of cost.
pub fn crossings(costs: &[Cost], contestants: &[String]) -> Vec<Crossing> {
    let mut rows = Vec::new();
    for kind in [CostKind::Update, CostKind::Decode] {
        for of in ["seconds", "memory"] {
            for (i, left) in contestants.iter().enumerate() {
                for right in &contestants[i + 1..] {
                    let one = points(costs, left, kind, of);
                    let other = points(costs, right, kind, of);
                    rows.extend(last_crossing(&one, &other).map(|(length, is_left)| {
                        let (dearer, cheaper) = if is_left { (left, right) } else { (right, left) };
                        let (dearer, cheaper) = (dearer.clone(), cheaper.clone());
                        Crossing { dearer, cheaper, kind, of: of.to_string(), length }
                    }));
                }
            }
        }
    }
    rows
}

/// How much dearer a model has to be, at the longest length and, the other way round, at some shorter one: what is less comes and goes
/// with whatever else the machine does.
const CLEAR: f64 = 1.1;

/// The last length at which the lines through `one` and `other` cross, and whether the first is the dearer one beyond it; nothing where
/// one of them is not clearly dearer at the end, or the other before.
pub fn last_crossing(one: &[(f64, f64)], other: &[(f64, f64)]) -> Option<(f64, bool)> {
    let shared: Vec<(f64, f64)> = one
        .iter()
        .filter_map(|(x, y)| {
            let (_, z) = other.iter().find(|point| point.0 == *x)?;
            Some((x.ln(), y.ln() - z.ln()))
        })
        .collect();
    let crossing = |pair: &[(f64, f64)]| {
        let [(x0, d0), (x1, d1)] = [pair[0], pair[1]];
        (d0 * d1 < 0.0).then(|| ((x0 + (x1 - x0) * d0 / (d0 - d1)).exp(), d1 > 0.0))
    };
    let (place, is_first) = shared.windows(2).rev().find_map(crossing)?;
    let sign = if is_first { 1.0 } else { -1.0 };
    let clear = |(_, gap): &(f64, f64), sign: f64| sign * gap > CLEAR.ln();
    let is_clear = shared.last().is_some_and(|last| clear(last, sign))
        && shared.iter().any(|point| point.0 < place.ln() && clear(point, -sign));
    is_clear.then_some((place, is_first))
}
