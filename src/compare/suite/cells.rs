//! From the comparisons of tasks to the cells of the matrix.

use super::config::{SuiteConfig, SuiteTaskConfig};
use crate::error::{Error, Result};
use crate::experiment::Run;
use crate::report::comparison::{ClaimKind, Comparison, Contestant, Group, GroupKind, metric_of};
use crate::report::suite::{Cell, CellScore, FORMAT, Family, Standing, Suite, SuiteTask};
use crate::scoring::Verdict;
use std::path::Path;

/// What the comparisons of `tasks` of a suite say together.
pub(super) fn suite(
    suite: &SuiteConfig,
    tasks: &[&SuiteTaskConfig],
    command: &str,
    comparisons: &[Comparison],
) -> Result<Suite> {
    let first = comparisons.first().ok_or_else(|| Error::message("a suite has a task"))?;
    let model_of = |name: &str| {
        let of = |comparison: &Comparison| {
            comparison.contestants.iter().find(|contestant| contestant.name == name).map(|own| own.model.clone())
        };
        comparisons.iter().find_map(of).unwrap_or_default()
    };
    let families =
        suite.family.iter().map(|family| Family { name: family.name.clone(), model: model_of(&family.name) });
    let mut found = Suite {
        format: FORMAT,
        version: first.version.clone(),
        command: command.to_string(),
        platform: first.platform.clone(),
        backend: first.backend.clone(),
        device: first.device.clone(),
        name: suite.name.clone(),
        about: suite.about.clone(),
        families: families.collect(),
        ..Suite::default()
    };
    for (task, comparison) in tasks.iter().zip(comparisons) {
        let groups = groups(comparison);
        for contestant in &comparison.contestants {
            found.cells.push(cell(&task.name, comparison, contestant, &groups)?);
        }
        found.tasks.push(SuiteTask {
            name: task.name.clone(),
            about: task.about.clone(),
            metric: comparison.headline().to_string(),
            length_unit: comparison.task.length_unit,
            trained_length: comparison.task.trained_length,
            train_pairs: comparison.task.train_pairs,
            groups,
        });
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
        seeds: contestant.seeds.clone(),
        train_seconds: contestant.train_seconds.iter().sum::<f64>() / n_seeds,
        state_bytes: config.model.family().state_bytes(length),
        longest_good: threshold.and_then(|row| row.longest_above),
        scores: groups.iter().filter_map(|group| score(comparison, name, &group.id)).collect(),
    })
}

/// A score, and how it stands beside the best of its group.
fn score(comparison: &Comparison, name: &str, group: &str) -> Option<CellScore> {
    let metric = comparison.headline();
    let own = comparison.score(name, group, metric)?;
    let is_less = metric_of(metric).lower_is_better();
    let worth = |name: &str| {
        let score = comparison.score(name, group, metric).map_or(f64::NEG_INFINITY, |score| score.score);
        if is_less { -score } else { score }
    };
    let best = comparison.contestants.iter().map(|contestant| contestant.name.as_str());
    // Of several with one score the first.
    let best = best.reduce(|best, other| if worth(other) > worth(best) { other } else { best })?;
    let claim = comparison.claims.iter().find(|claim| {
        let [one, other] = claim.operands.each_ref().map(String::as_str);
        let is_pair = (one, other) == (best, name) || (one, other) == (name, best);
        claim.kind == ClaimKind::Models && claim.group == group && claim.metric == metric && is_pair
    });
    let standing = match claim.map(|claim| claim.verdict) {
        _ if !is_less && worth(best) <= 0.0 => Standing::Unsolved,
        _ if worth(name) >= worth(best) => Standing::Best,
        Some(Verdict::Different) => Standing::Behind,
        Some(Verdict::Equivalent) => Standing::Equivalent,
        Some(Verdict::Undecided) | None => Standing::Undecided,
    };
    let (group, claim) = (group.to_string(), claim.cloned());
    Some(CellScore { group, score: own.score, low: own.low, high: own.high, standing, claim })
}
