//! Standard error and standard output that are full or gone, and terminals that are closed.

use crate::cli::trained;
use crate::compare;
use crate::training::{
    BAHDANAU, Finished, assert_same_end, assert_says, copy_folder, finish, language_model, lookback, masked_model,
    named, succeed, write_tiny,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pipe that nobody reads any more.
pub fn dead_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("the system has pipes");
    drop(reader);
    writer.into()
}

/// A device that is always full.
pub fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("Linux has it").into()
}

/// Every command that says something on standard error, with what it needs in the folder of the trained run.
const COMMANDS: [&[&str]; 7] = [
    &["translate", "--run", "run", "--input", "odd"],
    &["evaluate", "--run", "run"],
    &["explain", "--run", "run", "a b"],
    &["inspect", "attention", "--run", "run", "--input", "odd", "--out", "dead.svg"],
    &["inspect", "states", "--run", "run", "--input", "odd"],
    &["devices"],
    &["config", "check"],
];

#[test]
#[cfg(target_os = "linux")]
fn a_standard_error_that_is_full_or_gone_changes_no_command() {
    // A word that the model does not know, so that there is something to warn of.
    std::fs::write(trained().join("odd"), "a zebra b\nc\n").unwrap();
    for arguments in COMMANDS {
        let expected = finish(trained(), arguments);
        assert_eq!(expected.code, Some(0), "{arguments:?}: {}", expected.stderr);
        for (what, stderr) in [("full", full as fn() -> Stdio), ("gone", dead_pipe)] {
            let mut command = lookback(trained(), arguments);
            let found = Finished::from(command.stderr(stderr()).output().unwrap());
            assert_eq!((found.code, found.stdout), (Some(0), expected.stdout.clone()), "{arguments:?}, {what}");
        }
    }
}

/// What another process says to the same terminal, or the launcher of several ranks, comes between two writes.
#[test]
#[cfg(target_os = "linux")]
fn a_line_on_standard_error_is_written_in_one_piece() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixDatagram;
    std::fs::write(trained().join("odd"), "a zebra b\nc\n").unwrap();
    let refused = ["train", "nowhere.toml", "--run", "none"];
    for arguments in COMMANDS.into_iter().chain([&refused[..]]) {
        // Keeps the writes apart, which a pipe does not.
        let (receiver, sender) = UnixDatagram::pair().unwrap();
        let end = sender.try_clone().unwrap();
        let mut child =
            lookback(trained(), arguments).stdout(Stdio::null()).stderr(OwnedFd::from(sender)).spawn().unwrap();
        let waiting = std::thread::spawn(move || {
            child.wait().unwrap();
            end.send(b"").unwrap();
        });
        let mut write = [0; 1 << 16];
        loop {
            let len = receiver.recv(&mut write).unwrap();
            if len == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&write[..len]);
            assert!(text.ends_with('\n'), "{arguments:?}: {text:?}");
        }
        waiting.join().unwrap();
    }
}

/// What stands for a name that no run of a command has used before.
const NEW: &str = "NEW";

/// The commands that need something else than the folder of the trained run, or write something; with where they run.
fn other_commands(dir: &Path) -> Vec<(PathBuf, Vec<&'static str>)> {
    write_tiny(dir, BAHDANAU);
    let (compared, compare) = compare::finished();
    copy_folder(compared, &dir.join("compared"));
    std::fs::write(dir.join("masked.txt"), "a b <mask> b zebra\n").unwrap();
    copy_folder(&masked_model().join("run"), &dir.join("masked"));
    let run = trained().join("run");
    copy_folder(&run, &dir.join("run"));
    let here = dir.to_path_buf();
    vec![
        (dir.join("compared"), compare),
        (language_model().to_path_buf(), vec!["generate", "--run", "run", "abc", "--lines", "1"]),
        (here.clone(), vec!["predict", "--run", "masked", "--input", "masked.txt"]),
        (here.clone(), vec!["attend", "--query", "10,5,10", "--keys", "0,1,1;5,0,1;1,1,0;0,5,1"]),
        (here.clone(), vec!["export", "run", "--run", "run", "--out", NEW]),
        (here.clone(), vec!["data", "list"]),
        (here.clone(), vec!["data", "generate", "copy", "--pairs", "20", "--out", NEW]),
        (here, vec!["data", "prepare", "tiny.toml", "--out", NEW]),
    ]
}

