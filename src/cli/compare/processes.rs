//! Several processes that share the trainings and tests of one comparison (`--jobs`).
//!
//! A small model cannot keep many cores busy. Processes share a comparison by the locks of its folder, as those of several machines do; here
//! this one starts them, waits, and then measures times alone.

use crate::error::{Error, Result};
use crate::signal;
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often it is looked whether a process has ended, or a signal has come.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does the work of `arguments`, those of this program, in `n` processes at once that share out `threads`. They measure no times and
/// print no results, and write down `command` as what made them; the first says how far the work is. Whatever becomes of them, this process finds what they have left to do.
///
/// # Errors
/// If a process cannot be started.
pub(super) fn share(arguments: &[OsString], command: &str, n: usize, threads: usize) -> Result<()> {
    let program = std::env::current_exe().map_err(|error| Error::message(format!("--jobs: {error}")))?;
    let threads = (threads / n).max(1).to_string();
    let start = |number: usize| {
        let mut process = Command::new(&program);
        process.args(arguments).args(["--processes", &n.to_string(), "--without-times", "--threads", &threads]);
        process.args(["--started-by", command]);
        process.stdin(Stdio::null());
        process.stdout(Stdio::null());
        if number > 0 {
            process.stderr(Stdio::null());
        }
        // A signal is passed on once. From a terminal they would have it twice, and the second ends them before they have saved.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
        process.spawn().map_err(|error| Error::message(format!("--jobs: {}: {error}", program.display())))
    };
    let mut running: Vec<Child> = Vec::new();
    for number in 0..n {
        running.push(start(number)?);
    }
    let mut is_told = false;
    while !running.is_empty() {
        running.retain_mut(|process| matches!(process.try_wait(), Ok(None)));
        if signal::requested() && !is_told {
            running.iter().for_each(stop);
            is_told = true;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Asks a process to save and to leave.
fn stop(process: &Child) {
    // Windows has no such signal, but there the console tells every process of it.
    let _ = Command::new("kill").arg(process.id().to_string()).stderr(Stdio::null()).status();
}

/// The arguments of this program for one of the processes: without the options that say how they share the work.
pub(super) fn own_arguments(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    const OWN: [&str; 2] = ["--jobs", "--threads"];
    let mut arguments = arguments.into_iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        let name = text.split('=').next().unwrap_or_default();
        match OWN.contains(&name) {
            true if name == text => _ = arguments.next(),
            true => {}
            false => kept.push(argument),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::own_arguments;

    #[test]
    fn processes_get_the_arguments_without_what_shares_the_work() {
        let own = |text: &str| own_arguments(text.split(' ').map(Into::into)).join(" ".as_ref());
        assert_eq!(own("compare a.toml --jobs 2 --seeds 3 --threads=4"), "compare a.toml --seeds 3");
        assert_eq!(own("--threads 4 compare --jobs=2 --set a=b --out jobs"), "compare --set a=b --out jobs");
    }
}
