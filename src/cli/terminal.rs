//! The user, who reads standard error and presses Ctrl-C.

use crate::notice;
use crate::signal;
use crate::training::Observer;

/// Hears everything on standard error; a signal stops the work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal;

impl Observer for Terminal {
    fn say(&self, line: &str) {
        notice::say(line);
    }

    fn warn(&self, line: &str) {
        notice::warn(line);
    }

    fn should_stop(&self) -> bool {
        signal::requested()
    }
}
