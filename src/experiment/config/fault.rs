//! What is wrong with a config, and where: file, line and key, in plain words.

use super::Config;
use super::keys::{indexed, remove, section_of, sets, too_large};
use crate::error::Error;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// What is wrong with a config, and where.
pub(super) struct Fault {
    message: String,
    place: Place,
}

enum Place {
    /// One `key.path=value`.
    Setting(String),
    /// A key of the file.
    Key(Vec<String>),
    /// Bytes of the file.
    Span(Range<usize>),
    Unknown,
}

impl Fault {
    pub(super) fn of_key(key: Vec<String>, message: String) -> Self {
        Self { message, place: Place::Key(key) }
    }

    pub(super) fn of_setting(setting: &str, message: String) -> Self {
        Self { message, place: Place::Setting(setting.to_string()) }
    }

    /// What serde complains of in a table that overrides have been applied to.
    pub(super) fn of_table(complaint: &str, table: &toml::Table, overrides: &[String]) -> Self {
        let Some(key) = culprit(table, complaint) else {
            return Self { message: complaint.to_string(), place: Place::Unknown };
        };
        let kinds = if complaint == "missing field `kind`" { kinds(table, &key) } else { None };
        let message = kinds.map_or(complaint.to_string(), |kinds| format!("{complaint}, which is {kinds}"));
        match overrides.iter().rev().find(|setting| sets(setting, &key)) {
            Some(setting) => Self::of_setting(setting, message),
            None => Self::of_key(key, message),
        }
    }

    /// What the reader of TOML complains of, before keys mean anything.
    pub(super) fn of_text(error: &toml::de::Error, text: &str) -> Self {
        let key = error.span().and_then(|span| key_at(text, span.start));
        let place = match (key, error.span()) {
            (Some(key), _) => Place::Key(key),
            (None, Some(span)) => Place::Span(span),
            (None, None) => Place::Unknown,
        };
        let is_too_large = error.message().contains("u64 value was too large") || error.message().contains("as i128");
        Self { message: if is_too_large { too_large() } else { error.message().to_string() }, place }
    }

    /// The error with file, line and key, in plain words and with the nearest spelling of a misspelt name.
    pub(super) fn at(self, path: &Path, text: &str) -> Error {
        let message = format!("{}{}", plain(&self.message), nearest(&self.message).unwrap_or_default());
        match self.place {
            Place::Setting(setting) => Error::message(format!("--set {setting}: {message}")),
            Place::Key(key) => located(path, text, &key.join("."), &message)
                .unwrap_or_else(|| Error::file(path, format!("{}: {message}", key.join(".")))),
            Place::Span(span) => Error::line(path, line_of(text, span.start), message),
            Place::Unknown => Error::file(path, message),
        }
    }
}

/// Adds file and line to an error about a key that the file has, and that no override sets; the file alone where it lacks the key.
pub(super) fn locate(error: Error, path: &Path, text: &str, overrides: &[String]) -> Error {
    match error {
        Error::Config { key, message } => {
            let located = if Config::is_set(&key, overrides) { None } else { located(path, text, &key, &message) };
            // With overrides any of them may be what is wrong.
            located.unwrap_or_else(|| match overrides {
                [] => Error::file(path, format!("{key}: {message}")),
                _ => Error::Config { key, message },
            })
        }
        other => other,
    }
}

/// The error with its line, if the file has the key.
fn located(path: &Path, text: &str, key: &str, message: &str) -> Option<Error> {
    let start = start_of(text, key)?;
    Some(Error::line(path, line_of(text, start), format!("{key}: {message}")))
}

fn line_of(text: &str, start: usize) -> usize {
    1 + text[..start.min(text.len())].matches('\n').count()
}

/// Where a dotted key begins in a file.
fn start_of(text: &str, key: &str) -> Option<usize> {
    let (root, _) = DeTable::parse_recoverable(text);
    let (mut table, mut start) = (root.get_ref(), None);
    let parts: Vec<&str> = key.split('.').collect();
    for (i, part) in parts.iter().enumerate() {
        let (part, place) = indexed(part);
        let (name, value) = table.iter().find(|(name, _)| name.get_ref().as_ref() == part)?;
        start = Some(name.span().start);
        let value = match place {
            Some(place) => {
                let element = value.get_ref().as_array()?.get(place)?;
                start = Some(element.span().start);
                element
            }
            None => value,
        };
        if i + 1 < parts.len() {
            table = value.get_ref().as_table()?;
        }
    }
    start
}

