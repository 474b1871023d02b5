//! Which checkpoints are written, kept, averaged and gone back to.

use super::checkpoint::{self, TrainingState};
use super::folder::averaged;
use super::lessons::Trainable;
use super::metrics::Stats;
use super::optimizer::Adam;
use super::record::{self, Record};
use super::trainer::{MAX_BAD_UPDATES, Trainer};
use super::{pointer, together};
use crate::error::{Error, Result};
use crate::files;
use crate::models::weights::{self, Mean};
use crate::ranks::say;
use std::path::Path;

/// What the name of a best checkpoint begins with that belongs to a course which training has left.
const LEFT: &str = "left-";

/// Rollbacks after which training gives up.
const MAX_ROLLBACKS: u32 = 3;

/// Loss and score in words.
fn said_of(stats: &Stats) -> String {
    format!("loss {:.4}{}", stats.loss, stats.score.map(|score| format!(", score {score:.2}")).unwrap_or_default())
}

impl<M: Trainable> Trainer<M> {
    /// Writes a checkpoint, which stands for all of `record`, moves the pointers, and removes what is no longer kept.
    pub(super) fn save(&mut self, record: &Record, is_validated: bool) -> Result<()> {
        let name = checkpoint::name_of(self.state.update);
        let folder = self.folder.checkpoint(&name);
        self.state.seconds = self.seconds();
        if self.saved == Some(self.state.update) && !is_validated {
            return Ok(());
        }
        record.sync()?;
        if is_validated {
            self.state.validated.push(name.clone());
            let n_averaged = self.training.average_checkpoints;
            let excess = self.state.validated.len().saturating_sub(n_averaged.max(1));
            self.state.validated.drain(..excess);
        }
        if !self.folder.is_read_only() {
            checkpoint::save(&folder, &weights::collect(&self.model().valid()), Some(&self.adam), &self.state)?;
        }
        self.saved = Some(self.state.update);
        self.folder.write_pointers(&self.state)?;
        self.remove_old();
        Ok(())
    }

