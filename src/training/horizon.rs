//! Where a falling learning rate ends when minutes decide.

use super::learner::Trainer;
use super::resume;
use super::schedule::Pace;
use crate::error::Result;
use burn::module::Module;
use std::time::Instant;

/// The part of `max_minutes` after which the horizon of a falling learning rate is planned.
const PLANNING: f64 = 0.05;
/// The fewest updates that it is planned from.
const MIN_PACES: usize = 3;

impl Trainer {
    /// Fixes the horizon of a falling learning rate where minutes decide, once a part of them has shown how long an update
    /// takes; `seconds` is the time of the last one.
    pub(super) fn plan_horizon(&mut self, seconds: f64) -> Result<()> {
        let training = &self.config.training;
        let is_open = training.schedule.has_end() && self.state.horizon.is_none();
        let Some(minutes) = training.max_minutes.filter(|_| is_open) else { return Ok(()) };
        self.paces.push(seconds);
        let all = 60.0 * minutes;
        if self.seconds() < PLANNING * all || self.paces.len() < MIN_PACES {
            return Ok(());
        }
        if self.validation_seconds == 0.0 {
            let start = Instant::now();
            self.lessons.measure(&self.model().valid())?;
            self.validation_seconds = start.elapsed().as_secs_f64();
        }
        self.paces.sort_by(f64::total_cmp);
        let pace = Pace {
            updates: self.state.update,
            seconds_left: all - self.seconds(),
            update: self.paces[self.paces.len() / 2],
            validation: self.validation_seconds,
            validate_every: self.config.training.validate_every,
        };
        let horizon = pace.horizon().min(self.config.training.max_updates);
        self.state.horizon = Some(horizon);
        resume::log(&self.run, &format!("update {}: the learning rate falls until update {horizon}", self.state.update))
    }
}
