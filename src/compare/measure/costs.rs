//! Seconds and memory by length. Every cell is measured in a process of its own, so that its peak of memory is its own and one
//! that asks for too much can be ended without harm.

use super::cell::Measured;
use crate::backend::Backend;
use crate::compare::plan::Entrant;
use crate::compare::progress::{Progress, check_stop};
use crate::compare::store::Store;
use crate::error::{Error, Result};
use crate::experiment::Config;
use crate::files;
use crate::kernels::machine::InstructionSet;
use crate::memory::of_status;
use crate::models::{Autoregressive, LengthLimit, LengthLimits, ModelConfig, Vocabularies};
use crate::program;
use crate::report::comparison::{Cost, CostKind};
use crate::scoring::{Part, interval, variance};
use crate::training::Observer;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The part of the free memory that a cell may take.
const MEMORY_PART: f64 = 0.6;

/// What a cell came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Outcome {
    Measured(Measured),
    Unfinished(String),
}

/// What is said of a cell that was ended for its time begins with this.
const TOOK_TOO_LONG: &str = "took more than";

/// Visits of a cell, if its time allows: fewer have no interval worth the name.
pub const FEWEST_VISITS: usize = 3;
/// After so many visits a cell stays as uncertain as it is.
const MOST_VISITS: usize = 9;
/// A cell is visited until its interval reaches at most so far to each side of its mean, as a part.
const NARROW: f64 = 0.05;

/// What cells are measured with.
pub struct Bench<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// Tokens on each side.
    pub lengths: &'a [usize],
    /// Seconds for one cell, all visits together; the first may take all of them.
    pub cell_seconds: f64,
    /// Where tensors live.
    pub backend: Backend,
    /// On which device: its number among those of the backend, and its name.
    pub device: (usize, String),
    /// Who may stop it.
    pub observer: Arc<dyn Observer>,
}

/// An architecture whose time and memory are measured.
pub struct Timed<'a> {
    /// Whose it is.
    pub entrant: &'a Entrant,
    /// Sizes of the vocabularies.
    pub vocabularies: Vocabularies,
    /// The work of measuring it.
    pub work: f64,
}

/// What is known of a cell so far.
#[derive(Default)]
struct Visits {
    measured: Vec<Measured>,
    /// Why there is nothing.
    unfinished: Option<String>,
}

impl Visits {
    /// Whether another visit is worth its time.
    fn wants_more(&self, cell_seconds: f64) -> bool {
        if self.unfinished.is_some() {
            return false;
        }
        let n = self.measured.len();
        let Some(last) = self.measured.last() else { return true };
        let spent: f64 = self.measured.iter().map(|visit| visit.wall_seconds).sum();
        let is_narrow = || {
            let [low, mean, high] = self.seconds();
            high / mean - 1.0 <= NARROW && 1.0 - low / mean <= NARROW
        };
        spent + last.wall_seconds <= cell_seconds && n < MOST_VISITS && (n < FEWEST_VISITS || !is_narrow())
    }

    /// The geometric mean of the visits between the ends of its interval, which are infinitely far apart after a single visit.
    fn seconds(&self) -> [f64; 3] {
        let logs: Vec<f64> = self.measured.iter().map(|visit| visit.seconds.ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        if logs.len() < 2 {
            return [0.0, mean.exp(), f64::INFINITY];
        }
        let [low, high] = interval(mean, &[Part { variance: variance(&logs) / n, freedom: n - 1.0 }]);
        [low, mean, high].map(f64::exp)
    }
}

impl Bench<'_> {
    /// What an entrant is measured with: time and memory depend on its architecture, and on nothing else of its config.
    pub fn config(&self, entrant: &Entrant) -> Result<Config> {
        let mut config = Config::load(None, &[])?;
        config.backend = self.backend;
        config.model = entrant.config.model.clone();
        unify_dropout(&mut config.model);
        Ok(config)
    }

