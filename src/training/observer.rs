//! Observers of training, which may stop it.

use super::renderer::Progress;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

/// Who hears of training, and may stop it. By default nobody hears anything and nothing stops it: a library does not write to
/// standard error and has no signal handlers unless it is asked.
pub trait Observer: Debug + Send + Sync {
    /// A line for people.
    fn say(&self, _line: &str) {}

    /// A line that warns.
    fn warn(&self, line: &str) {
        self.say(&format!("warning: {line}"));
    }

    /// Training begins; `progress` will say how far it is.
    fn begin(&self, _progress: &Arc<Mutex<Progress>>) {}

    /// Whether to finish the update, save, and leave.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Hears nothing and stops nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
