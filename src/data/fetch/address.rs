//! Where files are fetched from: a server, or a folder of this machine.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// Checks that a base address is one that files can be fetched from.
///
/// # Errors
///
/// Says which addresses there are.
pub(super) fn check(base_url: &str) -> Result<()> {
    let is_known = ["http://", "https://"].iter().any(|scheme| base_url.starts_with(scheme));
    if is_known || local(base_url).is_some() {
        return Ok(());
    }
    let message = format!(
        "\"{base_url}\" is no address to fetch from; it has to begin with https:// or http://, or with file:/// for a folder \
         of this machine"
    );
    Err(Error::message(message))
}

/// The file that a `file://` address means (RFC 8089); none for other addresses.
pub(super) fn local(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    path.starts_with('/').then(|| PathBuf::from(decoded(path)))
}

/// A path whose `%20` and the like are the bytes that they stand for.
fn decoded(path: &str) -> String {
    let byte = |digits: &[u8]| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok();
    let bytes = path.as_bytes();
    let (mut found, mut i) = (Vec::new(), 0);
    while i < bytes.len() {
        let escaped = (bytes[i] == b'%').then(|| bytes.get(i + 1..i + 3).and_then(byte)).flatten();
        found.push(escaped.unwrap_or(bytes[i]));
        i += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&found).into_owned()
}
