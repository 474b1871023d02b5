//! Progress on standard error, for whatever takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar with rate and time left; it is drawn only where standard error is a terminal.
pub(super) fn bar(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = format!("{what} {{wide_bar}} {{pos}}/{{len}}  {{per_sec}}  {{eta}} left");
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is right"));
    bar
}

/// A bar for bytes.
pub(super) fn bytes(total: u64, what: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = format!("{what} {{wide_bar}} {{bytes}}/{{total_bytes}}  {{bytes_per_sec}}  {{eta}} left");
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is right"));
    bar
}
