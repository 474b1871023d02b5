//! The command line: one file for each command and its arguments, and what they share.

mod absent;
mod alignments;
mod attend;
mod compare;
mod completions;
mod config;
mod data;
mod decoding;
mod devices;
mod evaluate;
mod explain;
mod export;
mod generate;
mod import;
mod inspect;
mod lines;
mod man;
mod output;
mod place;
mod predict;
mod progress;
mod reference;
mod results;
mod schemas;
mod serve;
mod terminal;
mod train;
mod translate;
mod unknown;
mod values;
mod version;

use crate::backend::Adapter;
use crate::decoding::length_fault;
use crate::error::{Error, Result};
use crate::experiment::{LoadedModel, Run};
use crate::kernels::machine::InstructionSet;
use crate::models::{Autoregressive, EncoderOnlyConfig, Ensemble, LengthLimit, Model, ModelConfig};
use crate::notice::{self, Level};
use crate::trust::{self, Check};
use burn::module::Module;
use clap::{Parser, Subcommand};
use place::{CHECK, PlaceArgs};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Train, measure, explain and run attention models, from the RNN encoder-decoder to the Transformer.
#[derive(Parser, Debug)]
#[command(name = "lookback", version, long_version = version::long(), propagate_version = true, max_term_width = 100)]
#[command(after_help = "Examples:
  lookback train                                       the quick start, one to two minutes
  lookback train config/numbers-transformer.toml       English number words into French
  lookback translate --run runs/numbers-transformer 'one hundred'
  lookback evaluate --run runs/numbers-transformer --json
  lookback explain --run runs/numbers-transformer 'one hundred'
  lookback inspect attention --run runs/numbers-transformer --out maps.html")]
pub struct Cli {
    /// Threads of the CPU backends [default: one for each core].
    #[arg(long, global = true, value_name = "N", display_order = 900, help_heading = "Every command",
          value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Instructions that the operations of this program use at most on the CPU; burn's own take the best of the machine.
    #[arg(long, global = true, display_order = 900, help_heading = "Every command", default_value = "auto")]
    simd: SimdArg,
    /// Check the GPU's driver against flex once more, also where it was found to agree before.
    #[arg(long, global = true, display_order = 901, help_heading = "Every command")]
    recheck: bool,
    /// Take the GPU's driver as it is, unchecked.
    #[arg(long, global = true, display_order = 902, help_heading = "Every command", conflicts_with = "recheck")]
    no_check: bool,
    /// Print only warnings and errors on standard error, and no progress.
    #[arg(short, long, global = true, display_order = 903, help_heading = "Every command", conflicts_with = "verbose")]
    quiet: bool,
    /// Print more on standard error: the model, the device, times.
    #[arg(short, long, global = true, display_order = 904, help_heading = "Every command")]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List, generate and fetch data.
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Train a model, or go on training.
    Train(train::TrainArgs),
    /// Translate text, one sentence a line.
    Translate(translate::TranslateArgs),
    /// Answer translation requests over HTTP.
    Serve(serve::ServeArgs),
    /// Go on with a text, by a language model.
    Generate(generate::GenerateArgs),
    /// Answer for each token of a text, or once for all: tags, classes and numbers.
    Predict(predict::PredictArgs),
    /// Score a model on held-out data, or hypotheses against references.
    Evaluate(evaluate::EvaluateArgs),
    /// Walk through the decoding of a sentence, with the model's own numbers.
    Explain(explain::ExplainArgs),
    /// Compute one attention by hand: query, keys, scores, weights, context.
    Attend(attend::AttendArgs),
    /// Train, measure and compare models on long sequences, in one report.
    Compare(compare::CompareArgs),
    /// Measure one cell of a comparison's table of costs.
    #[command(hide = true)]
    CompareCell(compare::CompareCellArgs),
    /// Draw what a model attends to and what its states mean.
    #[command(subcommand)]
    Inspect(inspect::InspectCommand),
    /// Write a trained model for use elsewhere.
    #[command(subcommand)]
    Export(export::ExportCommand),
    /// Read a model of another program.
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// List the backends and devices, and check that they agree.
    Devices(devices::DevicesArgs),
    /// Compare a backend with flex, for the process that started this one.
    #[command(hide = true, name = trust::child::COMMAND)]
    CheckBackend(devices::CheckBackendArgs),
    /// Show, check and document configs.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print shell completions.
    Completions(completions::CompletionsArgs),
    /// Write manual pages.
    Man(man::ManArgs),
    /// Write JSON Schemas of what commands print with --json.
    Schemas(schemas::SchemasArgs),
    /// Write the pages of the book that list commands and config keys.
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
    /// Write the tables and sentences of the book that come from results.
    #[command(hide = true)]
    Results(results::ResultsArgs),
}

