//! `lookback import`.

use super::print;
use crate::error::Result;
use crate::interop::import_gpt2;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum ImportCommand {
    /// Read GPT-2, or a model of its make, as Hugging Face's transformers saves it.
    #[command(
        after_help = "DIR holds config.json, model.safetensors and tokenizer.json (or vocab.json and merges.txt), as
save_pretrained of GPT2LMHeadModel and of its tokenizer write them. The model folder is one that
generate, evaluate, export and train --init-from take.

Examples:
  lookback import gpt2 gpt2-small --run runs/gpt2
  lookback generate --run runs/gpt2 'The dog' --sample --top-k 40
  lookback evaluate --run runs/gpt2 --set 'data.text.test=[\"my.txt\"]'"
    )]
    Gpt2(ImportArgs),
}

#[derive(Args, Debug)]
pub(super) struct ImportArgs {
    /// The folder to read.
    dir: PathBuf,
    /// The model folder to write; it must not exist or be empty.
    #[arg(long)]
    run: PathBuf,
}

pub(super) fn run(command: ImportCommand) -> Result<()> {
    let ImportCommand::Gpt2(args) = command;
    let n = import_gpt2(&args.dir, &args.run)?;
    let run = args.run.display();
    print(&format!("{run}: {n} parameters\n  generate    lookback generate --run {run} 'BEGINNING' --sample\n"))
}
