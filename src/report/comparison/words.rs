//! What was found, in sentences. Each is made from the numbers of the comparison, whichever way they point.

mod lengths;

use super::charts::cost_name;
use super::data::{Comparison, Group, GroupKind};
use super::measured::{Claim, ClaimKind, Cost, CostKind, Crossing};
use super::scale::short;
use super::score::{is_better, metric_of, noun, percent, shown};
use crate::scoring::{Metric, Verdict};

pub(super) use lengths::longest_tested;
pub(in crate::report) use lengths::reach;

/// The findings, most important first.
pub fn findings(comparison: &Comparison) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(overall(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| with_length(comparison, &contestant.name)));
    found.extend(beyond(comparison));
    found.extend(lengths::levels(comparison));
    found.extend(cut(comparison));
    found.extend(comparison.contestants.iter().filter_map(|contestant| between_ends(comparison, &contestant.name)));
    found.extend(growth(comparison));
    let of_seconds = comparison.crossings.iter().filter(|crossing| crossing.of == "seconds");
    found.extend(of_seconds.map(|row| crossing(comparison, row)));
    found
}

/// The three sentences that a reader should know first: who is best, up to which length, and at what price.
pub fn headlines(comparison: &Comparison) -> Vec<String> {
    [overall(comparison), reach(comparison), price(comparison)].into_iter().flatten().collect()
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
pub(super) fn overall(comparison: &Comparison) -> Option<String> {
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
struct Step {
    sentence: String,
    /// Whether there is a single seed.
    is_of_runs: bool,
}

/// What is claimed of each step of the order, where something is.
fn steps(comparison: &Comparison, ranked: &[(&str, f64)]) -> Vec<Step> {
    let step = |pair: &[(&str, f64)]| {
        let claim = claim_between(comparison, pair[0].0, pair[1].0, comparison.headline())?;
        Some(Step { sentence: format!("{}.", verdict(claim, pair[0].0, pair[1].0)), is_of_runs: claim.is_of_runs() })
    };
    ranked.windows(2).filter_map(step).collect()
}

/// What is said where there is one seed.
const OF_RUNS: &str = "A single seed: this is said of these runs, and not of what other seeds would give.";

/// What is claimed of each step of the order on the whole test set, in at most three sentences: the first screen of the page, whose table
/// has the numbers.
pub(super) fn first_sentences(comparison: &Comparison) -> Vec<String> {
    let steps = steps(comparison, &ranked(comparison));
    if steps.is_empty() {
        return headlines(comparison);
    }
    let is_of_runs = steps.iter().any(|step| step.is_of_runs);
    let room = if is_of_runs { 2 } else { 3 };
    let mut sentences: Vec<String> = steps.into_iter().take(room).map(|step| step.sentence).collect();
    sentences.extend(is_of_runs.then(|| OF_RUNS.to_string()));
    sentences
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

/// What is claimed of two models, the better one first.
fn verdict(claim: &Claim, better: &str, worse: &str) -> String {
    let margin = shown(&claim.metric, claim.margin);
    // How much better the first is, whichever of the two the claim names first and whichever way its score points.
    let is_turned = (claim.operands[0] == better) != metric_of(&claim.metric).lower_is_better();
    let [gain, low, high] = match is_turned {
        true => [-claim.estimate, -claim.high, -claim.low],
        false => [claim.estimate, claim.low, claim.high],
    }
    .map(|value| points(&claim.metric, value));
    let p = probability(claim.p_corrected);
    match (claim.verdict, claim.p_corrected) {
        (Verdict::Different, _) => {
            let small = if claim.is_small { format!(", less than {margin}") } else { String::new() };
            format!("{better} is better than {worse} by {gain} points ({low} to {high}{small}; {p})")
        }
        (Verdict::Equivalent, _) => {
            format!("{better} and {worse} are equal within {margin} (the difference is {low} to {high} points)")
        }
        (Verdict::Undecided, None) => format!("{better} is ahead of {worse}: too few sentences to say more"),
        (Verdict::Undecided, _) => {
            format!("{better} is ahead of {worse} by {gain} points, which may be luck ({low} to {high}; {p})")
        }
    }
}

/// A difference of scores as a reader sees it.
fn points(metric: &str, difference: f64) -> String {
    with_minus(&format!("{:.1}", percent(metric, difference)))
}

/// A true minus sign; what rounds to zero has none, and no plus.
fn with_minus(text: &str) -> String {
    if text.trim_start_matches(['-', '+']) == "0.0" { "0.0".into() } else { text.replace('-', "−") }
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
    let verb = match claim.verdict {
        Verdict::Different if claim.is_small => "changes little with length",
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

/// The scores on groups with sentences longer than any in training, each with its interval.
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

/// What is claimed of the first and the last tenth of sentences.
fn between_ends(comparison: &Comparison, name: &str) -> Option<String> {
    let mut of_position = comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Position);
    let claim = of_position.find(|claim| claim.group == name)?;
    let of = &comparison.positions.iter().find(|row| row.contestant == name)?.of;
    let verb = match claim.verdict {
        Verdict::Different if claim.is_small => "right nearly as often in the first tenth of the OF as in the last",
        Verdict::Different if claim.estimate > 0.0 => "right less often in the first tenth of the OF than in the last",
        Verdict::Different => "right more often in the first tenth of the OF than in the last",
        Verdict::Equivalent => "right as often in the first tenth of the OF as in the last",
        Verdict::Undecided => "not told apart between the first tenth of the OF and the last",
    };
    let verb = verb.replace("OF", of);
    let [change, low, high] = [claim.estimate, claim.low, claim.high].map(|value| signed(100.0 * value));
    Some(format!("Tokens of {name} are {verb}: {change} points from first to last ({low} to {high})."))
}

/// A difference with its sign.
fn signed(value: f64) -> String {
    with_minus(&format!("{value:+.1}"))
}

fn growth(comparison: &Comparison) -> Option<String> {
    let of_updates = comparison.growth.iter().filter(|row| row.of == "seconds" && row.kind == super::CostKind::Update);
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
