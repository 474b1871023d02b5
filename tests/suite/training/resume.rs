//! An interrupted and resumed run ends as the uninterrupted one: the same bits, the same lines.

use super::*;
use crate::reliability::campaign;
use lookback::backend::Backend;
use lookback::data::stream;
use lookback::training::Stop;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Emulates a kill right after each checkpoint in turn: what came later is taken away, all but the metrics.
pub(super) fn resumes_from_every_checkpoint(model: &str, backend: Backend) {
    config_resumes_from_every_checkpoint(&Config { backend, ..tiny(model) });
}

fn config_resumes_from_every_checkpoint(config: &Config) {
    let dir = TempDir::new().unwrap();
    let whole = dir.path().join("whole");
    let outcome = train_in(&whole, config).unwrap();
    assert_eq!((outcome.stop, outcome.state.update), (Stop::Updates, 12));
    assert!(outcome.state.epoch >= 2, "the run has to go through several epochs, it has {}", outcome.state.epoch);
    let (names, means): (Vec<_>, Vec<_>) =
        checkpoints(&whole).into_iter().partition(|name| !name.starts_with("averaged-"));
    assert_eq!(names.len(), 12, "one checkpoint for each update: {names:?}");
    let tried = |run: &Path| -> Vec<String> {
        log(run).lines().filter(|line| line.starts_with("mean of 3 ")).map(String::from).collect()
    };
    let of_whole = tried(&whole);
    assert_eq!(of_whole.len(), usize::from(config.training.average_checkpoints == 3), "{of_whole:?}");
    let mut positions = Vec::new();
    for (i, name) in names.iter().enumerate().take(11) {
        let run = dir.path().join(name);
        copy_folder(&whole, &run);
        for later in names[i + 1..].iter().chain(&means) {
            std::fs::remove_dir_all(run.join("checkpoints").join(later)).unwrap();
        }
        let state: Value = serde_json::from_str(&read(run.join("checkpoints").join(name).join("state.json"))).unwrap();
        positions.push(state["position"].as_u64().unwrap());
        let outcome = train_in(&run, config).unwrap();
        assert_eq!(outcome.state.update, 12);
        assert_same_end(&whole, &run, &format!("{} from {name}", config.backend));
        assert_eq!(checkpoints(&whole), checkpoints(&run), "{} from {name}", config.backend);
        // The log that was copied has the line of the whole run.
        assert_eq!(tried(&run), [&of_whole[..], &of_whole].concat(), "{} from {name}", config.backend);
    }
    assert!(
        positions.contains(&0) && positions.iter().any(|p| *p > 0),
        "both ends and middles of epochs: {positions:?}"
    );
}

#[test]
fn a_transformer_goes_on_bit_by_bit_from_every_checkpoint() {
    resumes_from_every_checkpoint(TRANSFORMER, Backend::Flex);
}

#[test]
fn a_bahdanau_rnn_goes_on_bit_by_bit_from_every_checkpoint() {
    resumes_from_every_checkpoint(BAHDANAU, Backend::Flex);
}

#[test]
fn a_mean_of_checkpoints_and_updates_of_three_parts_are_gone_on_with() {
    let mut config = tiny(TRANSFORMER);
    (config.training.average_checkpoints, config.training.accumulation) = (3, 3);
    config_resumes_from_every_checkpoint(&config);
}

#[test]
fn on_ndarray_both_models_go_on_bit_by_bit_from_every_checkpoint() {
    resumes_from_every_checkpoint(TRANSFORMER, Backend::Ndarray);
    resumes_from_every_checkpoint(BAHDANAU, Backend::Ndarray);
}

#[test]
fn a_run_stopped_by_the_clock_again_and_again_ends_as_one_that_was_not() {
    let dir = TempDir::new().unwrap();
    let (whole, pieces) = (dir.path().join("whole"), dir.path().join("pieces"));
    let mut config = tiny(BAHDANAU);
    // No checkpoint but those of validations and stops.
    config.training.save_every = 1000;
    train_in(&whole, &config).unwrap();
    let (mut seconds, mut budget, mut n_stops) = (0.0, 1e-3, 0);
    loop {
        config.training.max_minutes = Some((seconds + budget) / 60.0);
        let outcome = train_in(&pieces, &config).unwrap();
        if outcome.stop == Stop::Updates {
            break;
        }
        assert_eq!(outcome.stop, Stop::Minutes);
        n_stops += 1;
        seconds = outcome.state.seconds;
        budget *= 1.5;
        assert!(n_stops < 60, "the clock stops the run before it has made {} updates", outcome.state.update + 1);
    }
    assert!(n_stops > 0, "the first stretch was too long to be stopped");
    assert_same_end(&whole, &pieces, "after stops by the clock");
}

