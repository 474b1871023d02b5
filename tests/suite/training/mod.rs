//! Training: exact resume, checkpoints, run folders. Here is what the modules share: a tiny experiment, the program, and
//! what a run folder says.

mod checkpoint;
mod ending;
mod fields;
mod horizon;
mod inside;
mod kept;
mod masked;
mod mpi;
mod old_run;
mod own_model;
mod own_ranks;
mod prepared;
mod race;
mod ranks;
mod resume;
mod run;
mod sampling;
mod series;
mod stopping;
mod tags;
mod tensorboard;
mod text;

use lookback::error::Result;
use lookback::experiment::{Config, TrainOptions, train};
use lookback::training::{Dashboard, Observer, Outcome, Stop};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder with the run `run`: a language model that knows its text well; tests must not write into it.
pub fn language_model() -> &'static Path {
    text::TRAINED.path()
}

/// A folder with the run `run`: a model of masked words; tests must not write into that.
pub fn masked_model() -> &'static Path {
    masked::FILLER.path()
}

/// An experiment of a second: copying up to five symbols. An epoch has six or seven micro-batches, so that 12 updates of
/// two micro-batches end four epochs.
const TINY: &str = r#"
seed = 5
backend = "flex"
[data]
task = { kind = "copy", n_symbols = 5, min_len = 1, max_len = 5 }
n_train = 50
n_valid = 7
n_test = 3
[tokenizer]
kind = "word"
shared = true
[training]
max_updates = 12
batch_tokens = 40
accumulation = 2
learning_rate = 0.01
warmup_updates = 3
validate_every = 4
save_every = 1
keep_checkpoints = 100
sample_size = 3
score = "sequence-accuracy"
"#;

/// The Transformer of the tiny experiment, with dropout everywhere.
pub const TRANSFORMER: &str = r#"
[model]
kind = "transformer"
d_model = 16
d_feed_forward = 24
n_heads = 2
n_encoder_layers = 1
n_decoder_layers = 1
dropout_rate = 0.2
attention_dropout_rate = 0.1
activation_dropout_rate = 0.1
"#;

/// Its Bahdanau RNN, with dropout.
pub const BAHDANAU: &str = r#"
[model]
kind = "rnn"
d_embedding = 8
d_hidden = 12
attention = { kind = "bahdanau", score = { kind = "additive", d_attention = 10 } }
readout = { kind = "deep-output", d_maxout = 6 }
dropout_rate = 0.2
"#;

/// The text of the tiny experiment with the model `model`.
pub fn tiny_text(model: &str) -> String {
    format!("{TINY}{model}")
}

/// The same, with these keys of `[data]` in the place of its task.
pub fn tiny_text_of(model: &str, keys: &str) -> String {
    let task = "task = { kind = \"copy\", n_symbols = 5, min_len = 1, max_len = 5 }";
    let text = tiny_text(model);
    assert!(text.contains(task), "the tiny experiment has another task");
    text.replace(task, keys)
}

/// The tiny experiment with the model `model`.
pub fn tiny(model: &str) -> Config {
    toml::from_str(&tiny_text(model)).expect("the tiny config has the right keys")
}

/// A file `tiny.toml` in `dir`; the path.
pub fn write_tiny(dir: &Path, model: &str) -> PathBuf {
    let path = dir.join("tiny.toml");
    std::fs::write(&path, tiny_text(model)).expect("the temporary folder can be written");
    path
}

/// Trains in this process.
pub fn train_in(run: &Path, config: &Config) -> Result<Outcome> {
    train_from(run, config, None)
}

/// Trains in this process, from the parameters of another run.
pub fn train_from(run: &Path, config: &Config, init_from: Option<&Path>) -> Result<Outcome> {
    let options =
        TrainOptions { init_from: init_from.map(Path::to_path_buf), command: "test".into(), ..TrainOptions::new(run) };
    train(config, &config.backend.open()?, &options)
}

/// Stops before the update after so many.
#[derive(Debug)]
struct StopAfter(usize, AtomicUsize);

