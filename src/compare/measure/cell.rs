//! One cell of the table of costs: a process of its own that makes one update, or writes one sentence, of one length.

use crate::backend::{Adapter, Backend};
use crate::data::batch::{Batch, Example, Padded};
use crate::data::tokenizer::{BOS, SPECIALS};
use crate::error::Result;
use crate::experiment::Config;
use crate::layers::Pass;
use crate::memory::of_this_process;
use crate::models::{Autoregressive, Model, Seq2Seq, Vocabularies};
use crate::pool::in_pool;
use crate::report::comparison::CostKind;
use crate::training::optimizer::{Adam, GradientSet};
use crate::training::{UpdatePart, gradients};
use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Repetitions, as long as they are quick.
const REPETITIONS: usize = 5;
/// Seconds after which there is no further repetition; a quick one is never the only one, as other work of the machine may
/// have come between. A cell is visited several times.
const ENOUGH: f64 = 0.5;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What.
    pub kind: CostKind,
    /// Tokens on each side.
    pub length: usize,
    /// Sizes of the vocabularies.
    pub vocabularies: Vocabularies,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The least of a few repetitions.
    pub seconds: f64,
    /// The most memory in use while it was done, where the system tells.
    pub peak_bytes: Option<u64>,
    /// Memory in use before.
    pub base_bytes: Option<u64>,
    /// Processes that ran or waited to run, on average over the last minute.
    #[serde(default)]
    pub load: Option<f64>,
    /// What the whole process took, as the one that waited for it saw.
    #[serde(default)]
    pub wall_seconds: f64,
}

/// Measures a cell with random weights: time and memory do not depend on their values.
///
/// # Errors
/// If the model cannot be made.
pub fn measure(config: &Config, cell: &Cell, adapter: &Adapter) -> Result<Measured> {
    let model = config.model.init(cell.vocabularies, 1, &adapter.device)?;
    let is_update = cell.kind == CostKind::Update;
    let mut worker = Worker { config, adapter, model: if is_update { model.train() } else { model } };
    let mut adam = Adam::new(config.training.optimizer.clone());
    let mut run = |length: usize, worker: &mut Worker| {
        in_pool(&adapter.device, || match cell.kind {
            CostKind::Update => worker.update(length, cell.vocabularies, &mut adam),
            CostKind::Decode => worker.decode(length, cell.vocabularies),
        })
    };
    // Threads, allocator and caches of the first time are nobody's cost.
    run(4, &mut worker);
    let base_bytes = of_this_process("VmRSS:");
    let mut seconds = f64::INFINITY;
    let start = Instant::now();
    for _ in 0..REPETITIONS {
        let before = Instant::now();
        run(cell.length, &mut worker);
        seconds = seconds.min(before.elapsed().as_secs_f64());
        if start.elapsed().as_secs_f64() > ENOUGH {
            break;
        }
    }
    let [peak_bytes, base_bytes] = [of_this_process("VmHWM:"), base_bytes].map(|bytes| memory(adapter.backend, bytes));
    Ok(Measured { seconds, peak_bytes, base_bytes, load: load(), wall_seconds: 0.0 })
}

/// The memory of this process as that of a model on a backend: what a GPU has in use, this process cannot tell, and its own memory is
/// not the model's.
pub fn memory(backend: Backend, of_process: Option<u64>) -> Option<u64> {
    of_process.filter(|_| backend.is_host())
}

struct Worker<'a> {
    config: &'a Config,
    adapter: &'a Adapter,
    model: Model,
}

impl Worker<'_> {
    /// Forward, backward and Adam on one pair.
    fn update(&mut self, length: usize, vocabularies: Vocabularies, adam: &mut Adam) {
        let example = Example { source: ids(length, vocabularies.source), target: ids(length, vocabularies.target) };
        let batch = Batch::new(&[&example], &self.adapter.device.clone().autodiff());
        let n_total = batch.n_target_tokens();
        let smoothing = self.config.training.label_smoothing;
        let part =
            UpdatePart { batch, n_total, smoothing, seed: 1, place: (0, 0), is_fused: true, replacement_rate: 0.0 };
        let (grads, _) = gradients(&self.model, &part);
        let set = GradientSet::new(&self.model, grads, self.adapter.backend.is_host());
        let norm = set.norm();
        self.model = adam.step(self.model.clone(), set, 1.0 / norm.max(1.0), 1e-4);
    }

    /// The encoder once and so many steps, each with the likeliest word of the last, wherever the sentence would end.
    fn decode(&mut self, length: usize, vocabularies: Vocabularies) {
        let device = self.model.device();
        let mut pass = Pass::inference().fused(true);
        let memory = self.model.encode(&Padded::sources([&ids(length, vocabularies.source)], &device), &mut pass);
        let mut state = self.model.start(&memory, 1);
        let mut previous: Tensor<1, Int> = Tensor::from_data(TensorData::new(vec![BOS as i32], [1]), &device);
        for _ in 0..length {
            let (logits, next) = self.model.step(previous, state, &memory, &mut pass);
            state = next;
            previous = logits.argmax(1).squeeze_dim(1);
        }
        // Reading it waits for all of it, also on a GPU.
        let _ = previous.into_data();
    }
}

/// Any words.
fn ids(length: usize, vocab_size: usize) -> Vec<u32> {
    let first = SPECIALS.len().min(vocab_size - 1);
    (0..length).map(|i| (first + i * 7 % (vocab_size - first)) as u32).collect()
}

/// The load of the machine, where the system tells.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}
