//! Lines for people, on standard error.
//!
//! Whoever reads them may have gone: the terminal is closed, the pipe has ended, the disk is full. Work goes on without them,
//! which is why nothing in this crate uses `eprintln!`, which panics then.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Warnings, and why a command failed.
    Quiet,
    /// What a user waits for.
    Normal,
    /// Information for the user.
    Verbose,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Normal as u8);

/// How much is said from now on.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of that level are said.
pub fn is_said(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

fn write(level: Level, text: impl Display) {
    if is_said(level) {
        // Standard error has no buffer: each piece of a format would be a write of its own, and what other processes say to the
        // same terminal, or the launcher of several ranks, would come between them.
        let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
    }
}

/// Writes a line.
pub fn say(text: impl Display) {
    write(Level::Normal, text);
}

/// Writes a line that is shown with `-v`.
pub fn detail(text: impl Display) {
    write(Level::Verbose, text);
}

/// Writes a line that warns.
pub fn warn(text: impl Display) {
    write(Level::Quiet, format_args!("warning: {text}"));
}

/// Writes why a command has failed.
pub fn fail(text: impl Display) {
    write(Level::Quiet, text);
}
