//! Validation: what the held-out data say, and whether that is the best so far.

use super::checkpoint;
use super::config::Criterion;
use super::lessons::{Measured, Trainable};
use super::metrics::Stats;
use super::record::Record;
use super::together;
use super::trainer::Trainer;
use crate::error::{Error, Result};
use burn_train::{
    EventProcessorTraining, InferenceStep, Interrupter, LearnerEvent, SupervisedTrainingEventProcessor, TrainingItem,
    ValidLoader,
};
use std::time::Instant;

impl<M: Trainable> Trainer<M> {
    /// Examines the model; notes whether it is the best so far.
    pub(super) fn validate(
        &mut self,
        valid: &ValidLoader<M>,
        events: &mut SupervisedTrainingEventProcessor<M>,
        interrupter: &Interrupter,
        number: usize,
        record: &mut Record,
    ) -> Result<()> {
        let mut tell = |event| interrupter.fail_on_error(events.process_valid(event));
        tell(LearnerEvent::StartSplit { epoch_number: number, total_items: valid.num_items() });
        let model = self.model().valid();
        // Where devices add up tensors among themselves, the order of the sum is theirs.
        if self.ranks.devices().is_none() {
            together::check_same(&*self.ranks, &model, self.state.update, together::OTHER_MACHINE)?;
        }
        let mut held_out = valid.iter();
        while let Some(item) = held_out.next() {
            let item = item.map_err(|error| Error::message(format!("the held-out data cannot be read: {error}")))?;
            let start = Instant::now();
            let measured = InferenceStep::step(&model, item);
            self.validation_seconds = start.elapsed().as_secs_f64();
            self.note(&measured, record)?;
            let (progress, iteration) = (held_out.progress(), Some(self.state.update as usize));
            tell(LearnerEvent::ProcessedItem(TrainingItem { item: measured, progress, iteration, lr: None }));
        }
        tell(LearnerEvent::EndSplit(number));
        Ok(())
    }

    /// Writes down what a validation came to, and whether it is the best so far.
    fn note(&mut self, Measured { stats, sample }: &Measured, record: &mut Record) -> Result<()> {
        self.last_cut = stats.cut.unwrap_or(0);
        record.write("valid", &self.state, self.seconds(), stats)?;
        record.write_sample(self.state.update, sample)?;
        if self.is_better(stats) {
            self.note_best(stats);
            self.state.stalled = 0;
        } else {
            self.state.stalled += 1;
        }
        Ok(())
    }

    /// Notes that the model as it is now, with these figures, is the best so far.
    pub(super) fn note_best(&mut self, stats: &Stats) {
        self.state.best = Some(self.criterion(stats));
        self.state.best_loss = Some(stats.loss);
        self.state.best_checkpoint = Some(checkpoint::name_of(self.state.update));
    }

    fn criterion(&self, stats: &Stats) -> f64 {
        match self.training.criterion {
            Criterion::Loss => stats.loss,
            Criterion::Score => stats.score.unwrap_or(0.0),
        }
    }

    /// Of equal scores that with the lower loss is better: many are 100 % long before all has been learnt.
    pub(super) fn is_better(&self, stats: &Stats) -> bool {
        let value = self.criterion(stats);
        if self.training.criterion == Criterion::Score && self.state.best == Some(value) {
            return self.state.best_loss.is_some_and(|best| stats.loss < best);
        }
        match (self.state.best, self.training.criterion) {
            (None, _) => value.is_finite(),
            (Some(best), Criterion::Loss) => value < best,
            (Some(best), Criterion::Score) if self.training.score.lower_is_better() => value < best,
            (Some(best), Criterion::Score) => value > best,
        }
    }
}