#[test]
#[cfg(target_os = "linux")]
fn outputs_that_are_full_or_gone_are_the_same_for_every_other_command() {
    let dir = TempDir::new().unwrap();
    let mut n_new = 0;
    for (place, arguments) in other_commands(dir.path()) {
        let mut run = |stdout: Option<Stdio>, stderr: Option<Stdio>| {
            n_new += 1;
            let name = format!("new-{n_new}");
            let own: Vec<&str> = arguments.iter().map(|word| if *word == NEW { &name } else { *word }).collect();
            let mut command = lookback(&place, &own);
            command.stdout(stdout.unwrap_or_else(Stdio::piped)).stderr(stderr.unwrap_or_else(Stdio::piped));
            let mut found = Finished::from(command.output().unwrap());
            found.stdout = found.stdout.replace(&name, NEW);
            found
        };
        let expected = run(None, None);
        assert_eq!(expected.code, Some(0), "{arguments:?}: {}", expected.stderr);
        for (what, stderr) in [("full", full as fn() -> Stdio), ("gone", dead_pipe)] {
            let found = run(None, Some(stderr()));
            assert_eq!((found.code, &found.stdout), (Some(0), &expected.stdout), "{arguments:?}, {what}");
        }
        let gone = run(Some(dead_pipe()), Some(dead_pipe()));
        assert_eq!(gone.code, Some(0), "{arguments:?}: nobody reads the results");
        let found = run(Some(full()), None);
        if expected.stdout.is_empty() {
            assert_eq!(found.code, Some(0), "{arguments:?}: {}", found.stderr);
        } else {
            assert_eq!(found.code, Some(1), "{arguments:?}");
            assert_says(found.fault(), &["standard output: No space left on device"]);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn training_goes_on_to_its_end_without_a_reader() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let train = |run: &'static str| {
        ["train", "tiny.toml", "--dashboard", "plain", "--set", "training.log_every=1", "--run", run]
    };
    succeed(dir.path(), &train("whole"));
    for (run, stderr) in [("full", full as fn() -> Stdio), ("gone", dead_pipe)] {
        let found = Finished::from(lookback(dir.path(), &train(run)).stderr(stderr()).output().unwrap());
        assert_eq!(found.code, Some(0), "{run}");
        assert_same_end(&dir.path().join("whole"), &dir.path().join(run), run);
    }
    // `lookback train 2>&1 | head -1`: the results have no reader either, which is no failure.
    let status = lookback(dir.path(), &train("head")).stdout(dead_pipe()).stderr(dead_pipe()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_same_end(&dir.path().join("whole"), &dir.path().join("head"), "both gone");
    // Results that cannot be written are one.
    let found = Finished::from(lookback(dir.path(), &train("full")).stdout(full()).output().unwrap());
    assert_eq!(found.code, Some(1));
    assert_says(found.fault(), &["standard output: No space left on device"]);
}

#[test]
fn a_dashboard_without_a_terminal_is_refused_in_words() {
    let dir = TempDir::new().unwrap();
    write_tiny(dir.path(), BAHDANAU);
    let mut command = lookback(dir.path(), &["train", "tiny.toml", "--dashboard", "tui"]);
    let found = Finished::from(command.stdin(Stdio::null()).output().unwrap());
    assert_eq!((found.code, found.stdout.as_str()), (Some(1), ""));
    assert_says(found.fault(), &["--dashboard tui needs a terminal", "plain or auto"]);
    assert!(!dir.path().join("runs").exists(), "nothing has begun");
}

/// The terminal is closed in the middle of training: what was learnt is saved, whatever the dashboard.
#[test]
#[cfg(target_os = "linux")]
fn a_closed_terminal_loses_nothing() {
    if Command::new("script").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI needs util-linux's `script`");
        println!("skipped: there is no `script` to make a pseudo-terminal with");
        return;
    }
    for dashboard in ["plain", "tui"] {
        let dir = TempDir::new().unwrap();
        write_tiny(dir.path(), BAHDANAU);
        let run = dir.path().join("run");
        let settings = "--set training.max_updates=1000000 --set training.save_every=1000000 --set training.validate_every=1000000";
        let command = format!(
            "stty rows 45 columns 150; {} train tiny.toml --dashboard {dashboard} --run run {settings}; echo $? > code",
            env!("CARGO_BIN_EXE_lookback")
        );
        // Whoever runs the tests under `nohup` would keep the signal from all of them.
        let mut script = Command::new("env");
        script
            .args(["--default-signal=HUP", "script", "--quiet", "--command", &command, "/dev/null"])
            .current_dir(dir.path())
            .env("TERM", "xterm");
        // The shell ignores the signal, so that it is there to write down how the program ended.
        let mut child = script.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the first updates", || lines(&run) > 5);
        // Its side of the terminal goes with it; the system tells those at the other end.
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for("a checkpoint", || run.join("last").is_file());
        wait_for("the end of the program", || is_free(&run));
        let update: usize = named(&run, "last").parse().unwrap();
        assert!(update >= 5, "{dashboard}: only {update} updates are saved");
        // Nothing is lost: as many as were written down.
        assert_eq!(lines(&run), update, "{dashboard}");
    }
}

fn lines(run: &Path) -> usize {
    std::fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |text| text.lines().count())
}

/// Whether nobody trains in a run.
fn is_free(run: &Path) -> bool {
    File::open(run.join("lock")).is_ok_and(|file| file.try_lock().is_ok())
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
