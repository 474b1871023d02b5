//! `lookback man`.

use super::{Cli, print};
use crate::error::{Error, Result};
use clap::builder::Resettable;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "There is a page for each command; pages of that name are replaced.

Examples:
  lookback man --out ~/.local/share/man/man1
  man lookback-translate")]
pub(super) struct ManArgs {
    /// The folder to write into, such as man1 of a folder of manual pages.
    #[arg(short, long)]
    out: PathBuf,
}

pub(super) fn run(args: ManArgs) -> Result<()> {
    let fault = Error::io(&args.out);
    // Pages are the same on every machine: without the instructions of this one.
    let command = Cli::command().long_version(Resettable::Reset);
    std::fs::create_dir_all(&args.out).and_then(|()| clap_mangen::generate_to(command, &args.out)).map_err(fault)?;
    print(&format!("{}: lookback.1 and a page for each command\n", args.out.display()))
}
