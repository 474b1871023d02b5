//! From the comparisons of tasks to the cells of the matrix.

use super::answers;
use super::config::{SuiteConfig, SuiteTaskConfig};
use crate::compare::Answered;
use crate::compare::options::Options;
use crate::error::{Error, Result};
use crate::experiment::Run;
use crate::report::comparison::{Claim, ClaimKind, Comparison, Contestant, Group, GroupKind, metric_of};
use crate::report::suite::{Cell, CellScore, FORMAT, Family, Standing, Suite, SuiteTask};
use crate::scoring::Verdict;
use std::path::Path;

/// What the comparisons of `tasks` of a suite say together.
pub(super) fn suite(
    suite: &SuiteConfig,
    tasks: &[&SuiteTaskConfig],
    options: &Options,
    made: &[Answered],
) -> Result<Suite> {
    let first = &made.first().ok_or_else(|| Error::message("a suite has a task"))?.comparison;
    let model_of = |name: &str| {
        let of = |made: &Answered| {
            made.comparison.contestants.iter().find(|contestant| contestant.name == name).map(|own| own.model.clone())
        };
        made.iter().find_map(of).unwrap_or_default()
    };
    let families =
        suite.family.iter().map(|family| Family { name: family.name.clone(), model: model_of(&family.name) });
    let mut found = Suite {
        format: FORMAT,
        version: first.version.clone(),
        command: options.command.clone(),
        set: options.set.clone(),
        beam: options.beam,
        platform: first.platform.clone(),
        backend: first.backend.clone(),
        device: first.device.clone(),
        name: suite.name.clone(),
        about: suite.about.clone(),
        families: families.collect(),
        ..Suite::default()
    };
    for (task, Answered { comparison, scored, .. }) in tasks.iter().zip(made) {
        let groups = groups(comparison);
        let metric = metric_of(comparison.headline());
        for (contestant, scored) in comparison.contestants.iter().zip(scored) {
            let right = answers::digits(metric, scored);
            found.cells.push(Cell { right, ..cell(&task.name, comparison, contestant, &groups)? });
        }
        found.tasks.push(SuiteTask {
            name: task.name.clone(),
            about: task.about.clone(),
            metric: comparison.headline().to_string(),
            length_unit: comparison.task.length_unit,
            trained_length: comparison.task.trained_length,
            train_pairs: comparison.task.train_pairs,
            groups,
            test_sha256: comparison.task.test_sha256.clone(),
        });
    }
    for (task, Answered { comparison, .. }) in tasks.iter().zip(made) {
        judge(&mut found, &task.name, &comparison.claims);
    }
    Ok(found)
}

/// The test set, and the longest single length that training has not seen.
fn groups(comparison: &Comparison) -> Vec<Group> {
    let all = comparison.groups.iter().find(|group| group.kind == GroupKind::All);
    let unseen = comparison.groups.iter().filter(|group| group.kind == GroupKind::Length && !group.is_seen);
    all.into_iter().chain(unseen.max_by_key(|group| group.to)).cloned().collect()
}

fn cell(task: &str, comparison: &Comparison, contestant: &Contestant, groups: &[Group]) -> Result<Cell> {
    let metric = comparison.headline();
    let name = &contestant.name;
    let length = groups.iter().map(|group| group.to).max().unwrap_or(0);
    let run = contestant.runs.first().ok_or_else(|| Error::message("a contestant has a run"))?;
    let config = Run::open(Path::new(run))?.config()?;
    let threshold = comparison.thresholds.iter().find(|row| row.contestant == *name && row.metric == metric);
    let n_seeds = contestant.train_seconds.len().max(1) as f64;
    Ok(Cell {
        task: task.to_string(),
        family: name.clone(),
        parameters: contestant.parameters,
        learning_rate: contestant.learning_rate,
        dropout_rate: Some(contestant.dropout_rate),
        seeds: contestant.seeds.clone(),
        train_seconds: contestant.train_seconds.iter().sum::<f64>() / n_seeds,
        state_bytes: config.model.family().state_bytes(length),
        longest_good: threshold.and_then(|row| row.longest_above),
        scores: groups.iter().filter_map(|group| score(comparison, name, &group.id)).collect(),
        right: Vec::new(),
    })
}

/// A score, which has yet to be compared with others.
fn score(comparison: &Comparison, name: &str, group: &str) -> Option<CellScore> {
    let own = comparison.score(name, group, comparison.headline())?;
    let (group, score, low, high) = (group.to_string(), own.score, own.low, own.high);
    Some(CellScore { group, score, low, high, ..CellScore::default() })
}

/// Says of all cells of a task how they stand beside the best of their group, by the claims about the families.
pub(super) fn judge(suite: &mut Suite, task: &str, claims: &[Claim]) {
    let Some(place) = suite.tasks.iter().position(|own| own.name == task) else { return };
    let SuiteTask { metric, groups, .. } = suite.tasks[place].clone();
    for group in groups {
        let scores: Vec<(String, f64)> = suite
            .cells
            .iter()
            .filter(|cell| cell.task == task)
            .filter_map(|cell| Some((cell.family.clone(), cell.score(&group.id)?.score)))
            .collect();
        for cell in suite.cells.iter_mut().filter(|cell| cell.task == task) {
            let Some(score) = cell.scores.iter_mut().find(|score| score.group == group.id) else { continue };
            (score.standing, score.claim) = standing(&metric, &group.id, &cell.family, &scores, claims);
        }
    }
}

/// How a family stands beside the best of a group, and the claim that says so; `scores` are those of all.
fn standing(
    metric: &str,
    group: &str,
    name: &str,
    scores: &[(String, f64)],
    claims: &[Claim],
) -> (Standing, Option<Claim>) {
    let is_less = metric_of(metric).lower_is_better();
    let worth = |(_, score): &(String, f64)| if is_less { -score } else { *score };
    // Of several with one score the first.
    let best = scores.iter().reduce(|best, other| if worth(other) > worth(best) { other } else { best });
    let own = scores.iter().find(|(own, _)| own == name);
    let Some((best, own)) = best.zip(own) else { return (Standing::default(), None) };
    let claim = claims.iter().find(|claim| {
        let [one, other] = claim.operands.each_ref().map(String::as_str);
        let is_pair = (one, other) == (best.0.as_str(), name) || (one, other) == (name, best.0.as_str());
        claim.kind == ClaimKind::Models && claim.group == group && claim.metric == metric && is_pair
    });
    let standing = match claim.map(|claim| claim.verdict) {
        _ if !is_less && worth(best) <= 0.0 => Standing::Unsolved,
        _ if worth(own) >= worth(best) => Standing::Best,
        Some(Verdict::Different) => Standing::Behind,
        Some(Verdict::Equivalent) => Standing::Equivalent,
        Some(Verdict::Undecided) | None => Standing::Undecided,
    };
    (standing, claim.cloned())
}