/// The values of `--simd`.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum SimdArg {
    /// The best of the machine.
    Auto,
    /// No vector instructions.
    Scalar,
    /// x86-64-v3: AVX2 and fused multiply-add.
    V3,
    /// x86-64-v4: AVX-512.
    V4,
}

impl SimdArg {
    fn instruction_set(self) -> Option<InstructionSet> {
        match self {
            Self::Auto => None,
            Self::Scalar => Some(InstructionSet::Scalar),
            Self::V3 => Some(InstructionSet::V3),
            Self::V4 => Some(InstructionSet::V4),
        }
    }
}

impl Cli {
    /// Runs the command.
    pub fn run(self) -> Result<()> {
        if let Some(set) = self.simd.instruction_set()
            && !set.cap()
        {
            let has = InstructionSet::available().into_iter().map(|set| set.to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::message(format!("--simd: this machine has no {set}; it has {has}")));
        }
        if let Some(threads) = self.threads {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into());
            pool.build_global().map_err(|error| Error::message(format!("--threads {threads}: {error}")))?;
        }
        notice::set_level(match (self.quiet, self.verbose) {
            (true, _) => Level::Quiet,
            (_, true) => Level::Verbose,
            _ => Level::Normal,
        });
        CHECK.get_or_init(|| match (self.recheck, self.no_check) {
            (true, _) => Check::Again,
            (_, true) => Check::Never,
            _ => Check::Once,
        });
        match self.command {
            Command::Data(command) => data::run(command),
            Command::Train(args) => train::run(args),
            Command::Translate(args) => translate::run(args),
            Command::Serve(args) => serve::run(args),
            Command::Generate(args) => generate::run(args),
            Command::Predict(args) => predict::run(args),
            Command::Evaluate(args) => evaluate::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Attend(args) => attend::run(args),
            Command::Compare(args) => compare::run(args),
            Command::CompareCell(args) => compare::cell(args),
            Command::Inspect(command) => inspect::run(command),
            Command::Export(command) => export::run(command),
            Command::Import(command) => import::run(command),
            Command::Devices(args) => devices::run(args),
            Command::CheckBackend(args) => devices::check_backend(args),
            Command::Config(command) => config::run(command),
            Command::Completions(args) => completions::run(args),
            Command::Man(args) => man::run(args),
            Command::Schemas(args) => schemas::run(args),
            Command::Reference(args) => reference::run(args),
            Command::Results(args) => results::run(args),
        }
    }
}

/// The models of one or more run folders, on one backend: the requested one, or that of the first.
///
/// # Errors
/// Also if their vocabularies differ: they could not write together.
fn load_all(runs: &[PathBuf], place: &PlaceArgs, checkpoint: Option<&str>) -> Result<Vec<LoadedModel>> {
    let mut loaded: Vec<LoadedModel> = Vec::new();
    let mut adapter = None;
    for path in runs {
        let run = Run::open(path)?;
        if !run.config()?.model.reads_source() {
            let message = "is a language model, which reads no source: `generate` goes on with text, `evaluate` measures it, \
                 `explain` and `inspect` look inside";
            return Err(Error::file(path, message));
        }
        refuse_numbers(&run)?;
        if adapter.is_none() {
            adapter = Some(place.open_for(&run, checkpoint)?);
        }
        let adapter = adapter.as_ref().expect("it was opened for the first");
        let model = load(&run, adapter, checkpoint)?;
        if loaded.first().is_some_and(|first| first.tokenizers.fingerprint() != model.tokenizers.fingerprint()) {
            let message =
                format!("has other vocabularies than {}; such models cannot write together", runs[0].display());
            return Err(Error::file(path, message));
        }
        let answer_len = |loaded: &LoadedModel| loaded.config.model.family().answer_len(2);
        if loaded.first().is_some_and(|first| answer_len(first) != answer_len(&model)) {
            let message =
                format!("has answers of other lengths than {}; such models cannot write together", runs[0].display());
            return Err(Error::file(path, message));
        }
        loaded.push(model);
    }
    Ok(loaded)
}

