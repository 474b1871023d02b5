//! Ctrl-C and SIGTERM: finish the update, save, leave. A second signal leaves at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// The exit code of a program that was interrupted.
pub const EXIT_CODE: i32 = 130;

/// Catches the signals from now on.
pub fn install() {
    INSTALLED.get_or_init(|| {
        let handler = || {
            if REQUESTED.swap(true, Ordering::SeqCst) {
                std::process::exit(EXIT_CODE);
            }
        };
        // Fails only where a handler is there already; then that one decides.
        let _ = ctrlc::set_handler(handler);
    });
}

/// Whether a signal has come.
pub fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
