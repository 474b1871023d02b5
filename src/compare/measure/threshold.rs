//! Up to which length a model is good.

use crate::report::comparison::{Comparison, Group, GroupKind, Threshold};

/// The part of sentences that have to be right.
const LEVEL: f64 = 0.9;

/// For every contestant of a comparison by right sentences, the length at which the part of right sentences falls below nine tenths.
pub fn thresholds(comparison: &Comparison) -> Vec<Threshold> {
    let metric = "sequence_accuracy";
    if !comparison.task.is_generated && comparison.headline() != metric {
        return Vec::new();
    }
    let mut groups: Vec<&Group> = comparison.groups.iter().filter(|group| group.kind != GroupKind::All).collect();
    groups.sort_by(|a, b| a.mean_length.total_cmp(&b.mean_length));
    let of_contestant = |name: &String| {
        let (mut longest_above, mut first_below) = (None, None);
        for group in &groups {
            match comparison.score(name, &group.id, metric) {
                Some(score) if score.score >= LEVEL => longest_above = Some(group.to),
                Some(_) => {
                    first_below = Some(group.from);
                    break;
                }
                None => {}
            }
        }
        let (contestant, metric) = (name.clone(), metric.to_string());
        Threshold { contestant, metric, level: LEVEL, longest_above, first_below }
    };
    comparison.contestants.iter().map(|contestant| of_contestant(&contestant.name)).collect()
}
