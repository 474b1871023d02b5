//! Claims: every statement about a difference, made here and nowhere else.
//!
//! Two models are compared on each group of sentences; each model is compared with itself on the shortest and the longest sentences
//! that training has seen, and in the first and the last tenth of sentences; the right sentences of each length are compared with nine
//! tenths. [`inference`](crate::scoring) says what sentences and seeds carry.

use super::positions::tenths;
use super::quality::{BySeed, Scored, of_seed, value};
use super::translations::Translation;
use crate::compare::test_set::TestSet;
use crate::data::TaskConfig;
use crate::error::Result;
use crate::report::comparison::{Claim, ClaimKind, Group, GroupKind, metric_of};
use crate::scoring::{Bootstrap, Contrast, Part, Summable, Verdict, contrast, contrast_with_level, holm};

/// Differences of scores from 0 to 100 that do not matter to anybody: what is within is equivalent.
const MARGIN: f64 = 1.0;
/// The same for fractions of 1.
const MARGIN_OF_FRACTIONS: f64 = 0.02;
/// The part of sentences that a model has to have right at a length to be called good at it.
pub const GOOD: f64 = 0.9;
/// The score that is compared with it.
pub const OF_GOOD: &str = "sequence_accuracy";

/// Every claim of a comparison.
///
/// # Errors
/// If a group is empty.
pub fn claims(contestants: &[Scored], test: &TestSet, metrics: &[String], bootstrap: &Bootstrap) -> Result<Vec<Claim>> {
    let mut found = Vec::new();
    for metric in metrics {
        for is_all in [true, false] {
            let mut family = Vec::new();
            for (group, indices) in test.groups.iter().filter(|(group, _)| (group.kind == GroupKind::All) == is_all) {
                for (i, baseline) in contestants.iter().enumerate() {
                    for system in &contestants[i + 1..] {
                        family.push(between(baseline, system, group, indices, metric, bootstrap)?);
                    }
                }
            }
            let what = if is_all { "on the whole test set" } else { "by length" };
            found.extend(judged(family, what));
        }
        let lengths: Result<Vec<_>> = contestants.iter().map(|one| with_length(one, test, metric, bootstrap)).collect();
        found.extend(judged(lengths?.into_iter().flatten().collect(), "of the shortest with the longest sentences"));
    }
    Ok(found)
}

/// A claim without its verdict, and the contrast that it is made of.
type Unjudged = (Claim, Contrast);

/// Two models on the same sentences.
fn between(
    baseline: &Scored,
    system: &Scored,
    group: &Group,
    indices: &[usize],
    metric: &str,
    bootstrap: &Bootstrap,
) -> Result<Unjudged> {
    let statistics = [baseline, system].map(|one| one.at(indices));
    let of_sentences = bootstrap.variance(indices.len(), |chosen| {
        let [one, other] =
            statistics.each_ref().map(|all| value(metric, &BySeed::total(chosen.iter().map(|i| &all[*i]))));
        other - one
    })?;
    let totals = statistics.each_ref().map(BySeed::total);
    let by_seed = totals.each_ref().map(|total| scores(metric, total));
    let parts: Vec<Part> = std::iter::once(Part::of_sentences(of_sentences, indices.len()))
        .chain(by_seed.iter().filter_map(|scores| Part::of_seeds(scores)))
        .collect();
    let difference = value(metric, &totals[1]) - value(metric, &totals[0]);
    let contrast = contrast(difference, is_fraction(metric), indices.len(), &parts);
    let claim = Claim {
        kind: ClaimKind::Models,
        operands: [baseline.name.clone(), system.name.clone()],
        group: group.id.clone(),
        n_sentences: indices.len(),
        n_seeds: by_seed.map(|scores| scores.len()),
        ..claim(metric, &contrast)
    };
    Ok((claim, contrast))
}

