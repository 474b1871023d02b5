//! The program: parse, run, say what went wrong, return the exit code.
#![recursion_limit = "256"]

use clap::Parser;
use lookback::cli::Cli;
use lookback::error::Error;
use lookback::training::signal;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lets the allocator keep what it has.
///
/// Training allocates and frees the same few hundred megabytes at every update. Returned to the system, they come back as
/// pages that the kernel has to clear first, which takes up to a quarter of the time. mimalloc reads these settings before
/// `main`, and setting them later leaves its first arena as it was; so the program starts itself once more with them set.
#[cfg(unix)]
fn keep_memory() {
    use std::os::unix::process::CommandExt;
    const SETTINGS: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "-1"), ("MIMALLOC_ARENA_RESERVE", "4GiB")];
    // What the user has set stands, and a second start finds them set.
    if SETTINGS.iter().any(|(variable, _)| std::env::var_os(variable).is_some()) {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        // Comes back only if it failed; then training is slower, and nothing else.
        let _ = std::process::Command::new(program).args(std::env::args_os().skip(1)).envs(SETTINGS).exec();
    }
}

#[cfg(not(unix))]
fn keep_memory() {}

fn main() -> ExitCode {
    keep_memory();
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error @ Error::Interrupted(_)) => {
            eprintln!("lookback: {error}");
            ExitCode::from(signal::EXIT_CODE as u8)
        }
        Err(error) => {
            eprintln!("lookback: {error}");
            ExitCode::FAILURE
        }
    }
}
