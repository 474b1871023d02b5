//! Progress on standard error, for whatever takes longer than a second.

use crate::notice::{self, Level};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Where progress is drawn: a terminal, unless nothing is to be said.
fn target() -> ProgressDrawTarget {
    if notice::is_said(Level::Normal) { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A bar with rate and time left; it is drawn only where standard error is a terminal.
pub(super) fn bar(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target());
    let template = format!("{what} {{wide_bar}} {{pos}}/{{len}}  {{per_sec}}  {{eta}} left");
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is right"));
    bar
}

/// A bar for bytes.
pub(super) fn bytes(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), target());
    let template = format!("{what} {{wide_bar}} {{bytes}}/{{total_bytes}}  {{bytes_per_sec}}  {{eta}} left");
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is right"));
    bar
}

/// A sign of life for work of unknown length.
pub(super) fn spinner(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::with_draw_target(None, target()).with_style(ProgressStyle::default_spinner());
    spinner.enable_steady_tick(Duration::from_millis(100));
    spinner.with_message(what)
}
