//! At which lengths models are good, as far as claims go.

use super::words::ranked;
use crate::report::comparison::claims::rows::{Claim, ClaimKind, Threshold};
use crate::report::comparison::data::{Comparison, Group, range};
use crate::report::comparison::score::{noun, shown};
use crate::scoring::Verdict;

/// Up to which length each model is good.
pub(in crate::report) fn reach(comparison: &Comparison) -> Option<String> {
    let first = comparison.thresholds.first()?;
    let unit = format!(" {}", comparison.task.length_unit.name());
    let of_row = |row: &Threshold| match row.longest_above {
        Some(above) => format!("{} {}", row.contestant, reached(comparison, above, &unit)),
        None => format!("{} none", row.contestant),
    };
    let row_of =
        |name: &str| comparison.thresholds.iter().find(|row| row.contestant == name && row.metric == first.metric);
    let rows: Vec<String> = ranked(comparison).iter().filter_map(|(name, _)| row_of(name)).map(of_row).collect();
    let (what, level) = (noun(&first.metric), shown(&first.metric, first.level));
    Some(format!(
        "The longest length at which the {what} is significantly above {level}, with none before it significantly below: {}.",
        rows.join("; ")
    ))
}

/// The lengths of the last group that a model reaches, whose longest source is this long: what is claimed is claimed of all of them together.
/// They are in `unit`, which may be empty; a length that the task counts in something else goes by its own name.
pub(in crate::report::comparison) fn reached(comparison: &Comparison, longest: usize, unit: &str) -> String {
    let group = comparison.by_length().into_iter().find(|group| group.to == longest);
    let lengths = match group {
        Some(group) if group.has_own_length() => group.name(),
        _ => range([group.map_or(longest, |group| group.from), longest]) + unit,
    };
    lengths + if longest == longest_tested(comparison) { ", the longest tested" } else { "" }
}

/// The longest source of any length tested.
fn longest_tested(comparison: &Comparison) -> usize {
    comparison.by_length().last().map_or(0, |group| group.to)
}

/// What is claimed of each model's lengths beside a level.
pub(in crate::report::comparison) fn levels(comparison: &Comparison) -> Vec<String> {
    let of_row = |row: &Threshold| {
        let level = format!("a {} of {}", noun(&row.metric), shown(&row.metric, row.level));
        let sides = [("above it", Some(true)), ("below it", Some(false)), ("undecided", None)];
        let part = |(what, side): (&str, Option<bool>)| {
            Some(format!("{what} at {}", lengths_on(comparison, &row.contestant, side)?))
        };
        format!(
            "{} beside {level}: {}.",
            row.contestant,
            sides.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
        )
    };
    comparison.thresholds.iter().map(of_row).collect()
}

/// The lengths at which a model is claimed to be above the level (`Some(true)`), below it, or neither; nothing where there are none.
fn lengths_on(comparison: &Comparison, name: &str, side: Option<bool>) -> Option<String> {
    let claim_of = |group: &Group| {
        let mut own =
            comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Level && claim.operands[1] == name);
        own.find(|claim| claim.group == group.id)
    };
    let side_of = |claim: &Claim| (claim.verdict == Verdict::Different).then_some(claim.estimate > 0.0);
    // Neighbours become one range, if no length between them went untested.
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    // Lengths that the task counts in something else go by their own names: in words, some are as long as others that are.
    let mut names: Vec<String> = Vec::new();
    let mut is_open = false;
    for group in comparison.by_length() {
        let is_on = claim_of(group).is_some_and(|claim| side_of(claim) == side);
        match ranges.last_mut().filter(|range| is_open && group.from == range[1] + 1) {
            _ if is_on && group.has_own_length() => names.push(group.name()),
            Some(range) if is_on => range[1] = group.to,
            _ if is_on => ranges.push([group.from, group.to]),
            _ => {}
        }
        is_open = is_on;
    }
    let unit = comparison.task.length_unit.name();
    let ranges = listed(ranges.into_iter().map(range).collect()).map(|ranges| format!("{ranges} {unit}"));
    listed(ranges.into_iter().chain(names).collect())
}

/// `a, b and c`; nothing of nothing.
fn listed(mut parts: Vec<String>) -> Option<String> {
    let last = parts.pop()?;
    Some(if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) })
}