/// One model on the shortest and on the longest sentences of those that training has seen; nothing where there is but one group
/// of them.
fn with_length(one: &Scored, test: &TestSet, metric: &str, bootstrap: &Bootstrap) -> Result<Option<Unjudged>> {
    let seen = || test.groups.iter().filter(|(group, _)| group.kind == GroupKind::Bucket && group.is_seen);
    let (Some((short, shortest)), Some((long, longest))) = (seen().next(), seen().next_back()) else { return Ok(None) };
    if short.id == long.id {
        return Ok(None);
    }
    let mut parts = Vec::new();
    let mut by_seed = Vec::new();
    for indices in [shortest, longest] {
        let statistics = one.at(indices);
        let of_sentences = bootstrap
            .variance(indices.len(), |chosen| value(metric, &BySeed::total(chosen.iter().map(|i| &statistics[*i]))))?;
        parts.push(Part::of_sentences(of_sentences, indices.len()));
        by_seed.push(scores(metric, &BySeed::total(&statistics)));
    }
    // A seed that is better at short sentences is better at long ones: what counts is the spread of its own change.
    let changes: Vec<f64> = by_seed[1].iter().zip(&by_seed[0]).map(|(long, short)| long - short).collect();
    parts.extend(Part::of_seeds(&changes));
    let n = shortest.len().min(longest.len());
    let change = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    let contrast = contrast(change, is_fraction(metric), n, &parts);
    let claim = Claim {
        kind: ClaimKind::Length,
        operands: [short.id.clone(), long.id.clone()],
        group: one.name.clone(),
        n_sentences: n,
        n_seeds: [changes.len(); 2],
        ..claim(metric, &contrast)
    };
    Ok(Some((claim, contrast)))
}

/// One model's right sentences of each length beside [`GOOD`], by [`OF_GOOD`].
///
/// # Errors
/// If a group is empty.
pub fn levels(one: &Scored, test: &TestSet, bootstrap: &Bootstrap) -> Result<Vec<Claim>> {
    let mut family = Vec::new();
    for (group, indices) in test.groups.iter().filter(|(group, _)| group.kind != GroupKind::All) {
        let statistics = one.at(indices);
        let n = indices.len();
        let of_sentences =
            bootstrap.variance(n, |chosen| value(OF_GOOD, &BySeed::total(chosen.iter().map(|i| &statistics[*i]))))?;
        let total = BySeed::total(&statistics);
        let by_seed = scores(OF_GOOD, &total);
        let parts: Vec<Part> =
            std::iter::once(Part::of_sentences(of_sentences, n)).chain(Part::of_seeds(&by_seed)).collect();
        let contrast = contrast_with_level(value(OF_GOOD, &total), GOOD, n, &parts);
        let claim = Claim {
            kind: ClaimKind::Level,
            operands: [GOOD.to_string(), one.name.clone()],
            group: group.id.clone(),
            n_sentences: n,
            n_seeds: [by_seed.len(); 2],
            ..claim(OF_GOOD, &contrast)
        };
        family.push((Claim { margin: 0.0, ..claim }, contrast));
    }
    Ok(judged(family, "of the lengths of one model with one level"))
}

/// Of each model, how often a token is right whose position lies in the first and in the last tenth of the sentence; `written` are the
/// names of the models and what each seed wrote.
///
/// # Errors
/// If the bootstrap has no resamples.
pub fn ends(
    written: &[(&str, &[Vec<Translation>])],
    test: &TestSet,
    task: Option<&TaskConfig>,
    bootstrap: &Bootstrap,
) -> Result<Vec<Claim>> {
    let family: Result<Vec<_>> = written.iter().map(|(name, own)| end(name, own, test, task, bootstrap)).collect();
    Ok(judged(family?.into_iter().flatten().collect(), "of the first with the last tenth of sentences"))
}

