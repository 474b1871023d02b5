//! The program: parse, run, say what went wrong, return the exit code.
#![recursion_limit = "256"]
// These panic where nobody reads any more; `notice` does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use clap::{Command, CommandFactory, FromArgMatches};
use lookback::cli::Cli;
use lookback::error::Error;
use lookback::notice;
use lookback::signal;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Starts the program once more with what has to be in its environment from the beginning. What the user has set stands.
///
/// - The allocator keeps freed memory. Training allocates and frees the same few hundred megabytes at every update; returned
///   to the system, they come back as pages that the kernel has to clear, which takes up to a quarter of the time. mimalloc
///   reads its settings before `main`.
/// - Drivers that look for a Wayland display complain to standard error where `XDG_RUNTIME_DIR` is no absolute path, each time
///   they are asked for a GPU. In the folder that it is set to there is no display.
#[cfg(unix)]
fn set_environment() {
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    const MEMORY: [(&str, &str); 2] = [("MIMALLOC_PURGE_DELAY", "-1"), ("MIMALLOC_ARENA_RESERVE", "4GiB")];
    const DISPLAY: (&str, &str) = ("XDG_RUNTIME_DIR", "/run/user");
    // A second start finds them set.
    let is_set = |name: &str| std::env::var_os(name).is_some();
    let is_folder = |name: &str| std::env::var_os(name).is_some_and(|path| Path::new(&path).is_absolute());
    let mut settings = Vec::new();
    if !MEMORY.iter().any(|(name, _)| is_set(name)) {
        settings.extend(MEMORY);
    }
    if cfg!(target_os = "linux") && !is_folder(DISPLAY.0) {
        settings.push(DISPLAY);
    }
    if settings.is_empty() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        // Comes back only if it failed; then training is slower, and nothing else.
        let _ = std::process::Command::new(program).args(std::env::args_os().skip(1)).envs(settings).exec();
    }
}

#[cfg(not(unix))]
fn set_environment() {}

/// The command line. A value may begin with a minus sign: whether it makes sense is for its rule to say.
fn arguments() -> Cli {
    fn with_negative_values(command: Command) -> Command {
        let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_string()).collect();
        let command = command.mut_args(|arg| {
            let takes_value = arg.get_action().takes_values();
            if takes_value { arg.allow_negative_numbers(true) } else { arg }
        });
        names.iter().fold(command, |command, name| command.mut_subcommand(name, with_negative_values))
    }
    let matches = with_negative_values(Cli::command()).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    set_environment();
    let command = arguments();
    // A panic has said what happened, and where; it is a fault like any other, and no exit code of its own.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| command.run())).unwrap_or_else(|_| {
        let message = "stopped by a fault of its own, named above; please report it with the command that led to it";
        Err(Error::message(message))
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough, such as `head`, is no failure.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Error::Interrupted(text)) if text.is_empty() => ExitCode::from(signal::exit_code()),
        Err(error @ Error::Interrupted(_)) => {
            notice::fail(format_args!("lookback: {error}"));
            ExitCode::from(signal::exit_code())
        }
        Err(error) => {
            notice::fail(format_args!("lookback: {error}"));
            ExitCode::FAILURE
        }
    }
}
