//! A claim in words.

use super::rows::{Claim, ClaimKind};
use crate::report::comparison::data::Comparison;
use crate::report::comparison::score::{metric_of, percent};
use crate::scoring::Verdict;

/// What is claimed of two models, the better one first.
pub(in crate::report::comparison) fn verdict(claim: &Claim, better: &str, worse: &str) -> String {
    let margin = points(&claim.metric, claim.margin);
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
            let small = if claim.is_small { format!(", less than {margin} points") } else { String::new() };
            format!("{better} is better than {worse} by {gain} points ({low} to {high}{small}; {p})")
        }
        (Verdict::Equivalent, _) => {
            format!(
                "{better} and {worse} are equivalent within {margin} points (the difference is {low} to {high} points)"
            )
        }
        (Verdict::Undecided, _) if claim.estimate == 0.0 => {
            format!("{better} and {worse} have the same score, and may differ by as much as {high} points")
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

/// A difference with its sign.
pub(in crate::report::comparison) fn signed(value: f64) -> String {
    with_minus(&format!("{value:+.1}"))
}

/// A p-value after correction; the interval beside it is that of the difference alone.
fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "corrected p < 0.001".into(),
        Some(p) => format!("corrected p = {p:.3}"),
        None => "no p-value".into(),
    }
}

pub(in crate::report::comparison) fn claim_between<'a>(
    comparison: &'a Comparison,
    one: &str,
    other: &str,
    metric: &str,
) -> Option<&'a Claim> {
    let is_pair = |claim: &Claim| {
        let [first, second] = claim.operands.each_ref().map(String::as_str);
        (first, second) == (one, other) || (first, second) == (other, one)
    };
    let of_models = comparison.claims.iter().filter(|claim| claim.kind == ClaimKind::Models && claim.group == "all");
    of_models.into_iter().find(|claim| claim.metric == metric && is_pair(claim))
}
