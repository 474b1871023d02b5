//! Schemas of JSON values, as OpenAPI 3.1 writes them.

use serde_json::{Map, Value, json};

fn of(kind: &str, words: &str) -> Value {
    json!({ "type": kind, "description": words })
}

pub(super) fn string(words: &str) -> Value {
    of("string", words)
}

pub(super) fn integer(words: &str) -> Value {
    of("integer", words)
}

pub(super) fn number(words: &str) -> Value {
    of("number", words)
}

pub(super) fn boolean(words: &str) -> Value {
    of("boolean", words)
}

/// One of some strings.
pub(super) fn choice(values: &[&str], words: &str) -> Value {
    json!({ "type": "string", "enum": values, "description": words })
}

/// A whole number that may be null.
pub(super) fn integer_or_null(words: &str) -> Value {
    json!({ "type": ["integer", "null"], "description": words })
}

pub(super) fn list(items: Value, words: &str) -> Value {
    json!({ "type": "array", "items": items, "description": words })
}

/// A list of values of a type that needs no words.
pub(super) fn list_of(kind: &str, words: &str) -> Value {
    list(json!({ "type": kind }), words)
}

/// A text, or a list of texts.
pub(super) fn texts(words: &str) -> Value {
    json!({ "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }], "description": words })
}

/// One value, or a list of such values.
pub(super) fn one_or_list(one: Value) -> Value {
    json!({ "oneOf": [one, { "type": "array", "items": one }] })
}

/// A schema that is described under `components`.
pub(super) fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// An object; the names of fields that are always there end in `!`.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = fields.iter().filter_map(|(name, _)| name.strip_suffix('!')).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, schema)| (name.trim_end_matches('!').to_owned(), schema.clone())).collect();
    match required.is_empty() {
        true => json!({ "type": "object", "properties": properties }),
        false => json!({ "type": "object", "properties": properties, "required": required }),
    }
}
