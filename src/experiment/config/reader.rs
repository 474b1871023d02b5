//! From TOML and `--set` to a [`Config`], and where the fault is when that fails.

use super::{Config, paths};
use crate::error::Error;
use crate::models::Answers;
use crate::scoring::Metric;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The largest whole number of TOML.
pub(super) const LARGEST: u64 = i64::MAX as u64;

/// Reads a config whose paths are relative to `folder`, and applies overrides, whose paths are the user's own.
pub(super) fn parse(text: &str, folder: &Path, overrides: &[String]) -> Result<Config, Fault> {
    let mut table = toml::from_str(text).map_err(|error| Fault::of_text(&error, text))?;
    if !folder.as_os_str().is_empty() {
        let is_overridden = |key: &[String]| overrides.iter().any(|setting| sets(setting, key));
        let placed = paths::place(&mut table, folder, is_overridden);
        placed.map_err(|(key, message)| Fault { message, place: Place::Key(key) })?;
    }
    parse_table(table, overrides)
}

/// Applies overrides to a config that is read already.
pub(super) fn parse_table(mut table: toml::Table, overrides: &[String]) -> Result<Config, Fault> {
    for setting in overrides {
        apply(&mut table, setting).map_err(|message| Fault { message, place: Place::Setting(setting.clone()) })?;
    }
    resolve(table.clone()).map_err(|error| {
        let key = culprit(&table, error.message());
        let mut message = error.message().to_string();
        if message == "missing field `kind`"
            && let Some(kinds) = key.as_ref().and_then(|section| kinds(&table, section))
        {
            message += &format!(", which is {kinds}");
        }
        let place =
            key.map_or(Place::Unknown, |key| match overrides.iter().rev().find(|setting| sets(setting, &key)) {
                Some(setting) => Place::Setting(setting.clone()),
                None => Place::Key(key),
            });
        Fault { message, place }
    })
}

/// The kinds that a section without one may have, as serde lists them.
fn kinds(table: &toml::Table, section: &[String]) -> Option<String> {
    let mut with_kind = table.clone();
    section_of(&mut with_kind, section)?.insert("kind".into(), toml::Value::String("?".into()));
    let complaint = Config::deserialize(with_kind).err()?;
    Some(complaint.message().split_once("unknown variant `?`, expected ")?.1.to_string())
}

/// The config of a table. Where it names no score, tags are judged one by one and classes whole, and all else, which is text, by the
/// default.
fn resolve(table: toml::Table) -> Result<Config, toml::de::Error> {
    let names_score = table.get("training").and_then(|training| training.get("score")).is_some();
    let mut config = Config::deserialize(table)?;
    config.training.score = match config.model.family().answers() {
        Some(Answers::Tags) if !names_score => Metric::TokenAccuracy,
        Some(Answers::Class) if !names_score => Metric::SequenceAccuracy,
        _ => config.training.score,
    };
    Ok(config)
}

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

/// Adds file and line to an error about a key that the file has, and that no override sets.
pub(super) fn locate(error: Error, path: &Path, text: &str, overrides: &[String]) -> Error {
    match error {
        Error::Config { key, message } => {
            let parts: Vec<String> = key.split('.').map(String::from).collect();
            let is_set = overrides.iter().any(|setting| sets(setting, &parts));
            let located = if is_set { None } else { located(path, text, &key, &message) };
            located.unwrap_or(Error::Config { key, message })
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

/// The name and the place in a list of `name[2]`, counted from 0; of other names the name.
fn indexed(part: &str) -> (&str, Option<usize>) {
    let place = part.strip_suffix(']').and_then(|part| part.rsplit_once('['));
    match place.and_then(|(name, place)| Some((name, place.parse().ok()?))) {
        Some((name, place)) => (name, Some(place)),
        None => (part, None),
    }
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

/// Whether an override sets `key`, or the table that it is in.
fn sets(setting: &str, key: &[String]) -> bool {
    let name = setting.split('=').next().unwrap_or_default().trim();
    let (mut own, mut wanted) = (name.split('.'), key.iter().map(String::as_str));
    own.all(|part| wanted.next().is_none_or(|wanted| wanted == part))
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

/// The config `table` with the value that `other` has for a dotted key, or without the key if it has none.
pub(super) fn with_key_of(mut table: toml::Table, other: &toml::Table, key: &str) -> Result<Config, String> {
    let parts: Vec<String> = key.split('.').map(String::from).collect();
    let (last, sections) = parts.split_last().expect("a key has a name");
    let value = sections.iter().try_fold(other, |table, name| table.get(name)?.as_table()).and_then(|t| t.get(last));
    match value {
        None => remove(&mut table, &parts),
        Some(value) => insert(&mut table, sections, last, value.clone())?,
    }
    resolve(table).map_err(|error| error.message().to_string())
}

fn remove(table: &mut toml::Table, key: &[String]) {
    if let Some((last, sections)) = key.split_last()
        && let Some(section) = section_of(table, sections)
    {
        match indexed(last) {
            (name, Some(place)) => {
                let list = section.get_mut(name).and_then(toml::Value::as_array_mut);
                if let Some(list) = list.filter(|list| place < list.len()) {
                    list.remove(place);
                }
            }
            (name, None) => {
                section.remove(name);
            }
        }
    }
}

/// The table at `sections`, if there is one.
fn section_of<'t>(table: &'t mut toml::Table, sections: &[String]) -> Option<&'t mut toml::Table> {
    sections.iter().try_fold(table, |table, part| match indexed(part) {
        (name, Some(place)) => table.get_mut(name)?.as_array_mut()?.get_mut(place)?.as_table_mut(),
        (name, None) => table.get_mut(name)?.as_table_mut(),
    })
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

fn too_large() -> String {
    format!("is too large; the largest whole number of a config is {LARGEST}")
}

/// Applies one `key.path=value`.
fn apply(table: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (key, value) =
        setting.split_once('=').ok_or("write key.path=value, as in --set training.learning_rate=0.001")?;
    let (key, value) = (key.trim(), value.trim());
    let value = match toml::from_str::<toml::Table>(&format!("value = {value}")) {
        Ok(mut table) => table.remove("value").ok_or("the value is empty")?,
        Err(_) if value.parse::<i64>().is_err() && is_whole(value) => return Err(too_large()),
        // What is no TOML value is a string: `--set backend=flex` needs no quotes.
        Err(_) => toml::Value::String(value.to_string()),
    };
    let mut sections: Vec<String> = key.split('.').map(String::from).collect();
    let last = sections.pop().filter(|last| !last.is_empty()).ok_or("the key is empty")?;
    insert(table, &sections, &last, value)
}

/// Sets a key in a section, which is made if it is not there.
fn insert(table: &mut toml::Table, sections: &[String], key: &str, value: toml::Value) -> Result<(), String> {
    let mut section = table;
    for name in sections {
        let entry = section.entry(name.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        section = entry.as_table_mut().ok_or_else(|| format!("`{name}` is a value, not a section"))?;
    }
    section.insert(key.to_string(), value);
    Ok(())
}

/// Whether a text is a decimal whole number, of any size.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
}
