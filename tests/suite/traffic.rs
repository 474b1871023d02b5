//! What an update and a step of decoding ask of a GPU: kernels that are launched, numbers that are read, work that is handed over.
//!
//! Each number is counted at the edge of the backend, by burn's own observer of launches and in what wgpu says of its calls. The counts are
//! those of one process, so that they are taken in a process of their own. The table is in `docs/results/speed.md`.

use crate::reliability::{is_thorough, sampled};
use crate::support::wgpu;
use crate::training::{BAHDANAU, TRANSFORMER, tiny, train_in};
use burn_cubecl::cubecl::logging::{LaunchObservation, LaunchObserver};
use lookback::backend::Backend;
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::models::{ModelConfig, TransformerConfig, Vocabularies};
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
        let difference = high[i] - low[i];
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

/// Greedy search for three sentences, up to `n` words.
fn steps(n: usize) {
    let device = Backend::Wgpu.open().unwrap().device;
    let config = TransformerConfig {
        d_model: 16,
        d_feed_forward: 24,
        n_heads: 2,
        n_encoder_layers: 1,
        n_decoder_layers: 1,
        ..TransformerConfig::default()
    };
    let vocabularies = Vocabularies { source: 10, target: 12, shared: false };
    let model = ModelConfig::Transformer(config).init(vocabularies, 1, &device).unwrap();
    let requests = [vec![4, 7, 5], vec![5, 6], vec![8]].map(Request::new);
    let decoding = DecodingConfig { max_len_factor: Some(0.0), max_len_extra: Some(n), ..DecodingConfig::default() };
    let found = decode(&model, &requests, &decoding, 3, |_| ());
    assert!(found.iter().any(|one| one[0].tokens.len() == n), "a model that was not trained writes on: {found:?}");
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
    print("update", each([4, 8], |n| update(TRANSFORMER, true, n, 1)));
    print("step", each([4, 8], steps));
    if !is_thorough() {
        return;
    }
    print("update of two parts", each([4, 8], |n| update(TRANSFORMER, true, n, 2)));
    print("update of an RNN", each([4, 8], |n| update(BAHDANAU, true, n, 1)));
    // For the table in the documents: with the kernels of dropout and Adam alone.
    print("written update", each([4, 8], |n| update(TRANSFORMER, false, n, 1)));
    print("written update of an RNN", each([4, 8], |n| update(BAHDANAU, false, n, 1)));
}

/// One read for an update and one for a step of all sentences; the rest is launched and handed over without waiting.
#[test]
fn an_update_and_a_step_read_once_from_a_gpu() {
    let Some(_) = wgpu() else { return };
    let mut alone = Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["traffic::counted_alone", "--exact", "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for (what, most) in sampled(MOST, 3) {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{what}: ")));
        let line = line.unwrap_or_else(|| panic!("nothing was counted of an {what}: {text}"));
        println!("{what}: {line}");
        let numbers = line.split(", ").map(|part| part.split(' ').next().unwrap().parse::<usize>().unwrap());
        let found: Vec<usize> = numbers.collect();
        assert_eq!(found[1], 1, "reads of an {what}");
        assert!(found[0] <= most[0] && found[2] <= most[1], "{what}: {line}, and no more than {most:?} were");
    }
}

/// Launches and submissions: on Mesa's llvmpipe 172 and 12, 315 and 19, 364 and 18, 32 and 4, now and then one more, since the longest
/// update is rounded up. Fewer are to be written down here and in `docs/results/speed.md`.
const MOST: [(&str, [usize; 2]); 4] =
    [("update", [177, 13]), ("update of two parts", [320, 21]), ("update of an RNN", [369, 19]), ("step", [33, 6])];