/// A run of a few seconds for the program: longer than it takes to start.
const LONG: [&str; 8] = [
    "--set",
    "training.max_updates=120",
    "--set",
    "training.save_every=3",
    "--set",
    "training.validate_every=10",
    "--set",
    "training.keep_checkpoints=2",
];

fn long_run(run: &str) -> Vec<&str> {
    [&["train", "tiny.toml", "--run", run][..], &LONG].concat()
}

fn start(dir: &Path, arguments: &[&str]) -> Child {
    lookback(dir, arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// A run that is killed: its model, and what it does besides.
struct Killed {
    model: &'static str,
    settings: &'static [&'static str],
    /// Whether it starts from the parameters of another run.
    is_fine_tuned: bool,
}

/// One for each round: the first is the test, the others belong to a campaign.
const KILLED: [Killed; 5] = [
    Killed { model: TRANSFORMER, settings: &[], is_fine_tuned: false },
    Killed { model: BAHDANAU, settings: &["--backend", "ndarray"], is_fine_tuned: false },
    Killed {
        model: TRANSFORMER,
        settings: &["--backend", "ndarray", "--set", "training.average_checkpoints=3"],
        is_fine_tuned: false,
    },
    Killed {
        model: BAHDANAU,
        settings: &["--set", "tokenizer={ kind = \"bpe\", vocab_size = 20, shared = true }"],
        is_fine_tuned: false,
    },
    Killed { model: TRANSFORMER, settings: &["--set", "training.accumulation=3"], is_fine_tuned: true },
];

/// Twenty kills, ten times as many in a campaign.
#[test]
fn a_run_killed_at_random_moments_ends_as_one_that_was_not() {
    let n_rounds = campaign().div_ceil(2) as u64;
    for (round, killed) in (0..n_rounds).zip(KILLED.iter().cycle()) {
        check_kills(round, killed);
    }
    println!("{} kills: the same bytes in the end, {n_rounds} of {n_rounds} runs", 20 * n_rounds);
}

fn check_kills(round: u64, killed: &Killed) {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), killed.model);
    if killed.is_fine_tuned {
        succeed(dir.path(), &["train", "tiny.toml", "--run", "first", "--set", "training.max_updates=2"]);
    }
    let command = |run| {
        // A run that has made an update has its parameters.
        let has_begun = dir.path().join(run).join("last").is_file();
        let from: &[&str] = if killed.is_fine_tuned && !has_begun { &["--init-from", "first"] } else { &[] };
        [&long_run(run)[..], killed.settings, from].concat()
    };
    let start_time = Instant::now();
    succeed(dir.path(), &command("whole"));
    let whole_seconds = start_time.elapsed().as_secs_f64();
    let lines =
        |run| std::fs::read_to_string(dir.path().join(run).join("metrics.jsonl")).unwrap_or_default().lines().count();
    let whole_lines = lines("whole") as f64;
    let (mut n_killed, mut n_begun) = (0, 0);
    for i in 0..20 {
        let mut rng = stream(9 + round, "kill", i);
        let enough = lines("killed") + (rng.unit() * 2.0 * whole_lines / 25.0) as usize;
        let mut child = start(dir.path(), &command("killed"));
        // After so much of the run, whatever else the machine does, and somewhere inside what comes next.
        let deadline = Instant::now() + Duration::from_secs(60);
        while lines("killed") < enough && child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_secs_f64(rng.unit() * 2.0 * whole_seconds / whole_lines));
        // On Unix this is SIGKILL.
        child.kill().unwrap();
        n_killed += child.wait().unwrap().code().is_none() as usize;
        n_begun += dir.path().join("killed/last").is_file() as usize;
    }
    assert!(n_killed >= 5, "only {n_killed} of 20 processes were killed before they had finished");
    assert!(n_begun >= 5, "only {n_begun} of 20 kills came after the first checkpoint");
    succeed(dir.path(), &command("killed"));
    assert_same_end(&dir.path().join("whole"), &dir.path().join("killed"), "after 20 kills");
    let leftovers: Vec<String> =
        checkpoints(&dir.path().join("killed")).into_iter().filter(|name| name.starts_with('.')).collect();
    assert!(leftovers.is_empty(), "half-written checkpoints pile up: {leftovers:?}");
}

