//! What was found, in sentences. Each is made from the numbers of the comparison, whichever way they point.

use super::charts::cost_name;
use super::data::{Comparison, Group, GroupKind};
use super::measured::{Claim, ClaimKind, Cost, CostKind, Crossing};
use super::scale::short;
use super::score::{is_better, metric_of, noun, percent, shown};
use crate::scoring::{Metric, Verdict};

/// The findings, most important first.
pub fn findings(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(overall(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| with_length(comparison, &contestant.name)));
    found.extend(beyond(comparison));
    found.extend(thresholds(comparison));
    found.extend(cut(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| forgotten(comparison, &contestant.name)));
    found.extend(growth(comparison));
    let of_seconds = comparison.crossings.iter().filter(|crossing| crossing.of == "seconds");
    found.extend(of_seconds.map(|row| crossing(comparison, row)));
    found
}

/// The three sentences that a reader should know first: who is best, up to which length, and at what price.
pub fn headlines(comparison: &Comparison) -> Vec<String> {
    [overall(comparison), reach(comparison), price(comparison)].into_iter().flatten().collect()
}

/// Up to which length each model is good.
fn reach(comparison: &Comparison) -> Option<String> {
    let first = comparison.thresholds.first()?;
    let level = format!("{} of {}", noun(&first.metric), shown(&first.metric, first.level));
    let unit = comparison.task.length_unit.name();
    let of_row = |row: &super::Threshold| match (row.longest_above, row.first_below) {
        (Some(above), Some(_)) => format!("{} up to {above} {unit}", row.contestant),
        (Some(above), None) => format!("{} at every length tested, up to {above} {unit}", row.contestant),
        (None, _) => format!("{} at none", row.contestant),
    };
    let row_of =
        |name: &str| comparison.thresholds.iter().find(|row| row.contestant == name && row.metric == first.metric);
    let rows: Vec<String> = ranked(comparison).iter().filter_map(|(name, _)| row_of(name)).map(of_row).collect();
    Some(format!("A {level} or more: {}.", rows.join(", ")))
}

/// What an update of each costs where all were measured.
fn price(comparison: &Comparison) -> Option<String> {
    let length = cost_length(comparison)?;
    let of = |name: &str| {
        let seconds = cost_at(comparison, name, CostKind::Update, length)?.seconds?;
        Some(format!("{name} {} s", short(seconds)))
    };
    let texts: Vec<String> = ranked(comparison).iter().filter_map(|(name, _)| of(name)).collect();
    Some(format!("An update on one pair of {length} tokens takes: {}.", texts.join(", ")))
}

/// The longest length at which every contestant's update was measured.
pub(super) fn cost_length(comparison: &Comparison) -> Option<usize> {
    let is_measured = |length: &usize| {
        let of =
            |name: &str| cost_at(comparison, name, CostKind::Update, *length).is_some_and(|row| row.seconds.is_some());
        comparison.contestants.iter().all(|contestant| of(&contestant.name))
    };
    comparison.costs.iter().map(|row| row.length).filter(is_measured).max()
}

/// What was measured of a contestant at a length.
pub(super) fn cost_at<'a>(comparison: &'a Comparison, name: &str, kind: CostKind, length: usize) -> Option<&'a Cost> {
    comparison.costs.iter().find(|row| row.contestant == name && row.kind == kind && row.length == length)
}

/// The comparison as a short text for a terminal.
pub fn summary(comparison: &Comparison) -> String {
    let mut text = String::new();
    for finding in findings(comparison) {
        text += &format!("- {finding}\n");
    }
    for note in &comparison.notes {
        text += &format!("- {note}\n");
    }
    if !comparison.differences.is_empty() {
        let what: Vec<&str> = comparison.differences.iter().map(|difference| difference.what.as_str()).collect();
        text += &format!("- Not equal between the models: {}.\n", what.join(", "));
    }
    text
}

/// The order on the whole test set, and what is claimed of each step of it.
fn overall(comparison: &Comparison) -> Option<String> {
    let metric = comparison.headline();
    let ranked = ranked(comparison);
    let scores: Vec<String> = ranked.iter().map(|(name, score)| format!("{name} {}", shown(metric, *score))).collect();
    let less = if metric_of(metric).lower_is_better() { ", less is better" } else { "" };
    let mut text = format!("On the whole test set ({}{less}): {}.", noun(metric), scores.join(", "));
    let claims: Vec<&Claim> =
        ranked.windows(2).filter_map(|pair| claim_between(comparison, pair[0].0, pair[1].0, metric)).collect();
    for (pair, claim) in ranked.windows(2).zip(&claims) {
        text += &format!(" {}.", verdict(claim, pair[0].0, pair[1].0));
    }
    if claims.iter().any(|claim| claim.is_of_runs()) {
        text += " A single seed: this is said of these runs, and not of what other seeds would give.";
    }
    Some(text)
}

/// The models and their scores on the whole test set, the best first.
pub(super) fn ranked(comparison: &Comparison) -> Vec<(&str, f64)> {
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

/// What is claimed of two models that follow each other in the order, if anything is.
pub(super) fn claimed(comparison: &Comparison, better: &str, worse: &str) -> Option<String> {
    Some(verdict(claim_between(comparison, better, worse, comparison.headline())?, better, worse))
}

/// What is claimed of two models, the better one first.
fn verdict(claim: &Claim, better: &str, worse: &str) -> String {
    let margin = shown(&claim.metric, claim.margin);
    match (claim.verdict, claim.p_corrected) {
        (Verdict::Different, p) => format!("{better} is better than {worse} ({})", probability(p)),
        (Verdict::Equivalent, _) => format!("{better} and {worse} are equal within {margin}"),
        (Verdict::Undecided, None) => format!("{better} before {worse}: too few sentences to say"),
        (Verdict::Undecided, p) => format!("{better} before {worse} may be luck ({})", probability(p)),
    }
}

fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "p < 0.001".into(),
        Some(p) => format!("p = {p:.3}"),
        None => "no p-value".into(),
    }
}

