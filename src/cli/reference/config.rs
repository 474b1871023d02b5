//! Every key of a config, from the schema.

use super::cell;
use crate::cli::config::schema;
use serde_json::{Map, Value};
use std::fmt::Write;

const HEAD: &str = "# Config keys

This page is written by the program: `lookback reference --out docs/reference`. `lookback config schema` prints the same as a
JSON Schema, which editors can complete and check a config with.

A config lists what it chooses; every other key has its default. `lookback config show FILE` prints all of them, and
`lookback config check FILE --data` says what is wrong. `--set model.d_model=128` sets a key on the command line.
Where a table has `kind`, the other keys depend on it.
";

type Object = Map<String, Value>;

/// The page.
pub(super) fn page() -> String {
    let schema = schema();
    let mut page =
        Page { definitions: object(&schema["$defs"]).clone(), todo: Vec::new(), done: Vec::new(), text: HEAD.into() };
    let root = object(&schema["properties"]);
    page.text += "\n## Top level\n";
    page.keys("", root);
    page.todo.reverse();
    // In the order of a reader who goes down from a table: its own choices first, then those of the next table.
    while let Some((path, name)) = page.todo.pop() {
        page.definition(&path, &name);
    }
    page.text
}

fn object(value: &Value) -> &Object {
    value.as_object().expect("a schema is made of objects")
}

fn text_of<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key).and_then(Value::as_str)
}

/// The first paragraph of a description, on one line: papers and details stand in the library's documentation.
fn description(schema: &Value) -> String {
    let text = text_of(schema, "description").unwrap_or_default();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The names of the definitions that a schema points to, directly or as one of several.
fn references(schema: &Value) -> Vec<String> {
    let own = text_of(schema, "$ref").and_then(|path| path.rsplit('/').next()).map(str::to_owned);
    let parts = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    let items = schema.get("items");
    own.into_iter().chain(parts.chain(items).flat_map(references)).collect()
}

/// The page as it is written, with the definitions that are still to come.
struct Page {
    definitions: Object,
    /// Path of the key and name of the definition, the next one last.
    todo: Vec<(String, String)>,
    /// Names of definitions that have a heading, with the path that stands in it.
    done: Vec<(String, String)>,
    text: String,
}

impl Page {
    /// The heading of a definition, the path of the first key that takes it, and what stands under it.
    fn definition(&mut self, path: &str, name: &str) {
        let schema = self.definitions[name].clone();
        let _ = write!(self.text, "\n## `{path}`\n\n{}\n", description(&schema));
        let before = self.todo.len();
        self.body(path, &schema);
        // The first key of the table comes next.
        self.todo[before..].reverse();
    }

    /// The keys of a table, or the forms that it may have.
    fn body(&mut self, path: &str, schema: &Value) {
        if let Some(properties) = schema.get("properties") {
            self.keys(path, object(properties));
        }
        let choices: Vec<&Value> =
            ["oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten().collect();
        for (i, choice) in choices.iter().enumerate() {
            // A list of words begins after an empty line.
            let is_first = i == 0 || choices[i - 1].get("const").is_none();
            self.text += if choice.get("const").is_none() || is_first { "\n" } else { "" };
            self.choice(path, choice);
        }
    }

    /// One of several forms that a table or a value may have.
    fn choice(&mut self, path: &str, schema: &Value) {
        let said = description(schema);
        if let Some(value) = schema.get("const") {
            let _ = writeln!(self.text, "- `{value}`: {said}");
        } else if let Some(properties) = schema.get("properties").map(object) {
            if let Some(kind) = properties.get("kind").and_then(|kind| kind.get("const")) {
                let _ = writeln!(self.text, "**`kind = {kind}`**: {said}");
            }
            let keys: Object = properties.clone().into_iter().filter(|(key, _)| key != "kind").collect();
            if !keys.is_empty() {
                self.keys(path, &keys);
            }
        } else if let Some(name) = text_of(schema, "$ref").and_then(|path| path.rsplit('/').next()) {
            // A form that is a definition of its own stands here, under the heading of the key.
            self.done.push((name.to_owned(), path.to_owned()));
            let definition = self.definitions[name].clone();
            let _ = writeln!(self.text, "{said}");
            self.body(path, &definition);
        } else {
            let value = self.value(path, schema);
            let _ = writeln!(self.text, "Or {value}. {said}");
        }
    }

    /// A table of keys.
    fn keys(&mut self, path: &str, keys: &Object) {
        self.text += "\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n";
        for (key, schema) in keys {
            let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let value = self.value(&below, schema);
            let default = match schema.get("default") {
                Some(Value::Null) | None => String::new(),
                // Tables have theirs where their keys stand.
                Some(Value::Object(table)) => {
                    table.get("kind").map(|kind| format!("`kind = {kind}`")).unwrap_or_default()
                }
                Some(value) => format!("`{value}`"),
            };
            let _ = writeln!(self.text, "| `{key}` | {value} | {default} | {} |", cell(&description(schema)));
        }
    }

    /// What a value may be: a type, the words that are allowed, or a link to the table.
    fn value(&mut self, path: &str, schema: &Value) -> String {
        if let Some(word) = schema.get("const") {
            return format!("`{word}`");
        }
        let found = references(schema);
        if let Some(name) = found.first() {
            let words = self.words(name);
            if !words.is_empty() && words.iter().all(|(_, meaning)| meaning.is_empty()) {
                return words.into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(", ");
            }
            let link = self.link(path, name);
            let is_list = text_of(schema, "type") == Some("array");
            return if is_list { format!("list of {link}") } else { link };
        }
        kind_of(schema)
    }

    /// The words of a definition that is nothing but words.
    fn words(&self, name: &str) -> Vec<(String, String)> {
        let Some(choices) = self.definitions[name].get("oneOf").and_then(Value::as_array) else { return Vec::new() };
        let word = |choice: &Value| choice.get("const").map(|word| (format!("`{word}`"), description(choice)));
        choices.iter().map(word).collect::<Option<Vec<_>>>().unwrap_or_default()
    }

    /// A link to the heading of a definition, which is written later if it is not there.
    fn link(&mut self, path: &str, name: &str) -> String {
        let known = self.done.iter().find(|(known, _)| known == name).map(|(_, path)| path.clone());
        let heading = known.unwrap_or_else(|| {
            self.done.push((name.to_owned(), path.to_owned()));
            self.todo.push((path.to_owned(), name.to_owned()));
            path.to_owned()
        });
        format!("[`{heading}`](#{})", heading.replace('.', ""))
    }
}

/// The type of a plain value in words.
fn kind_of(schema: &Value) -> String {
    let word = |kind: &str| match kind {
        "integer" => "whole number".to_owned(),
        "number" => "number".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "string" => "text".to_owned(),
        "array" => "list".to_owned(),
        other => other.to_owned(),
    };
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("list of {}", schema.get("items").map(kind_of).unwrap_or_default())
        }
        Some(Value::String(kind)) => word(kind),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.map(word).collect::<Vec<_>>().join(" or ")
        }
        _ => String::new(),
    }
}
