//! `lookback completions`.

use super::{Cli, CompletionsArgs, print};
use crate::error::Result;
use clap::CommandFactory;

pub(super) fn run(args: CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "lookback", &mut script);
    print(&String::from_utf8_lossy(&script))
}