/// One model in the first and the last tenth; nothing where no sentence has both.
fn end(
    name: &str,
    by_seed: &[Vec<Translation>],
    test: &TestSet,
    task: Option<&TaskConfig>,
    bootstrap: &Bootstrap,
) -> Result<Option<Unjudged>> {
    // For each sentence and seed: right tokens and tokens of the first tenth, and of the last.
    let both = |i: &usize| -> Option<Vec<[f64; 4]>> {
        let of_seed = |translations: &Vec<Translation>| {
            let found = tenths(&test.pairs[*i], &translations[*i], task);
            let [first, .., last] = found;
            (first.1 > 0 && last.1 > 0).then(|| [first.0, first.1, last.0, last.1].map(|n| n as f64))
        };
        by_seed.iter().map(of_seed).collect()
    };
    let all = test.groups.iter().find(|(group, _)| group.kind == GroupKind::All);
    let sentences: Vec<Vec<[f64; 4]>> = all.iter().flat_map(|(_, indices)| indices.iter().filter_map(both)).collect();
    if sentences.is_empty() {
        return Ok(None);
    }
    let change = |chosen: &[usize], seed: usize| {
        let sum = |at: usize| chosen.iter().map(|i| sentences[*i][seed][at]).sum::<f64>();
        sum(2) / sum(3) - sum(0) / sum(1)
    };
    let n_seeds = by_seed.len();
    let mean = |chosen: &[usize]| (0..n_seeds).map(|seed| change(chosen, seed)).sum::<f64>() / n_seeds as f64;
    let of_sentences = bootstrap.variance(sentences.len(), mean)?;
    let every: Vec<usize> = (0..sentences.len()).collect();
    let changes: Vec<f64> = (0..n_seeds).map(|seed| change(&every, seed)).collect();
    let parts: Vec<Part> =
        std::iter::once(Part::of_sentences(of_sentences, sentences.len())).chain(Part::of_seeds(&changes)).collect();
    let contrast = contrast(mean(&every), true, sentences.len(), &parts);
    let claim = Claim {
        kind: ClaimKind::Position,
        operands: ["tenth 1", "tenth 10"].map(String::from),
        group: name.to_string(),
        n_sentences: sentences.len(),
        n_seeds: [n_seeds; 2],
        ..claim("token_accuracy", &contrast)
    };
    Ok(Some((claim, contrast)))
}

fn scores(metric: &str, total: &BySeed) -> Vec<f64> {
    total.0.iter().map(|sum| of_seed(metric, sum)).collect()
}

fn is_fraction(metric: &str) -> bool {
    metric_of(metric).unit().is_some()
}

fn claim(metric: &str, contrast: &Contrast) -> Claim {
    let margin = if is_fraction(metric) { MARGIN_OF_FRACTIONS } else { MARGIN };
    let Contrast { estimate, low, high, p_value } = *contrast;
    Claim { metric: metric.to_string(), estimate, low, high, p_value, margin, ..Claim::default() }
}

/// Corrects the p-values of a family and gives each claim its verdict.
fn judged(family: Vec<Unjudged>, what: &str) -> Vec<Claim> {
    let corrected = holm(&family.iter().map(|(_, contrast)| contrast.p_value).collect::<Vec<_>>());
    let n = corrected.iter().flatten().count();
    let judge = |((claim, contrast), p_corrected): (Unjudged, Option<f64>)| Claim {
        family: format!("{n} comparison{} {what}, by one score", if n == 1 { "" } else { "s" }),
        method: method(&claim),
        verdict: Verdict::new(&contrast, p_corrected, claim.margin),
        is_small: contrast.low > -claim.margin && contrast.high < claim.margin,
        p_corrected,
        ..claim
    };
    family.into_iter().zip(corrected).map(judge).collect()
}

fn method(claim: &Claim) -> String {
    let seeds = match claim.is_of_runs() {
        true => "of these runs alone: one seed says nothing of others",
        false => "and over seeds",
    };
    let of_sentences = match claim.kind {
        ClaimKind::Level => {
            "over sentences at the level (Wilson's score test, for as many as their bootstrap is worth)"
        }
        _ => "over sentences (bootstrap)",
    };
    format!("t test with the variance {of_sentences} {seeds}; Welch's degrees of freedom, Holm's correction")
}