    fn remove_old(&self) {
        if self.folder.is_read_only() {
            return;
        }
        let all = checkpoint::list(&self.folder.join("checkpoints"));
        let n_old = all.len().saturating_sub(self.training.keep_checkpoints);
        if n_old == 0 {
            return;
        }
        // A run that continues from a kept checkpoint needs the checkpoints that its state names. Damaged ones are never continued from.
        let of_kept = all[n_old..].iter().filter_map(|(_, folder)| checkpoint::state(folder).ok());
        let states: Vec<TrainingState> = of_kept.chain([self.state.clone()]).collect();
        for (update, folder) in &all[..n_old] {
            let name = checkpoint::name_of(*update);
            let is_best = states.iter().any(|state| state.best_checkpoint.as_deref() == Some(&name));
            let is_averaged =
                self.training.average_checkpoints > 1 && states.iter().any(|state| state.validated.contains(&name));
            if !is_best && !is_averaged {
                // A folder that cannot be removed costs space, nothing else.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }

    /// Tries the mean of the last validated checkpoints in the place of the parameters of `model`, and marks it as the best if it is.
    pub(super) fn average(&mut self, model: M) -> Result<()> {
        let n = self.training.average_checkpoints;
        if n < 2 || self.state.validated.len() < 2 {
            return Ok(());
        }
        let mean = self.mean_of_validated()?;
        let n_sets = mean.n();
        if n_sets < 2 {
            return Ok(());
        }
        let mean = mean.finish();
        let name = averaged(&checkpoint::name_of(self.state.update));
        let folder = self.folder.checkpoint(&name);
        let model = weights::apply(model, &mean, &folder)?;
        let stats = self.lessons.measure(&model, &*self.ranks).stats;
        let is_better = self.is_better(&stats);
        let verdict = if is_better { "better than any of them" } else { "not better than the best of them" };
        let line = format!("mean of {n_sets} checkpoints: {}: {verdict}", said_of(&stats));
        self.folder.log(&line)?;
        self.observer.say(&line);
        if is_better && !self.folder.is_read_only() {
            checkpoint::save(&folder, &mean, None, &self.state)?;
            self.mark_best(&folder, &stats)?;
        }
        Ok(())
    }

    /// Lets `best` name the checkpoint in `folder`, which no line of the metrics tells of: its figures are written beside it.
    fn mark_best(&self, folder: &Path, stats: &Stats) -> Result<()> {
        let numbers = serde_json::to_vec_pretty(stats).expect("stats are plain data");
        files::replace(&folder.join(checkpoint::VALIDATION), &numbers)?;
        pointer::write(&self.folder.join("best"), folder)
    }

    /// Examines `model` where training has ended between two validations, as minutes end it, and marks it as the best if it is. What a
    /// longer run goes on from is saved by now and knows nothing of that.
    pub(super) fn measure_end(&mut self, model: &M) -> Result<()> {
        let name = checkpoint::name_of(self.state.update);
        if self.state.update == 0 || self.state.validated.last() == Some(&name) {
            return Ok(());
        }
        let stats = self.lessons.measure(model, &*self.ranks).stats;
        let is_better = self.is_better(&stats);
        let verdict = if is_better { "better than all before" } else { "not better than the best before" };
        let line = format!("update {}, the last: {}: {verdict}", self.state.update, said_of(&stats));
        self.folder.log(&line)?;
        self.observer.say(&line);
        if is_better {
            self.note_best(&stats);
            if !self.folder.is_read_only() {
                self.mark_best(&self.folder.checkpoint(&name), &stats)?;
            }
        }
        Ok(())
    }

    /// The mean of the parameters of the validated checkpoints that rank 0 can read. All ranks take the same.
    fn mean_of_validated(&self) -> Result<Mean> {
        let load = |name: &String| checkpoint::load_model(&self.folder.checkpoint(name));
        let (mut names, mut mean) = (Vec::new(), Mean::default());
        if self.ranks.rank() == 0 {
            for name in &self.state.validated {
                match load(name) {
                    Ok(set) => {
                        names.push(name.clone());
                        mean.add(set);
                    }
                    Err(error) => self.observer.warn(&format!("{error}; averaging without it")),
                }
            }
        }
        // Rank 0 speaks once it has written the last of them.
        let names = say(&*self.ranks, names).swap_remove(0);
        if self.ranks.rank() != 0 {
            for name in &names {
                mean.add(load(name)?);
            }
        }
        Ok(mean)
    }

    /// Goes back to the newest whole checkpoint with half the learning rate; to the one before it where that has been tried, since
    /// what makes training diverge may be in it.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        let rollbacks = self.state.rollbacks + 1;
        // What is newer than the last that was saved belongs to a course that has been left.
        let checkpoint = self.saved.and_then(|saved| {
            let newest = || self.folder.newest_checkpoint(saved + 1, |_| ());
            let is_tried = self.went_back_to == Some(saved);
            let earlier = is_tried.then(|| self.folder.newest_checkpoint(saved, |_| ())).flatten();
            earlier.or_else(newest)
        });
        let Some((folder, checkpoint)) = checkpoint.filter(|_| rollbacks <= MAX_ROLLBACKS) else {
            // At position 0 an epoch has just ended.
            let position = self.state.position.checked_sub(1);
            let epoch = if position.is_some() { self.state.epoch } else { self.state.epoch.saturating_sub(1) };
            let plan = self.lessons.plan(epoch);
            let last = plan.get(position.unwrap_or(plan.len().saturating_sub(1)));
            let text = last.map(|numbers| self.lessons.text(epoch, numbers)).unwrap_or_default();
            let path = self.folder.join("diverged-batch.tsv");
            if !self.folder.is_read_only() {
                files::replace(&path, text.as_bytes())?;
            }
            // A run that has begun keeps its settings.
            let how = if self.saved.is_some() {
                " in a new run; --init-from with this one keeps what was learnt"
            } else {
                ""
            };
            return Err(Error::message(format!(
                "training diverged: {MAX_BAD_UPDATES} gradients in a row were not finite after update {} and {} rollbacks; \
                 the last batch is in {}; lower training.learning_rate or raise training.warmup_updates{how}",
                self.state.update,
                self.state.rollbacks,
                path.display()
            )));
        };
        let message = format!(
            "{MAX_BAD_UPDATES} gradients in a row were not finite: back to update {} with half the learning rate",
            checkpoint.state.update
        );
        self.folder.log(&message)?;
        let model = self.model().valid();
        let model = weights::apply(model, &checkpoint.model, &folder.join(checkpoint::MODEL))?;
        self.set_model(model.train());
        // What came from another run has no optimizer's state yet.
        self.adam = Adam::new(self.training.optimizer.clone());
        checkpoint.restore(&mut self.adam, &folder, &self.device)?;
        // The checkpoint knows nothing of what has happened since: a second rollback to it halves the rate once more.
        let TrainingState { skipped, rate_factor, horizon, .. } = self.state;
        let horizon = checkpoint.state.horizon.or(horizon);
        let best = self.best_to_keep(checkpoint.state.update);
        let (value, loss) = (self.state.best, self.state.best_loss);
        self.state = TrainingState { skipped, rate_factor: 0.5 * rate_factor, rollbacks, horizon, ..checkpoint.state };
        self.folder.forget_lost_best(&mut self.state);
        if let Some((old, name)) = &best {
            (self.state.best, self.state.best_loss, self.state.best_checkpoint) = (value, loss, Some(name.clone()));
            if old != name {
                self.folder.log(&format!("the best checkpoint is of the course that is left: it is {name} now"))?;
            }
        }
        self.went_back_to = Some(self.state.update);
        self.saved = self.went_back_to;
        let model = self.model().valid();
        // From here on no rank reads the checkpoints of the course that is left.
        together::check_same(&*self.ranks, &model, self.state.update, together::OTHER_FOLDER)?;
        self.leave_course(&model, best)?;
        record::cut(&self.folder, self.state.update)
    }

    /// The best checkpoint where going back to `update` would leave it behind, and the name under which it is kept: training is not gone
    /// on with from there, but nothing better is known.
    fn best_to_keep(&self, update: u64) -> Option<(String, String)> {
        let name = self.state.best_checkpoint.clone().filter(|name| self.folder.checkpoint(name).is_dir())?;
        match name.parse::<u64>() {
            Ok(of) if of <= update => None,
            Ok(_) => Some((name.clone(), format!("{LEFT}{name}"))),
            // It was kept before.
            Err(_) => name.starts_with(LEFT).then(|| (name.clone(), name)),
        }
    }

    /// Lets whoever goes on with the run begin where this process went back to, with the rate that it goes on with.
    fn leave_course(&mut self, model: &M, best: Option<(String, String)>) -> Result<()> {
        if self.folder.is_read_only() {
            return Ok(());
        }
        if let Some((old, new)) = best.filter(|(old, new)| old != new) {
            checkpoint::rename(&self.folder.checkpoint(&old), &self.folder.checkpoint(&new))?;
        }
        let folder = self.folder.checkpoint(&checkpoint::name_of(self.state.update));
        checkpoint::save(&folder, &weights::collect(model), Some(&self.adam), &self.state)?;
        self.folder.write_pointers(&self.state)?;
        let all = checkpoint::list(&self.folder.join("checkpoints"));
        checkpoint::set_aside(all.into_iter().filter(|(update, _)| *update > self.state.update))
    }
}
