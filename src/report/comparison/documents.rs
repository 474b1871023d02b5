//! Blocks of Markdown documents that are written from results: tables, and sentences that say what claims say.
//!
//! A document marks the place, and everything up to the end is replaced:
//!
//! ```text
//! <!-- results: tour; about; models all, 5-6; claims; source -->
//! <!-- end -->
//! ```
//!
//! First stands the name of the results, then what is written of them, in this order. Nothing is judged here: sentences are those of
//! [`words`].

use super::data::{Comparison, Group, GroupKind};
use super::measured::ClaimKind;
use super::score::{metric_label, percent};
use super::words;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How a block begins.
const BEGINNING: &str = "<!-- results: ";
/// How it ends.
const END: &str = "<!-- end -->";

/// What `results.json` does not know about itself: an entry of `index.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The machine, in words.
    pub machine: String,
    /// The day on which it was measured.
    pub date: String,
    /// What models are called in documents, by their names in the results.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

/// Results that documents are written from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    about: About,
    comparison: Comparison,
}

impl Published {
    /// The results of a comparison, its models called as `about` says.
    pub fn new(about: About, mut comparison: Comparison) -> Self {
        rename(&mut comparison, &about.names);
        Self { about, comparison }
    }
}

/// What documents need of a comparison: one score, without learning curves, attention and faults, which are most of it.
pub fn shrunk(comparison: &Comparison) -> Comparison {
    let mut small = Comparison { curves: Vec::new(), alignments: Vec::new(), faults: Vec::new(), ..comparison.clone() };
    let headline = comparison.headline();
    small.metrics.truncate(1);
    small.quality.iter_mut().for_each(|row| row.scores.retain(|score| score.metric == headline));
    small.claims.retain(|claim| claim.metric == headline || claim.kind == ClaimKind::Position);
    // Of single positions only the whole test set is told.
    small.positions.retain(|row| row.group == "all");
    small
}

/// Calls models otherwise wherever rows refer to them.
fn rename(comparison: &mut Comparison, names: &BTreeMap<String, String>) {
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

/// A document with its blocks written anew.
///
/// # Errors
/// If a block does not end, or asks for what is not there; says which line.
pub fn filled(document: &str, published: &BTreeMap<String, Published>) -> Result<String, String> {
    let mut text = String::new();
    let mut lines = document.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        text += line;
        text.push('\n');
        let Some(what) = line.strip_prefix(BEGINNING) else { continue };
        let fault = |message: String| format!("line {}: {message}", number + 1);
        let what = what.strip_suffix("-->").ok_or_else(|| fault("the mark does not end with -->".into()))?;
        text += &block(what, published).map_err(fault)?;
        if !lines.any(|(_, line)| line == END) {
            return Err(fault(format!("there is no {END} after it")));
        }
        text += END;
        text.push('\n');
    }
    Ok(text)
}

/// Whether a document has blocks.
pub fn has_blocks(document: &str) -> bool {
    document.lines().any(|line| line.starts_with(BEGINNING))
}

/// Everything that one mark asks for.
fn block(what: &str, published: &BTreeMap<String, Published>) -> Result<String, String> {
    let mut parts = what.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    if name == "list" {
        return Ok(list(published));
    }
    let own = published.get(name).ok_or_else(|| {
        let known = published.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("there are no results {name:?} ({known})")
    })?;
    let written: Result<Vec<String>, String> = parts.map(|part| part_of(own, part)).collect();
    Ok(written?.join("\n"))
}

fn part_of(own: &Published, part: &str) -> Result<String, String> {
    let comparison = &own.comparison;
    let (kind, rest) = part.split_once(' ').unwrap_or((part, ""));
    match kind {
        "about" => Ok(about(comparison)),
        "models" => Ok(models(comparison, &groups(comparison, rest)?)),
        "lengths" => Ok(lengths(comparison, &groups(comparison, rest)?)),
        "claims" => Ok(words::pairs(comparison) + "\n"),
        "findings" => Ok(words::findings(comparison).iter().map(|finding| format!("- {finding}\n")).collect()),
        "reach" => Ok(words::reach(comparison).unwrap_or_default() + "\n"),
        "source" => Ok(source(own)),
        _ => Err(format!(
            "{kind:?} is nothing that can be written (about, models, lengths, claims, reach, findings, source)"
        )),
    }
}

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
    format!(
        "{}{rest}, {} test sentences, {seeds}, with 95 % intervals over {over}:\n",
        first.to_uppercase(),
        comparison.task.test_sentences
    )
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").split_whitespace().collect::<Vec<_>>().join(" ")
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

/// On what it was measured, and the command.
fn source(own: &Published) -> String {
    let Published { about, comparison } = own;
    format!("{}, `{}`, {}:\n\n```sh\n{}\n```\n", about.machine, comparison.backend, about.date, comparison.command)
}

/// All results, with what made them.
fn list(published: &BTreeMap<String, Published>) -> String {
    let mut text = "| file | command | machine | date |\n| --- | --- | --- | --- |\n".to_string();
    for (name, Published { about, comparison }) in published {
        text += &format!(
            "| [{name}.json]({name}.json) | `{}` | {}, `{}` | {} |\n",
            comparison.command.replace('|', "\\|"),
            cell(&about.machine),
            comparison.backend,
            cell(&about.date)
        );
    }
    text
}
