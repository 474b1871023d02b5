//! burn-train's dashboard in a pseudo-terminal, which util-linux's `script` makes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn has_updates(run: &Path) -> bool {
    std::fs::read_to_string(run.join("metrics.jsonl")).is_ok_and(|text| text.lines().count() > 3)
}

/// Raw mode makes Ctrl-C a key like any other, and the dashboard does not listen to it.
#[test]
#[cfg(target_os = "linux")]
fn ctrl_c_in_the_dashboard_saves_and_exits_with_130() {
    if Command::new("script").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI needs util-linux's `script`");
        println!("skipped: there is no `script` to make a pseudo-terminal with");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    // A pseudo-terminal has no size of its own, and the dashboard draws nothing on none.
    let command = format!(
        "stty rows 45 columns 150; exec {} train --dashboard tui --run {} --set training.max_updates=1000000",
        env!("CARGO_BIN_EXE_lookback"),
        run.display()
    );
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("script starts");
    let mut screen = child.stdout.take().expect("its output is a pipe");
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = std::io::Read::read_to_end(&mut screen, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    wait_for("the first updates", || has_updates(&run));
    // The signal of Ctrl-C is switched on again a moment after raw mode is.
    std::thread::sleep(Duration::from_secs(1));
    let mut keyboard = child.stdin.take().expect("its input is a pipe");
    keyboard.write_all(&[3]).and_then(|()| keyboard.flush()).expect("the pseudo-terminal takes a key");
    let mut status = None;
    wait_for("the end of the program", || {
        status = child.try_wait().expect("the child can be asked");
        status.is_some()
    });
    let screen = reader.join().expect("the reader ends with the child");
    assert_eq!(status.and_then(|status| status.code()), Some(130), "{screen}");
    assert!(screen.contains("Gradient norm"), "the dashboard was shown");
    assert!(screen.contains("interrupted and saved; to go on"), "and says how to go on");
    assert!(run.join("last").is_file(), "and a checkpoint is there");
}
