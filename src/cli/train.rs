//! `lookback train`.

mod series;

use super::absent::absent;
use super::decoding::{CAP, warn_of_cut};
use super::place::PlaceArgs;
use super::terminal::Terminal;
use super::{evaluate, print};
use crate::backend::{Adapter, Backend};
use crate::data::{Sentence, Split};
use crate::decoding::length_fault;
use crate::error::{Error, Result};
use crate::experiment::{
    Config, LoadedModel, QUICK_START, Run, TrainOptions, dataset, race, sample_of_masked, sample_of_text, train_on,
};
use crate::models::Autoregressive;
use crate::notice::{self, Level};
use crate::ranks::{self, Ranks};
use crate::report::columns::cut;
use crate::signal;
use crate::training::{Dashboard, Outcome, Stop, checkpoint, duration};
use clap::Args;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a rank keeps an error to itself that the first may have too.
const PATIENCE_WITH_THE_FIRST: Duration = Duration::from_secs(2);

/// Examples that are shown at the end.
const N_SHOWN: usize = 5;

/// Columns of a terminal that a shown source may take, and its translation.
const SHOWN_WIDTH: usize = 200;

/// Letters in which a name of a run may differ from one that was meant.
const MOST_MISTYPED: usize = 2;

#[derive(Args, Debug)]
#[command(after_help = "Without CONFIG the quick start runs: a small Transformer learns to reverse sequences.
An existing run folder is continued: repeat the same command after an interruption,
or name the folder alone with --run.

Examples:
  lookback train config/reverse-bahdanau.toml --set training.max_updates=2000
  lookback train config/multi30k-de-en-transformer.toml --backend flex --run runs/first
  lookback train my.toml --init-from runs/first")]
pub(super) struct TrainArgs {
    /// The experiment; without it, the quick start.
    config: Option<PathBuf>,
    /// Override a key of the config: --set training.learning_rate=0.001
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Where the tensors live [default: as the config says].
    #[arg(short, long)]
    backend: Option<Backend>,
    /// The device of that backend, as `devices` numbers them [default: the best]. Several, as in 0,1, share the parts of every
    /// update.
    #[arg(long, value_name = "N", requires = "backend", value_delimiter = ',')]
    device: Vec<usize>,
    /// The run folder [default: runs/NAME, NAME being the config's].
    #[arg(short, long)]
    run: Option<PathBuf>,
    /// How training is shown [default: auto, or none with --quiet].
    #[arg(long)]
    dashboard: Option<Dashboard>,
    /// Start from the parameters of a finished run with the same tokenizer.
    #[arg(long, value_name = "RUN")]
    init_from: Option<PathBuf>,
}

pub(super) fn run(args: TrainArgs) -> Result<()> {
    let ranks = ranks::of_launcher()?;
    let result = catch_unwind(AssertUnwindSafe(|| train_as(args, ranks.clone()))).unwrap_or_else(|panic| {
        if ranks.size() > 1 {
            // It has said what happened. The others would wait for this one forever.
            ranks.give_up();
        }
        resume_unwind(panic)
    });
    match &result {
        // All of them have saved and leave, or one does what is left to do while the others wait.
        Ok(()) | Err(Error::Interrupted(_)) => ranks::meet(&*ranks),
        // Nothing but the result of training is written there, for which nobody waits any more.
        Err(error) if error.is_broken_pipe() => ranks::meet(&*ranks),
        Err(error) if ranks.size() > 1 => {
            // What ails all of them is said by the first, which ends the others.
            if ranks.rank() > 0 {
                std::thread::sleep(PATIENCE_WITH_THE_FIRST);
            }
            notice::fail(format_args!("lookback: rank {}: {error}", ranks.rank()));
            ranks.give_up();
        }
        Err(_) => {}
    }
    result
}

/// A run beside `run`, which is not there, with a name so like it that it may have been meant.
fn similar_run(run: &Path) -> Option<PathBuf> {
    if run.exists() {
        return None;
    }
    let name = run.file_name()?.to_str()?;
    let folder = run.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let others = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let is_like = |other: &PathBuf| {
        let distance = other.file_name().and_then(|own| own.to_str()).map(|own| strsim::damerau_levenshtein(own, name));
        distance.is_some_and(|distance| distance <= MOST_MISTYPED) && Run::has_begun(other)
    };
    others.filter(is_like).min()
}

