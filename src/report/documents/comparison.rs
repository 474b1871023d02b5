//! What documents say of a comparison.

use super::cell;
use crate::report::comparison::measures::quality::lengths::reach;
use crate::report::comparison::measures::quality::words::pairs;
use crate::report::comparison::score::{metric_label, percent};
use crate::report::comparison::words;
use crate::report::comparison::{ClaimKind, Comparison, Group, GroupKind};
use std::collections::BTreeMap;

/// What documents need of a comparison: one score, without learning curves, attention and faults, which are most of it.
pub fn shrunk(comparison: &Comparison) -> Comparison {
    let mut small = Comparison { curves: Vec::new(), alignments: Vec::new(), faults: Vec::new(), ..comparison.clone() };
    let headline = comparison.headline();
    small.metrics.truncate(1);
    small.quality.iter_mut().for_each(|row| row.scores.retain(|score| score.metric == headline));
    small
        .claims
        .retain(|claim| claim.metric == headline || matches!(claim.kind, ClaimKind::Position | ClaimKind::Level));
    // Of single positions only the whole test set is told.
    small.positions.retain(|row| row.group == "all");
    small
}

/// Calls models otherwise wherever rows refer to them.
pub(super) fn rename(comparison: &mut Comparison, names: &BTreeMap<String, String>) {
    let change = |name: &mut String| {
        if let Some(new) = names.get(name) {
            name.clone_from(new);
        }
    };
    comparison.contestants.iter_mut().for_each(|row| change(&mut row.name));
    comparison.trials.iter_mut().for_each(|row| change(&mut row.contestant));
    comparison.quality.iter_mut().for_each(|row| change(&mut row.contestant));
    comparison.thresholds.iter_mut().for_each(|row| change(&mut row.contestant));
    comparison.positions.iter_mut().for_each(|row| change(&mut row.contestant));
    comparison.faults.iter_mut().for_each(|row| change(&mut row.contestant));
    comparison.growth.iter_mut().for_each(|row| change(&mut row.contestant));
    for claim in &mut comparison.claims {
        claim.operands.iter_mut().chain([&mut claim.group]).for_each(change);
    }
    for cost in &mut comparison.costs {
        change(&mut cost.contestant);
        cost.same_as.iter_mut().for_each(change);
    }
    for crossing in &mut comparison.crossings {
        [&mut crossing.dearer, &mut crossing.cheaper].into_iter().for_each(change);
    }
}

/// What a mark asks for; nothing if a comparison has no such part.
pub(super) fn part(comparison: &Comparison, kind: &str, rest: &str) -> Result<Option<String>, String> {
    Ok(Some(match kind {
        "about" => about(comparison),
        "models" => models(comparison, &groups(comparison, rest)?),
        "lengths" => lengths(comparison, &groups(comparison, rest)?),
        "claims" => pairs(comparison) + "\n",
        "findings" => words::findings(comparison).iter().map(|finding| format!("- {finding}\n")).collect(),
        "reach" => reach(comparison).unwrap_or_default() + "\n",
        _ => return Ok(None),
    }))
}

/// The parts that there are.
pub(super) const PARTS: &str = "about, models, lengths, claims, reach, findings, source";

/// Groups by what readers call them, all of them where none is named.
fn groups<'a>(comparison: &'a Comparison, named: &str) -> Result<Vec<&'a Group>, String> {
    if named.is_empty() {
        return Ok(comparison.groups.iter().collect());
    }
    let find = |name: &str| {
        let found = comparison.groups.iter().find(|group| group.name() == name);
        let known = || comparison.groups.iter().map(Group::name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("there are no sentences {name:?} ({})", known()))
    };
    named.split(',').map(str::trim).map(find).collect()
}

/// What the numbers of a table are.
fn about(comparison: &Comparison) -> String {
    let label = metric_label(comparison.headline());
    let (first, rest) = label.split_at(label.char_indices().nth(1).map_or(label.len(), |(at, _)| at));
    let counts: Vec<usize> = comparison.contestants.iter().map(|own| own.seeds.len()).collect();
    let (least, most) = (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    let seeds = match (least, most) {
        (1, 1) => "one seed each".to_string(),
        _ if least == most => format!("means of {most} seeds each"),
        _ => format!("means of {least} to {most} seeds"),
    };
    let over = if most > 1 { "sentences and seeds" } else { "sentences" };
    // Single lengths have sentences of their own.
    let has_lengths = comparison.groups.iter().any(|group| group.kind == GroupKind::Length);
    let more = if has_lengths { " and those of single lengths" } else { "" };
    format!(
        "{}{rest}, {} test sentences{more}, {seeds}, with 95 % intervals over {over}:\n",
        first.to_uppercase(),
        comparison.task.test_sentences
    )
}

fn score(comparison: &Comparison, name: &str, group: &Group) -> String {
    let metric = comparison.headline();
    comparison.score(name, &group.id, metric).map_or("-".into(), |score| {
        let [value, low, high] = [score.score, score.low, score.high].map(|value| percent(metric, value));
        format!("{value:.1} ({low:.1} to {high:.1})")
    })
}

fn millions(parameters: usize) -> String {
    format!("{:.2} M", parameters as f64 / 1e6)
}

/// What a group is called in a heading or at the beginning of a row.
fn heading(comparison: &Comparison, group: &Group, has_unit: bool) -> String {
    let unit = match group.kind {
        GroupKind::All => String::new(),
        _ if has_unit => format!(" {}", comparison.task.length_unit.name()),
        _ => String::new(),
    };
    let beyond = match (group.is_seen, group.from > comparison.task.trained_length) {
        (true, _) => "",
        (false, true) => ", never seen",
        (false, false) => ", in part never seen",
    };
    format!("{}{unit}{beyond}", group.name())
}

/// A row for each model.
fn models(comparison: &Comparison, groups: &[&Group]) -> String {
    let mut text = "| model | parameters |".to_string();
    groups.iter().for_each(|group| text += &format!(" {} |", heading(comparison, group, true)));
    text += &format!("\n| --- | ---: |{}\n", " ---: |".repeat(groups.len()));
    for own in &comparison.contestants {
        text += &format!("| {} | {} |", cell(&own.name), millions(own.parameters));
        groups.iter().for_each(|group| text += &format!(" {} |", score(comparison, &own.name, group)));
        text.push('\n');
    }
    text
}

/// A row for each group of sentences.
fn lengths(comparison: &Comparison, groups: &[&Group]) -> String {
    let mut text = format!("| {} | sentences |", comparison.task.length_unit.name());
    for own in &comparison.contestants {
        text += &format!(" {}, {} |", cell(&own.name), millions(own.parameters));
    }
    text += &format!("\n| --- | ---: |{}\n", " ---: |".repeat(comparison.contestants.len()));
    for group in groups {
        text += &format!("| {} | {} |", heading(comparison, group, false), group.sentences);
        for own in &comparison.contestants {
            text += &format!(" {} |", score(comparison, &own.name, group));
        }
        text.push('\n');
    }
    text
}
