//! `lookback completions`.

use super::{Cli, print};
use crate::error::Result;
use clap::{Args, CommandFactory};

#[derive(Args, Debug)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: clap_complete::Shell,
}

pub(super) fn run(args: CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lookback", &mut script);
    print(&String::from_utf8_lossy(&script))
}