/// Trains as one of `ranks`; the first of them tells people of it.
fn train_as(args: TrainArgs, ranks: Arc<dyn Ranks>) -> Result<()> {
    let is_first = ranks.rank() == 0;
    // A run that is named alone goes on by its own config.
    let own = args.run.as_deref().filter(|run| args.config.is_none() && Run::has_begun(run));
    let mut config = match own {
        Some(run) => Run::open(run)?.config_with(&args.set)?,
        None => Config::load(args.config.as_deref(), &args.set)?,
    };
    let has_all_parts = own.is_some() && !Config::is_set("training.accumulation", &args.set);
    let is_quick_start = args.config.is_none() && own.is_none();
    config.backend = args.backend.unwrap_or(config.backend);
    let run = args.run.unwrap_or_else(|| default_run(args.config.as_deref()));
    let mut adapters = open(&config, &args.device, &*ranks)?;
    // Devices that are named share the work; those behind `auto` compete for it.
    let rivals = if args.device.is_empty() { adapters.split_off(1) } else { Vec::new() };
    let options = TrainOptions {
        run: run.clone(),
        dashboard: args.dashboard.unwrap_or_else(default_dashboard),
        has_all_parts,
        init_from: args.init_from,
        command: command_line(arguments()),
        observer: Arc::new(Terminal),
        rivals,
        ranks,
    };
    if is_quick_start && is_first {
        // Whose training it was that did not get as far as a config, nothing says.
        if run.join("lock").exists() && checkpoint::list(&run.join("checkpoints")).is_empty() {
            notice::warn(format_args!(
                "a training in {} had not begun yet, and left no config; this is the quick start, give a CONFIG to begin another",
                run.display()
            ));
        }
        if let Some(other) = similar_run(&run) {
            notice::warn(format_args!(
                "{} is a new run of the quick start; {} is there already and would go on",
                run.display(),
                other.display()
            ));
        }
        let about = QUICK_START.lines().take_while(|line| line.starts_with('#'));
        about.for_each(|line| notice::say(format_args!("{}", line.trim_start_matches(['#', ' ']))));
    }
    if config.data.task.is_some() {
        // What it ends with: too few sources for it are better found before.
        dataset::pairs_of(&config.data, Split::Test, config.seed)?;
    }
    let outcome = {
        let _listening = signal::listen();
        train_on(&config, &adapters, &options).map_err(|error| absent(error, &config.data))?
    };
    // The first says it.
    if !is_first {
        let is_interrupted = outcome.stop == Stop::Interrupted;
        return if is_interrupted { Err(Error::Interrupted(String::new())) } else { Ok(()) };
    }
    let unit = if config.model.answers_with_numbers() { "steps" } else { "target tokens" };
    notice::say(format_args!("{}", summary(&outcome, unit)));
    if outcome.stop == Stop::Interrupted {
        let message = match outcome.state.update {
            0 => format!("interrupted before the first update; to begin: {}", command_line(arguments())),
            _ => format!("interrupted and saved; to go on: {}", command_to_go_on()),
        };
        return Err(Error::Interrupted(message));
    }
    let trained = Run::open(&run)?;
    let loaded = trained.load_model(&race::of_run(&trained, &adapters[0], &options.rivals), None, notice::warn)?;
    if config.data.text.is_some() {
        return show_text(&run, &loaded);
    }
    if config.model.answers_with_numbers() {
        return series::show(&run, &loaded, &config);
    }
    // The run knows the length cap that was derived from the data.
    let decoding = &loaded.config.decoding;
    let sampled = format_args!("at most {}", config.training.sample_size);
    warn_of_cut(outcome.cut, sampled, "validation answers", CAP, decoding);
    let is_task = config.data.task.is_some();
    let split = if is_task { Split::Test } else { Split::Valid };
    let sentences = dataset::sentences_of(&config.data, split, config.seed)?;
    let mut sentences: Vec<Sentence> = sentences.into_iter().filter_map(Sentence::without_blanks).collect();
    if !is_task {
        sentences.truncate(N_SHOWN);
    }
    // Training is over and saved: what the model cannot read is no reason to fail.
    let n_all = sentences.len();
    let limit = decoding.source_limit(loaded.model.limits().source);
    let tokenizer = loaded.tokenizers.source();
    sentences.retain(|sentence| length_fault(limit, tokenizer.encode(&sentence.source).len()).is_none());
    if sentences.len() < n_all {
        notice::warn(format_args!(
            "{} of {n_all} sources are longer than the model reads, and are left out here",
            n_all - sentences.len()
        ));
    }
    let sources: Vec<&str> = sentences.iter().map(|sentence| sentence.source.as_str()).collect();
    let is_right = |sentence: &Sentence, text: &String| loaded.tokenizers.references(sentence).contains(text);
    let found = evaluate::translate_sources(&loaded.model, &loaded, &sources, decoding, loaded.config.seed, "testing");
    if is_task && !sentences.is_empty() {
        let right = sentences.iter().zip(&found.texts).filter(|(sentence, text)| is_right(sentence, text)).count();
        let accuracy = 100.0 * right as f64 / sentences.len() as f64;
        print(&format!("held-out test: {accuracy:.2} % of {} sequences right\n", sentences.len()))?;
        warn_of_cut(found.cut, sentences.len(), "answers", CAP, decoding);
    }
    for (sentence, translation) in sentences.iter().zip(&found.texts).take(N_SHOWN) {
        let verdict = match (is_task, is_right(sentence, translation)) {
            (true, true) => "  (right)",
            (true, false) => "  (wrong)",
            (false, _) => "",
        };
        let [source, translation] = [&sentence.source, translation].map(|text| cut(text, SHOWN_WIDTH));
        print(&format!("  {source}  ->  {translation}{verdict}\n"))?;
    }
    show_use(&run, &loaded.config)
}