impl Observer for StopAfter {
    fn should_stop(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

/// Trains in this process until `n_updates` of this stretch are made, as if interrupted then.
pub fn interrupted(run: &Path, config: &Config, n_updates: usize) -> Outcome {
    let observer = Arc::new(StopAfter(n_updates, AtomicUsize::new(0)));
    let options = TrainOptions { observer, ..TrainOptions::new(run) };
    let outcome = train(config, &config.backend.open().unwrap(), &options).unwrap();
    assert_eq!(outcome.stop, Stop::Interrupted);
    outcome
}

/// The program, about to run in `dir`.
pub fn lookback(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lookback"));
    command.current_dir(dir).args(arguments);
    command
}

/// What the program leaves behind.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; none after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Finished {
    /// What is wrong, of a program that was to fail.
    #[track_caller]
    pub fn failure(&self, arguments: &[&str]) -> String {
        assert_eq!(self.code, Some(1), "{arguments:?}: {}", self.stderr);
        assert_eq!(self.stdout, "", "a failure writes nothing to standard output");
        self.fault().to_string()
    }

    /// The last line of standard error, without the program's name: what is wrong.
    #[track_caller]
    pub fn fault(&self) -> &str {
        let line = self.stderr.lines().last().unwrap_or_default();
        assert!(!line.contains("panicked") && !self.stderr.contains("RUST_BACKTRACE"), "a panic: {}", self.stderr);
        line.strip_prefix("lookback: ").unwrap_or_else(|| panic!("no message of the program: {self:?}"))
    }
}

/// The program in `dir`, where no file can become larger than so many blocks of 512 bytes, as on a disk that is full.
#[cfg(unix)]
pub fn finish_on_full_disk(dir: &Path, blocks: u64, arguments: &[&str]) -> Finished {
    // The signal that comes with it is turned into an error.
    finish_within(dir, &format!("trap '' XFSZ; ulimit -f {blocks}"), arguments)
}

/// The program in `dir`, which may ask for so many gibibytes of memory, where a shell can set that limit.
pub fn finish_in_memory(dir: &Path, gibibytes: u64, arguments: &[&str]) -> Finished {
    if cfg!(unix) {
        finish_within(dir, &format!("ulimit -v {}", gibibytes << 20), arguments)
    } else {
        finish(dir, arguments)
    }
}

/// The program in `dir` under limits that a shell sets.
fn finish_within(dir: &Path, limits: &str, arguments: &[&str]) -> Finished {
    let script = format!("{limits}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.current_dir(dir).args(["-c", &script, env!("CARGO_BIN_EXE_lookback")]).args(arguments);
    shell.output().expect("there is a shell").into()
}

/// Runs the program in `dir` to its end.
pub fn finish(dir: &Path, arguments: &[&str]) -> Finished {
    lookback(dir, arguments).output().expect("the program starts").into()
}

/// Runs the program and expects it to succeed; what it wrote to standard output.
#[track_caller]
pub fn succeed(dir: &Path, arguments: &[&str]) -> String {
    let finished = finish(dir, arguments);
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}", finished.stderr);
    finished.stdout
}

/// Runs the program and expects it to fail with exit code 1; the message.
#[track_caller]
pub fn fail(dir: &Path, arguments: &[&str]) -> String {
    finish(dir, arguments).failure(arguments)
}

/// Asserts that `text` has every one of `parts`.
#[track_caller]
pub fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

/// A file of a run as text.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Copies a folder.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the temporary folder can be written");
    for entry in std::fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("the temporary folder can be written");
        }
    }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A run's config with the checksum that it ought to have.
pub fn sealed(config: &str) -> String {
    let (first, rest) = config.split_once('\n').expect("a first line");
    let hash = sha256(rest);
    let old = first.split(' ').nth(2).expect("# sha256 HASH ...");
    format!("{}\n{rest}", first.replace(old, &hash))
}

