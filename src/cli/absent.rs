//! Data that a config names and that are not there: where they come from.

use crate::data::{DataConfig, fetch};
use crate::error::Error;
use std::io::ErrorKind;

/// Says of a file of `data` that is not there how it gets there. Other errors stay what they are.
pub(super) fn absent(error: Error, data: &DataConfig) -> Error {
    let Some(dir) = &data.dir else { return error };
    match error {
        Error::Io { path, source } if source.kind() == ErrorKind::NotFound && path.starts_with(dir) => {
            let name = dir.file_name().and_then(|name| name.to_str());
            let fetched = name.filter(|name| fetch::dataset(name).is_ok()).map_or(String::new(), |name| {
                format!(
                    ": `lookback data fetch {name} --out {}` fetches them, in the form that the config reads",
                    dir.display()
                )
            });
            Error::file(
                path,
                format!("is not there{fetched}; if you have the data elsewhere, --set data.dir=FOLDER says where"),
            )
        }
        other => other,
    }
}