    /// Every length of all of `timed`. The cells of one length are visited in turns, so that what the machine does besides meets all
    /// of them alike; after one that was not finished, longer ones of its kind are left out.
    ///
    /// # Errors
    /// If a process cannot be started, or the observer stops it.
    pub fn costs(&self, timed: &[Timed], progress: &mut Progress) -> Result<Vec<Cost>> {
        for own in timed {
            let path = self.config_path(own.entrant);
            files::replace(&path, self.config(own.entrant)?.to_toml().as_bytes())?;
        }
        let limits = timed.iter().map(|own| self.limit(own)).collect::<Result<Vec<_>>>()?;
        let kinds = [CostKind::Update, CostKind::Decode];
        let n_cells = kinds.len() * self.lengths.len();
        let of_cells = |own: &Timed, n: usize| own.work * n as f64 / n_cells as f64;
        let mut rows: Vec<Vec<Cost>> = timed.iter().map(|_| Vec::new()).collect();
        for kind in kinds {
            let mut goes_on: Vec<bool> = timed.iter().map(|_| true).collect();
            for (i, length) in self.lengths.iter().copied().enumerate() {
                let mut cells: Vec<Visits> = timed.iter().map(|_| Visits::default()).collect();
                for visit in 1..=MOST_VISITS {
                    let wants = |(own, _): &(usize, &Timed)| goes_on[*own] && cells[*own].wants_more(self.cell_seconds);
                    let now: Vec<usize> = timed.iter().enumerate().filter(wants).map(|(own, _)| own).collect();
                    for own in now {
                        check_stop(&*self.observer)?;
                        progress.at(&format!("timing {}", timed[own].entrant.name), 0.0);
                        let (outcome, is_found) = match limits[own].filter(|limit| length + 1 > limit.len) {
                            Some(LengthLimit { key, len }) => {
                                let message = format!("{length} tokens and an end symbol are more than {key} = {len}");
                                (Outcome::Unfinished(message), true)
                            }
                            None => self.outcome(&timed[own], kind, length, visit)?,
                        };
                        match outcome {
                            Outcome::Measured(measured) => cells[own].measured.push(measured),
                            // What has been measured before stays.
                            Outcome::Unfinished(why) => cells[own].unfinished = Some(why),
                        }
                        // The first visits are what was planned; later ones cannot be foreseen.
                        if visit <= FEWEST_VISITS {
                            progress.finish(of_cells(&timed[own], 1) / FEWEST_VISITS as f64, is_found);
                        }
                    }
                }
                for (own, cell) in cells.into_iter().enumerate() {
                    if !goes_on[own] {
                        continue;
                    }
                    let is_unfinished = cell.measured.is_empty();
                    rows[own].push(row(&timed[own], kind, length, cell));
                    if is_unfinished {
                        goes_on[own] = false;
                        // Cells that are left out take no time.
                        progress.skip(of_cells(&timed[own], self.lengths.len() - i - 1));
                    }
                }
            }
        }
        if n_cells == 0 {
            timed.iter().for_each(|own| progress.skip(own.work));
        }
        Ok(rows.into_iter().flatten().collect())
    }

    /// The config of the cells of an entrant.
    fn config_path(&self, entrant: &Entrant) -> PathBuf {
        self.store.file(&format!("{}.cost.toml", entrant.name))
    }

    /// The most tokens that a model takes on both of its sides.
    fn limit(&self, timed: &Timed) -> Result<Option<LengthLimit>> {
        let adapter = self.backend.nth(self.device.0)?;
        let LengthLimits { source, target } =
            timed.entrant.config.model.blank(timed.vocabularies, &adapter.device)?.limits();
        Ok(source.into_iter().chain(target).min_by_key(|limit| limit.len))
    }

    /// What a cell came to, and whether it was there.
    fn outcome(&self, timed: &Timed, kind: CostKind, length: usize, visit: usize) -> Result<(Outcome, bool)> {
        let (entrant, v) = (timed.entrant, timed.vocabularies);
        // What a GPU takes does not depend on them.
        let threads = if self.backend.is_host() { rayon::current_num_threads() } else { 1 };
        let config_text = self.config(entrant)?.to_toml();
        // Another build of the program, other instructions or another device take another time.
        let set = InstructionSet::in_use();
        let place = format!("{} {} {} {} {}", program::sha256()?, self.backend, self.device.1, set.name(), machine());
        let key = format!("{config_text} {v:?} {} {length} {} {threads} {place}", kind.name(), self.cell_seconds);
        let name = format!("{}.{}-{length}.{visit}", entrant.name, kind.name());
        // What failed for want of memory, or was ended from outside, may not fail the next time.
        let lasts = |outcome: &Outcome| match outcome {
            Outcome::Measured(_) => true,
            Outcome::Unfinished(why) => why.starts_with(TOOK_TOO_LONG),
        };
        self.store.get_lasting(&name, &key, lasts, || {
            let program = std::env::current_exe().map_err(Error::io("the running program"))?;
            let mut command = Command::new(&program);
            command.arg("compare-cell").arg("--config").arg(self.config_path(entrant));
            command.args(["--device", &self.device.0.to_string()]);
            command.args(["--threads", &threads.to_string()]);
            if set != InstructionSet::best() {
                command.args(["--simd", set.name()]);
            }
            command.args(["--kind", kind.name(), "--length", &length.to_string()]);
            command.args(["--source-vocabulary", &v.source.to_string(), "--target-vocabulary", &v.target.to_string()]);
            if v.shared {
                command.arg("--shared");
            }
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let child = command.spawn().map_err(Error::io(&program))?;
            self.wait(child)
        })
    }

