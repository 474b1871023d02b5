//! Blocks of Markdown documents that are written from results: tables, and sentences that say what claims say.
//!
//! A document marks the place, and everything up to the end is replaced:
//!
//! ```text
//! <!-- results: tour; about; models all, 5-6; claims; source -->
//! <!-- end -->
//! ```
//!
//! First stands the name of the results, then what is written of them, in this order: of a comparison, or of a suite. Models that were
//! evaluated one by one stand in one table: `<!-- results: scores; scan-simple; dutch -->` has a row for each score, with every seed; `grid
//! bleu` a row for each model and a column for each test and search, of those that contain a text with `grid bleu 2016`; `by-length bleu` a
//! column for each range of source lengths, on the first test. Nothing is judged here: sentences are those of
//! their reports.

mod comparison;
mod place;
mod scores;
mod suite;

pub use comparison::shrunk;
pub use scores::Evaluations;

use crate::error::Error;
use crate::report::comparison::Comparison;
use crate::report::suite::Suite;
use crate::scoring::Metric;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// How a block begins.
const BEGINNING: &str = "<!-- results: ";
/// How it ends.
const END: &str = "<!-- end -->";

/// What results do not know about themselves: an entry of `index.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The machine, in words.
    pub machine: String,
    /// The day on which it was measured.
    pub date: String,
    /// What the models of a comparison, and the tests and searches of evaluations, are called in documents, by their names in the
    /// results.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Of evaluations, what was tested, in words.
    #[serde(default)]
    pub test: String,
    /// Of evaluations, the scores that documents show.
    #[serde(default)]
    pub scores: Vec<Metric>,
    /// Of evaluations, how many sentences were tested, where the records do not say.
    #[serde(default)]
    pub sentences: Option<usize>,
    /// Of evaluations, what others have published for the first of the scores.
    #[serde(default)]
    pub published: String,
    /// Of evaluations, the commands.
    #[serde(default)]
    pub command: String,
    /// Of evaluations, the backend.
    #[serde(default)]
    pub backend: String,
}

/// What documents are written from.
#[derive(Clone, Debug, PartialEq)]
pub enum Results {
    /// Families by tasks; it alone has `families`.
    Suite(Box<Suite>),
    /// Models beside each other.
    Comparison(Box<Comparison>),
    /// Models one by one.
    Evaluations(Evaluations),
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

    /// Reads the `results.json` of a comparison or of a suite.
    ///
    /// # Errors
    /// If it is neither, or of another version's layout; says which.
    pub fn read(file: &Path) -> crate::error::Result<Self> {
        let text = std::fs::read_to_string(file).map_err(Error::io(file))?;
        let value: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| Error::file(file, format!("is not the results of a comparison: {error}")))?;
        let known = if value.get("families").is_some() {
            crate::report::suite::FORMAT
        } else {
            crate::report::comparison::FORMAT
        };
        let format = value["format"].as_u64();
        if let Some(newer) = format.filter(|format| *format > u64::from(known)) {
            let message = format!("has format {newer}, and this program knows {known}; take a newer one");
            return Err(Error::file(file, message));
        }
        Self::parse(&text).map_err(|error| {
            let what = match format.filter(|format| *format < u64::from(known)) {
                Some(older) => format!("has format {older} of an earlier version, which lacks something: {error}"),
                None => format!("is not the results of a comparison: {error}"),
            };
            Error::file(file, what)
        })
    }

    /// Reads the `results.json` of a comparison.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if it is of a suite.
    pub fn read_comparison(file: &Path) -> crate::error::Result<Comparison> {
        match Self::read(file)? {
            Self::Comparison(comparison) => Ok(*comparison),
            _ => Err(Error::file(file, "is not of a comparison")),
        }
    }

    /// How the name of their file ends.
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Suite(_) | Self::Comparison(_) => "json",
            Self::Evaluations(_) => "jsonl",
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

    fn backend(&self) -> &str {
        match &self.results {
            Results::Suite(suite) => &suite.backend,
            Results::Comparison(comparison) => &comparison.backend,
            Results::Evaluations(_) => &self.about.backend,
        }
    }

    fn command(&self) -> &str {
        match &self.results {
            Results::Suite(suite) => &suite.command,
            Results::Comparison(comparison) => &comparison.command,
            Results::Evaluations(_) => &self.about.command,
        }
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
    let find = |name: &str| {
        published.get(name).ok_or_else(|| {
            let known = published.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("there are no results {name:?} ({known})")
        })
    };
    match parts.next().unwrap_or_default() {
        "list" => Ok(list(published)),
        kind if scores::KINDS.contains(&kind.split(' ').next().unwrap_or_default()) => {
            let models = parts.map(|name| match find(name)? {
                Published { about, results: Results::Evaluations(own) } => Ok((about, own)),
                _ => Err(format!("{name:?} is a comparison or a suite, and no list of evaluations")),
            });
            scores::block(kind, &models.collect::<Result<Vec<_>, String>>()?)
        }
        name => {
            let own = find(name)?;
            let written: Result<Vec<String>, String> = parts.map(|part| part_of(own, part)).collect();
            Ok(written?.join("\n"))
        }
    }
}

fn part_of(own: &Published, part: &str) -> Result<String, String> {
    let (kind, rest) = part.split_once(' ').unwrap_or((part, ""));
    if kind == "source" {
        return Ok(source(own));
    }
    let (written, parts) = match &own.results {
        Results::Suite(suite) => (suite::part(suite, kind, rest), suite::PARTS),
        Results::Comparison(comparison) => (comparison::part(comparison, kind, rest)?, comparison::PARTS),
        Results::Evaluations(_) => (None, "source; the rows are those of `scores; NAME`"),
    };
    written.ok_or_else(|| format!("{kind:?} is nothing that can be written ({parts})"))
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// On what it was measured, and the command.
fn source(own: &Published) -> String {
    let About { machine, date, .. } = &own.about;
    format!("{machine}, `{}`, {date}:\n\n```sh\n{}\n```\n", own.backend(), own.command().trim())
}

/// All results, with what made them.
fn list(published: &BTreeMap<String, Published>) -> String {
    let mut text = "| file | command | machine | date |\n| --- | --- | --- | --- |\n".to_string();
    for (name, own) in published {
        let (file, About { machine, date, .. }) = (format!("{name}.{}", own.results.extension()), &own.about);
        let command = own.command().trim().replace('|', "\\|").replace('\n', "`<br>`");
        let (machine, date) = (cell(machine), cell(date));
        text += &format!("| [{file}]({file}) | `{command}` | {machine}, `{}` | {date} |\n", own.backend());
    }
    text
}
