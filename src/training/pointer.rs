//! `best` and `last`: files that name a checkpoint.
//!
//! ```text
//! 000300
//! 5d41402abc4b2a76...    the SHA-256 of its manifest, so that no other checkpoint passes for it
//! ```

use super::manifest::{MANIFEST, hash, read as bytes_of};
use crate::error::{Error, Result};
use crate::files;
use std::path::Path;

/// Lets the file `path` name the checkpoint in `folder`: its name, and the SHA-256 of its manifest.
pub(super) fn write(path: &Path, folder: &Path) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let manifest = hash(&bytes_of(&folder.join(MANIFEST))?);
    files::replace(path, format!("{name}\n{manifest}\n").as_bytes())
}

/// The name in a pointer file; nothing where there is no such file.
///
/// # Errors
/// If it names no checkpoint in `checkpoints`, or another one than it did.
pub(super) fn read(path: &Path, checkpoints: &Path) -> Result<Option<String>> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = bytes_of(path)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let name = lines.next().unwrap_or_default().trim();
    // A name leads nowhere else.
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    if !is_name || !checkpoints.join(name).is_dir() {
        let message = format!("is damaged: {name:?} is no checkpoint in {}", checkpoints.display());
        return Err(Error::file(path, message));
    }
    let manifest = checkpoints.join(name).join(MANIFEST);
    match lines.next() {
        // Before format 4 there was nothing but the name. Files that somebody copied without their manifest are not checked.
        None => {}
        Some(_) if !manifest.exists() => {}
        Some(expected) if expected == hash(&bytes_of(&manifest)?) => {}
        Some(_) => {
            let message = format!("does not belong to the checkpoint {name}: the SHA-256 of its {MANIFEST} differs");
            return Err(Error::file(path, message));
        }
    }
    Ok(Some(name.to_string()))
}
