//! What an update and a step of decoding ask of a GPU: kernels that are launched, numbers that are read, work that is handed over.
//!
//! Each number is counted at the edge of the backend, by burn's own observer of launches and in what wgpu says of its calls. The counts are
//! those of one process, so that they are taken in a process of their own. The table is in `docs/results/speed.md`.

use crate::reliability::is_thorough;
use crate::support::{closed_form_tensor, wgpu};
use crate::training::{BAHDANAU, TRANSFORMER, tiny, train_in};
use burn::tensor::{Device, Tensor};
use burn_cubecl::cubecl::logging::{LaunchObservation, LaunchObserver};
use lookback::backend::Backend;
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::kernels::linear_recurrence::Gating;
use lookback::kernels::matrix_memory::{MemoryConfig, Rule};
use lookback::kernels::recurrence::Reading;
use lookback::models::weights::to_vec;
use lookback::models::{ModelConfig, Vocabularies};
use lookback::ops::{Body, MemoryParameters, convolution, linear_recurrence, matrix_memory};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

static READS: AtomicUsize = AtomicUsize::new(0);
static SUBMISSIONS: AtomicUsize = AtomicUsize::new(0);

/// Launches by the name of the kernel, to see where they come from: `cargo test ... counted_alone -- --ignored --nocapture`.
static NAMES: Mutex<BTreeMap<&str, usize>> = Mutex::new(BTreeMap::new());

struct Counter;

impl LaunchObserver for Counter {
    fn launched(&self, kernel: &'static str) {
        *NAMES.lock().unwrap().entry(kernel).or_default() += 1;
    }
}

impl log::Log for Counter {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }

    fn log(&self, record: &log::Record) {
        let text = record.args().to_string();
        if text.starts_with("Buffer::map_async ") {
            READS.fetch_add(1, Ordering::Relaxed);
        } else if text == "Queue::submit" {
            SUBMISSIONS.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self) {}
}

fn counts() -> [usize; 3] {
    let launches = NAMES.lock().unwrap().values().sum();
    [launches, READS.load(Ordering::SeqCst), SUBMISSIONS.load(Ordering::SeqCst)]
}

/// What one of `n` pieces of work takes: the difference between `more` of them and `fewer`.
fn each([fewer, more]: [usize; 2], work: impl Fn(usize)) -> [usize; 3] {
    // What is compiled, allocated and tuned at the first time is not counted.
    work(more);
    let [low, high] = [fewer, more].map(|n| {
        NAMES.lock().unwrap().clear();
        let before = counts();
        work(n);
        let after = counts();
        [0, 1, 2].map(|i| after[i] - before[i])
    });
    [0, 1, 2].map(|i| {
        let difference = high[i].saturating_sub(low[i]);
        // Rounded up: work is also handed over when much of it has come together, wherever that falls.
        difference.div_ceil(more - fewer)
    })
}

/// Updates of a Transformer with dropout everywhere, or of an RNN; every sentence has four words, so that every update has the same shapes.
fn update(model: &str, is_fused: bool, n: usize, n_parts: usize) {
    let dir = TempDir::new().unwrap();
    let mut config = tiny(model);
    let text = "task = { kind = \"copy\", n_symbols = 5, min_len = 4, max_len = 4 }";
    config.data.task = toml::from_str::<toml::Table>(text).unwrap()["task"].clone().try_into().unwrap();
    config.backend = Backend::Wgpu;
    config.training.accumulation = n_parts;
    config.training.fused = is_fused;
    config.training.max_updates = n as u64;
    (config.training.validate_every, config.training.save_every) = (1000, 1000);
    // The validation at the end writes a word for every sentence, whatever the model has learnt.
    (config.decoding.max_len_factor, config.decoding.max_len_extra) = (Some(0.0), Some(1));
    train_in(&dir.path().join("run"), &config).unwrap();
}

