//! The update loop.
//!
//! The loop owns model, optimizer, schedule, place in the data and checkpoints; [`super::strategy`] plugs it into burn-train.
//! What burn's dashboard calls an epoch is the stretch between two validations.

use super::checkpoint::{self, TrainingState};
use super::lessons::Lessons;
use super::loss::LossSums;
use super::metrics::Stats;
use super::optimizer::{Adam, GradientSet};
use super::record::{self, Record};
use super::renderer::Progress;
use super::run::Run;
use super::schedule::ScheduleParameters;
use super::{UpdatePart, gradients, resume, saving, signal};
use crate::backend::Adapter;
use crate::config::Config;
use crate::data::batch::Batch;
use crate::error::{Error, Result};
use crate::models::{LengthLimit, LengthLimits, Model, Seq2Seq, weights};
use crate::notice;
use crate::pool::in_pool;
use burn::module::Module;
use burn::tensor::Device;
use burn_train::{EventProcessorTraining, Interrupter, LearnerEvent, SupervisedTrainingEventProcessor, TrainingItem};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Updates in a row without a finite gradient after which the last good checkpoint is taken up again.
pub(super) const MAX_BAD_UPDATES: u32 = 10;

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// All updates were made.
    Updates,
    /// The time was up.
    Minutes,
    /// Validation had not become better for as long as `patience` allows.
    Patience,
    /// A signal or the dashboard asked for it.
    Interrupted,
}

/// What training leads to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub stop: Stop,
    /// Where it stands.
    pub state: TrainingState,
    /// Seconds that this process spent in updates, validations excluded.
    pub update_seconds: f64,
    /// Target tokens that this process learnt from.
    pub tokens: u64,
    /// Sentences of the validation sample that the last validation cut at the length cap.
    pub cut: usize,
}

/// Everything the loop owns.
pub(super) struct Trainer {
    pub(super) config: Config,
    pub(super) run: Run,
    pub(super) is_host: bool,
    pub(super) device: Device,
    pub(super) lessons: Box<dyn Lessons>,
    /// Absent only while an update moves its parameters, which happens in place.
    model: Option<Model>,
    pub(super) adam: Adam,
    pub(super) state: TrainingState,
    pub(super) progress: Arc<Mutex<Progress>>,
    pub(super) update_seconds: f64,
    pub(super) tokens: u64,
    /// Seconds of each update, until the horizon is planned.
    pub(super) paces: Vec<f64>,
    /// Seconds of the last validation of this process.
    pub(super) validation_seconds: f64,
    /// Sentences of the sample that the last validation cut.
    pub(super) last_cut: usize,
    /// The update of the last checkpoint that this process wrote, read or went back to.
    pub(super) saved: Option<u64>,
    /// The update that was last gone back to.
    pub(super) went_back_to: Option<u64>,
}