/// The key whose value holds a byte of the file.
fn key_at(text: &str, byte: usize) -> Option<Vec<String>> {
    fn within(table: &DeTable<'_>, byte: usize) -> Option<Vec<String>> {
        table.iter().find_map(|(name, value)| {
            let rest = match value.get_ref() {
                DeValue::Table(table) => within(table, byte)?,
                _ => value.span().contains(&byte).then(Vec::new)?,
            };
            Some(std::iter::once(name.get_ref().to_string()).chain(rest).collect())
        })
    }
    let (root, errors) = DeTable::parse_recoverable(text);
    // What is not yet TOML has no keys to go by.
    if errors.is_empty() { within(root.get_ref(), byte) } else { None }
}

/// The kinds that a section without one may have, as serde lists them.
fn kinds(table: &toml::Table, section: &[String]) -> Option<String> {
    let mut with_kind = table.clone();
    section_of(&mut with_kind, section)?.insert("kind".into(), toml::Value::String("?".into()));
    let complaint = Config::deserialize(with_kind).err()?;
    Some(complaint.message().split_once("unknown variant `?`, expected ")?.1.to_string())
}

/// The key that a complaint is about.
///
/// Serde reads a section with a `kind` twice and does not know the second time where it is. The culprit is the key without
/// which the complaint is another one, or none; a key that merely has to be there is not.
fn culprit(table: &toml::Table, complaint: &str) -> Option<Vec<String>> {
    let mut kept = table.clone();
    let mut needed = None;
    for key in candidates(table, complaint) {
        let mut without = kept.clone();
        remove(&mut without, &key);
        let missing = key.last().map(|name| format!("missing field `{name}`"));
        match Config::deserialize(without.clone()).err().map(|error| error.message().to_string()) {
            // The places of a list stay what they are.
            Some(same) if same == complaint && key.last().is_some_and(|name| indexed(name).1.is_some()) => {}
            Some(same) if same == complaint => kept = without,
            other if other.is_some() && other == missing => needed = needed.or(Some(key)),
            _ => return Some(key),
        }
    }
    needed
}

/// The keys that a complaint can be about, the deepest first, `kind` after the others.
fn candidates(table: &toml::Table, complaint: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    collect(table, &mut Vec::new(), &mut all);
    let of_table = complaint.starts_with("missing field") || complaint.starts_with("invalid type: map");
    let unknown = complaint.strip_prefix("unknown ").and_then(|rest| rest.split('`').nth(1));
    all.retain(|(key, value)| match unknown {
        Some(word) => key.last().is_some_and(|last| last == word) || value.as_str() == Some(word),
        None => of_table == value.is_table(),
    });
    let is_kind = |key: &[String]| key.last().is_some_and(|last| last == "kind");
    all.sort_by_key(|(key, _)| (is_kind(key), std::cmp::Reverse(key.len())));
    all.into_iter().map(|(key, _)| key).collect()
}

fn collect(table: &toml::Table, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, toml::Value)>) {
    for (name, value) in table {
        at.push(name.clone());
        found.push((at.clone(), value.clone()));
        match value {
            toml::Value::Table(table) => collect(table, at, found),
            toml::Value::Array(list) => {
                for (i, element) in list.iter().enumerate() {
                    let Some(table) = element.as_table() else { continue };
                    at.pop();
                    at.push(format!("{name}[{i}]"));
                    found.push((at.clone(), element.clone()));
                    collect(table, at, found);
                    at.pop();
                    at.push(name.clone());
                }
            }
            _ => {}
        }
        at.pop();
    }
}

/// Serde's complaints about types, in the words of a config.
fn plain(message: &str) -> String {
    let message = message.replace('\n', " ");
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    let Some((got, wanted)) = rest.and_then(|rest| rest.rsplit_once(", expected ")) else { return message };
    let wanted = match wanted {
        "f64" | "f32" => "a number",
        "u64" | "usize" | "u32" | "u16" | "u8" => "a whole number of at least 0",
        "a boolean" => "true or false",
        "path string" => "a path in quotes",
        "a sequence" => "a list",
        "variant identifier" => "a name in quotes",
        _ if wanted.starts_with("internally tagged enum") => "a table with a `kind`",
        _ if wanted.starts_with("struct ") => "a table",
        _ => wanted,
    };
    let (kind, value) = got.split_once(' ').unwrap_or((got, ""));
    let got = match kind {
        "integer" | "floating" | "boolean" => value.trim_start_matches("point ").trim_matches('`').to_string(),
        "string" => format!("the text {value}"),
        "map" => "a table".into(),
        "sequence" => "a list".into(),
        _ => got.to_string(),
    };
    format!("must be {wanted}, got {got}")
}

/// The nearest allowed spelling of a name that is unknown, if one is near.
fn nearest(message: &str) -> Option<String> {
    let mut quoted = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let wrong = quoted.next()?;
    let likeness = |word: &&str| strsim::jaro_winkler(wrong, word);
    let nearest = quoted.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&nearest) > 0.75).then(|| format!("; did you mean `{nearest}`?"))
}
