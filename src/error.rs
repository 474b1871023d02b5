//! The one error type of the library.
//!
//! Every variant says what is wrong, where (file, line, key or value) and what to do. Programming mistakes, such as tensors
//! of the wrong shape, panic instead; whatever a user can type, write or damage comes through here.

use std::path::{Path, PathBuf};

/// What went wrong with something that a user gave.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// One line of a file is not what it should be.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong and what to do.
        message: String,
    },
    /// A key of the configuration has a value that cannot be used.
    #[error("{key}: {message}")]
    Config {
        /// The key, dotted: `model.n_heads`.
        key: String,
        /// The value, the rule it breaks and what to do.
        message: String,
    },
    /// Anything else that a user can mend.
    #[error("{0}")]
    Message(String),
    /// The run was stopped by a signal after its state had been saved.
    #[error("{0}")]
    Interrupted(String),
}

/// The result of everything that reads what a user gave.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the reader of what was being written has gone, such as `head`, which has seen enough.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// An operating-system error about `path`, for use with `map_err`.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }
    }

    /// A fault of the file `path` as a whole.
    pub fn file(path: impl AsRef<Path>, message: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().to_path_buf(), message: message.into() }
    }

    /// A fault in line `line` (counted from 1) of the file `path`; `-` is standard input.
    pub fn line(path: impl AsRef<Path>, line: usize, message: impl Into<String>) -> Self {
        let path = if path.as_ref().as_os_str() == "-" { Path::new("<standard input>") } else { path.as_ref() };
        Self::Line { path: path.to_path_buf(), line, message: message.into() }
    }

    /// A configuration key whose value cannot be used.
    pub fn config(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Config { key: key.into(), message: message.into() }
    }

    /// A fault that no file or key stands for.
    pub fn message(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}
