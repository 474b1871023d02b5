//! The update loop.
//!
//! The loop owns model, optimizer, schedule, place in the data and checkpoints; [`super::strategy`] plugs it into burn-train. It is
//! ours, and not burn-train's own, for what that has no room for: checkpoints after so many updates, also within an epoch, from
//! which training goes on with the same bytes; gradients of several micro-batches summed over the tokens of all of them, and
//! clipped by the norm of all parameters together; updates without a finite gradient, which are skipped or rolled back.
//! What burn's dashboard calls an epoch is the stretch between two validations.

use super::checkpoint::{self, TrainingState};
use super::config::TrainingConfig;
use super::folder::RunFolder;
use super::gradient_set::Layout;
use super::lessons::{Lessons, Trainable, UpdatePart};
use super::loader::{PartLoader, Place};
use super::loss::Unread;
use super::metrics::Stats;
use super::observer::Observer;
use super::optimizer::Adam;
use super::parts;
use super::record::{self, Record};
use super::renderer::Progress;
use super::schedule::ScheduleParameters;
use super::setup::{Setup, Stop};
use super::together::{self, Part, Sum, own_parts};
use crate::error::{Error, Result};
use crate::models::weights;
use crate::pool::in_pool;
use crate::ranks::{Ranks, say};
use burn::tensor::Device;
use burn_train::{
    EventProcessorTraining, Interrupter, LearnerEvent, SupervisedTrainingEventProcessor, TrainLoader, TrainingItem,
    ValidLoader,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The largest norm of a gradient, once clipped, whose squares are 32-bit numbers: Adam would keep an infinite mean of squares for ever.
const MOST_NORM: f64 = 1e19;

/// Updates in a row without a finite gradient after which the last good checkpoint is taken up again.
pub(super) const MAX_BAD_UPDATES: u32 = 10;

/// The parts of an epoch's plan that an update is made of.
struct Stretch {
    start: usize,
    end: usize,
    /// Parts of the epoch.
    n: usize,
}

impl Stretch {
    /// The next `accumulation` of `n` parts from `start` on, or fewer at the end of the epoch.
    fn new(start: usize, accumulation: usize, n: usize) -> Self {
        Self { start, end: (start + accumulation).min(n), n }
    }

    fn n_parts(&self) -> usize {
        self.end - self.start
    }

    fn ends_epoch(&self) -> bool {
        self.end == self.n
    }
}

/// Everything the loop owns.
pub struct Trainer<M: Trainable> {
    pub(super) training: TrainingConfig,
    seed: u64,
    width: usize,
    pub(super) folder: RunFolder,
    is_host: bool,
    pub(super) ranks: Arc<dyn Ranks>,
    /// The parameters one after the other, for whoever adds gradients of several ranks.
    layout: Layout,
    pub(super) device: Device,
    pub(super) lessons: Arc<dyn Lessons<M>>,
    pub(super) observer: Arc<dyn Observer>,
    /// Absent while an update moves its parameters, which happens in place, and while burn-train's learner has it.
    model: Option<M>,
    pub(super) place: Place,
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

impl<M: Trainable> Trainer<M> {
    /// Prepares the loop, from the newest whole checkpoint if there is one.
    ///
    /// # Errors
    /// If there are checkpoints, and none of them is whole and of this model.
    pub fn new(setup: Setup<M>) -> Result<Self> {
        let Setup { training, seed, width, model, device, lessons, folder, horizon, observer, ranks } = setup;
        let folder = if ranks.rank() == 0 { folder } else { folder.read_only() };
        let mut state = TrainingState { rate_factor: 1.0, ..TrainingState::default() };
        let mut adam = Adam::new(training.optimizer.clone());
        let mut model = model;
        let mut saved = None;
        let there = checkpoint::list(&folder.join("checkpoints"));
        if let Some((whole, checkpoint)) = folder.newest_checkpoint(u64::MAX, |line| observer.warn(&line)) {
            model = weights::apply(model, &checkpoint.model, &whole.join(checkpoint::MODEL))?;
            checkpoint.restore(&mut adam, &whole, &device)?;
            state = checkpoint.state;
            saved = Some(state.update);
            if !folder.is_read_only() {
                checkpoint::set_aside(there.into_iter().filter(|(update, _)| *update > state.update))?;
            }
            folder.forget_lost_best(&mut state);
            // A kill between a checkpoint and its pointers leaves those behind.
            folder.mend_pointers(&state)?;
        } else if !there.is_empty() {
            let message = "has no whole checkpoint left to go on from; give another --run to begin anew";
            return Err(Error::file(folder.join("checkpoints"), message));
        }
        if state.horizon.is_none() && training.schedule.has_end() {
            state.horizon = horizon;
        }
        together::check_same(&*ranks, &model, state.update, together::OTHER_FOLDER)?;
        record::cut(&folder, state.update)?;
        let progress = Progress {
            update: state.update,
            start: state.update,
            total: training.max_updates,
            since: Instant::now(),
            seconds_before: state.seconds,
            max_seconds: training.max_minutes.map(|minutes| 60.0 * minutes),
            unshown: VecDeque::new(),
        };
        Ok(Self {
            training,
            seed,
            width,
            folder,
            is_host: crate::backend::is_host(&device),
            layout: Layout::of(&model),
            ranks,
            device: device.autodiff(),
            lessons,
            observer,
            model: Some(model.train()),
            place: Place::default(),
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

    /// The loader of what is learnt from.
    pub(super) fn loader(&self) -> PartLoader<M> {
        PartLoader::new(self.lessons.clone(), &self.training, self.seed, &self.device, &self.place, self.ranks.clone())
    }

    /// The model as it learns.
    pub(super) fn model(&self) -> &M {
        self.model.as_ref().expect("updates do not overlap")
    }

    /// The model, which is to be put back.
    pub(super) fn take_model(&mut self) -> M {
        self.model.take().expect("updates do not overlap")
    }

    /// Puts a model in its place.
    pub(super) fn set_model(&mut self, model: M) {
        self.model = Some(model);
    }

    /// Updates made.
    pub fn update(&self) -> u64 {
        self.state.update
    }

    /// Where the learning rate's schedule ends, if that is known.
    pub fn horizon(&self) -> Option<u64> {
        self.state.horizon
    }

    fn schedule(&self) -> ScheduleParameters {
        let training = &self.training;
        ScheduleParameters {
            learning_rate: training.learning_rate,
            warmup_updates: training.warmup_updates,
            // Until the speed of updates is known, minutes do not bring the end nearer.
            horizon: self.state.horizon.unwrap_or(training.max_updates),
            final_fraction: training.final_fraction,
            d_model: self.width,
        }
    }

    /// Updates until something says stop.
    pub(super) fn run(
        &mut self,
        train: &TrainLoader<M>,
        valid: &ValidLoader<M>,
        events: &mut SupervisedTrainingEventProcessor<M>,
        interrupter: &Interrupter,
    ) -> Result<Stop> {
        self.place.set(self.state.epoch, self.state.position);
        let mut epoch = train.iter();
        let mut bad_updates = 0;
        let mut record = Record::open(&self.folder, self.state.update)?;
        let stretch = |update: u64, every: u64| (update / every) as usize + 1;
        let every = self.training.validate_every;
        self.open_stretch(events, interrupter, stretch(self.state.update, every));
        loop {
            if let Some(error) = interrupter.error() {
                self.save(&record, false)?;
                return Err(Error::message(format!("{error}; what was learnt is saved, the same command goes on")));
            }
            if let Some(stop) = self.agree_on_stop(interrupter) {
                // Before the first update nothing has been learnt, and a checkpoint would hold the folder to this config.
                if stop != Stop::Interrupted || self.state.update > 0 {
                    self.save(&record, false)?;
                }
                return Ok(stop);
            }
            let start = Instant::now();
            let stretch_of_plan =
                Stretch::new(self.state.position, self.training.accumulation, epoch.progress().items_total);
            let n_own = own_parts(&*self.ranks, stretch_of_plan.n_parts()).count();
            let parts = epoch.by_ref().take(n_own).collect::<Result<Vec<_>, _>>();
            let parts = parts.map_err(|error| Error::message(format!("the data cannot be read: {error}")))?;
            let device = self.device.clone();
            let stats = match self.ranks.size() {
                1 => in_pool(&device, || self.update_once(parts, &stretch_of_plan, start))?,
                // Whoever waits for another rank must not hold a thread of the pool, which that one may need.
                _ => self.update_once(parts, &stretch_of_plan, start)?,
            };
            if self.state.position == 0 {
                self.place.set(self.state.epoch, 0);
                epoch = train.iter();
            }
            let Some(stats) = stats else {
                bad_updates += 1;
                if bad_updates >= MAX_BAD_UPDATES {
                    self.roll_back()?;
                    self.place.set(self.state.epoch, self.state.position);
                    epoch = train.iter();
                    // The file has been cut back, and so replaced.
                    record = Record::open(&self.folder, self.state.update)?;
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
            let is_last = self.state.update >= self.training.max_updates;
            if self.state.update.is_multiple_of(every) || is_last {
                let number = stretch(self.state.update - 1, every);
                interrupter.fail_on_error(events.process_train(LearnerEvent::EndSplit(number)));
                self.validate(valid, events, interrupter, number, &mut record)?;
                interrupter.fail_on_error(events.process_train(LearnerEvent::EndEpoch(number)));
                self.save(&record, true)?;
                if !is_last {
                    self.open_stretch(events, interrupter, number + 1);
                }
            } else if self.state.update.is_multiple_of(self.training.save_every) {
                self.save(&record, false)?;
            }
        }
    }

    fn open_stretch(&self, events: &mut SupervisedTrainingEventProcessor<M>, interrupter: &Interrupter, number: usize) {
        let total_items = self.training.validate_every as usize;
        let event = LearnerEvent::StartSplit { epoch_number: number, total_items };
        interrupter.fail_on_error(events.process_train(event));
    }

    /// Why to stop, if all ranks are to: a signal counts wherever it came, of the rest only rank 0 decides, whose clock counts.
    fn agree_on_stop(&self, interrupter: &Interrupter) -> Option<Stop> {
        let own = self.stop(interrupter);
        if self.ranks.size() == 1 {
            return own;
        }
        let said = say(&*self.ranks, own);
        if said.contains(&Some(Stop::Interrupted)) { Some(Stop::Interrupted) } else { said[0] }
    }

    fn stop(&self, interrupter: &Interrupter) -> Option<Stop> {
        let training = &self.training;
        if self.observer.should_stop() || interrupter.should_stop() {
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

    /// The gradient of an update with `n_parts` parts, of which `parts` are those of this rank, its norm, and its targets. A device is
    /// read once, when everything has been enqueued.
    fn gradient(&mut self, parts: Vec<UpdatePart<M::Batch>>, n_parts: usize) -> (Sum, f64, usize) {
        let n_own = parts.first().map_or(0, |part| part.n_total);
        let n_total = say(&*self.ranks, n_own).into_iter().sum();
        let replacement_rate = 1.0 - self.training.scheduled_sampling.truth(self.state.update + 1);
        let (ranks, device, is_host) = (&*self.ranks, &self.device, self.is_host);
        let model = self.model.as_mut().expect("updates do not overlap");
        let parts = parts.into_iter().map(|part| UpdatePart { replacement_rate, n_total, ..part });
        if ranks.size() == 1 {
            let (gradients, sums, norm) = parts::of_all(model, parts, device, is_host);
            return (Sum { gradients, sums, seconds: 0.0 }, norm, n_total);
        }
        let mut parts = own_parts(ranks, n_parts).zip(parts);
        let compute = || {
            let (number, part) = parts.next()?;
            let (gradients, sums) = parts::of_part(model, part, device, is_host);
            Some(Part { number, gradients, sums: Unread::read_all(vec![sums], None).0 })
        };
        let sum = together::sum(ranks, &self.layout, n_parts, &device.clone().inner(), compute);
        let norm = sum.gradients.norm();
        (sum, norm, n_total)
    }

    /// One update from the parts of it that belong to this rank; nothing if its gradient is not finite, which is counted and
    /// skipped. It began at `start`.
    fn update_once(
        &mut self,
        parts: Vec<UpdatePart<M::Batch>>,
        stretch: &Stretch,
        start: Instant,
    ) -> Result<Option<Stats>> {
        let (Sum { gradients, sums, seconds: sum_seconds }, norm, n_total) = self.gradient(parts, stretch.n_parts());
        self.state.position = stretch.end;
        if stretch.ends_epoch() {
            self.state.epoch += 1;
            self.state.position = 0;
        }
        let training = &self.training;
        let clip = training.clip_norm;
        let scale = if clip > 0.0 && norm > clip { clip / norm } else { 1.0 };
        let fault = match () {
            () if !norm.is_finite() || !sums.smoothed.is_finite() => Some("is not finite"),
            () if norm * scale > MOST_NORM => Some("has squares that are not finite"),
            () => None,
        };
        if let Some(fault) = fault {
            self.state.skipped += 1;
            self.folder.log(&format!("update {}: the gradient {fault}; skipped", self.state.update + 1))?;
            return Ok(None);
        }
        self.state.update += 1;
        let rate = self.state.rate_factor * training.schedule.rate(self.state.update, &self.schedule());
        let model = self.take_model();
        let device = self.device.clone();
        self.model = Some(in_pool(&device, || self.adam.step(model, gradients, scale, rate)));
        self.state.tokens += n_total as u64;
        self.tokens += n_total as u64;
        let epoch = self.state.epoch + 1;
        self.progress.lock().expect("no thread panics with the lock").advance(self.state.update, epoch);
        let seconds = start.elapsed().as_secs_f64();
        self.update_seconds += seconds;
        self.plan_horizon(seconds)?;
        Ok(Some(Stats {
            learning_rate: Some(rate),
            gradient_norm: Some(norm),
            tokens_per_second: Some(n_total as f64 / seconds),
            sum_seconds: (self.ranks.size() > 1).then_some(sum_seconds),
            ..Stats::new(sums)
        }))
    }
}
