//! The description of all endpoints, for programs (`/openapi.json`) and for people (`/docs`).

mod answers;
mod endpoints;
mod schema;

use crate::report::page::Page;
pub(in crate::serve) use endpoints::openapi;
use maud::{Markup, html};
use serde_json::Value;

/// The page at `/docs`: the description, endpoint by endpoint.
pub(super) fn page() -> String {
    let api = openapi();
    let endpoints = api["paths"].as_object().into_iter().flatten().flat_map(|(path, methods)| {
        methods.as_object().into_iter().flatten().map(move |(method, operation)| (path, method, operation))
    });
    let body = html! {
        p { (text(&api["info"]["description"])) }
        @for (path, method, operation) in endpoints { (section(&api, path, method, operation)) }
    };
    Page {
        title: "Lookback: endpoints".to_owned(),
        body,
        style: include_str!("page.css").to_owned(),
        ..Page::default()
    }
    .render()
}

fn section(api: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let request = &operation["requestBody"]["content"]["application/json"];
    let taken = resolve(api, &request["schema"]);
    let answer = &operation["responses"]["200"];
    let mut given = resolve(api, &answer["content"]["application/json"]["schema"]);
    // Of an answer to one text or to several, the fields are those of each.
    if let Some(first) = given["oneOf"].get(0) {
        given = resolve(api, first);
    }
    if given["type"] == "array" {
        given = resolve(api, &given["items"]);
    }
    html! {
        section {
            h2 { code { (method.to_uppercase()) " " (path) } }
            p { (text(&operation["summary"])) }
            @if taken.is_object() {
                h3 { "Fields" }
                (fields(api, taken))
                @if let Some(example) = request.get("example") {
                    pre { "curl http://127.0.0.1:5000" (path) " -H 'Content-Type: application/json' -d '" (example) "'" }
                }
            }
            h3 { "Answer" }
            p { (text(&answer["description"])) }
            (fields(api, given))
        }
        "\n"
    }
}

/// The fields of an object, one in a row.
fn fields(api: &Value, schema: &Value) -> Markup {
    let Some(properties) = schema["properties"].as_object() else { return Markup::default() };
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
    html! {
        div.panel {
            table {
                @for (name, property) in properties {
                    tr {
                        td { code { @if is_required(name) { b { (name) } } @else { (name) } } }
                        td.muted { (kind(api, property)) }
                        td { (text(&property["description"])) }
                    }
                }
            }
        }
    }
}

/// The type of a value in words.
fn kind(api: &Value, schema: &Value) -> String {
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices.iter().map(|choice| kind(api, choice)).collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    }
    match &resolve(api, schema)["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", kind_of_items(api, schema)),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn kind_of_items(api: &Value, schema: &Value) -> String {
    kind(api, &resolve(api, schema)["items"])
}

/// The schema that is meant: one may refer to another of the description.
fn resolve<'a>(api: &'a Value, schema: &'a Value) -> &'a Value {
    let place = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| api.pointer(place)).unwrap_or(schema)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