/// Refuses a model whose answers are no words.
fn refuse_numbers(run: &Run) -> Result<()> {
    if run.config()?.model.answers_with_numbers() {
        let message = "answers with numbers, to numbers: `predict` writes them, `evaluate` measures their errors";
        return Err(Error::file(run.path(), message));
    }
    Ok(())
}

/// The model of a run folder, with a source or without, at a checkpoint or at the best, on the backend that was asked for or that
/// it was trained on.
///
/// # Errors
/// Also if it answers with numbers.
fn load_any(path: &Path, place: &PlaceArgs, checkpoint: Option<&str>) -> Result<LoadedModel> {
    let run = Run::open(path)?;
    refuse_numbers(&run)?;
    load_run(&run, place, checkpoint)
}

fn load_run(run: &Run, place: &PlaceArgs, checkpoint: Option<&str>) -> Result<LoadedModel> {
    load(run, &place.open_for(run, checkpoint)?, checkpoint)
}

/// The model of a run on a device that has been opened.
fn load(run: &Run, adapter: &Adapter, checkpoint: Option<&str>) -> Result<LoadedModel> {
    let start = Instant::now();
    let loaded = run.load_model(adapter, checkpoint, notice::warn)?;
    let LoadedModel { model, checkpoint, updates, is_int8, .. } = &loaded;
    notice::detail(format_args!(
        "model    {}, checkpoint {checkpoint} after {updates} updates: {} parameters{}, read in {:.2} s",
        run.path().display(),
        model.num_params(),
        if *is_int8 { ", matrices in 8 bits" } else { "" },
        start.elapsed().as_secs_f64()
    ));
    notice::detail(format_args!("device   {} ({})", adapter.backend, adapter.name));
    Ok(loaded)
}

/// The language model of a run folder, as [`load_any`] takes all.
fn load_language_model(path: &Path, place: &PlaceArgs, checkpoint: Option<&str>) -> Result<LoadedModel> {
    let run = Run::open(path)?;
    let config = run.config()?;
    if config.model.reads_source() {
        let (what, _) = config.use_of("");
        return Err(Error::file(path, format!("is no language model: `{what}` is the command for it")));
    }
    load_run(&run, place, checkpoint)
}

/// The encoder-only model of a run folder, also one that answers with numbers.
fn load_encoder_only(
    path: &Path,
    place: &PlaceArgs,
    checkpoint: Option<&str>,
) -> Result<(LoadedModel, EncoderOnlyConfig)> {
    let run = Run::open(path)?;
    let config = run.config()?;
    let ModelConfig::EncoderOnly(model) = &config.model else {
        let (what, _) = config.use_of("");
        let message = format!(
            "is no encoder-only model, whose answers are tags, a class, hidden words or numbers: `{what}` is the command for it"
        );
        return Err(Error::file(path, message));
    };
    let model = model.clone();
    Ok((load_run(&run, place, checkpoint)?, model))
}

/// The models of an ensemble apart from what else was loaded with the first.
fn ensemble(mut loaded: Vec<LoadedModel>) -> (LoadedModel, Ensemble<Model>) {
    let models = loaded.iter().map(|loaded| loaded.model.clone()).collect();
    (loaded.swap_remove(0), Ensemble::new(models))
}

/// Writes results to standard output. `print!` would panic where the reader has gone.
fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::io("standard output"))
}

/// What is wrong with a given answer, in tokens, of a model whose answers have a length that the source decides.
fn answer_fault(model: &Model, n_source: usize, n_target: usize) -> Option<String> {
    let n = model.answer_len(n_source).filter(|n| *n != n_target)?;
    Some(match n == n_source {
        true => format!("has {n_target} tokens, and the text {n}: give a word for each token of the text"),
        false => format!("has {n_target} tokens, and this model answers with {n}"),
    })
}

/// Refuses sentences longer than the model can take; `fault` gets its index and the reason.
fn check_lengths<'a>(
    limit: Option<LengthLimit>,
    sentences: impl IntoIterator<Item = &'a Vec<u32>>,
    fault: impl FnOnce(usize, String) -> Error,
) -> Result<()> {
    let mut faults = sentences.into_iter().map(|sentence| length_fault(limit, sentence.len())).enumerate();
    match faults.find_map(|(i, message)| Some((i, message?))) {
        Some((i, message)) => Err(fault(i, message)),
        None => Ok(()),
    }
}
