//! Lines for people, on standard error.
//!
//! Whoever reads them may have gone: the terminal is closed, the pipe has ended, the disk is full. Work goes on without them,
//! which is why nothing in this crate uses `eprintln!`, which panics then.

use std::fmt::Display;
use std::io::Write;

/// Writes a line.
pub fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes a line that warns.
pub fn warn(text: impl Display) {
    say(format_args!("warning: {text}"));
}
