//! `lookback compare`, and the hidden command that measures one cell of its table of costs.

mod processes;
mod redraw;

use super::place::{PlaceArgs, check as check_of_drivers};
use super::print;
use super::terminal::Terminal;
use super::train::{arguments, command_line};
use crate::compare::measure::cell::{Cell, measure};
use crate::compare::options::{CELL_SECONDS, LONGEST_COST, SHORTEST_COST};
use crate::compare::suite::{self, SuiteConfig};
use crate::compare::{Budget, Options, Status, Sweep, compare};
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::models::Vocabularies;
use crate::notice::{self, Level};
use crate::report::comparison::{CostKind, files, words};
use crate::report::suite::words as suite_words;
use crate::signal;
use crate::training::duration;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Seconds between two lines where standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

#[derive(Args, Debug)]
#[command(after_help = "Without CONFIG and --run the built-in comparison runs: one fixed context, attention and a
Transformer learn to copy letters, with three seeds each, in four to seven minutes on two cores.
Finished work is kept: the same command continues after an interruption.

Examples:
  lookback compare
  lookback compare config/reverse-rnn.toml config/reverse-bahdanau.toml --seeds 3 --out runs/reverse
  lookback compare --suite small --jobs 2
  lookback compare --run runs/first --run runs/second
  lookback compare config/reverse-rnn.toml --sweep model.d_hidden=64,128,256 --out runs/widths
  lookback compare --redraw runs/compare
  lookback compare a.toml b.toml --tune 6 --match-parameters --budget updates=2000")]
pub(super) struct CompareArgs {
    /// Experiments to train and compare.
    configs: Vec<PathBuf>,
    /// Override a key of every config: --set training.max_updates=500
    #[arg(short, long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
    /// Add a contestant for every config and value: --sweep model.d_hidden=128,256,512; several make a grid.
    #[arg(long = "sweep", value_name = "KEY.PATH=VALUE,VALUE")]
    sweeps: Vec<Sweep>,
    /// A finished run to compare; may be repeated. Runs that differ in nothing but the seed count as one model.
    #[arg(short, long = "run", value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Families of models by tasks: `small` (20 to 70 minutes on two cores), `long` (half a day to two days), or a file.
    #[arg(long, value_name = "NAME", conflicts_with_all = [
        "configs", "sweeps", "runs", "budget", "tune", "match_parameters", "lengths", "per_length", "max_cost_length",
    ])]
    suite: Option<String>,
    /// Of a suite, make this task only; may be repeated. Results of other tasks that the folder has stay, so that machines can each
    /// make a part: copy the results.json, suite.toml and task folders of one to the next.
    #[arg(long = "task", value_name = "NAME", requires = "suite")]
    tasks: Vec<String>,
    /// Of a suite, make this family only; may be repeated. Others whose results the folder has stay, as with --task, and are compared
    /// with it if their answers are right or wrong.
    #[arg(long = "family", value_name = "NAME", requires = "suite")]
    families: Vec<String>,
    /// Train and measure nothing: draw the report of finished results again. A results.json, or the folder that has it.
    #[arg(long, value_name = "PATH", conflicts_with_all = [
        "configs", "set", "sweeps", "runs", "suite", "tasks", "families", "backend", "device", "seeds", "budget", "tune", "match_parameters", "lengths",
        "per_length", "max_cost_length", "cell_seconds", "beam", "jobs",
    ])]
    redraw: Option<PathBuf>,
    /// The folder of the comparison [default: runs/compare, or runs/suite-NAME].
    #[arg(short, long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
    /// Train every config with so many seeds and report the spread [default: 1, 3 in the built-in comparison].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Training budget of every model: updates=N or minutes=M [default: as the configs say].
    #[arg(long)]
    budget: Option<Budget>,
    /// First try so many learning rates and dropouts, each config's own and then the same for every model, and take the
    /// best; a config without dropout stays without.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    tune: Option<u64>,
    /// Change widths until every model has as many parameters as the first, within 5 %.
    #[arg(long)]
    match_parameters: bool,
    /// Additional test lengths of generated tasks, in the task's unit [default: 1, 1.5, 2 and 4 times the longest of
    /// training].
    #[arg(long, value_delimiter = ',', value_name = "N,N,...")]
    lengths: Vec<usize>,
    /// Sentences of each of these lengths [default: 100].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    per_length: Option<u64>,
    /// The longest sentence whose time and memory are measured, from 16 on in powers of two; 0 for none.
    #[arg(long, default_value_t = LONGEST_COST, value_name = "N", value_parser = cost_length)]
    max_cost_length: usize,
    /// Seconds after which the measurement of one length is given up [default: 20].
    #[arg(long, value_name = "SECONDS")]
    cell_seconds: Option<f64>,
    /// Beam size of all models [default: as the first config says].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    beam: Option<u64>,
    /// Train and test in so many processes at once, each with its share of the threads; times are measured after that, by one. For
    /// small models on many cores, which one of them cannot keep busy.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Measure no times: those who share the work leave them to the one that started them.
    #[arg(long, hide = true)]
    without_times: bool,
    /// How many of them there are, which one that they start is told.
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    processes: u16,
    /// The command that started them, which is written down.
    #[arg(long, hide = true)]
    started_by: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct CompareCellArgs {
    /// The config of the model.
    #[arg(long)]
    config: PathBuf,
    /// What to measure.
    #[arg(long, value_parser = ["update", "decode"])]
    kind: String,
    /// Tokens on each side.
    #[arg(long)]
    length: usize,
    /// Entries of the source vocabulary.
    #[arg(long)]
    source_vocabulary: usize,
    /// Entries of the target vocabulary.
    #[arg(long)]
    target_vocabulary: usize,
    /// Whether they are one.
    #[arg(long)]
    shared: bool,
    /// The device of the config's backend.
    #[arg(long)]
    device: usize,
}

