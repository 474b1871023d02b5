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
use crate::memory::of_status;
use crate::models::{ModelConfig, Vocabularies};
use crate::report::comparison::{Cost, CostKind};
use crate::training::Observer;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::path::Path;
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

/// What the cells of an entrant are measured with.
pub struct Bench<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// Tokens on each side.
    pub lengths: &'a [usize],
    /// Seconds for one cell.
    pub cell_seconds: f64,
    /// Sizes of the vocabularies.
    pub vocabularies: Vocabularies,
    /// Where tensors live.
    pub backend: Backend,
    /// On which device: its number among those of the backend, and its name.
    pub device: (usize, String),
    /// Who may stop it.
    pub observer: Arc<dyn Observer>,
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

    /// Every length of an entrant, together `work`; after one that was not finished, longer ones of its kind are left out.
    ///
    /// # Errors
    /// If a process cannot be started, or the observer stops it.
    pub fn costs(&self, entrant: &Entrant, progress: &mut Progress, work: f64) -> Result<Vec<Cost>> {
        let path = self.store.file(&format!("{}.cost.toml", entrant.name));
        files::replace(&path, self.config(entrant)?.to_toml().as_bytes())?;
        let mut rows = Vec::new();
        let model = &entrant.config.model;
        let kinds = [CostKind::Update, CostKind::Decode];
        let n_cells = kinds.len() * self.lengths.len();
        let of_cells = |n: usize| work * n as f64 / n_cells as f64;
        for kind in kinds {
            for (i, length) in self.lengths.iter().copied().enumerate() {
                check_stop(&*self.observer)?;
                progress.at(&format!("timing {}", entrant.name), 0.0);
                let steps = match kind {
                    CostKind::Update => model.family().training_steps(length),
                    CostKind::Decode => model.family().decoding_steps(length),
                };
                let state_bytes = model.family().state_bytes(length);
                let contestant = entrant.name.clone();
                let mut row =
                    Cost { contestant, kind, length, sequential_steps: steps, state_bytes, ..Cost::default() };
                let (outcome, is_found) = self.outcome(entrant, &path, kind, length)?;
                progress.finish(of_cells(1), is_found);
                match outcome {
                    Outcome::Measured(measured) => {
                        row.seconds = Some(measured.seconds);
                        row.peak_bytes = measured.peak_bytes;
                        row.base_bytes = measured.base_bytes;
                        row.load = measured.load;
                        rows.push(row);
                    }
                    Outcome::Unfinished(why) => {
                        row.unfinished = Some(why);
                        rows.push(row);
                        // Cells that are left out take no time.
                        progress.skip(of_cells(self.lengths.len() - i - 1));
                        break;
                    }
                }
            }
        }
        if n_cells == 0 {
            progress.skip(work);
        }
        Ok(rows)
    }

    /// What a cell came to, and whether it was there.
    fn outcome(&self, entrant: &Entrant, config: &Path, kind: CostKind, length: usize) -> Result<(Outcome, bool)> {
        let v = self.vocabularies;
        // What a GPU takes does not depend on them.
        let threads = if self.backend.is_host() { rayon::current_num_threads() } else { 1 };
        let config_text = self.config(entrant)?.to_toml();
        // Another version of the program or another device takes another time.
        let place = format!("{} {} {}", env!("CARGO_PKG_VERSION"), self.backend, self.device.1);
        let key = format!("{config_text} {v:?} {} {length} {} {threads} {place}", kind.name(), self.cell_seconds);
        let name = format!("{}.{}-{length}", entrant.name, kind.name());
        self.store.get(&name, &key, || {
            let program = std::env::current_exe().map_err(Error::io("the running program"))?;
            let mut command = Command::new(&program);
            command.arg("compare-cell").arg("--config").arg(config);
            command.args(["--device", &self.device.0.to_string()]);
            command.args(["--threads", &threads.to_string()]);
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
            let too_long = (seconds > self.cell_seconds).then(|| format!("took more than {} s", self.cell_seconds));
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
            Ok(measured) if ended.success() => Outcome::Measured(measured),
            _ => Outcome::Unfinished(format!("ended with {ended}")),
        })
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
            "Times were measured while the machine did other work: up to {most:.1} processes wanted to run on {cores} cores. Measure \
             on an idle machine before citing them."
        )
    })
}

/// Memory that processes may still have, where the system tells.
fn available_memory() -> Option<u64> {
    of_status(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn resident(process: u32) -> Option<u64> {
    of_status(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmRSS:")
}