impl Trainer {
    /// Prepares the loop, from the newest whole checkpoint if there is one. `planned` is the horizon of a run that has none
    /// written down.
    pub(super) fn new(
        config: &Config,
        run: &Run,
        adapter: &Adapter,
        lessons: Box<dyn Lessons>,
        model: Model,
        planned: Option<u64>,
    ) -> Result<Self> {
        lessons.check_lengths(model.limits())?;
        if let Some(len) = config.model.family().randomized_positions() {
            let range = Some(LengthLimit { len, key: "model.randomized_positions" });
            lessons.check_lengths(LengthLimits { source: range, target: range })?;
        }
        let mut state = TrainingState { rate_factor: 1.0, ..TrainingState::default() };
        let mut adam = Adam::new(config.training.optimizer.clone());
        let mut model = model;
        let mut saved = None;
        let there = checkpoint::list(&run.join("checkpoints"));
        if let Some((folder, checkpoint)) = run.newest_checkpoint(u64::MAX, notice::warn) {
            model = weights::apply(model, &checkpoint.model, &folder.join(checkpoint::MODEL))?;
            checkpoint.restore(&mut adam, &folder, &adapter.device)?;
            state = checkpoint.state;
            saved = Some(state.update);
            checkpoint::set_aside(there.into_iter().filter(|(update, _)| *update > state.update))?;
            // A kill between a checkpoint and its pointers leaves those behind.
            saving::write_pointers(run, &state)?;
        } else if !there.is_empty() {
            let message = "has no whole checkpoint left to go on from; give another --run to begin anew";
            return Err(Error::file(run.join("checkpoints"), message));
        }
        if state.horizon.is_none() && config.training.schedule.has_end() {
            state.horizon = planned;
        }
        record::cut(run, state.update)?;
        let progress = Progress {
            update: state.update,
            start: state.update,
            total: config.training.max_updates,
            epoch: state.epoch + 1,
            since: Instant::now(),
            seconds_before: state.seconds,
            max_seconds: config.training.max_minutes.map(|minutes| 60.0 * minutes),
        };
        Ok(Self {
            config: config.clone(),
            run: run.clone(),
            is_host: adapter.backend.is_host(),
            device: adapter.device.clone().autodiff(),
            lessons,
            model: Some(model.train()),
            adam,
            state,
            progress: Arc::new(Mutex::new(progress)),
            update_seconds: 0.0,
            tokens: 0,
            paces: Vec::new(),
            validation_seconds: 0.0,
            last_cut: 0,
            saved,
            went_back_to: None,
        })
    }

    /// The model as it learns.
    pub(super) fn model(&self) -> &Model {
        self.model.as_ref().expect("updates do not overlap")
    }

    /// Puts another model in its place.
    pub(super) fn set_model(&mut self, model: Model) {
        self.model = Some(model);
    }

    /// Updates made.
    pub(super) fn update(&self) -> u64 {
        self.state.update
    }

    fn schedule(&self) -> ScheduleParameters {
        let training = &self.config.training;
        ScheduleParameters {
            learning_rate: training.learning_rate,
            warmup_updates: training.warmup_updates,
            // Until the speed of updates is known the end is far away.
            horizon: self.state.horizon.unwrap_or(u64::MAX),
            final_fraction: training.final_fraction,
            d_model: self.config.model.family().width(),
        }
    }

    /// Updates until something says stop.
    pub(super) fn run(
        &mut self,
        events: &mut SupervisedTrainingEventProcessor<Model>,
        interrupter: &Interrupter,
    ) -> Result<Stop> {
        let mut plan = (self.state.epoch, self.lessons.plan(self.state.epoch));
        let mut bad_updates = 0;
        let mut record = Record::open(&self.run, self.state.update)?;
        let stretch = |update: u64, every: u64| (update / every) as usize + 1;
        let every = self.config.training.validate_every;
        self.open_stretch(events, stretch(self.state.update, every));
        loop {
            if let Some(stop) = self.stop(interrupter) {
                self.save(false)?;
                return Ok(stop);
            }
            if plan.0 != self.state.epoch {
                plan = (self.state.epoch, self.lessons.plan(self.state.epoch));
            }
            let Some(stats) = self.update_once(&plan.1)? else {
                bad_updates += 1;
                if bad_updates >= MAX_BAD_UPDATES {
                    self.roll_back(&plan.1)?;
                    // The file has been cut back, and so replaced.
                    record = Record::open(&self.run, self.state.update)?;
                    bad_updates = 0;
                }
                continue;
            };
            bad_updates = 0;
            record.write("train", &self.state, self.seconds(), &stats)?;
            let done = (self.state.update - 1) % every + 1;
            let item = TrainingItem {
                lr: stats.learning_rate.map(Into::into),
                item: stats,
                progress: burn::data::dataloader::Progress::new(done as usize, every as usize, Some("updates".into())),
                iteration: Some(self.state.update as usize),
            };
            interrupter.fail_on_error(events.process_train(LearnerEvent::ProcessedItem(item)));
            let is_last = self.state.update >= self.config.training.max_updates;
            if self.state.update.is_multiple_of(every) || is_last {
                let number = stretch(self.state.update - 1, every);
                interrupter.fail_on_error(events.process_train(LearnerEvent::EndSplit(number)));
                self.validate(events, number, &mut record)?;
                interrupter.fail_on_error(events.process_train(LearnerEvent::EndEpoch(number)));
                self.save(true)?;
                if !is_last {
                    self.open_stretch(events, number + 1);
                }
            } else if self.state.update.is_multiple_of(self.config.training.save_every) {
                self.save(false)?;
            }
        }
    }