fn claim_between<'a>(comparison: &'a Comparison, one: &str, other: &str, metric: &str) -> Option<&'a Claim> {
    let is_pair = |claim: &Claim| {
        let [first, second] = claim.operands.each_ref().map(String::as_str);
        (first, second) == (one, other) || (first, second) == (other, one)
    };
    let of_models = comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Models && claim.group == "all");
    of_models.into_iter().find(|claim| claim.metric == metric && is_pair(claim))
}

/// From the shortest to the longest bucket that training has seen.
fn with_length(comparison: &Comparison, name: &str) -> Option<String> {
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
    let is_small = percent(metric, (long.score - short.score).abs()) <= percent(metric, claim.margin);
    let verb = match claim.verdict {
        // A difference can be sure and yet too small to matter.
        Verdict::Different if is_small => "changes little with length",
        Verdict::Different if is_better(metric, long.score, short.score) => "gets better with length",
        Verdict::Different => "gets worse with length",
        Verdict::Equivalent => "is as good at any length",
        Verdict::Undecided => "shows no clear change with length",
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

/// How everybody fares on sentences longer than any in training.
fn beyond(comparison: &Comparison) -> Vec<String> {
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
            Some(format!("{} {}{second}", contestant.name, shown(metric, score.score)))
        });
        let times = group.mean_length / comparison.task.trained_length.max(1) as f64;
        format!(
            "Never seen in training, {} {} ({times:.1} times the longest): {}.",
            group.label(),
            comparison.task.length_unit.name(),
            scores.collect::<Vec<_>>().join(", ")
        )
    };
    unseen.map(of_group).collect()
}

fn thresholds(comparison: &Comparison) -> Vec<String> {
    let unit = comparison.task.length_unit.name();
    let of_row = |row: &super::Threshold| {
        let level = format!("a {} of {}", noun(&row.metric), shown(&row.metric, row.level));
        let name = &row.contestant;
        match (row.longest_above, row.first_below) {
            (Some(above), Some(below)) => {
                format!("{name} has {level} or more up to {above} {unit}, and less at the next length tested, {below}.")
            }
            (Some(above), None) => {
                format!("{name} has {level} or more at every length tested, up to {above} {unit}.")
            }
            (None, Some(below)) => {
                format!("{name} has less than {level} at the shortest length tested already, {below} {unit}.")
            }
            (None, None) => format!("{name} was tested at no length."),
        }
    };
    comparison.thresholds.iter().map(of_row).collect()
}

/// Who did not end all of its answers.
fn cut(comparison: &Comparison) -> Option<String> {
    let n = comparison.n_sentences();
    let of_contestant = |contestant: &super::Contestant| {
        let cut: usize = contestant.cut_answers.iter().sum();
        (cut > 0).then(|| format!("{} {cut} of {}", contestant.name, n * contestant.cut_answers.len()))
    };
    let texts: Vec<String> = comparison.contestants.iter().filter_map(of_contestant).collect();
    (!texts.is_empty()).then(|| format!("Answers that were cut at the length cap: {}.", texts.join(", ")))
}

/// The tenth of the sentence in which most is forgotten, where it differs from the best one.
fn forgotten(comparison: &Comparison, name: &str) -> Option<String> {
    let rows: Vec<_> = comparison.positions.iter().filter(|row| row.contestant == name && row.group == "all").collect();
    let worst = rows.iter().min_by(|a, b| a.accuracy.total_cmp(&b.accuracy))?;
    let best = rows.iter().max_by(|a, b| a.accuracy.total_cmp(&b.accuracy))?;
    if best.accuracy - worst.accuracy < 0.02 {
        return Some(format!(
            "{name} is right equally often in every tenth of the {}: {:.1} to {:.1} % of tokens.",
            worst.of,
            100.0 * worst.accuracy,
            100.0 * best.accuracy
        ));
    }
    Some(format!(
        "{name} is weakest in tenth {} of the {} ({:.1} % of tokens right) and best in tenth {} ({:.1} %).",
        worst.tenth,
        worst.of,
        100.0 * worst.accuracy,
        best.tenth,
        100.0 * best.accuracy
    ))
}

fn growth(comparison: &Comparison) -> Option<String> {
    let of_updates = comparison.growth.iter().filter(|row| row.of == "seconds" && row.kind == super::CostKind::Update);
    let texts: Vec<String> = of_updates
        .map(|row| {
            let (first, last) = (row.lengths.first().unwrap_or(&0), row.lengths.last().unwrap_or(&0));
            format!(
                "{} with the power {:.2} ({first}-{last} tokens; in theory {} in the end)",
                cost_name(comparison, &row.contestant),
                row.exponent,
                short(row.theory)
            )
        })
        .collect();
    (!texts.is_empty()).then(|| format!("The time of an update grows with length: {}.", texts.join(", ")))
}

fn crossing(comparison: &Comparison, crossing: &Crossing) -> String {
    let what = match crossing.kind {
        super::CostKind::Update => "An update of",
        super::CostKind::Decode => "Writing with",
    };
    let between = crossing.interval.map_or(String::new(), |[low, high]| format!(" (between {low:.0} and {high:.0})"));
    format!(
        "{what} {} takes longer than with {} from about {:.0} tokens on{between}.",
        cost_name(comparison, &crossing.dearer),
        cost_name(comparison, &crossing.cheaper),
        crossing.length
    )
}
