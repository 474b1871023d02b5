//! What it costs, how that grows, and where one becomes dearer than another.

use super::names::cost_name;
use super::rows::{Cost, CostKind, Crossing};
use crate::report::comparison::data::Comparison;
use crate::report::comparison::measures::quality::words::ranked;
use crate::report::comparison::scale::short;

/// What an update of each costs where all were measured.
pub(in crate::report::comparison) fn price(comparison: &Comparison) -> Option<String> {
    let length = cost_length(comparison)?;
    let of = |name: &str| {
        let seconds = cost_at(comparison, name, CostKind::Update, length)?.seconds?;
        Some(format!("{name} {} s", short(seconds)))
    };
    let texts: Vec<String> = ranked(comparison).iter().filter_map(|(name, _)| of(name)).collect();
    Some(format!("An update on one pair of {length} tokens takes: {}.", texts.join(", ")))
}

/// The longest length at which every contestant's update was measured.
pub(in crate::report::comparison) fn cost_length(comparison: &Comparison) -> Option<usize> {
    let is_measured = |length: &usize| {
        let of =
            |name: &str| cost_at(comparison, name, CostKind::Update, *length).is_some_and(|row| row.seconds.is_some());
        comparison.contestants.iter().all(|contestant| of(&contestant.name))
    };
    comparison.costs.iter().map(|row| row.length).filter(is_measured).max()
}

/// What was measured of a contestant at a length.
pub(in crate::report::comparison) fn cost_at<'a>(
    comparison: &'a Comparison,
    name: &str,
    kind: CostKind,
    length: usize,
) -> Option<&'a Cost> {
    comparison.costs.iter().find(|row| row.contestant == name && row.kind == kind && row.length == length)
}

pub(in crate::report::comparison) fn growth(comparison: &Comparison) -> Option<String> {
    let of_updates = comparison.growth.iter().filter(|row| row.of == "seconds" && row.kind == CostKind::Update);
    let texts: Vec<String> = of_updates
        .map(|row| {
            let (first, last) = (row.lengths.first().unwrap_or(&0), row.lengths.last().unwrap_or(&0));
            let interval = row.interval.map_or(String::new(), |[low, high]| format!("{low:.2} to {high:.2}, "));
            format!(
                "{} with the power {:.2} ({interval}{first}-{last} tokens; in theory {} in the end)",
                cost_name(comparison, &row.contestant),
                row.exponent,
                short(row.theory)
            )
        })
        .collect();
    (!texts.is_empty()).then(|| format!("The time of an update grows with length: {}.", texts.join(", ")))
}

pub(in crate::report::comparison) fn crossing(comparison: &Comparison, crossing: &Crossing) -> String {
    let what = match crossing.kind {
        CostKind::Update => "An update of",
        CostKind::Decode => "Writing with",
    };
    let between = crossing.interval.map_or(String::new(), |[low, high]| format!(" (between {low:.0} and {high:.0})"));
    format!(
        "{what} {} takes longer than with {} from about {:.0} tokens on{between}.",
        cost_name(comparison, &crossing.dearer),
        cost_name(comparison, &crossing.cheaper),
        crossing.length
    )
}
