//! The program: parse, run, say what went wrong, return the exit code.
#![recursion_limit = "256"]

use clap::Parser;
use lookback::cli::Cli;
use lookback::error::Error;
use lookback::training::signal;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
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