    fn open_stretch(&self, events: &mut SupervisedTrainingEventProcessor<Model>, number: usize) {
        let total_items = self.config.training.validate_every as usize;
        let _ = events.process_train(LearnerEvent::StartSplit { epoch_number: number, total_items });
    }

    fn stop(&self, interrupter: &Interrupter) -> Option<Stop> {
        let training = &self.config.training;
        if signal::requested() || interrupter.should_stop() {
            Some(Stop::Interrupted)
        } else if self.state.update >= training.max_updates {
            Some(Stop::Updates)
        } else if training.max_minutes.is_some_and(|minutes| self.seconds() >= 60.0 * minutes) {
            Some(Stop::Minutes)
        } else if training.patience > 0 && self.state.stalled >= training.patience {
            Some(Stop::Patience)
        } else {
            None
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.progress.lock().expect("no thread panics with the lock").seconds()
    }

    /// One update; nothing if its gradient is not finite, which is counted and skipped.
    fn update_once(&mut self, plan: &[Vec<usize>]) -> Result<Option<Stats>> {
        in_pool(&self.device.clone(), || self.update_here(plan))
    }

    fn update_here(&mut self, plan: &[Vec<usize>]) -> Result<Option<Stats>> {
        let start = Instant::now();
        let training = &self.config.training;
        let first = self.state.position;
        let last = (first + training.accumulation).min(plan.len());
        let batch = |numbers: &Vec<usize>| self.lessons.batch(self.state.epoch, numbers, &self.device);
        let batches: Vec<Batch> = plan[first..last].iter().map(batch).collect();
        let n_total = batches.iter().map(Batch::n_target_tokens).sum();
        let mut sums = LossSums::default();
        let mut total = GradientSet::default();
        for (i, batch) in batches.into_iter().enumerate() {
            let place = (self.state.epoch, (first + i) as u64);
            let part = UpdatePart {
                batch,
                n_total,
                smoothing: training.label_smoothing,
                seed: self.config.seed,
                place,
                is_fused: training.fused,
                replacement_rate: 1.0 - training.scheduled_sampling.truth(self.state.update + 1),
            };
            let (grads, part_sums) = gradients(self.model(), &part);
            total.add(GradientSet::new(self.model(), grads, self.is_host));
            sums += part_sums;
        }
        let norm = total.norm();
        self.state.position = last;
        if last == plan.len() {
            self.state.epoch += 1;
            self.state.position = 0;
        }
        if !norm.is_finite() || !sums.smoothed.is_finite() {
            self.state.skipped += 1;
            resume::log(&self.run, &format!("update {}: the gradient is not finite; skipped", self.state.update + 1))?;
            return Ok(None);
        }
        let clip = training.clip_norm;
        let scale = if clip > 0.0 && norm > clip { clip / norm } else { 1.0 };
        self.state.update += 1;
        let rate = self.state.rate_factor * training.schedule.rate(self.state.update, &self.schedule());
        let model = self.model.take().expect("updates do not overlap");
        self.model = Some(self.adam.step(model, total, scale, rate));
        self.state.tokens += n_total as u64;
        self.tokens += n_total as u64;
        {
            let mut progress = self.progress.lock().expect("no thread panics with the lock");
            progress.update = self.state.update;
            progress.epoch = self.state.epoch + 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        self.update_seconds += seconds;
        self.plan_horizon(seconds)?;
        Ok(Some(Stats {
            learning_rate: Some(rate),
            gradient_norm: Some(norm),
            tokens_per_second: Some(n_total as f64 / seconds),
            ..Stats::new(sums)
        }))
    }
}
