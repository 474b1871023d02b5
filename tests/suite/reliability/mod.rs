//! Whatever happens to the terminal, the disk, the process or the files: nothing is lost, and nothing is silently wrong.
//!
//! What runs with every other test is a sample. `LOOKBACK_CAMPAIGN=20` makes every campaign twenty times as long; the figures are
//! in `docs/results/reliability.md`.

mod damage;
mod disk;
mod hostile;
mod prepared;
mod shared;
mod terminals;

pub use damage::files;
pub use terminals::{dead_pipe, full};

/// How many times as long the campaigns are.
pub fn campaign() -> usize {
    std::env::var("LOOKBACK_CAMPAIGN").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
