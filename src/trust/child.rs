//! The check in a process of its own, so that nothing a driver does can harm this one.

use super::work::{Depth, Difference};
use crate::backend::Adapter;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The hidden command that the child runs.
pub const COMMAND: &str = "check-backend";
/// What is run in place of this program, to try what happens when it fails.
const WORKER: &str = "LOOKBACK_CHECK_WORKER";
/// A driver that has not compiled a few dozen small kernels by then never will. Software on a busy machine takes a minute.
const PATIENCE: Duration = Duration::from_secs(600);

/// Compares a device with flex; what it says of each model.
///
/// # Errors
/// What was seen of a child that did not come to its end.
pub fn run(adapter: &Adapter, depth: Depth) -> Result<Vec<Difference>, String> {
    let program = match std::env::var_os(WORKER) {
        Some(worker) => worker.into(),
        None => std::env::current_exe().map_err(|error| format!("the check could not be started: {error}"))?,
    };
    let mut command = Command::new(program);
    command
        .args([COMMAND, adapter.backend.name(), "--device", &adapter.number.to_string()])
        .args((depth == Depth::All).then_some("--all"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("the check could not be started: {error}"))?;
    let output = reader(child.stdout.take());
    let complaint = reader(child.stderr.take());
    let status = wait(&mut child)?;
    let text = |reader: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned()
    };
    let (output, complaint) = (text(output), text(complaint));
    if !status.success() {
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map(|line| format!(" ({})", line.trim())).unwrap_or_default();
        return Err(format!("the driver ended the process with {}{last}", end_of(status)));
    }
    let found: Result<Vec<Difference>, _> = output.lines().map(serde_json::from_str).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err("the check said nothing that could be read".into()),
    }
}

/// Reads all that comes, so that the child never waits for a full pipe.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("there was no result after {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("the check could not be waited for: {error}")),
        }
    }
}

fn end_of(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or("no exit code".into(), |code| format!("exit code {code}"))
}