/// A layer of this mixer behind a convolution, in a model that is a decoder alone.
fn decoder_of(mixer: &str) -> String {
    format!(
        "[model]\nkind = \"decoder-only\"\nd_model = 16\nd_feed_forward = 24\nn_heads = 2\nn_layers = 1\n\
         mixer = {{ kind = \"{mixer}\", convolution = 4 }}\npositions = {{ kind = \"none\" }}\ntied_embeddings = \"all\"\n"
    )
}

/// Greedy search for three sentences, up to `n` words, by a model whose first weights have this seed; whether it wrote as many for one.
fn steps(model: &str, seed: u64, n: usize) -> bool {
    let device = Backend::Wgpu.open().unwrap().device;
    let config = tiny(model).model;
    let is_shared = matches!(config, ModelConfig::DecoderOnly(_));
    let vocabularies = Vocabularies { source: if is_shared { 12 } else { 10 }, target: 12, shared: is_shared };
    let model = config.init(vocabularies, seed, &device).unwrap();
    let requests = [vec![4, 7, 5], vec![5, 6], vec![8]].map(Request::new);
    let decoding = DecodingConfig { max_len_factor: Some(0.0), max_len_extra: Some(n), ..DecodingConfig::default() };
    let found = decode(&model, &requests, &decoding, 3, |_| ());
    found.iter().any(|one| one[0].tokens.len() == n)
}

/// What a step takes, with the first weights that let a model that was not trained write on.
fn each_step(model: &str) -> [usize; 3] {
    let seed = (1..40).find(|seed| steps(model, *seed, 8)).expect("one of the models writes on");
    each([4, 8], |n| assert!(steps(model, seed, n)))
}

/// Operations of mixers: each is run once, with its backward pass unless it is only read.
fn mixing(name: &str, body: Body) {
    let device = Backend::Wgpu.open().unwrap().device;
    let is_learnt = name != "memory read";
    let device = if is_learnt { device.autodiff() } else { device };
    let [rows, len, d] = [3, 20, 16];
    fn leaf<const D: usize>(shape: [usize; D], device: &Device, is_learnt: bool) -> Tensor<D> {
        let leaf = closed_form_tensor("leaf", shape, 1.0, device);
        if is_learnt { leaf.require_grad() } else { leaf }
    }
    let output = match name {
        "memory" | "memory read" => {
            let vector = |width| leaf([width], &device, is_learnt);
            let rates = Some(leaf([rows, len, 4], &device, is_learnt));
            let parameters = MemoryParameters { rates, decay: Some(vector(2)), norm: Some(vector(8)) };
            let config = MemoryConfig { rule: Rule::GatedDelta, n_heads: 2, most_replaced: 2.0, epsilon: 1e-5 };
            let packed = leaf([rows, len, 4 * d], &device, is_learnt);
            matrix_memory(config, packed, parameters, None, Reading::default(), body).0
        }
        "recurrence" => {
            let (gates, start) = (leaf([rows, len, 2 * d], &device, true), Tensor::zeros([rows, d], &device));
            linear_recurrence(Gating::MinGru, gates, start, None, Reading::default(), body)
        }
        _ => {
            let (input, weight) = (leaf([rows, len, d], &device, true), leaf([4, d], &device, true));
            convolution(input, weight, Tensor::zeros([rows, 3, d], &device), body).0
        }
    };
    if is_learnt {
        drop(output.sum().backward());
    } else {
        drop(to_vec(output));
    }
}

/// A kernel's name without its modules.
fn short_name(name: &str) -> String {
    name.split('<').next().unwrap_or(name).rsplit("::").take(2).collect::<Vec<_>>().join(" of ")
}

