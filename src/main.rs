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
/// pages that the kernel has to clear first, which took a quarter of the time.
fn keep_memory() {
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    const ARENA_RESERVE: libmimalloc_sys::mi_option_t = 23;
    const KIB_PER_GIB: std::ffi::c_long = 1 << 20;
    for (variable, option, value) in
        [("MIMALLOC_PURGE_DELAY", PURGE_DELAY, -1), ("MIMALLOC_ARENA_RESERVE", ARENA_RESERVE, 4 * KIB_PER_GIB)]
    {
        // What the user has set stands.
        if std::env::var_os(variable).is_none() {
            // Options of mimalloc 2 and 3 that its bindings do not name; setting them touches no memory of ours.
            #[allow(unsafe_code)]
            unsafe {
                libmimalloc_sys::mi_option_set(option, value);
            }
        }
    }
}

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
