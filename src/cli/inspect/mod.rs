//! `lookback inspect`: attention maps and the meaning of states.

mod attention;
mod faithfulness;
mod picture;
mod states;
mod tables;

pub(super) use attention::run as attention;
pub(super) use states::run as states;

use crate::error::{Error, Result};
use std::path::Path;

/// The ending of a file to write, one of `allowed`.
///
/// # Errors
/// If it has another one or none.
fn extension<'a>(path: &Path, allowed: &[&'a str]) -> Result<&'a str> {
    let found = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    allowed.iter().copied().find(|known| *known == found).ok_or_else(|| {
        let names: Vec<String> = allowed.iter().map(|name| format!(".{name}")).collect();
        Error::file(path, format!("has no ending that says what to write; there are {}", names.join(", ")))
    })
}

/// Writes a result and says so.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).map_err(Error::io(path))?;
    eprintln!("wrote {} ({})", path.display(), size(bytes.len()));
    Ok(())
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
