//! The body of a request: a JSON object or a form.

use super::fault::Fault;
use axum::http::StatusCode;
use percent_encoding::percent_decode;
use serde_json::{Map, Value};

/// The fields of a request by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields(Map<String, Value>);

/// One text, or a list of texts.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    /// The texts.
    pub(super) texts: Vec<String>,
    /// Whether they were given as a list, and are answered as one.
    pub(super) is_list: bool,
}

impl Texts {
    /// Where text `i` stands in the request.
    pub(super) fn place(&self, name: &str, i: usize) -> String {
        if self.is_list { format!("{name}[{i}]") } else { name.to_string() }
    }

    /// The answers to the texts, in the form in which the texts were given.
    pub(super) fn shape(&self, mut answers: Vec<Value>) -> Value {
        if self.is_list { Value::Array(answers) } else { answers.swap_remove(0) }
    }
}

impl Fields {
    /// Reads a body; an empty one has no fields.
    pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Self, Fault> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            _ if body.is_empty() => Ok(Self::default()),
            "application/json" => Self::of_json(body),
            "application/x-www-form-urlencoded" => Self::of_form(body),
            "" if body.trim_ascii_start().starts_with(b"{") => Self::of_json(body),
            "" => Self::of_form(body),
            other => {
                let message = format!(
                    "Content-Type is {other}; send application/json, or a form as application/x-www-form-urlencoded"
                );
                Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
            }
        }
    }

    fn of_json(body: &[u8]) -> Result<Self, Fault> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(Fault::bad("the body is JSON, but no object; send {\"q\": \"...\"}")),
            Err(error) => Err(Fault::bad(format!("the body is no valid JSON: {error}"))),
        }
    }

    /// Reads `name=value` pairs joined by `&`. A name that comes again makes a list.
    pub(super) fn of_form(form: &[u8]) -> Result<Self, Fault> {
        let mut fields = Map::new();
        for pair in form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()) {
            let middle = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            let name = decoded(&pair[..middle])?;
            // A browser sends every end of a line as two characters.
            let value = decoded(pair.get(middle + 1..).unwrap_or_default())?.replace("\r\n", "\n");
            let value = Value::String(value);
            match fields.get_mut(&name) {
                None => {
                    fields.insert(name, value);
                }
                Some(Value::Array(values)) => values.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
            }
        }
        Ok(Self(fields))
    }

    /// A text that may be missing; null is missing.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Fault::bad(format!("{name} is {}; give a string", kind(other)))),
        }
    }

    /// A text, or a list of texts.
    pub(super) fn texts(&self, name: &str) -> Result<Texts, Fault> {
        let wrong = |place: String, value: &Value| {
            Fault::bad(format!("{place} is {}; {name} is a string or a list of strings", kind(value)))
        };
        match self.0.get(name) {
            None | Some(Value::Null) => Err(Fault::bad(format!(
                "{name} is missing; send it as JSON with Content-Type: application/json, or as a form"
            ))),
            Some(Value::String(text)) => Ok(Texts { texts: vec![text.clone()], is_list: false }),
            Some(Value::Array(values)) => {
                let text = |(i, value): (usize, &Value)| {
                    value.as_str().map(str::to_owned).ok_or_else(|| wrong(format!("{name}[{i}]"), value))
                };
                let texts = values.iter().enumerate().map(text).collect::<Result<_, _>>()?;
                Ok(Texts { texts, is_list: true })
            }
            Some(other) => Err(wrong(name.to_string(), other)),
        }
    }

    /// The value of a field that may be missing; null is missing.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A list of texts; none if it is missing. One text is a list of one.
    pub(super) fn strings(&self, name: &str) -> Result<Vec<String>, Fault> {
        self.get(name).map_or(Ok(Vec::new()), |_| Ok(self.texts(name)?.texts))
    }

    /// A list of whole numbers; none if it is missing. Forms have them as text, one or several.
    pub(super) fn counts(&self, name: &str) -> Result<Vec<usize>, Fault> {
        let values = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => std::slice::from_ref(value),
        };
        let wrong = |value| Fault::bad(format!("{name} has {value}; give a list of whole numbers of at least 0"));
        values.iter().map(|value| whole(value).ok_or_else(|| wrong(value))).collect()
    }

    /// A number that may be missing.
    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.as_str().map_or(value.as_f64(), |text| text.trim().parse().ok());
        number.map(Some).ok_or_else(|| Fault::bad(format!("{name} is {value}; give a number")))
    }

    /// Whether something is wished; no if it is missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Fault> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            // As forms have it.
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(text == "true"),
            Some(value) => Err(Fault::bad(format!("{name} is {value}; give true or false"))),
        }
    }

    /// A whole number that may be missing; forms have it as text.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let message = || format!("{name} is {value}; give a whole number of at least 0");
        whole(value).map(Some).ok_or_else(|| Fault::bad(message()))
    }
}

/// A whole number; forms have it as text.
fn whole(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        value => value.as_u64().and_then(|number| usize::try_from(number).ok()),
    }
}

/// What a form means by `+` and `%`.
fn decoded(part: &[u8]) -> Result<String, Fault> {
    let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    match percent_decode(&spaced).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Fault::bad("the form is no valid UTF-8; encode text as UTF-8 before it is percent-encoded")),
    }
}

/// What a value is, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let fields = Fields::of_form(b"q=a+b%26c&q=%C3%A9&source=&x&alternatives=2").unwrap();
        assert_eq!(fields.texts("q").unwrap().texts, ["a b&c", "é"]);
        assert_eq!(fields.text("source").unwrap(), Some(""));
        assert_eq!(fields.text("x").unwrap(), Some(""));
        assert_eq!(fields.count("alternatives").unwrap(), Some(2));
        let flags = Fields::of_form(b"echo=true&stream=false&x=yes").unwrap();
        assert_eq!([flags.flag("echo").unwrap(), flags.flag("stream").unwrap()], [true, false]);
        assert!(flags.flag("x").is_err());
        assert!(Fields::of_form(b"q=%FF").is_err());
    }

    #[test]
    fn the_kind_of_body_is_that_of_its_content_type() {
        let json = br#"{"q": ["a", "b"]}"#;
        assert!(Fields::read("Application/JSON; charset=utf-8", json).unwrap().texts("q").unwrap().is_list);
        assert!(Fields::read("", json).unwrap().texts("q").unwrap().is_list);
        assert!(Fields::read("application/x-www-form-urlencoded", json).unwrap().texts("q").is_err());
        assert!(Fields::read("text/plain", json).is_err());
        assert!(Fields::read("application/json", b"[1]").is_err());
        assert!(Fields::read("application/json", b"{\"q\": \"\xff\"}").is_err());
    }
}
