//! Who is better, by how much, and how that changes with length.

use crate::report::comparison::claims::rows::ClaimKind;
use crate::report::comparison::claims::words::{claim_between, verdict};
use crate::report::comparison::data::{Comparison, Group, GroupKind};
use crate::report::comparison::score::{is_better, metric_of, noun, percent, shown};
use crate::scoring::{Metric, Verdict};

/// The order on the whole test set, and what is claimed of each step of it.
pub(in crate::report::comparison) fn overall(comparison: &Comparison) -> Option<String> {
    let metric = comparison.headline();
    let ranked = ranked(comparison);
    let scores: Vec<String> = ranked.iter().map(|(name, score)| format!("{name} {}", shown(metric, *score))).collect();
    let less = if metric_of(metric).lower_is_better() { ", less is better" } else { "" };
    let mut text = format!("On the whole test set ({}{less}): {}.", noun(metric), scores.join(", "));
    let steps = steps(comparison, &ranked);
    for step in &steps {
        text += &format!(" {}", step.sentence);
    }
    if steps.iter().any(|step| step.is_of_runs) {
        text += &format!(" {OF_RUNS}");
    }
    Some(text)
}

/// What is claimed of two models that follow each other in the order on the whole test set.
pub(in crate::report::comparison) struct Step {
    pub(in crate::report::comparison) sentence: String,
    /// Whether there is a single seed.
    pub(in crate::report::comparison) is_of_runs: bool,
}

/// What is claimed of each step of the order, where something is.
pub(in crate::report::comparison) fn steps(comparison: &Comparison, ranked: &[(&str, f64)]) -> Vec<Step> {
    let step = |pair: &[(&str, f64)]| {
        let claim = claim_between(comparison, pair[0].0, pair[1].0, comparison.headline())?;
        Some(Step { sentence: format!("{}.", verdict(claim, pair[0].0, pair[1].0)), is_of_runs: claim.is_of_runs() })
    };
    ranked.windows(2).filter_map(step).collect()
}

/// What is said where there is one seed.
pub(in crate::report::comparison) const OF_RUNS: &str =
    "A single seed: this is said of these runs, and not of what other seeds would give.";

/// The models and their scores on the whole test set, the best first.
pub(in crate::report::comparison) fn ranked(comparison: &Comparison) -> Vec<(&str, f64)> {
    let metric = comparison.headline();
    let score = |name: &str| Some(comparison.score(name, "all", metric)?.score);
    let scored =
        comparison.contestants.iter().filter_map(|contestant| Some((&*contestant.name, score(&contestant.name)?)));
    let mut ranked: Vec<(&str, f64)> = scored.collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    if metric_of(metric).lower_is_better() {
        ranked.reverse();
    }
    ranked
}

/// What is claimed of every two models on the whole test set, the best first.
pub(in crate::report) fn pairs(comparison: &Comparison) -> String {
    let ranked = ranked(comparison);
    let mut sentences = Vec::new();
    for (i, (better, _)) in ranked.iter().enumerate() {
        for (worse, _) in &ranked[i + 1..] {
            sentences.extend(claimed(comparison, better, worse).map(|claimed| claimed + "."));
        }
    }
    sentences.join(" ")
}

/// What is claimed of two models, if anything is.
fn claimed(comparison: &Comparison, better: &str, worse: &str) -> Option<String> {
    Some(verdict(claim_between(comparison, better, worse, comparison.headline())?, better, worse))
}

/// From the shortest to the longest bucket that training has seen.
pub(in crate::report::comparison) fn with_length(comparison: &Comparison, name: &str) -> Option<String> {
    let metric = comparison.headline();
    let seen: Vec<&Group> = comparison.groups.iter().filter(|g| g.kind == GroupKind::Bucket && g.is_seen).collect();
    let (first, last) = (seen.first()?, seen.last()?);
    if first.id == last.id {
        return None;
    }
    let [short, long] = [first, last].map(|group| comparison.score(name, &group.id, metric));
    let (short, long) = (short?, long?);
    let of_length = comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Length && claim.group == name);
    let claim = of_length.into_iter().find(|claim| claim.metric == metric)?;
    let verb = match claim.verdict {
        Verdict::Different if claim.is_small => "changes little with length",
        Verdict::Different if is_better(metric, long.score, short.score) => "gets better with length",
        Verdict::Different => "gets worse with length",
        Verdict::Equivalent => "is as good on the longest sentences as on the shortest",
        Verdict::Undecided if claim.p_corrected.is_none() => {
            "has too few of the shortest or of the longest sentences to tell them apart"
        }
        // Scores between the two may differ from both.
        Verdict::Undecided => "has no significant difference between the shortest sentences and the longest",
    };
    Some(format!(
        "{name} {verb} within what training has seen: {} at {} {}, {} at {}.",
        shown(metric, short.score),
        first.label(),
        comparison.task.length_unit.name(),
        shown(metric, long.score),
        last.label()
    ))
}

/// The scores on groups with sentences longer than any in training, each with its interval.
pub(in crate::report::comparison) fn beyond(comparison: &Comparison) -> Vec<String> {
    let metric = comparison.headline();
    let unseen = comparison.groups.iter().filter(|group| !group.is_seen && group.kind != GroupKind::All);
    let of_group = |group: &Group| {
        let second = comparison.metrics.get(1);
        let scores = comparison.contestants.iter().filter_map(|contestant| {
            let score = comparison.score(&contestant.name, &group.id, metric)?;
            let second =
                second.and_then(|metric| Some((metric, comparison.score(&contestant.name, &group.id, metric)?)));
            let second = second.map_or(String::new(), |(metric, score)| match metric_of(metric) {
                Metric::TokenAccuracy => format!(" ({} of tokens)", shown(metric, score.score)),
                _ => format!(" ({} {})", noun(metric), shown(metric, score.score)),
            });
            let [low, high] = [score.low, score.high].map(|end| format!("{:.1}", percent(metric, end)));
            Some(format!("{} {}, {low} to {high}{second}", contestant.name, shown(metric, score.score)))
        });
        let times = group.mean_length / comparison.task.trained_length.max(1) as f64;
        let what = match group.from > comparison.task.trained_length {
            true => "Never seen in training",
            false => "In part longer than all of training",
        };
        format!(
            "{what}, {} {} ({times:.1} times the longest): {}.",
            group.label(),
            comparison.task.length_unit.name(),
            scores.collect::<Vec<_>>().join("; ")
        )
    };
    unseen.map(of_group).collect()
}
