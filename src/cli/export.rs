//! `lookback export`.

use super::print;
use crate::error::Result;
use crate::experiment::{ExportOptions, Run, export};
use crate::interop::{export_ctranslate2, export_hugging_face};
use crate::notice;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Subcommand, Debug)]
pub(super) enum ExportCommand {
    /// Write the smallest folder that translate, evaluate, explain, inspect and train --init-from take.
    #[command(
        after_help = "The folder holds config.toml, tokenizer.json, model.safetensors, a model card (README.md) and
manifest.json with the SHA-256 of each file. It has no optimizer, so training cannot go on in
it.

Examples:
  lookback export run --run runs/first --out first
  lookback export run --run runs/first --out first-int8 --int8
  lookback translate --run first-int8 --input test.de"
    )]
    Run(ExportArgs),
    /// Write a Transformer as CTranslate2 reads it.
    #[command(
        name = "ctranslate2",
        after_help = "The folder holds model.bin, config.json, the vocabularies, a model card (README.md) with the
lines of Python that translate, and tokenizer.json, as the library `tokenizers` reads it. It is
for Transformers with encoder and decoder whose layers mix by attention, with sinusoidal,
learned, rotary or no positions; others are refused with the reason.

Examples:
  lookback export ctranslate2 --run runs/first --out first-ct2
  lookback export ctranslate2 --run runs/first --out first-ct2-int8 --int8"
    )]
    CTranslate2(ExportArgs),
    /// Write a Transformer or a language model as Hugging Face's transformers reads it.
    #[command(
        name = "huggingface",
        after_help = "A Transformer with encoder and decoder becomes a MarianMTModel with norms after the
sublayers (post), and a PegasusForConditionalGeneration with norms before them (pre); its positions
are sinusoidal. A language model becomes a GPT2LMHeadModel (learned, sinusoidal or no positions), a
GPTNeoXForCausalLM (rotary positions), or a LlamaForCausalLM (rotary positions, norm = \"rms\",
activation = \"swiglu\"). All mixers are attention. Unsupported models are refused with the
reason.

The folder holds config.json, generation_config.json, model.safetensors, the tokenizers and a
model card (README.md) with the lines of Python that use it.

Examples:
  lookback export huggingface --run runs/first --out first-hf"
    )]
    HuggingFace(ExportArgs),
}

#[derive(Args, Debug)]
pub(super) struct ExportArgs {
    /// The run folder.
    #[arg(short, long)]
    run: PathBuf,
    /// The folder to write; it must not exist or be empty.
    #[arg(short, long)]
    out: PathBuf,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// Store matrices in 8 bits: a quarter of the size, and on the CPU products in 8 bits.
    #[arg(long)]
    int8: bool,
}

/// Writes the model of a run into a folder; tells the bytes.
type Write = fn(&Run, &Path, &ExportOptions, fn(String)) -> Result<u64>;

pub(super) fn run(command: ExportCommand) -> Result<()> {
    let (write, args): (Write, _) = match command {
        ExportCommand::Run(args) => (export, args),
        ExportCommand::CTranslate2(args) => (export_ctranslate2, args),
        ExportCommand::HuggingFace(args) => (export_hugging_face, args),
    };
    let run = Run::open(&args.run)?;
    let options = ExportOptions { int8: args.int8, checkpoint: args.checkpoint };
    let bytes = write(&run, &args.out, &options, notice::warn)?;
    let out = args.out.display();
    let size = if bytes < 1_000_000 {
        format!("{} kB", bytes.div_ceil(1000))
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    };
    // A folder for another program says in its README how it is used.
    let (what, command) = match Run::open(&args.out) {
        Ok(exported) => exported.config()?.use_of(&out.to_string()),
        Err(_) => ("use", format!("see {out}/README.md")),
    };
    print(&format!("{out}: {size}\n  {what:<11} {command}\n"))
}
