//! The file of this program.

use crate::data::sha256_of_file;
use crate::error::{Error, Result};
use std::sync::OnceLock;

/// What tells this build of the program from others: the SHA-256 of its file, read once.
///
/// # Errors
/// If the file cannot be read.
pub fn sha256() -> Result<&'static str> {
    static SHA256: OnceLock<String> = OnceLock::new();
    if let Some(sum) = SHA256.get() {
        return Ok(sum);
    }
    let program = std::env::current_exe().map_err(Error::io("the running program"))?;
    let sum = sha256_of_file(program)?;
    Ok(SHA256.get_or_init(|| sum))
}
