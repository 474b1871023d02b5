//! Claims: every statement about a difference, made here and nowhere else.
//!
//! Two models are compared on each group of sentences; each model is compared with itself on the shortest and the longest sentences
//! that training has seen, and in the first and the last tenth of sentences; the right sentences of each length are compared with nine
//! tenths. [`inference`](crate::scoring) says what sentences and seeds carry.

use super::positions::tenths;
use super::quality::{BySeed, Scored, is_fraction, of_seed, value};
use super::translations::Translation;
use crate::compare::test_set::TestSet;
use crate::data::TaskConfig;
use crate::error::Result;
use crate::report::comparison::{Claim, ClaimKind, Group, GroupKind, metric_of};
use crate::scoring::{Bootstrap, Contrast, Part, Verdict, contrast, contrast_with_level, holm, variance};

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
    // Drawn once for each contestant and group, for every claim about them.
    let drawn = contestants.iter().map(|one| {
        let of_group = |(_, indices): &(Group, Vec<usize>)| {
            Ok(OfGroup { total: one.total(indices), resampled: one.resampled(indices, metrics, bootstrap)? })
        };
        test.groups.iter().map(of_group).collect::<Result<Vec<_>>>()
    });
    let drawn: Vec<Vec<OfGroup>> = drawn.collect::<Result<_>>()?;
    let mut found = Vec::new();
    for (place, metric) in metrics.iter().enumerate() {
        let metric = Chosen { place, name: metric };
        for is_all in [true, false] {
            let mut family = Vec::new();
            let groups = test.groups.iter().enumerate();
            for (g, (group, indices)) in groups.filter(|(_, (group, _))| (group.kind == GroupKind::All) == is_all) {
                for (i, baseline) in contestants.iter().enumerate() {
                    for (j, system) in contestants.iter().enumerate().skip(i + 1) {
                        let (names, own) = ([baseline, system], [&drawn[i][g], &drawn[j][g]]);
                        family.push(between(names, own, group, indices.len(), metric));
                    }
                }
            }
            let what = if is_all { "on the whole test set" } else { "by length" };
            found.extend(judged(family, what));
        }
        let lengths = contestants.iter().zip(&drawn).filter_map(|(one, own)| with_length(one, own, test, metric));
        found.extend(judged(lengths.collect(), "of the shortest with the longest sentences"));
    }
    Ok(found)
}

/// What a contestant has on the sentences of a group.
struct OfGroup {
    total: BySeed,
    /// A row for each metric.
    resampled: Vec<Vec<f64>>,
}

/// The score that a claim is about.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    /// Its row of resamples.
    place: usize,
    name: &'a str,
}

/// A claim without its verdict, and the contrast that it is made of.
type Unjudged = (Claim, Contrast);

/// Two models on the same sentences.
fn between(
    contestants: [&Scored; 2],
    drawn: [&OfGroup; 2],
    group: &Group,
    n_sentences: usize,
    Chosen { place, name: metric }: Chosen,
) -> Unjudged {
    let [one, other] = drawn.map(|own| &own.resampled[place]);
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| other - one).collect();
    let by_seed = drawn.map(|own| scores(metric, &own.total));
    let parts: Vec<Part> = std::iter::once(Part::of_sentences(variance(&differences), n_sentences))
        .chain(by_seed.iter().filter_map(|scores| Part::of_seeds(scores)))
        .collect();
    let [one, other] = drawn.map(|own| value(metric, &own.total));
    let contrast = contrast(other - one, is_fraction(metric, &[one, other]), n_sentences, &parts);
    let claim = Claim {
        kind: ClaimKind::Models,
        operands: contestants.map(|one| one.name.clone()),
        group: group.id.clone(),
        n_sentences,
        n_seeds: by_seed.map(|scores| scores.len()),
        ..claim(metric, &contrast)
    };
    (claim, contrast)
}

/// One model on the shortest and on the longest sentences of those that training has seen; nothing where there is but one group
/// of them.
fn with_length(
    one: &Scored,
    drawn: &[OfGroup],
    test: &TestSet,
    Chosen { place, name: metric }: Chosen,
) -> Option<Unjudged> {
    let all = || test.groups.iter().zip(drawn);
    let seen = || all().filter(|((group, _), _)| group.kind == GroupKind::Bucket && group.is_seen);
    let (((short, shortest), of_short), ((long, longest), of_long)) = (seen().next()?, seen().next_back()?);
    if short.id == long.id {
        return None;
    }
    let mut parts = Vec::new();
    let mut by_seed = Vec::new();
    for (indices, own) in [(shortest, of_short), (longest, of_long)] {
        parts.push(Part::of_sentences(variance(&own.resampled[place]), indices.len()));
        by_seed.push(scores(metric, &own.total));
    }
    // A seed that is better at short sentences is better at long ones: what counts is the spread of its own change.
    let changes: Vec<f64> = by_seed[1].iter().zip(&by_seed[0]).map(|(long, short)| long - short).collect();
    parts.extend(Part::of_seeds(&changes));
    let n = shortest.len().min(longest.len());
    let change = changes.iter().sum::<f64>() / changes.len().max(1) as f64;
    let ends = [of_short, of_long].map(|own| value(metric, &own.total));
    let contrast = contrast(change, is_fraction(metric, &ends), n, &parts);
    let claim = Claim {
        kind: ClaimKind::Length,
        operands: [short.id.clone(), long.id.clone()],
        group: one.name.clone(),
        n_sentences: n,
        n_seeds: [changes.len(); 2],
        ..claim(metric, &contrast)
    };
    Some((claim, contrast))
}

/// One model's right sentences of each length beside [`GOOD`], by [`OF_GOOD`].
///
/// # Errors
/// If a group is empty.
pub fn levels(one: &Scored, test: &TestSet, bootstrap: &Bootstrap) -> Result<Vec<Claim>> {
    let mut family = Vec::new();
    for (group, indices) in test.groups.iter().filter(|(group, _)| group.kind != GroupKind::All) {
        let (n, total) = (indices.len(), one.total(indices));
        let of_sentences = variance(&one.resampled(indices, &[OF_GOOD], bootstrap)?[0]);
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

fn claim(metric: &str, contrast: &Contrast) -> Claim {
    let margin = if metric_of(metric).unit().is_some() { MARGIN_OF_FRACTIONS } else { MARGIN };
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
    match claim.kind {
        ClaimKind::Level => format!(
            "the test of which the interval is the inverse: Wilson's score test over sentences, for as many as their bootstrap is worth, \
             {seeds}; Holm's correction"
        ),
        _ => format!(
            "t test with the variance over sentences (bootstrap) {seeds}; Welch's degrees of freedom, Holm's correction"
        ),
    }
}
