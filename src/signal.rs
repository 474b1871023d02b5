//! Ctrl-C, SIGTERM, and a terminal that is closed: finish the update, save, leave.
//!
//! Whoever saves listens; at any other time a signal ends the program as it would without us. A second Ctrl-C or SIGTERM leaves at
//! once. A second SIGHUP does not: shells send it beside the system's own.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The exit code of a program that was asked to stop, without a signal that says how.
pub const EXIT_CODE: u8 = 130;

/// What the handlers read and write.
#[derive(Default)]
struct State {
    /// The number of the signal that came, or 0.
    came: Arc<AtomicUsize>,
    /// Whether Ctrl-C and SIGTERM leave at once.
    leaves: Arc<AtomicBool>,
    /// Whether nobody listens.
    is_idle: Arc<AtomicBool>,
    listeners: AtomicUsize,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Signals are waited for until this is dropped.
#[derive(Debug)]
pub struct Listening(());

/// Listens from now on.
pub fn listen() -> Listening {
    let state = STATE.get_or_init(|| {
        let state = State::default();
        // Where the system has no handlers, signals do what they always do.
        let _ = install(&state);
        state
    });
    if state.listeners.fetch_add(1, Ordering::SeqCst) == 0 {
        state.is_idle.store(false, Ordering::SeqCst);
        state.leaves.store(requested(), Ordering::SeqCst);
    }
    Listening(())
}

impl Drop for Listening {
    fn drop(&mut self) {
        let state = STATE.get().expect("it was made by the first listener");
        if state.listeners.fetch_sub(1, Ordering::SeqCst) == 1 {
            state.is_idle.store(true, Ordering::SeqCst);
            state.leaves.store(true, Ordering::SeqCst);
        }
    }
}

/// Handlers of one signal run in the order in which they are named here.
fn install(state: &State) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, code_of(signal as usize).into(), state.leaves.clone())?;
        flag::register_usize(signal, state.came.clone(), signal as usize)?;
        flag::register(signal, state.leaves.clone())?;
    }
    #[cfg(unix)]
    {
        use signal_hook::consts::SIGHUP;
        flag::register_conditional_shutdown(SIGHUP, code_of(SIGHUP as usize).into(), state.is_idle.clone())?;
        flag::register_usize(SIGHUP, state.came.clone(), SIGHUP as usize)?;
    }
    Ok(())
}

fn came() -> usize {
    STATE.get().map_or(0, |state| state.came.load(Ordering::SeqCst))
}

/// Whether a signal has come.
pub fn requested() -> bool {
    came() != 0
}

/// The exit code of a program that has saved and leaves: 128 and the number of the signal, as of one that did not catch it.
pub fn exit_code() -> u8 {
    code_of(came())
}

fn code_of(signal: usize) -> u8 {
    if signal == 0 { EXIT_CODE } else { 128 + signal as u8 }
}
