//! Up to which length a model is good, as far as claims go.

use super::claims::{GOOD, OF_GOOD};
use crate::report::comparison::{Claim, ClaimKind, Comparison, Group, Threshold};
use crate::scoring::Verdict;

/// For every contestant of a comparison with claims about a level, the lengths at which it is claimed to be above and below that.
pub fn thresholds(comparison: &Comparison) -> Vec<Threshold> {
    let groups = comparison.by_length();
    let of_contestant = |name: &String| {
        let of_level = |claim: &&Claim| claim.kind == ClaimKind::Level && claim.operands[1] == *name;
        let claims: Vec<&Claim> = comparison.claims.iter().filter(of_level).collect();
        let claimed = |group: &&&Group| claims.iter().find(|claim| claim.group == group.id).copied();
        let is_sure = |group: &&&Group, is_above: bool| {
            let claim = claimed(group).filter(|claim| claim.verdict == Verdict::Different);
            claim.is_some_and(|claim| (claim.estimate > 0.0) == is_above)
        };
        let before = groups.iter().take_while(|group| !is_sure(group, false));
        let longest_above = before.filter(|group| is_sure(group, true)).last().map(|group| group.to);
        let first_below = groups.iter().find(|group| is_sure(group, false)).map(|group| group.from);
        let (contestant, metric) = (name.clone(), OF_GOOD.to_string());
        (!claims.is_empty()).then_some(Threshold { contestant, metric, level: GOOD, longest_above, first_below })
    };
    comparison.contestants.iter().filter_map(|contestant| of_contestant(&contestant.name)).collect()
}