/// The test below runs this in a process of its own.
#[test]
#[ignore = "is run by the test of what passes between the host and a GPU, alone in its process"]
fn counted_alone() {
    let Some(_) = wgpu() else { return };
    static COUNTER: Counter = Counter;
    log::set_logger(&COUNTER).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let _watching = LaunchObservation::new(Arc::new(Counter));
    let print = |what: &str, [launches, reads, submissions]: [usize; 3]| {
        let mut names: Vec<_> = NAMES.lock().unwrap().iter().map(|(name, n)| (*n, short_name(name))).collect();
        names.sort_by(|a, b| b.cmp(a));
        names.iter().for_each(|(n, name)| println!("{n:6} {name}"));
        println!("\n{what}: {launches} launches, {reads} reads, {submissions} submissions");
    };
    let is_for_limits = std::env::var_os(ONLY_LIMITED).is_some();
    print("update", each([4, 8], |n| update(TRANSFORMER, true, n, 1)));
    print("step", each_step(TRANSFORMER));
    if is_for_limits && !is_thorough() {
        // [`N_QUICK`] have been counted.
        return;
    }
    print("update of two parts", each([4, 8], |n| update(TRANSFORMER, true, n, 2)));
    print("update of an RNN", each([4, 8], |n| update(BAHDANAU, true, n, 1)));
    let [min_gru, gated_delta] = ["min-gru", "gated-delta"].map(decoder_of);
    print("update of a minGRU", each([4, 8], |n| update(&min_gru, true, n, 1)));
    print("update of a gated DeltaNet", each([4, 8], |n| update(&gated_delta, true, n, 1)));
    print("step of a gated DeltaNet", each_step(&gated_delta));
    if is_for_limits {
        return;
    }
    // For the table in the documents: most of the time goes into kernels of burn's operations, which it compares ours with.
    print("step of a minGRU", each_step(&min_gru));
    for name in ["memory read", "memory", "recurrence", "convolution"] {
        for body in [Body::Written, Body::Fused] {
            print(&format!("{name}, {body:?}"), each([1, 2], |n| (0..n).for_each(|_| mixing(name, body))));
        }
    }
    print("written update", each([4, 8], |n| update(TRANSFORMER, false, n, 1)));
    print("written update of an RNN", each([4, 8], |n| update(BAHDANAU, false, n, 1)));
}

/// Tells that process to count no more than what has a limit.
const ONLY_LIMITED: &str = "LOOKBACK_TESTS_ONLY_LIMITED";

/// One read for an update and one for a step of all sentences; the rest is launched and handed over without waiting.
#[test]
fn an_update_and_a_step_read_once_from_a_gpu() {
    let Some(_) = wgpu() else { return };
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["traffic::counted_alone", "--exact", "--ignored", "--nocapture"]);
    let output = alone.env(ONLY_LIMITED, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for (what, most) in &MOST[..if is_thorough() { MOST.len() } else { N_QUICK }] {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{what}: ")));
        let line = line.unwrap_or_else(|| panic!("nothing was counted of an {what}: {text}"));
        println!("{what}: {line}");
        let numbers = line.split(", ").map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap());
        let found: Vec<usize> = numbers.collect();
        assert_eq!(found[1], 1, "reads of an {what}");
        assert!(found[0] <= most[0] && found[2] <= most[1], "{what}: {line}, and no more than {most:?} were");
    }
}

/// How many of these are counted on a user's machine too.
const N_QUICK: usize = 2;

/// Launches and submissions: on Mesa's llvmpipe 167 and 12, 18 and 3, 306 and 19, 364 and 16, 93 and 7, 104 and 7, 26 and 3, now and then one more, since the longest
/// update is rounded up. Fewer are to be written down here and in `docs/results/speed.md`.
const MOST: [(&str, [usize; 2]); 7] = [
    ("update", [171, 13]),
    ("step", [19, 5]),
    ("update of two parts", [311, 21]),
    ("update of an RNN", [369, 19]),
    ("update of a minGRU", [97, 9]),
    ("update of a gated DeltaNet", [108, 9]),
    ("step of a gated DeltaNet", [27, 5]),
];
