//! One config, many values of a key: a contestant for every combination.

/// A key and the values that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The key, dotted: `model.d_hidden`.
    pub key: String,
    /// Its values, as in a config file.
    pub values: Vec<String>,
}

impl std::str::FromStr for Sweep {
    type Err = String;

    /// `KEY=VALUE,VALUE`; commas inside brackets, braces and quotes belong to a value.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no sweep; write key.path=value,value, as in model.d_hidden=128,256");
        let (key, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = split(values).into_iter().map(|value| value.trim().to_string()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        if let Some((_, value)) = values.iter().enumerate().find(|(place, value)| values[..*place].contains(value)) {
            return Err(format!("\"{text}\" has the value {value} twice"));
        }
        Ok(Self { key: key.trim().to_string(), values })
    }
}

/// Splits at commas that are not inside anything.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut is_quoted) = (vec![String::new()], 0_i32, false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' | '[' if !is_quoted => depth += 1,
            '}' | ']' if !is_quoted => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 && !is_quoted {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("there is a first part").push(c);
        }
    }
    parts
}

/// Every combination of the values: what stands behind the name, and the settings. Without sweeps, one with nothing set.
pub fn combinations(sweeps: &[Sweep]) -> Vec<(String, Vec<String>)> {
    let mut found = vec![(String::new(), Vec::new())];
    for sweep in sweeps {
        let short = sweep.key.rsplit('.').next().unwrap_or(&sweep.key);
        let longer = |(name, settings): &(String, Vec<String>)| {
            let of_value = |value: &String| {
                let mut settings = settings.clone();
                settings.push(format!("{}={value}", sweep.key));
                (format!("{name} {short}={}", plain(value)), settings)
            };
            sweep.values.iter().map(of_value).collect::<Vec<_>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}

/// A value without the punctuation of TOML: `{ kind = "dot" }` is `dot`.
fn plain(value: &str) -> String {
    let inner = value.trim_matches(['{', '}', '"', ' ']);
    let kind = inner.strip_prefix("kind").and_then(|rest| rest.trim_start().strip_prefix('='));
    kind.map_or(inner, str::trim_start).replace('"', "")
}