/// The devices that this process trains on.
fn open(config: &Config, asked: &[usize], ranks: &dyn Ranks) -> Result<Vec<Adapter>> {
    let backend = config.backend;
    let place = |device| PlaceArgs { backend: Some(backend), device };
    if asked.len() > 1 && ranks.size() > 1 {
        let message =
            "several processes train together already: give --device once, or not at all, and each takes its own";
        return Err(Error::message(message));
    }
    if !asked.is_empty() {
        return asked.iter().map(|device| place(Some(*device)).open(backend)).collect();
    }
    // Processes on one machine take its devices in turn. Those of the CPU are one.
    let own = ranks::local_rank().filter(|_| ranks.size() > 1 && backend != Backend::Auto && !backend.is_host());
    place(own.map(|rank| rank % backend.adapters().len().max(1))).open_rivals(backend)
}

fn default_dashboard() -> Dashboard {
    if notice::is_said(Level::Normal) { Dashboard::Auto } else { Dashboard::None }
}

/// Says how the model is used.
fn show_use(run: &Path, config: &Config) -> Result<()> {
    let run = run.display().to_string();
    let (what, command) = config.use_of(&run);
    let evaluate = config.evaluation_of(&run);
    print(&format!("the run is in {run}\n  {what:<11} {command}\n  evaluate    {evaluate}\n"))
}

/// Shows what a model of text writes, or takes hidden words for, and how it is used.
fn show_text(run: &Path, loaded: &LoadedModel) -> Result<()> {
    let LoadedModel { model, tokenizers, config, .. } = loaded;
    let (what, text) = if config.model.has_masks() {
        let lines = dataset::lines_of(&config.data, Split::Valid)?;
        ("hidden words of the validation text", sample_of_masked(model, tokenizers, config, &lines))
    } else {
        ("a sample of its text", sample_of_text(model, tokenizers, config))
    };
    let indented: String = text.trim_end().lines().map(|line| format!("  {line}\n")).collect();
    print(&format!("{what}:\n{indented}"))?;
    show_use(run, &loaded.config)
}

fn default_run(config: Option<&Path>) -> PathBuf {
    let name =
        config.and_then(Path::file_stem).map_or("quick-start".into(), |stem| stem.to_string_lossy().into_owned());
    Path::new("runs").join(name)
}

/// The command that continues this run: the same one without the source of the first parameters.
fn command_to_go_on() -> String {
    let mut words = Vec::new();
    let mut given = arguments();
    while let Some(word) = given.next() {
        match word.as_str() {
            "--init-from" => drop(given.next()),
            _ if word.starts_with("--init-from=") => {}
            _ => words.push(word),
        }
    }
    command_line(words)
}

/// The arguments of this program, as text: what a name of a file has that is no Unicode is written down as well as it can be.
pub(super) fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned())
}

/// A command line, as a shell would read it again.
pub(super) fn command_line(arguments: impl IntoIterator<Item = String>) -> String {
    let quoted = |word: String| {
        let is_plain = word.chars().all(|c| c.is_alphanumeric() || "-_./=,:@%+".contains(c));
        if is_plain && !word.is_empty() { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = std::iter::once("lookback".into()).chain(arguments.into_iter().map(quoted)).collect();
    words.join(" ")
}

/// What training came to; `unit` is what is counted.
fn summary(outcome: &Outcome, unit: &str) -> String {
    let why = match outcome.stop {
        Stop::Updates => "all updates made",
        Stop::Minutes => "the time is up",
        Stop::Patience => "validation no longer gets better",
        Stop::Interrupted => "interrupted",
    };
    let state = &outcome.state;
    let rate = outcome.tokens as f64 / outcome.update_seconds.max(1e-9);
    if outcome.is_of_before() {
        return format!("nothing left to train: {why}, {} updates in {}", state.update, duration(state.seconds));
    }
    let skipped = if state.skipped > 0 { format!(", {} updates skipped", state.skipped) } else { String::new() };
    format!(
        "{why}: {} update{}, {} {unit}, {}, {rate:.0} {unit}/s in updates{skipped}",
        state.update,
        if state.update == 1 { "" } else { "s" },
        state.tokens,
        duration(state.seconds)
    )
}
