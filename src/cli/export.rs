//! `lookback export`.

use super::print;
use crate::error::Result;
use crate::notice;
use crate::training::{ExportOptions, Run, export};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum ExportCommand {
    /// Write the smallest folder that translate, evaluate, explain, inspect and train --init-from take.
    Run(ExportRunArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "The folder holds config.toml, tokenizer.json, model.safetensors, a model card (README.md) and manifest.json
with the SHA-256 of each file. It has no optimizer, so training cannot go on in it.

Examples:
  lookback export run --run runs/first --out first
  lookback export run --run runs/first --out first-int8 --int8
  lookback translate --run first-int8 --input test.de"
)]
pub(super) struct ExportRunArgs {
    /// The run folder.
    #[arg(long)]
    run: PathBuf,
    /// The folder to write; it must not exist or be empty.
    #[arg(long)]
    out: PathBuf,
    /// The checkpoint to take [default: the best].
    #[arg(long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// Store matrices in 8 bits: a quarter of the size, and translate in 8 bits on the CPU.
    #[arg(long)]
    int8: bool,
}

pub(super) fn run(command: ExportCommand) -> Result<()> {
    let ExportCommand::Run(args) = command;
    let run = Run::open(&args.run)?;
    let options = ExportOptions { int8: args.int8, checkpoint: args.checkpoint };
    let bytes = export(&run, &args.out, &options, notice::warn)?;
    let out = args.out.display();
    let size = if bytes < 1_000_000 {
        format!("{} kB", bytes.div_ceil(1000))
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    };
    let (what, command) = run.config()?.use_of(&out.to_string());
    print(&format!("{out}: {size}\n  {what:<11} {command}\n"))
}
