//! `lookback reference`: pages of the book that are made from the program.

mod commands;
mod config;

use super::print;
use crate::error::{Error, Result};
use crate::files;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Writes commands.md and config.md; files of that name are replaced.

Examples:
  lookback reference --out docs/reference")]
pub(super) struct ReferenceArgs {
    /// The folder to write into.
    #[arg(short, long)]
    out: PathBuf,
}

pub(super) fn run(args: ReferenceArgs) -> Result<()> {
    std::fs::create_dir_all(&args.out).map_err(Error::io(&args.out))?;
    for (name, text) in [("commands.md", commands::page()), ("config.md", config::page())] {
        files::replace(&args.out.join(name), text.as_bytes())?;
    }
    print(&format!("{}: commands.md and config.md\n", args.out.display()))
}

/// A text as it stands in a cell of a Markdown table: on one line, without what would end the cell or begin a tag.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cell = String::new();
    let mut is_code = false;
    for c in line.chars() {
        is_code ^= c == '`';
        match c {
            '|' => cell += "\\|",
            '<' if !is_code => cell += "&lt;",
            c => cell.push(c),
        }
    }
    cell
}
