//! How costs grow with length, and where one model becomes dearer than another.

use crate::report::comparison::{Cost, CostKind, Crossing, Growth};
use crate::scoring::{Part, interval};

/// What the logarithm of each value counts for in the slope of a least-squares line over the logarithms of these lengths; none for fewer
/// than two lengths.
fn weights(lengths: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let logs: Vec<f64> = lengths.map(f64::ln).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let spread: f64 = logs.iter().map(|x| (x - mean).powi(2)).sum();
    (logs.len() > 1 && spread > 0.0).then(|| logs.iter().map(|x| (x - mean) / spread).collect())
}

/// The slope of a least-squares line through the logarithms of `points`, all above zero; none for fewer than two lengths.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let weights = weights(points.iter().map(|point| point.0))?;
    Some(weights.iter().zip(points).map(|(weight, (_, y))| weight * y.ln()).sum())
}

/// The 95 % interval of [`exponent`] that those of the values leave, which are taken as independent of each other; `visits` says how many
/// measurements each comes from. That the costs may not grow along a line is not in it.
pub fn exponent_interval(places: &[Place], visits: &[usize]) -> Option<[f64; 2]> {
    let weights = weights(places.iter().map(|place| place.0))?;
    let slope: f64 = weights.iter().zip(places).map(|(weight, (_, [_, middle, _]))| weight * middle.ln()).sum();
    let part = |((weight, (_, [low, _, high])), n): ((&f64, &Place), &usize)| {
        Part::of_interval(weight * (high.ln() - low.ln()) / 2.0, *n)
    };
    let parts: Vec<Part> = weights.iter().zip(places).zip(visits).map(part).collect();
    Some(interval(slope, &parts))
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
                    let lengths: Vec<usize> = longer.iter().map(|point| point.0 as usize).collect();
                    let mut places = places(costs, contestant, kind, of);
                    places.retain(|place| lengths.contains(&(place.0 as usize)));
                    let is_timed = of == "seconds" && places.len() == lengths.len();
                    let visits: Vec<usize> =
                        lengths.iter().map(|length| visits(costs, contestant, kind, *length)).collect();
                    let interval = if is_timed { exponent_interval(&places, &visits) } else { None };
                    let (contestant, of) = (contestant.clone(), of.to_string());
                    rows.push(Growth { contestant, kind, of, exponent, interval, lengths, theory });
                }
            }
        }
    }
    rows
}

/// A cost at a length, between the ends of its interval: low, middle, high.
pub type Place = (f64, [f64; 3]);

/// Costs with their intervals; times without one say too little to be compared. Memory is the same at every visit.
fn places(costs: &[Cost], contestant: &str, kind: CostKind, of: &str) -> Vec<Place> {
    let of_contestant = costs.iter().filter(|cost| cost.contestant == contestant && cost.kind == kind);
    let place = |cost: &Cost| {
        let middle = value(cost, of)?;
        let [low, high] = if of == "seconds" { cost.interval? } else { [middle; 2] };
        Some((cost.length as f64, [low, middle, high]))
    };
    of_contestant.filter_map(place).collect()
}

/// How often a cost was measured.
fn visits(costs: &[Cost], contestant: &str, kind: CostKind, length: usize) -> usize {
    let is_it = |cost: &&Cost| cost.contestant == contestant && cost.kind == kind && cost.length == length;
    costs.iter().find(is_it).map_or(0, |cost| cost.visits)
}

/// Every length at which the cheaper of two contestants changes, for every kind of cost.
pub fn crossings(costs: &[Cost], contestants: &[String]) -> Vec<Crossing> {
    let mut rows = Vec::new();
    for kind in [CostKind::Update, CostKind::Decode] {
        for of in ["seconds", "memory"] {
            for (i, left) in contestants.iter().enumerate() {
                for right in &contestants[i + 1..] {
                    let one = places(costs, left, kind, of);
                    let other = places(costs, right, kind, of);
                    rows.extend(last_crossing(&one, &other).map(|(length, interval, is_left)| {
                        let (dearer, cheaper) = if is_left { (left, right) } else { (right, left) };
                        let (dearer, cheaper) = (dearer.clone(), cheaper.clone());
                        Crossing { dearer, cheaper, kind, of: of.to_string(), length, interval: Some(interval) }
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

/// The last length at which the lines through `one` and `other` cross, where that may be as far as their intervals go, and whether the
/// first is the dearer one beyond it. Nothing where one of them is not clearly dearer at the end, or the other before, and nothing
/// where an interval leaves that open.
pub fn last_crossing(one: &[Place], other: &[Place]) -> Option<(f64, [f64; 2], bool)> {
    // By how much the first is dearer: at least, as measured, at most.
    let gaps: Vec<Place> = one
        .iter()
        .filter_map(|(x, own)| {
            let (_, others) = other.iter().find(|place| place.0 == *x)?;
            let gap = |own: f64, other: f64| own.ln() - other.ln();
            Some((x.ln(), [gap(own[0], others[2]), gap(own[1], others[1]), gap(own[2], others[0])]))
        })
        .collect();
    let is_first = gaps.last()?.1[1] > 0.0;
    // From here on the one that is dearer at the end has the sign plus.
    let gaps: Vec<Place> = match is_first {
        true => gaps,
        false => gaps.into_iter().map(|(x, [low, middle, high])| (x, [-high, -middle, -low])).collect(),
    };
    let is_dearer = |(_, [low, middle, _]): &Place| *low > 0.0 && *middle > CLEAR.ln();
    let is_cheaper = |(_, [_, middle, high]): &Place| *high < 0.0 && *middle < -CLEAR.ln();
    if !is_dearer(gaps.last()?) || !gaps.iter().any(is_cheaper) {
        return None;
    }
    // Where a line comes above zero for the last time.
    let crossing = |line: usize| {
        let above = gaps.iter().rposition(|(_, gap)| gap[line] <= 0.0)?;
        let [(x0, d0), (x1, d1)] = [gaps[above], gaps[above + 1]].map(|(x, gap)| (x, gap[line]));
        Some((x0 + (x1 - x0) * d0 / (d0 - d1)).exp())
    };
    // The highest line comes up first.
    Some((crossing(1)?, [crossing(2)?, crossing(0)?], is_first))
}
