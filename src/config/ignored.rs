//! Keys that nothing has read.
//!
//! serde refuses an unknown key by itself, but not beside a `kind` that has no keys of its own.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The path of the first key in `given` that is no part of what was `read` from it, and its place.
pub(super) fn ignored(given: &DeTable, read: &toml::Table) -> Option<(Vec<String>, Range<usize>)> {
    given.iter().find_map(|(key, value)| {
        let name: &str = key.get_ref();
        match (value.get_ref(), read.get(name)) {
            (_, None) => Some((vec![name.to_string()], key.span())),
            (DeValue::Table(given), Some(toml::Value::Table(read))) => {
                ignored(given, read).map(|(path, span)| ([vec![name.to_string()], path].concat(), span))
            }
            _ => None,
        }
    })
}
