//! Whatever happens to the terminal, the disk, the process or the files: nothing is lost, and nothing is silently wrong.
//!
//! What runs with every other test is a sample, and on a user's machine a smaller one than in CI. `LOOKBACK_CAMPAIGN=20` makes every
//! campaign twenty times as long; the figures are in `docs/results/reliability.md`.

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

/// Whether this is CI or a campaign. On a user's machine, tests are to end within minutes.
pub fn is_thorough() -> bool {
    campaign() > 1 || std::env::var_os("CI").is_some()
}

/// All of these where tests are thorough, else every `n`-th: for cases that are slow and much alike.
pub fn sampled<T>(all: impl IntoIterator<Item = T>, n: usize) -> impl Iterator<Item = T> {
    all.into_iter().step_by(if is_thorough() { 1 } else { n })
}
