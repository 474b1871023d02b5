//! `lookback import`.

use super::print;
use crate::error::Result;
use crate::experiment::Run;
use crate::interop::{import_bert, import_gpt2, import_marian};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum ImportCommand {
    /// Read GPT-2, or a model of the same architecture, as Hugging Face's transformers saves it.
    #[command(after_help = "DIR holds config.json, model.safetensors (or pytorch_model.bin) and tokenizer.json (or
vocab.json and merges.txt), as save_pretrained of GPT2LMHeadModel and of its tokenizer write
them. The model folder is one that generate, evaluate, export and train --init-from take.

Examples:
  lookback import gpt2 gpt2-small --run runs/gpt2
  lookback generate --run runs/gpt2 'The dog' --sample --top-k 40
  lookback evaluate --run runs/gpt2 --set 'data.text.test=[\"my.txt\"]'")]
    Gpt2(ImportArgs),
    /// Read BERT for masked words, or a model of the same architecture, as Hugging Face's transformers saves it.
    #[command(after_help = "DIR holds config.json, model.safetensors (or pytorch_model.bin) and tokenizer.json (or
vocab.txt), as save_pretrained of BertForMaskedLM and of its tokenizer write them. The model
folder is one that predict, evaluate, explain, inspect, export and train --init-from take.

Examples:
  lookback import bert bert-base --run runs/bert
  lookback predict --run runs/bert 'The dog looks <mask>.' --json --n-best 5
  lookback evaluate --run runs/bert --set 'data.text.test=[\"my.txt\"]'")]
    Bert(ImportArgs),
    /// Read a translator of MarianMT or OPUS-MT, as Hugging Face's transformers saves it.
    #[command(
        after_help = "DIR holds config.json, model.safetensors (or pytorch_model.bin), source.spm, target.spm and
vocab.json, as the folders of OPUS-MT and save_pretrained of MarianMTModel and MarianTokenizer
have them. The model folder is one that translate, evaluate, explain, inspect, serve, export and
train --init-from take. Beam and length penalty are those of generation_config.json; words and
tokens are those of transformers.

Examples:
  lookback import marian opus-mt-de-en --run runs/opus-de-en
  lookback translate --run runs/opus-de-en 'Ein Hund läuft.'
  lookback serve --run runs/opus-de-en --languages de-en"
    )]
    Marian(ImportArgs),
}

#[derive(Args, Debug)]
pub(super) struct ImportArgs {
    /// The folder to read.
    dir: PathBuf,
    /// The model folder to write; it must not exist or be empty.
    #[arg(short, long)]
    run: PathBuf,
}

pub(super) fn run(command: ImportCommand) -> Result<()> {
    let (n, args) = match command {
        ImportCommand::Gpt2(args) => (import_gpt2(&args.dir, &args.run)?, args),
        ImportCommand::Bert(args) => (import_bert(&args.dir, &args.run)?, args),
        ImportCommand::Marian(args) => (import_marian(&args.dir, &args.run)?, args),
    };
    let (what, command) = Run::open(&args.run)?.config()?.use_of(&args.run.display().to_string());
    print(&format!("{}: {n} parameters\n  {what:<11} {command}\n", args.run.display()))
}