/// Waits until `metrics.jsonl` of `run` has `n` lines.
fn wait_for_lines(run: &Path, n: usize, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default().lines().count() < n {
        assert!(Instant::now() < deadline, "no {n} lines in 60 s");
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was to be interrupted");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal_saves_and_says_how_to_go_on(signal: &str, code: i32, from: Option<&str>) {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let run = dir.path().join("a run");
    let mut endless = vec!["train", "tiny.toml", "--run", "a run", "--set", "training.max_updates=1000000"];
    if let Some(from) = from {
        succeed(dir.path(), &["train", "tiny.toml", "--run", from, "--set", "training.max_updates=1"]);
        endless.extend(["--init-from", from]);
    }
    let mut child = start(dir.path(), &endless);
    wait_for_lines(&run, 5, &mut child);
    let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let finished = Finished::from(child.wait_with_output().unwrap());
    assert_eq!(finished.code, Some(code), "{}", finished.stderr);
    let message = finished.fault();
    let command = message.strip_prefix("interrupted and saved; to go on: lookback ").expect(message);
    assert!(!command.contains("--init-from"), "a run that has begun refuses it: {command}");
    let update: u64 = named(&run, "last").parse().unwrap();
    let made = metrics(&run).last().unwrap()["update"].as_u64().unwrap();
    assert_eq!(update, made, "the update in progress is finished and saved");
    // As a shell would run it, and a little further.
    let shell = format!("{} {command} --set training.max_updates={}", env!("CARGO_BIN_EXE_lookback"), update + 2);
    let finished = Command::new("sh").args(["-c", &shell]).current_dir(dir.path()).output().unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", String::from_utf8_lossy(&finished.stderr));
    let updates = numbers(&run, "train", "update");
    assert_eq!(updates, (1..=update + 2).map(|u| u as f64).collect::<Vec<_>>(), "every update once");
}

#[test]
#[cfg(unix)]
fn ctrl_c_saves_exits_with_130_and_says_how_to_go_on() {
    signal_saves_and_says_how_to_go_on("INT", 130, None);
}

#[test]
#[cfg(unix)]
fn sigterm_exits_with_143_and_the_command_to_go_on_leaves_init_from_out() {
    signal_saves_and_says_how_to_go_on("TERM", 143, Some("first"));
}

#[test]
#[cfg(unix)]
fn a_terminal_that_is_closed_is_a_reason_to_save() {
    signal_saves_and_says_how_to_go_on("HUP", 129, None);
}

#[test]
fn metrics_are_cut_back_to_the_checkpoint_half_a_line_included() {
    let dir = TempDir::new().unwrap();
    let run = dir.path().join("run");
    let mut config = tiny(BAHDANAU);
    config.training.max_updates = 4;
    train_in(&run, &config).unwrap();
    let before = metrics(&run);
    let path = run.join("metrics.jsonl");
    let torn = format!("{}{{\"split\":\"train\",\"update\":5,\"loss\":1.0}}\n{{\"split\":\"tr", read(&path));
    std::fs::write(&path, torn).unwrap();
    config.training.max_updates = 5;
    train_in(&run, &config).unwrap();
    let after = metrics(&run);
    assert_eq!(after[..before.len()], before[..]);
    let added: Vec<_> =
        after[before.len()..].iter().map(|line| (line["split"].clone(), line["update"].clone())).collect();
    assert_eq!(added, [("train".into(), 5.into()), ("valid".into(), 5.into())]);
    assert!(after[before.len()]["gradient_norm"].is_number(), "the torn lines are gone: {after:?}");
}
