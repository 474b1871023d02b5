//! Contestants of one architecture have one cost, and one name for it.

use super::rows::Cost;
use crate::report::comparison::data::Comparison;

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
