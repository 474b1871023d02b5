//! The description of all endpoints, for programs (`/openapi.json`) and for people (`/docs`).

mod answers;
mod endpoints;
mod schema;

use crate::report::page::{Page, escape};
pub(in crate::serve) use endpoints::openapi;
use serde_json::Value;
use std::fmt::Write;

/// The page at `/docs`: the description, endpoint by endpoint.
pub(super) fn page() -> String {
    let api = openapi();
    let mut body = format!("<p>{}</p>\n", text(&api["info"]["description"]));
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            section(&mut body, &api, path, method, operation);
        }
    }
    Page {
        title: "Lookback: endpoints".to_owned(),
        body,
        style: include_str!("page.css").to_owned(),
        ..Page::default()
    }
    .render()
}

fn section(body: &mut String, api: &Value, path: &str, method: &str, operation: &Value) {
    let title = format!("{} {path}", method.to_uppercase());
    let _ =
        writeln!(body, "<section>\n<h2><code>{}</code></h2>\n<p>{}</p>", escape(&title), text(&operation["summary"]));
    let request = resolve(api, &operation["requestBody"]["content"]["application/json"]["schema"]);
    if request.is_object() {
        body.push_str("<h3>Fields</h3>\n");
        fields(body, api, request);
        if let Some(example) = operation["requestBody"]["content"]["application/json"].get("example") {
            let _ = writeln!(
                body,
                "<pre>curl http://127.0.0.1:5000{path} -H 'Content-Type: application/json' -d '{}'</pre>",
                escape(&example.to_string())
            );
        }
    }
    let answer = &operation["responses"]["200"];
    let _ = writeln!(body, "<h3>Answer</h3>\n<p>{}</p>", text(&answer["description"]));
    let mut schema = resolve(api, &answer["content"]["application/json"]["schema"]);
    if schema["type"] == "array" {
        schema = resolve(api, &schema["items"]);
    }
    fields(body, api, schema);
    body.push_str("</section>\n");
}

/// The fields of an object, one in a row.
fn fields(body: &mut String, api: &Value, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    body.push_str("<div class=\"panel\"><table>\n");
    for (name, property) in properties {
        let is_required = schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name));
        let name = if is_required { format!("<b>{}</b>", escape(name)) } else { escape(name) };
        let _ = writeln!(
            body,
            "<tr><td><code>{name}</code></td><td class=\"muted\">{}</td><td>{}</td></tr>",
            escape(&kind(api, property)),
            text(&property["description"])
        );
    }
    body.push_str("</table></div>\n");
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

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}
