//! Ranks that are processes, started by `mpirun`.

use super::*;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a test waits for all ranks to end.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The same where one was killed: ten times what the documentation says.
const PATIENCE_AFTER_KILL: Duration = Duration::from_secs(20);

/// Whether this build speaks MPI and `mpirun` is there. Else the reason is printed; in CI that is a failure.
pub fn can_run() -> bool {
    let is_there = Command::new("mpirun").arg("--version").output().is_ok_and(|output| output.status.success());
    if cfg!(feature = "mpi") && is_there {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs --features mpi and the packages openmpi-bin, libopenmpi-dev");
    println!("skipped: needs a build with --features mpi, and mpirun");
    false
}

/// `mpirun`, without what it is to start.
pub fn launcher() -> Command {
    let mut command = Command::new("mpirun");
    // Two cores may have to do, and CI is root. Within one machine ranks speak by shared memory.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    // Whoever waits leaves the core to the tests beside it.
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    command.args(["--oversubscribe", "--bind-to", "none"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const TRAIN: [&str; 3] = ["train", "--dashboard", "none"];

/// `mpirun` with `n` ranks of `lookback train`, about to run in `dir`.
fn mpirun(n: usize, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = launcher();
    command.current_dir(dir).args(["-n", &n.to_string(), env!("CARGO_BIN_EXE_lookback")]);
    command.args(TRAIN).args(arguments);
    command
}

/// Two ranks of `lookback train`, each with a folder of its own to run in and a program of its own, to their end.
fn finish_apart(ranks: [(&Path, &Path); 2], arguments: &[&str]) -> Finished {
    let mut command = launcher();
    for (rank, (dir, program)) in ranks.into_iter().enumerate() {
        command.args((rank > 0).then_some(":")).args(["-n", "1", "-wdir"]).arg(dir).arg(program);
        command.args(TRAIN).args(arguments);
    }
    command.output().expect("mpirun starts").into()
}

fn finish_mpi(n: usize, dir: &Path, arguments: &[&str]) -> Finished {
    mpirun(n, dir, arguments).output().expect("mpirun starts").into()
}

/// The processes that train in `run`.
#[cfg(target_os = "linux")]
fn ranks_of(run: &Path) -> Vec<u32> {
    let name = run.to_string_lossy().into_owned();
    let is_rank = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> =
            line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect();
        words.first().is_some_and(|program| program.ends_with("lookback")) && words.contains(&name)
    };
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids: Vec<u32> =
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_rank).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn processes_end_with_the_bytes_of_one_and_go_on_as_one() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let one = dir.path().join("one");
    succeed(
        dir.path(),
        &["train", "tiny.toml", "--run", "one", "--set", "training.accumulation=4", "--dashboard", "none"],
    );
    let finished = finish_mpi(2, dir.path(), &["tiny.toml", "--run", "two", "--set", "training.max_updates=8"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["ranks    2; an update has 4 parts, each rank at most 2 of them"]);
    assert_eq!(finished.stdout.matches("held-out test").count(), 1, "one rank tells people: {}", finished.stdout);
    let finished = finish_mpi(3, dir.path(), &["tiny.toml", "--run", "two"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_same_end(&one, &dir.path().join("two"), "two processes, then three");
}

#[test]
fn what_ails_all_ranks_is_said_and_ends_them() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let finished = finish_mpi(2, dir.path(), &["tiny.toml", "--run", "two", "--set", "data.n_train=0"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(&finished.stderr, &["lookback: rank 0: data."]);
    // A rank with another config, beside the first.
    let mut command = mpirun(1, dir.path(), &["tiny.toml", "--run", "three"]);
    let other =
        ["train", "--dashboard", "none", "tiny.toml", "--run", "three", "--set", "training.label_smoothing=0.3"];
    command.args([":", "-n", "1", env!("CARGO_BIN_EXE_lookback")]).args(other);
    let finished: Finished = command.output().unwrap().into();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(
        &finished.stderr,
        &["rank 1 cannot train with rank 0: there, training.label_smoothing is 0.3, not 0.1"],
    );
}

/// A run that is long enough to be interrupted: several seconds, since `mpirun` takes one or more to pass a signal on.
#[cfg(target_os = "linux")]
fn long(run: &str) -> Vec<&str> {
    let mut arguments = vec!["tiny.toml", "--run", run];
    for setting in ["training.max_updates=900", "training.validate_every=200", "training.save_every=35"] {
        arguments.extend(["--set", setting]);
    }
    arguments
}

#[test]
fn ranks_with_other_data_are_refused_by_name() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let config = tiny_text_of(TRANSFORMER, "train.tsv = \"train.tsv\"\nvalid.tsv = \"valid.tsv\"");
    let folders = ["one", "other"].map(|name| dir.path().join(name));
    for (folder, target) in folders.iter().zip(["b a", "b a b a b a b a b a b a b a"]) {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("files.toml"), &config).unwrap();
        // The same words; but the length cap of translations, which is derived from the longest, is another.
        std::fs::write(folder.join("train.tsv"), "a b\tb a\n".repeat(20) + &format!("a b\t{target}\n")).unwrap();
        std::fs::write(folder.join("valid.tsv"), "a b\tb a\n").unwrap();
    }
    let run = dir.path().join("run");
    let program = Path::new(env!("CARGO_BIN_EXE_lookback"));
    let ranks = folders.each_ref().map(|folder| (folder.as_path(), program));
    let finished = finish_apart(ranks, &["files.toml", "--run", run.to_str().unwrap()]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let expected = "rank 1 cannot train with rank 0: there, data.train.tsv is other data (the SHA-256 differs)";
    assert_says(&finished.stderr, &[expected]);
}

#[test]
fn ranks_that_run_another_program_are_refused_before_anything_is_written() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let program = Path::new(env!("CARGO_BIN_EXE_lookback"));
    let other = dir.path().join("other-build");
    std::fs::copy(program, &other).unwrap();
    let end = std::fs::OpenOptions::new().append(true).open(&other).unwrap().write(b"\n");
    assert_eq!(end.unwrap(), 1);
    let finished = finish_apart([(dir.path(), program), (dir.path(), &other)], &["tiny.toml", "--run", "run"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let expected = "rank 1 cannot train with rank 0: there, the program is another build of version ";
    assert_says(&finished.stderr, &["lookback: rank 0: ", expected, "start the same program on all machines"]);
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    assert!(!dir.path().join("run").exists());
}

#[test]
fn a_launcher_that_counts_other_ranks_than_mpi_is_refused() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let mut command = launcher();
    command.current_dir(dir.path()).args(["-n", "2", "env", "OMPI_COMM_WORLD_SIZE=3"]);
    command.arg(env!("CARGO_BIN_EXE_lookback")).args(TRAIN).args(["tiny.toml", "--run", "run"]);
    let finished: Finished = command.output().unwrap().into();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert_says(
        &finished.stderr,
        &["was started as one of 3 processes, but MPI knows 2: the launcher belongs to another"],
    );
    assert!(!dir.path().join("run").exists());
}

#[test]
#[cfg(unix)]
fn a_reader_that_has_seen_enough_is_no_failure_of_any_rank() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let mut command = launcher();
    let script = format!("{} {} tiny.toml --run run | :", env!("CARGO_BIN_EXE_lookback"), TRAIN.join(" "));
    command.current_dir(dir.path()).args(["-n", "2", "sh", "-c", &script]);
    let finished: Finished = command.output().unwrap().into();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    assert_says(&finished.stderr, &["all updates made: 12 updates"]);
    assert!(!finished.stderr.contains("MPI_ABORT") && !finished.stderr.contains("roken pipe"), "{}", finished.stderr);
}

#[test]
#[cfg(target_os = "linux")]
fn a_rank_that_is_killed_ends_all_and_a_signal_saves_and_both_go_on_to_the_same_bytes() {
    if !can_run() {
        return;
    }
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    let one = [&["train", "--dashboard", "none"][..], &long("one")[..], &["--set", "training.accumulation=4"]].concat();
    succeed(dir.path(), &one);
    let n_updates = *numbers(&dir.path().join("one"), "train", "update").last().expect("it has trained") as u64;
    for (signal, of_launcher) in [("KILL", false), ("TERM", true)] {
        let run = dir.path().join(format!("run-{signal}"));
        let name = run.to_str().unwrap();
        let mut command = mpirun(2, dir.path(), &long(name));
        if of_launcher {
            // On a busy machine, saving may take longer than the second that ranks have by default. Open MPI always waits this long.
            command.env("OMPI_MCA_odls_base_sigkill_timeout", "3");
        }
        let mut launcher = command.spawn().unwrap();
        let start = Instant::now();
        while !run.join("metrics.jsonl").is_file() || read(run.join("metrics.jsonl")).lines().count() < 30 {
            assert!(start.elapsed() < PATIENCE, "training does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        let ranks = ranks_of(&run);
        let own: Vec<u32> = ranks.into_iter().filter(|pid| *pid != launcher.id()).collect();
        assert_eq!(own.len(), 2, "two ranks");
        let to = if of_launcher { launcher.id() } else { own[1] };
        assert!(Command::new("kill").args(["-s", signal, &to.to_string()]).status().unwrap().success());
        let start = Instant::now();
        let patience = if of_launcher { PATIENCE } else { PATIENCE_AFTER_KILL };
        while launcher.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < patience, "the ranks do not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ranks_of(&run), [0u32; 0], "no rank is left behind");
        let last_update = *numbers(&run, "train", "update").last().expect("training had begun") as u64;
        assert!(last_update < n_updates, "it was to be interrupted");
        if of_launcher {
            assert_eq!(named(&run, "last"), format!("{last_update:06}"), "the signal saves every update that was made");
        }
        let finished = finish_mpi(2, dir.path(), &long(name));
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        if of_launcher {
            assert_says(&finished.stderr, &[&format!("starting at update {}\n", last_update + 1)]);
        }
        assert_same_end(&dir.path().join("one"), &run, &format!("after SIG{signal}"));
    }
}

#[test]
#[cfg(not(feature = "mpi"))]
fn a_launcher_that_this_build_cannot_speak_to_is_refused() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), TRANSFORMER);
    for variable in ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"] {
        let mut command = lookback(dir.path(), &["train", "tiny.toml", "--run", "run"]);
        let finished: Finished = command.env(variable, "2").output().unwrap().into();
        assert_says(finished.fault(), &["was started as one of 2 processes, but built without MPI", "--features mpi"]);
        assert!(!dir.path().join("run").exists());
    }
}
