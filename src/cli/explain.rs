//! `lookback explain`.

mod text;

use super::decoding::search;
use super::place::PlaceArgs;
use super::{answer_fault, check_lengths, load_any, output, print, progress};
use crate::error::{Error, Result};
use crate::experiment::LoadedModel;
use crate::files;
use crate::models::Autoregressive;
use crate::report::explanation::terminal::{Look, render};
use crate::report::explanation::{Detail, Explanation, Given, Question, Selection, Stage, explain, html, notes};
use anstream::{AutoStream, ColorChoice};
use clap::Args;
use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::path::PathBuf;

/// Columns of a page that goes into a pipe, and the most of any page: longer lines are hard to read.
const PLAIN_WIDTH: usize = 100;
const MAX_WIDTH: usize = 120;

#[derive(Args, Debug)]
#[command(
    after_help = "Without --step every step is shown as long as that stays readable. Steps, layers and heads count
from 1.

Examples:
  lookback explain --run runs/first 'ein Hund läuft'
  lookback explain --run runs/first 'ein Hund läuft' --step 2 --layer 3 --head 1
  lookback explain --run runs/first 'ein Hund läuft' --target 'a cat runs'
  lookback explain --run runs/first 'ein Hund läuft' --html dog.html
  lookback explain --run runs/captions-decoder-only 'A man in a' --max-tokens 6
  lookback explain --run runs/captions-decoder-only 'A man' --target ' sleeps'"
)]
pub(super) struct ExplainArgs {
    /// The run folder.
    #[arg(short, long)]
    run: PathBuf,
    /// The sentence; for a language model the beginning of a text.
    source: String,
    /// Explain this translation, or this continuation of a text, instead of the model's own.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["beam", "max_tokens"])]
    target: Option<String>,
    /// Tokens that a language model writes at most; it stops at the end of a line [default: 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// Show this step with all its numbers.
    #[arg(long)]
    step: Option<usize>,
    /// Show the heads of this layer.
    #[arg(long)]
    layer: Option<usize>,
    /// Show this head.
    #[arg(long)]
    head: Option<usize>,
    /// Beam size of the translation; 1 is greedy search [default: the run's].
    #[arg(long)]
    beam: Option<usize>,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    /// Write a self-contained page to step through with the keyboard.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object with every number; --step, --layer and --head choose among them.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: ExplainArgs) -> Result<()> {
    output::check([args.html.as_ref()])?;
    let loaded = load_any(&args.run, &args.place, args.checkpoint.as_deref())?;
    let mut explanation = match loaded.config.model.reads_source() {
        true => of_sentence(&args, &loaded)?,
        false => text::explanation(&args, &loaded)?,
    };
    // The run by its name, and not by the path that led to it.
    let run = args.run.canonicalize().unwrap_or_else(|_| args.run.clone());
    let run = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    explanation.model = format!("{}; {run}, checkpoint {}", explanation.model, loaded.checkpoint);
    let selection = Selection { step: args.step, layer: args.layer, head: args.head };
    selection.check(&explanation)?;
    if let Some(path) = &args.html {
        files::replace(path, html::page(&explanation, &selection).as_bytes())?;
    }
    if args.json {
        let explanation = explanation.select(&selection);
        return print(&(serde_json::to_string(&explanation).expect("an explanation is plain data") + "\n"));
    }
    if let Some(path) = &args.html {
        let n = explanation.steps.len();
        return print(&format!(
            "{}: {n} steps; open it in a browser and go through them with the arrow keys\n",
            path.display()
        ));
    }
    print(&render(&explanation, &selection, &look()))
}

/// The explanation of a sentence and its translation.
fn of_sentence(args: &ExplainArgs, loaded: &LoadedModel) -> Result<Explanation> {
    if args.max_tokens.is_some() {
        let message = "--max-tokens is for language models: this one ends its answer by itself; leave it out";
        return Err(Error::message(message));
    }
    check(args, loaded)?;
    check_target_len(args, loaded)?;
    let decoding = search(&loaded.config.decoding, args.beam)?;
    let question = Question {
        source_text: args.source.trim(),
        target: args.target.as_deref().map(|text| Given::Text(text.trim())),
        decoding: &decoding,
        seed: loaded.config.seed,
        detail: detail(args),
    };
    let mut bars = Bars::default();
    let show = |stage, done, total| bars.show(stage, done, total);
    let mut explanation = explain(&loaded.model, &loaded.config.model, &loaded.tokenizers, &question, show);
    explanation.notes = notes(&loaded.tokenizers, &question, !loaded.config.model.has_masks(), &explanation);
    Ok(explanation)
}

/// Refuses a target of another length than the model's answers, where the source decides how long they are.
fn check_target_len(args: &ExplainArgs, loaded: &LoadedModel) -> Result<()> {
    let Some(target) = &args.target else { return Ok(()) };
    let n_source = loaded.tokenizers.source().encode(args.source.trim()).len();
    let n_target = loaded.tokenizers.target().encode(target.trim()).len();
    match answer_fault(&loaded.model, n_source, n_target) {
        Some(fault) => Err(Error::message(format!("--target {fault}"))),
        None => Ok(()),
    }
}

/// How much is computed: what is shown.
fn detail(args: &ExplainArgs) -> Detail {
    match args.step {
        _ if args.html.is_some() => Detail::Everything,
        Some(step) => Detail::Step(step),
        None if args.json => Detail::Everything,
        None => Detail::Overview,
    }
}

/// A bar for each stage of the work, one after the other.
#[derive(Default)]
struct Bars {
    current: Option<(Stage, ProgressBar)>,
}

impl Bars {
    fn show(&mut self, stage: Stage, done: usize, total: usize) {
        if self.current.as_ref().is_none_or(|(current, _)| *current != stage) {
            self.clear();
            let what = match stage {
                Stage::Translation => "translating",
                Stage::Writing => "writing",
                Stage::Steps => "decoder steps",
                Stage::Gradients => "gradients of target words",
            };
            let bar = if total == 0 { progress::spinner(what) } else { progress::bar(total as u64, what) };
            self.current = Some((stage, bar));
        }
        if let Some((_, bar)) = &self.current {
            bar.set_position(done as u64);
        }
    }

    fn clear(&mut self) {
        if let Some((_, bar)) = self.current.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Refuses texts that cannot be explained.
fn check(args: &ExplainArgs, loaded: &LoadedModel) -> Result<()> {
    let source = loaded.tokenizers.source().encode(args.source.trim());
    if source.is_empty() {
        return Err(Error::message("the source is empty; give a sentence: lookback explain --run DIR \"a sentence\""));
    }
    let limits = loaded.model.limits();
    check_lengths(loaded.config.decoding.source_limit(limits.source), [&source], |_, message| {
        Error::message(format!("the source {message}"))
    })?;
    if let Some(target) = &args.target {
        let target = loaded.tokenizers.target().encode(target.trim());
        check_lengths(limits.target, [&target], |_, message| Error::message(format!("the target {message}")))?;
    }
    Ok(())
}

/// What standard output can show: colours on a terminal unless `NO_COLOR` or `CLICOLOR=0` forbids them or `CLICOLOR_FORCE` asks for
/// them anywhere, as clap decides it for help and errors.
pub(super) fn look() -> Look {
    let is_terminal = std::io::stdout().is_terminal();
    let color = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let columns = terminal_size::terminal_size().filter(|_| is_terminal).map(|(width, _)| width.0 as usize);
    Look { width: columns.unwrap_or(PLAIN_WIDTH).clamp(40, MAX_WIDTH), color }
}