pub(super) fn run(args: CompareArgs) -> Result<()> {
    if let Some(results) = &args.redraw {
        let page = redraw::redraw(results, args.out.as_deref())?;
        return print(&format!("the report is {}\n", page.display()));
    }
    let suite = args.suite.as_deref().map(SuiteConfig::load).transpose()?;
    let is_built_in = args.configs.is_empty() && args.runs.is_empty();
    check(&args)?;
    let (folder, n_seeds) = match &suite {
        Some(suite) => (format!("runs/suite-{}", suite.name), suite.seeds as u64),
        None => ("runs/compare".into(), if is_built_in { 3 } else { 1 }),
    };
    let options = Options {
        configs: args.configs,
        only: Vec::new(),
        set: args.set,
        sweeps: args.sweeps,
        runs: args.runs,
        out: args.out.unwrap_or_else(|| PathBuf::from(folder)),
        backend: args.place.backend,
        device: args.place.device,
        check: check_of_drivers(),
        seeds: args.seeds.unwrap_or(n_seeds) as usize,
        budget: args.budget,
        trials: args.tune.unwrap_or(0) as usize,
        match_parameters: args.match_parameters,
        lengths: (!args.lengths.is_empty()).then_some(args.lengths),
        per_length: args.per_length.map(|n| n as usize),
        cost_lengths: Options::cost_lengths(if args.without_times { 0 } else { args.max_cost_length }),
        cell_seconds: args.cell_seconds.unwrap_or(CELL_SECONDS),
        beam: args.beam.map(|beam| beam as usize),
        processes: args.processes.into(),
        command: args.started_by.unwrap_or_else(|| command_line(arguments())),
        observer: Arc::new(Terminal),
    };
    let _listening = signal::listen();
    if args.jobs > 1 {
        let own = processes::own_arguments(std::env::args_os().skip(1));
        processes::share(&own, &options.command, args.jobs.into(), rayon::current_num_threads())?;
    }
    let bar = Bar::new();
    if let Some(suite) = suite {
        let part = suite::Part { tasks: args.tasks, families: args.families };
        let (found, page) = suite::run(&suite, &part, &options, &|status| bar.show(status))?;
        bar.finish();
        return print(&format!("{}\nthe report is {}\n", suite_words::summary(&found), page.display()));
    }
    let comparison = compare(&options, &|status| bar.show(status))?;
    bar.finish();
    let page = files::write(&comparison, &options.out)?;
    print(&format!("{}the report is {}\n", words::summary(&comparison), page.display()))
}

