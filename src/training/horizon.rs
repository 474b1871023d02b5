//! Where a falling learning rate ends when minutes decide.

use super::lessons::Trainable;
use super::schedule::Pace;
use super::trainer::Trainer;
use crate::error::Result;
use crate::ranks::say;
use std::time::Instant;

/// The part of `max_minutes` after which the horizon of a falling learning rate is planned.
const PLANNING: f64 = 0.05;
/// The fewest updates that it is planned from.
const MIN_PACES: usize = 3;

impl<M: Trainable> Trainer<M> {
    /// Fixes the horizon of a falling learning rate where minutes decide, once a part of them has shown how long an update
    /// takes; `seconds` is the time of the last one.
    pub(super) fn plan_horizon(&mut self, seconds: f64) -> Result<()> {
        let training = &self.training;
        let is_open = training.schedule.has_end() && self.state.horizon.is_none();
        let Some(minutes) = training.max_minutes.filter(|_| is_open) else { return Ok(()) };
        self.paces.push(seconds);
        let all = 60.0 * minutes;
        let is_due = self.seconds() >= PLANNING * all && self.paces.len() >= MIN_PACES;
        // Of several ranks the clock of the first counts.
        if !say(&*self.ranks, is_due)[0] {
            return Ok(());
        }
        if self.validation_seconds == 0.0 {
            let start = Instant::now();
            self.lessons.measure(&self.model().valid(), &*self.ranks);
            self.validation_seconds = start.elapsed().as_secs_f64();
        }
        self.paces.sort_by(f64::total_cmp);
        let pace = Pace {
            updates: self.state.update,
            seconds_left: all - self.seconds(),
            update: self.paces[self.paces.len() / 2],
            validation: self.validation_seconds,
            validate_every: self.training.validate_every,
        };
        let horizon = say(&*self.ranks, pace.horizon().min(self.training.max_updates))[0];
        self.state.horizon = Some(horizon);
        let warmup = self.training.warmup_updates;
        if horizon <= warmup {
            self.observer.warn(&format!(
                "{horizon} updates are expected in {minutes} minutes, and training.warmup_updates = {warmup}: the learning rate \
                 never reaches its peak; lower that, or give more time"
            ));
        }
        self.folder.log(&format!("update {}: the learning rate falls until update {horizon}", self.state.update))
    }
}
