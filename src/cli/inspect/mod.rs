//! `lookback inspect`: attention maps and the meaning of states.

mod attention;
mod faithfulness;
mod picture;
mod states;
mod tables;

use crate::error::{Error, Result};
use crate::files;
use crate::notice;
use clap::Subcommand;
use std::path::Path;

#[derive(Subcommand, Debug)]
pub(super) enum InspectCommand {
    /// Attention maps: which source words each target word was made of, for every layer and head.
    Attention(attention::InspectAttentionArgs),
    /// Sentence vectors, token states and word vectors: which sentences and words the model holds to be alike.
    States(states::InspectStatesArgs),
}

pub(super) fn run(command: InspectCommand) -> Result<()> {
    match command {
        InspectCommand::Attention(args) => attention::run(args),
        InspectCommand::States(args) => states::run(args),
    }
}

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
    files::replace(path, bytes)?;
    notice::say(format_args!("wrote {} ({})", path.display(), size(bytes.len())));
    Ok(())
}

fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