    /// Waits for a cell, and ends it if it takes too long or too much.
    fn wait(&self, mut child: Child) -> Result<Outcome> {
        let limit = available_memory().map(|bytes| (bytes as f64 * MEMORY_PART) as u64);
        let start = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait().map_err(Error::io("a measuring process"))? {
                break status;
            }
            let seconds = start.elapsed().as_secs_f64();
            let too_long = (seconds > self.cell_seconds).then(|| format!("{TOOK_TOO_LONG} {} s", self.cell_seconds));
            let bytes = resident(child.id());
            let too_much = limit.filter(|limit| bytes.is_some_and(|bytes| bytes > *limit));
            let too_much =
                too_much.map(|limit| format!("needed more than {:.1} GiB", limit as f64 / (1u64 << 30) as f64));
            let interrupted = check_stop(&*self.observer);
            if let Some(why) = too_long.or(too_much) {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(Outcome::Unfinished(why));
            }
            if interrupted.is_err() {
                let _ = child.kill();
                let _ = child.wait();
                interrupted?;
            }
            std::thread::sleep(Duration::from_millis(if seconds < 0.5 { 5 } else { 50 }));
        };
        if !ended.success() {
            // Ctrl-C in a terminal ends this process and its cell; whoever hears of it first, it is no measurement.
            std::thread::sleep(Duration::from_millis(200));
            check_stop(&*self.observer)?;
        }
        let mut text = String::new();
        if let Some(mut output) = child.stdout.take() {
            output.read_to_string(&mut text).map_err(Error::io("a measuring process"))?;
        }
        Ok(match serde_json::from_str(&text) {
            Ok(measured) if ended.success() => {
                Outcome::Measured(Measured { wall_seconds: start.elapsed().as_secs_f64(), ..measured })
            }
            _ => Outcome::Unfinished(format!("ended with {ended}")),
        })
    }
}

/// What a cell came to.
fn row(timed: &Timed, kind: CostKind, length: usize, cell: Visits) -> Cost {
    let model = timed.entrant.config.model.family();
    // Both numbers of one visit: what it added counts.
    let most = cell.measured.iter().max_by_key(|visit| visit.peak_bytes);
    let row = Cost {
        contestant: timed.entrant.name.clone(),
        kind,
        length,
        sequential_steps: match kind {
            CostKind::Update => model.training_steps(length),
            CostKind::Decode => model.decoding_steps(length),
        },
        state_bytes: model.state_bytes(length),
        visits: cell.measured.len(),
        ..Cost::default()
    };
    if cell.measured.is_empty() {
        return Cost { unfinished: cell.unfinished, ..row };
    }
    let [low, mean, high] = cell.seconds();
    Cost {
        seconds: Some(mean),
        interval: (row.visits > 1).then_some([low, high]),
        peak_bytes: most.and_then(|visit| visit.peak_bytes),
        base_bytes: most.and_then(|visit| visit.base_bytes),
        load: cell.measured.iter().filter_map(|visit| visit.load).reduce(f64::max),
        ..row
    }
}

/// One rate for all that is dropped: it takes as long whatever the rate is.
fn unify_dropout(model: &mut ModelConfig) {
    model.family_mut().map_dropout(|rate| if rate > 0.0 { 0.1 } else { 0.0 });
}

/// What to say of contestants that were not measured themselves; nothing where all were.
pub fn note_of_shared(costs: &[Cost]) -> Option<String> {
    let mut pairs: Vec<(&str, &str)> =
        costs.iter().filter_map(|cost| Some((cost.same_as.as_deref()?, cost.contestant.as_str()))).collect();
    pairs.dedup();
    let texts: Vec<String> =
        pairs.into_iter().map(|(measured, other)| format!("{other} has the numbers of {measured}")).collect();
    (!texts.is_empty()).then(|| {
        let texts = texts.join(", ");
        format!("Time and memory depend on the architecture alone and were measured once for each: {texts}.")
    })
}

/// What to say of times that were measured while the machine had more to do than it has cores; nothing otherwise.
pub fn note_of_load(costs: &[Cost]) -> Option<String> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let most = costs.iter().filter_map(|cost| cost.load).fold(0.0, f64::max);
    // Training has just ended, and counts for a minute.
    (most > cores as f64 + 1.0).then(|| {
        format!(
            "Times were measured while the machine did other work: up to {most:.1} processes wanted to run on {cores} cores. Before \
             citing them, remove the files `*.{}-*` and `*.{}-*` in the folder `measurements`, and repeat the command on an idle machine.",
            CostKind::Update.name(),
            CostKind::Decode.name()
        )
    })
}

/// The processor and the memory of this machine, where the system tells: other machines may share the folder, and take another time.
fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let processor = processors.lines().find(|line| line.starts_with("model name")).unwrap_or_default();
    format!("{processor}, {} bytes", of_status(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0))
}

/// Memory that processes may still have, where the system tells.
fn available_memory() -> Option<u64> {
    of_status(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn resident(process: u32) -> Option<u64> {
    of_status(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}
