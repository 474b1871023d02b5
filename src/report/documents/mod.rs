//! Blocks of Markdown documents that are written from results: tables, and sentences that say what claims say.
//!
//! A document marks the place, and everything up to the end is replaced:
//!
//! ```text
//! <!-- results: tour; about; models all, 5-6; claims; source -->
//! <!-- end -->
//! ```
//!
//! First stands the name of the results, then what is written of them, in this order: of a comparison, or of a suite. Nothing is
//! judged here: sentences are those of their reports.

mod comparison;
mod suite;

pub use comparison::shrunk;

use crate::report::comparison::Comparison;
use crate::report::suite::Suite;
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
    /// What the models of a comparison are called in documents, by their names in the results.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

/// What a `results.json` holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Results {
    /// Families by tasks; it alone has `families`.
    Suite(Box<Suite>),
    /// Models beside each other.
    Comparison(Box<Comparison>),
}

impl Results {
    /// Reads a `results.json`.
    ///
    /// # Errors
    /// If it is neither of a suite nor of a comparison.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let is_suite = serde_json::from_str::<serde_json::Value>(text)?.get("families").is_some();
        Ok(match is_suite {
            true => Self::Suite(Box::new(serde_json::from_str(text)?)),
            false => Self::Comparison(Box::new(serde_json::from_str(text)?)),
        })
    }

    fn backend(&self) -> &str {
        match self {
            Self::Suite(suite) => &suite.backend,
            Self::Comparison(comparison) => &comparison.backend,
        }
    }

    fn command(&self) -> &str {
        match self {
            Self::Suite(suite) => &suite.command,
            Self::Comparison(comparison) => &comparison.command,
        }
    }
}

/// Results that documents are written from.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    about: About,
    results: Results,
}

impl Published {
    /// Results, with the models of a comparison called as `about` says.
    pub fn new(about: About, mut results: Results) -> Self {
        if let Results::Comparison(comparison) = &mut results {
            comparison::rename(comparison, &about.names);
        }
        Self { about, results }
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
    let (kind, rest) = part.split_once(' ').unwrap_or((part, ""));
    if kind == "source" {
        return Ok(source(own));
    }
    let (written, parts) = match &own.results {
        Results::Suite(suite) => (suite::part(suite, kind, rest), suite::PARTS),
        Results::Comparison(comparison) => (comparison::part(comparison, kind, rest)?, comparison::PARTS),
    };
    written.ok_or_else(|| format!("{kind:?} is nothing that can be written ({parts})"))
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// On what it was measured, and the command.
fn source(own: &Published) -> String {
    let Published { about, results } = own;
    format!("{}, `{}`, {}:\n\n```sh\n{}\n```\n", about.machine, results.backend(), about.date, results.command())
}

/// All results, with what made them.
fn list(published: &BTreeMap<String, Published>) -> String {
    let mut text = "| file | command | machine | date |\n| --- | --- | --- | --- |\n".to_string();
    for (name, Published { about, results }) in published {
        text += &format!(
            "| [{name}.json]({name}.json) | `{}` | {}, `{}` | {} |\n",
            results.command().replace('|', "\\|"),
            cell(&about.machine),
            results.backend(),
            cell(&about.date)
        );
    }
    text
}
