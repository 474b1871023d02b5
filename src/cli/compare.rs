//! `lookback compare`, and the hidden command that measures one cell of its table of costs.

use super::train::command_line;
use super::{CompareArgs, CompareCellArgs, print};
use crate::compare::measure::cell::{Cell, measure};
use crate::compare::{Options, Status, compare};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::models::Vocabularies;
use crate::report::comparison::{CostKind, files, words};
use crate::training::duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Seconds between two lines where standard error is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

pub(super) fn run(args: CompareArgs) -> Result<()> {
    let is_built_in = args.configs.is_empty() && args.runs.is_empty();
    let largest = args.max_cost_length.unwrap_or(if is_built_in { 512 } else { 4096 });
    let options = Options {
        configs: args.configs,
        set: args.set,
        sweeps: args.sweeps,
        runs: args.runs,
        out: args.out.unwrap_or_else(|| PathBuf::from("runs/compare")),
        backend: args.backend,
        seeds: args.seeds as usize,
        budget: args.budget,
        trials: args.tune,
        match_parameters: args.match_parameters,
        lengths: (!args.lengths.is_empty()).then_some(args.lengths),
        per_length: args.per_length as usize,
        cost_lengths: (4..=12).map(|power| 1 << power).filter(|length| *length <= largest).collect(),
        cell_seconds: args.cell_seconds,
        beam: args.beam.map(|beam| beam as usize),
        command: command_line(std::env::args().skip(1)),
    };
    if !(options.cell_seconds > 0.0 && options.cell_seconds.is_finite()) {
        return Err(Error::message(format!("--cell-seconds must be above 0, got {}", options.cell_seconds)));
    }
    let bar = Bar::new();
    let comparison = compare(&options, &|status| bar.show(status))?;
    bar.finish();
    let page = files::write(&comparison, &options.out)?;
    print(&format!("{}the report is {}\n", words::summary(&comparison), page.display()))
}

/// Progress over everything: a bar on a terminal, else a line now and then.
struct Bar {
    bar: Option<ProgressBar>,
    last: Mutex<(Option<Instant>, String)>,
}

impl Bar {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
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
            eprintln!("{:>3.0} %  {}{left}", 100.0 * status.done, status.what);
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
    let adapter = config.backend.open()?;
    let vocabularies =
        Vocabularies { source: args.source_vocabulary, target: args.target_vocabulary, shared: args.shared };
    let kind = if args.kind == "update" { CostKind::Update } else { CostKind::Decode };
    let measured = measure(&config, &Cell { kind, length: args.length, vocabularies }, &adapter)?;
    print(&(serde_json::to_string(&measured).expect("plain data") + "\n"))
}