/// A manifest with the checksum that it ought to have.
pub fn rechecked(manifest: &str) -> String {
    let mut manifest: Value = serde_json::from_str(manifest).expect("a JSON object");
    manifest.as_object_mut().expect("an object").remove("check").expect("a manifest has a checksum of its own");
    let check = sha256(&manifest.to_string());
    manifest["check"] = check.into();
    manifest.to_string()
}

/// Changes the tokenizer of a run, and what its checkpoints and the pointers to them say of it.
pub fn change_tokenizer(run: &Path, change: impl FnOnce(String) -> String) {
    let file = run.join("tokenizer.json");
    let old = read(&file);
    let new = change(old.clone());
    std::fs::write(&file, &new).expect("the temporary folder can be written");
    change_manifests(run, |text| text.replace(&sha256(&old), &sha256(&new)));
}

/// Changes the manifests of a run's checkpoints, and what they and the pointers to them say of themselves.
pub fn change_manifests(run: &Path, change: impl Fn(String) -> String) {
    for name in checkpoints(run) {
        let manifest = run.join("checkpoints").join(name).join("manifest.json");
        let before = read(&manifest);
        let after = rechecked(&change(before.clone()));
        std::fs::write(&manifest, &after).expect("the temporary folder can be written");
        for pointer in ["best", "last"].map(|name| run.join(name)) {
            let text = read(&pointer).replace(&sha256(&before), &sha256(&after));
            std::fs::write(&pointer, text).expect("the temporary folder can be written");
        }
    }
}

/// What a run has logged; nothing where it has no log.
pub fn log(run: &Path) -> String {
    std::fs::read_to_string(run.join("log.txt")).unwrap_or_default()
}

/// The checkpoint that `best` or `last` names.
pub fn named(run: &Path, pointer: &str) -> String {
    read(run.join(pointer)).lines().next().unwrap_or_default().to_string()
}

/// The lines of `metrics.jsonl` without what depends on the clock and the machine.
pub fn metrics(run: &Path) -> Vec<Value> {
    let parse = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("each line is a JSON object");
        for key in ["seconds", "tokens_per_second", "sum_seconds", "memory_mib"] {
            line.as_object_mut().expect("an object").remove(key);
        }
        line
    };
    read(run.join("metrics.jsonl")).lines().map(parse).collect()
}

/// The numbers called `key` of the lines of one split, in order.
pub fn numbers(run: &Path, split: &str, key: &str) -> Vec<f64> {
    let lines = metrics(run).into_iter().filter(|line| line["split"] == split);
    lines.map(|line| line[key].as_f64().unwrap_or_else(|| panic!("no {key} in {line}"))).collect()
}

/// The names in `checkpoints/`, sorted.
pub fn checkpoints(run: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(run.join("checkpoints")).expect("a run has checkpoints");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Everything by which two finished runs may be told apart, apart from time: the bytes of model and optimizer, the state,
/// the pointers, the metrics.
#[track_caller]
pub fn assert_same_end(expected: &Path, found: &Path, what: &str) {
    assert_eq!(metrics(expected), metrics(found), "{what}: metrics.jsonl");
    for pointer in ["best", "last"] {
        assert_eq!(named(expected, pointer), named(found, pointer), "{what}: {pointer}");
    }
    let folders_of = |pointer| [expected, found].map(|run| run.join("checkpoints").join(named(expected, pointer)));
    for (pointer, file) in [
        ("best", "model.safetensors"),
        ("last", "model.safetensors"),
        ("last", "optimizer.safetensors"),
        ("last", "optimizer.json"),
    ] {
        let [ours, theirs] =
            folders_of(pointer).map(|folder| std::fs::read(folder.join(file)).expect("a whole checkpoint"));
        assert!(ours == theirs, "{what}: {file} of {pointer} differs");
    }
    let [ours, theirs] = folders_of("last").map(|folder| {
        let mut state: Value = serde_json::from_str(&read(folder.join("state.json"))).expect("a JSON object");
        state.as_object_mut().expect("an object").remove("seconds");
        state
    });
    assert_eq!(ours, theirs, "{what}: state.json");
}