/// Refuses options that have no effect on what is compared.
fn check(args: &CompareArgs) -> Result<()> {
    let of_training = [
        ("--set", !args.set.is_empty()),
        ("--sweep", !args.sweeps.is_empty()),
        ("--seeds", args.seeds.is_some()),
        ("--budget", args.budget.is_some()),
        ("--tune", args.tune.is_some()),
    ];
    let is_trained = args.runs.is_empty() || !args.configs.is_empty();
    if let Some((option, _)) = of_training.into_iter().find(|(_, is_given)| *is_given && !is_trained) {
        return Err(Error::message(format!("{option} is for configs to train; every --run is trained already")));
    }
    // clap forgets what an option requires where another excludes that.
    let of_suites = [("--task", !args.tasks.is_empty()), ("--family", !args.families.is_empty())];
    if let Some((option, _)) = of_suites.into_iter().find(|(_, is_given)| *is_given && args.suite.is_none()) {
        return Err(Error::message(format!("{option} is a part of a suite; give --suite, or leave it out")));
    }
    if args.match_parameters && args.sweeps.is_empty() && args.configs.len() + args.runs.len() == 1 {
        return Err(Error::message("--match-parameters has no effect on a single model"));
    }
    if let Some((key, option)) = overruled(args) {
        let message = format!("{key} is set, and {option} sets it to something else; leave one of them out");
        return Err(Error::message(message));
    }
    match args.cell_seconds {
        Some(_) if args.max_cost_length == 0 => {
            Err(Error::message("--cell-seconds has no effect under --max-cost-length 0, which measures no times"))
        }
        Some(seconds) if !(seconds > 0.0 && seconds.is_finite()) => {
            Err(Error::message(format!("--cell-seconds must be above 0 and finite, got {seconds}")))
        }
        _ => Ok(()),
    }
}

/// A key that `--set` or `--sweep` names although an option decides its value, and that option.
fn overruled(args: &CompareArgs) -> Option<(String, &'static str)> {
    let set = args.set.iter().filter_map(|setting| setting.split('=').next()).map(str::trim);
    let swept = args.sweeps.iter().map(|sweep| sweep.key.as_str());
    let all: Vec<&str> = set.chain(swept.clone()).collect();
    // A value that is set is what tuning tries first, and what a width is matched from; each of several would be lost.
    let swept: Vec<&str> = swept.collect();
    let rules: [(&str, bool, &[&str], &[&str]); 5] = [
        (
            "--budget",
            args.budget.is_some(),
            &all,
            &["training.max_updates", "training.max_minutes", "training.patience"],
        ),
        ("--backend", args.place.backend.is_some(), &all, &["backend"]),
        ("--beam", args.beam.is_some(), &all, &["decoding.beam_size"]),
        ("--tune", args.tune.is_some(), &swept, &["training.learning_rate", "model.dropout_rate"]),
        ("--match-parameters", args.match_parameters, &swept, &["model.d_hidden", "model.d_model"]),
    ];
    rules.into_iter().filter(|(_, is_given, ..)| *is_given).find_map(|(option, _, given, keys)| {
        let key = given.iter().find(|key| keys.contains(key))?;
        Some((key.to_string(), option))
    })
}

fn cost_length(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(length) if length == 0 || length >= SHORTEST_COST => Ok(length),
        _ => Err(format!("must be 0 or at least {SHORTEST_COST}")),
    }
}

/// Overall progress: a bar on a terminal, otherwise a line at intervals.
struct Bar {
    bar: Option<ProgressBar>,
    last: Mutex<(Option<Instant>, String)>,
}

impl Bar {
    fn new() -> Self {
        let is_shown = std::io::stderr().is_terminal() && notice::is_said(Level::Normal);
        let bar = is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_bar} {percent:>3} %  {msg}").expect("the template is right"),
            );
            bar
        });
        Self { bar, last: Mutex::new((None, String::new())) }
    }

    fn show(&self, status: &Status) {
        let left = status.seconds_left.map_or(String::new(), |seconds| format!(", about {} left", duration(seconds)));
        if let Some(bar) = &self.bar {
            bar.set_position((1000.0 * status.done) as u64);
            bar.set_message(format!("{}{left}", status.what));
            return;
        }
        let mut last = self.last.lock().expect("nobody panics with the lock");
        if last.1 != status.what || last.0.is_none_or(|time| time.elapsed() > LINE_EVERY) {
            notice::say(format_args!("{:>3.0} %  {}{left}", 100.0 * status.done, status.what));
            *last = (Some(Instant::now()), status.what.clone());
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Measures one cell and prints it as JSON.
pub(super) fn cell(args: CompareCellArgs) -> Result<()> {
    let config = Config::load(Some(&args.config), &[])?;
    let adapter = config.backend.nth(args.device)?;
    let vocabularies =
        Vocabularies { source: args.source_vocabulary, target: args.target_vocabulary, shared: args.shared };
    let kind = if args.kind == "update" { CostKind::Update } else { CostKind::Decode };
    let measured = measure(&config, &Cell { kind, length: args.length, vocabularies }, &adapter)?;
    print(&(serde_json::to_string(&measured).expect("plain data") + "\n"))
}
