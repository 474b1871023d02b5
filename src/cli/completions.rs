//! `lookback completions`.

use super::{Cli, CompletionsArgs};
use crate::error::Result;
use clap::CommandFactory;

pub(super) fn run(args: CompletionsArgs) -> Result<()> {
    clap_complete::generate(args.shell, &mut Cli::command(), "lookback", &mut std::io::stdout());
    Ok(())
}
