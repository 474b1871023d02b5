//! The update loop, as a strategy of burn-train.
//!
//! The loop owns model, optimizer, schedule, place in the data and checkpoints; burn's `Learner` only carries the model in.
//! What burn's dashboard calls an epoch is the stretch between two validations.

use super::checkpoint::{self, TrainingState};
use super::config::{Criterion, ValidationScore};
use super::dataset::{Corpus, encode};
use super::loss::LossSums;
use super::metrics::{Scalar, Stats};
use super::optimizer::{Adam, GradientSet};
use super::renderer::{Dashboard, Progress};
use super::run::Run;
use super::schedule::ScheduleParameters;
use super::{UpdatePart, gradients, resume, signal, validation};
use crate::backend::Adapter;
use crate::config::Config;
use crate::data::batch::{Batch, Example, plan_epoch};
use crate::data::{Pair, Tokenizers};
use crate::error::{Error, Result};
use crate::models::{Model, ModelConfig, weights};
use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::tensor::Device;
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, NumericEntry};
use burn::train::{
    EventProcessorTraining, Interrupter, Learner, LearnerEvent, SupervisedLearningStrategy, SupervisedTraining,
    SupervisedTrainingEventProcessor, TrainLoader, TrainingComponents, TrainingItem, TrainingStrategy, ValidLoader,
};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Updates in a row without a finite gradient after which the last good checkpoint is taken up again.
const MAX_BAD_UPDATES: u32 = 10;
/// Rollbacks after which training gives up.
const MAX_ROLLBACKS: u32 = 3;

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
}

/// Everything the loop owns.
pub(super) struct Trainer {
    config: Config,
    run: Run,
    is_host: bool,
    device: Device,
    tokenizers: Tokenizers,
    train: Vec<Example>,
    lengths: Vec<(usize, usize)>,
    valid: Vec<Example>,
    sample: Vec<Pair>,
    model: Model,
    adam: Adam,
    state: TrainingState,
    progress: Arc<Mutex<Progress>>,
    /// Seconds before this process.
    seconds_before: f64,
    update_seconds: f64,
    tokens: u64,
}

impl Trainer {
    /// Prepares the loop, from the newest whole checkpoint if there is one.
    pub(super) fn new(
        config: &Config,
        run: &Run,
        adapter: &Adapter,
        corpus: &Corpus,
        tokenizers: Tokenizers,
        model: Model,
    ) -> Result<Self> {
        let train = encode(&corpus.train, &tokenizers);
        let valid = encode(&corpus.valid, &tokenizers);
        let mut state = TrainingState { rate_factor: 1.0, ..TrainingState::default() };
        let mut adam = Adam::new(config.training.optimizer.clone());
        let mut model = model;
        let there = checkpoint::list(&run.join("checkpoints"));
        if let Some((folder, checkpoint)) = run.newest_checkpoint(|warning| eprintln!("warning: {warning}")) {
            model = weights::apply(model, &checkpoint.model, &folder.join("model.safetensors"))?;
            if let Some((moments, updates)) = checkpoint.optimizer {
                adam.restore(moments, updates, &adapter.device);
            }
            state = checkpoint.state;
            checkpoint::set_aside(there.into_iter().filter(|(update, _)| *update > state.update))?;
            // A kill between a checkpoint and its pointers leaves those behind.
            write_pointers(run, &state)?;
        } else if !there.is_empty() {
            let message = "has no whole checkpoint left to go on from; give another --run to begin anew";
            return Err(Error::file(run.join("checkpoints"), message));
        }
        cut_metrics(run, state.update)?;
        let progress = Progress {
            update: state.update,
            start: state.update,
            total: config.training.max_updates,
            epoch: state.epoch + 1,
            since: Instant::now(),
        };
        let trainer = Self {
            config: config.clone(),
            run: run.clone(),
            is_host: adapter.backend.is_host(),
            device: adapter.device.clone().autodiff(),
            lengths: train.iter().map(|example| (example.source.len(), example.target.len())).collect(),
            train,
            valid,
            sample: corpus.valid.iter().take(config.training.sample_size).cloned().collect(),
            tokenizers,
            model: model.train(),
            adam,
            seconds_before: state.seconds,
            state,
            progress: Arc::new(Mutex::new(progress)),
            update_seconds: 0.0,
            tokens: 0,
        };
        trainer.check_lengths()?;
        Ok(trainer)
    }

    /// Updates made.
    pub(super) fn update(&self) -> u64 {
        self.state.update
    }

    fn check_lengths(&self) -> Result<()> {
        let Some(limit) = crate::models::Seq2Seq::max_len(&self.model) else { return Ok(()) };
        let longest = self.train.iter().chain(&self.valid).map(|e| e.source.len().max(e.target.len()) + 1).max().unwrap_or(0);
        if longest <= limit {
            return Ok(());
        }
        Err(Error::config(
            "model.positions.max_len",
            format!("is {limit}, but the data has {longest} tokens in a sentence; raise it, filter with data.filter.max_len, or use \"sinusoidal\""),
        ))
    }

    fn schedule(&self) -> ScheduleParameters {
        let training = &self.config.training;
        ScheduleParameters {
            learning_rate: training.learning_rate,
            warmup_updates: training.warmup_updates,
            max_updates: training.max_updates,
            final_fraction: training.final_fraction,
            d_model: match &self.config.model {
                ModelConfig::Rnn(config) => config.d_hidden,
                ModelConfig::Transformer(config) => config.d_model,
            },
        }
    }

    /// Updates until something says stop.
    fn run(&mut self, events: &mut SupervisedTrainingEventProcessor<Model>, interrupter: &Interrupter) -> Result<Stop> {
        let mut plan = (self.state.epoch, self.plan(self.state.epoch));
        let mut bad_updates = 0;
        let mut metrics = self.open_metrics()?;
        let stretch = |update: u64, every: u64| (update / every) as usize + 1;
        let every = self.config.training.validate_every;
        self.open_stretch(events, stretch(self.state.update, every));
        loop {
            if let Some(stop) = self.stop(interrupter) {
                self.save(false)?;
                return Ok(stop);
            }
            if plan.0 != self.state.epoch {
                plan = (self.state.epoch, self.plan(self.state.epoch));
            }
            let Some(stats) = self.update_once(&plan.1)? else {
                bad_updates += 1;
                if bad_updates >= MAX_BAD_UPDATES {
                    self.roll_back(&plan.1)?;
                    // The file has been cut back, and so replaced.
                    metrics = self.open_metrics()?;
                    bad_updates = 0;
                }
                continue;
            };
            bad_updates = 0;
            self.write_metrics(&mut metrics, "train", &stats)?;
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
                self.validate(events, number, &mut metrics)?;
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

    fn plan(&self, epoch: u64) -> Vec<Vec<usize>> {
        plan_epoch(&self.lengths, self.config.training.batch_tokens, self.config.seed, epoch)
    }

    fn seconds(&self) -> f64 {
        let progress = self.progress.lock().expect("no thread panics with the lock");
        self.seconds_before + progress.since.elapsed().as_secs_f64()
    }

    /// One update; nothing if its gradient is not finite, which is counted and skipped.
    fn update_once(&mut self, plan: &[Vec<usize>]) -> Result<Option<Stats>> {
        let start = Instant::now();
        let training = &self.config.training;
        let first = self.state.position;
        let last = (first + training.accumulation).min(plan.len());
        let batches: Vec<Batch> = plan[first..last].iter().map(|indices| self.batch(indices)).collect();
        let n_total = batches.iter().map(Batch::n_target_tokens).sum();
        let mut sums = LossSums::default();
        let mut total = GradientSet::default();
        for (i, batch) in batches.into_iter().enumerate() {
            let place = (self.state.epoch, (first + i) as u64);
            let part = UpdatePart { batch, n_total, smoothing: training.label_smoothing, seed: self.config.seed, place };
            let (grads, part_sums) = gradients(&self.model, &part);
            total.add(GradientSet::new(&self.model, grads, self.is_host));
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
        self.model = self.adam.step(self.model.clone(), total, scale, rate);
        self.state.tokens += n_total as u64;
        self.tokens += n_total as u64;
        {
            let mut progress = self.progress.lock().expect("no thread panics with the lock");
            progress.update = self.state.update;
            progress.epoch = self.state.epoch + 1;
        }
        let seconds = start.elapsed().as_secs_f64();
        self.update_seconds += seconds;
        Ok(Some(Stats {
            learning_rate: Some(rate),
            gradient_norm: Some(norm),
            tokens_per_second: Some(n_total as f64 / seconds),
            ..Stats::new(sums)
        }))
    }

    fn batch(&self, indices: &[usize]) -> Batch {
        let examples: Vec<&Example> = indices.iter().map(|i| &self.train[*i]).collect();
        Batch::new(&examples, &self.device)
    }

    /// Goes back to the newest whole checkpoint with half the learning rate.
    fn roll_back(&mut self, plan: &[Vec<usize>]) -> Result<()> {
        let rollbacks = self.state.rollbacks + 1;
        let checkpoint = self.run.newest_checkpoint(|_| ());
        let Some((folder, checkpoint)) = checkpoint.filter(|_| rollbacks <= MAX_ROLLBACKS) else {
            // At position 0 the epoch that `plan` is of has just ended.
            let indices = self.state.position.checked_sub(1).map_or(plan.last(), |last| plan.get(last));
            let lines: Vec<String> = indices
                .into_iter()
                .flatten()
                .map(|i| {
                    let example = &self.train[*i];
                    let source = self.tokenizers.source().decode(&example.source);
                    format!("{source}\t{}", self.tokenizers.target().decode(&example.target))
                })
                .collect();
            let path = self.run.join("diverged-batch.tsv");
            std::fs::write(&path, lines.join("\n") + "\n").map_err(Error::io(&path))?;
            return Err(Error::message(format!(
                "training diverged: {MAX_BAD_UPDATES} gradients in a row were not finite after update {} and {} rollbacks; \
                 the last batch is in {}; lower training.learning_rate or raise training.warmup_updates",
                self.state.update,
                self.state.rollbacks,
                path.display()
            )));
        };
        let message = format!(
            "{MAX_BAD_UPDATES} gradients in a row were not finite: back to update {} with half the learning rate",
            checkpoint.state.update
        );
        resume::log(&self.run, &message)?;
        let model = self.model.clone().valid();
        self.model = weights::apply(model, &checkpoint.model, &folder.join("model.safetensors"))?.train();
        if let Some((moments, updates)) = checkpoint.optimizer {
            self.adam.restore(moments, updates, &self.device);
        }
        let skipped = self.state.skipped;
        self.state = checkpoint.state;
        self.state.skipped = skipped;
        self.state.rate_factor *= 0.5;
        self.state.rollbacks = rollbacks;
        cut_metrics(&self.run, self.state.update)
    }

    /// Loss and score on held-out pairs; notes whether they are the best so far.
    fn validate(
        &mut self,
        events: &mut SupervisedTrainingEventProcessor<Model>,
        number: usize,
        metrics: &mut std::fs::File,
    ) -> Result<()> {
        let _ = events.process_valid(LearnerEvent::StartSplit { epoch_number: number, total_items: 1 });
        let model = self.model.valid();
        let (stats, translations) = self.measure(&model)?;
        self.write_metrics(metrics, "valid", &stats)?;
        self.write_sample(&translations)?;
        if self.is_better(&stats) {
            self.state.best = Some(self.criterion(&stats));
            self.state.best_checkpoint = Some(checkpoint::name_of(self.state.update));
            self.state.stalled = 0;
        } else {
            self.state.stalled += 1;
        }
        let item = TrainingItem {
            item: stats,
            progress: burn::data::dataloader::Progress::new(1, 1, Some("validation".into())),
            iteration: Some(self.state.update as usize),
            lr: None,
        };
        let _ = events.process_valid(LearnerEvent::ProcessedItem(item));
        let _ = events.process_valid(LearnerEvent::EndSplit(number));
        Ok(())
    }

    fn measure(&self, model: &Model) -> Result<(Stats, Vec<String>)> {
        let training = &self.config.training;
        let sums = validation::validate(model, &self.valid, training.batch_tokens);
        let (score, translations) =
            validation::sample_score(model, &self.tokenizers, &self.sample, training.score, &self.config.decoding)?;
        Ok((Stats { score: Some(score), ..Stats::new(sums) }, translations))
    }

    /// To nine decimals: with more digits serde_json does not read back what it wrote, and a resumed run would compare with
    /// another number.
    fn criterion(&self, stats: &Stats) -> f64 {
        let value = match self.config.training.criterion {
            Criterion::Loss => stats.loss,
            Criterion::Score => stats.score.unwrap_or(0.0),
        };
        (value * 1e9).round() / 1e9
    }

    fn is_better(&self, stats: &Stats) -> bool {
        let value = self.criterion(stats);
        match (self.state.best, self.config.training.criterion) {
            (None, _) => value.is_finite(),
            (Some(best), Criterion::Loss) => value < best,
            (Some(best), Criterion::Score) => value > best,
        }
    }

    /// Writes a checkpoint, moves the pointers, and removes what is no longer kept.
    fn save(&mut self, is_validated: bool) -> Result<()> {
        let name = checkpoint::name_of(self.state.update);
        let folder = self.run.checkpoint(&name);
        if folder.exists() && !is_validated {
            return Ok(());
        }
        self.state.seconds = self.seconds();
        if is_validated {
            self.state.validated.push(name.clone());
            let n_averaged = self.config.training.average_checkpoints;
            let excess = self.state.validated.len().saturating_sub(n_averaged.max(1));
            self.state.validated.drain(..excess);
        }
        checkpoint::save(&folder, &weights::collect(&self.model.valid()), Some(&self.adam), &self.state)?;
        write_pointers(&self.run, &self.state)?;
        self.remove_old();
        Ok(())
    }

    fn remove_old(&self) {
        let all = checkpoint::list(&self.run.join("checkpoints"));
        let n_old = all.len().saturating_sub(self.config.training.keep_checkpoints);
        for (update, folder) in &all[..n_old] {
            let name = checkpoint::name_of(*update);
            let is_best = self.state.best_checkpoint.as_deref() == Some(&name);
            let is_averaged = self.config.training.average_checkpoints > 1 && self.state.validated.contains(&name);
            if !is_best && !is_averaged {
                // A folder that cannot be removed costs space, nothing else.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }

    /// Tries the mean of the last validated checkpoints, and marks it as the best if it is.
    fn average(&mut self) -> Result<()> {
        let n = self.config.training.average_checkpoints;
        if n < 2 || self.state.validated.len() < 2 {
            return Ok(());
        }
        let mut sets = Vec::new();
        for name in &self.state.validated {
            match checkpoint::load(&self.run.checkpoint(name)) {
                Ok(checkpoint) => sets.push(checkpoint.model),
                Err(error) => eprintln!("warning: {error}; averaging without it"),
            }
        }
        if sets.len() < 2 {
            return Ok(());
        }
        let mean = weights::average(&sets);
        let name = format!("averaged-{}", checkpoint::name_of(self.state.update));
        let folder = self.run.checkpoint(&name);
        let model = weights::apply(self.model.valid(), &mean, &folder)?;
        let (stats, _) = self.measure(&model)?;
        let is_better = self.is_better(&stats);
        let verdict = if is_better { "better than any of them" } else { "not better than the best of them" };
        let line = format!(
            "mean of {} checkpoints: loss {:.4}, score {:.2}: {verdict}",
            sets.len(),
            stats.loss,
            stats.score.unwrap_or(0.0)
        );
        resume::log(&self.run, &line)?;
        eprintln!("{line}");
        if is_better {
            checkpoint::save(&folder, &mean, None, &self.state)?;
            checkpoint::write_pointer(&self.run.join("best"), &name)?;
        }
        Ok(())
    }

    fn open_metrics(&self) -> Result<std::fs::File> {
        let path = self.run.join("metrics.jsonl");
        std::fs::OpenOptions::new().create(true).append(true).open(&path).map_err(Error::io(path))
    }

    fn write_metrics(&self, file: &mut std::fs::File, split: &str, stats: &Stats) -> Result<()> {
        let mut line = serde_json::json!({ "split": split, "update": self.state.update, "epoch": self.state.epoch });
        let numbers = serde_json::to_value(stats).expect("stats are plain data");
        let object = line.as_object_mut().expect("an object");
        object.extend(numbers.as_object().expect("an object").clone());
        object.insert("seconds".into(), self.seconds().into());
        if let Some(bytes) = memory_in_use() {
            object.insert("memory_mib".into(), (bytes >> 20).into());
        }
        writeln!(file, "{line}").map_err(Error::io(self.run.join("metrics.jsonl")))
    }

    fn write_sample(&self, translations: &[String]) -> Result<()> {
        let name = format!("samples/{}.txt", checkpoint::name_of(self.state.update));
        let path = self.run.join(&name);
        let text: String = self
            .sample
            .iter()
            .zip(translations)
            .map(|(pair, translation)| format!("source     {}\nreference  {}\nmodel      {translation}\n\n", pair.source, pair.target))
            .collect();
        std::fs::write(&path, text).map_err(Error::io(path))
    }
}

/// Lets `last` and `best` name what `state` says.
fn write_pointers(run: &Run, state: &TrainingState) -> Result<()> {
    checkpoint::write_pointer(&run.join("last"), &checkpoint::name_of(state.update))?;
    match &state.best_checkpoint {
        Some(best) => checkpoint::write_pointer(&run.join("best"), best),
        None => Ok(()),
    }
}

/// Removes the lines of updates after `update`, which will be made again.
fn cut_metrics(run: &Run, update: u64) -> Result<()> {
    let path = run.join("metrics.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
    let is_kept = |line: &&str| {
        serde_json::from_str::<serde_json::Value>(line).is_ok_and(|line| line["update"].as_u64().is_some_and(|u| u <= update))
    };
    let kept: String = text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, kept).map_err(Error::io(&temporary))?;
    std::fs::rename(&temporary, &path).map_err(Error::io(path))
}

/// The memory that this process has in use, where the system tells.
fn memory_in_use() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// The strategy that burn-train runs.
struct Strategy {
    trainer: Mutex<Trainer>,
    outcome: Arc<Mutex<Option<Result<Stop>>>>,
}

impl SupervisedLearningStrategy<Model> for Strategy {
    fn fit(
        &self,
        mut components: TrainingComponents<Model>,
        learner: Learner<Model>,
        _train: TrainLoader<Model>,
        _valid: ValidLoader<Model>,
        _starting_epoch: usize,
    ) -> (Model, SupervisedTrainingEventProcessor<Model>) {
        let mut trainer = self.trainer.lock().expect("the strategy runs once");
        let result = trainer.run(&mut components.event_processor, &components.interrupter);
        *self.outcome.lock().expect("the strategy runs once") = Some(result);
        (learner.model(), components.event_processor)
    }
}

/// The strategy brings its own data; burn-train wants loaders all the same.
struct NoLoader;

struct Nothing;

impl<T> Iterator for EmptyIterator<T> {
    type Item = Result<T, burn::data::dataset::DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

struct EmptyIterator<T>(std::marker::PhantomData<T>);

impl<T> DataLoaderIterator<T> for EmptyIterator<T> {
    fn progress(&self) -> burn::data::dataloader::Progress {
        burn::data::dataloader::Progress::new(0, 0, None)
    }
}

impl<T: Send + 'static> DataLoader<T> for NoLoader {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<T> + 'a> {
        Box::new(EmptyIterator(std::marker::PhantomData))
    }

    fn num_items(&self) -> usize {
        0
    }

    fn to_device(&self, _device: &Device) -> Arc<dyn DataLoader<T>> {
        Arc::new(Self)
    }

    fn slice(&self, _start: usize, _end: usize) -> Arc<dyn DataLoader<T>> {
        Arc::new(Self)
    }
}

/// `metrics.jsonl` is written by the loop, which knows how far to cut it back; burn-train's store keeps nothing on disk.
impl MetricLogger for Nothing {
    fn log(&mut self, _update: MetricsUpdate, _epoch: usize, _split: &Split) {}

    fn read_numeric(&mut self, _name: &str, _epoch: usize, _split: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, _definition: MetricDefinition) {}

    fn log_epoch_summary(&mut self, _summary: EpochSummary) {}
}

/// Runs the loop under burn-train's dashboard.
pub(super) fn launch(trainer: Trainer, dashboard: Dashboard) -> Result<Outcome> {
    let interrupter = Interrupter::new();
    let training = &trainer.config.training;
    let renderer = dashboard.renderer(&interrupter, &trainer.progress, training.log_every);
    let score = match training.score {
        ValidationScore::Bleu => "BLEU",
        ValidationScore::SequenceAccuracy => "Sequence accuracy",
    };
    let n_stretches = training.max_updates.div_ceil(training.validate_every) as usize;
    let model = trainer.model.clone();
    let label = trainer.run.path().display().to_string();
    let outcome = Arc::new(Mutex::new(None));
    let run = trainer.run.clone();
    let strategy = Arc::new(Strategy { trainer: Mutex::new(trainer), outcome: outcome.clone() });
    let mut supervised = SupervisedTraining::new(run.path(), Arc::new(NoLoader), Arc::new(NoLoader))
        .with_training_strategy(TrainingStrategy::Custom(strategy.clone()))
        .with_application_logger(None)
        .with_metric_logger(Nothing)
        .with_interrupter(interrupter)
        .renderer(renderer)
        .num_epochs(n_stretches)
        .label(&label);
    for metric in Scalar::shared() {
        supervised = supervised.metric_train_numeric(metric.clone()).metric_valid_numeric(metric);
    }
    for metric in Scalar::of_training() {
        supervised = supervised.metric_train_numeric(metric);
    }
    supervised = supervised.metric_valid_numeric(Scalar::score(score));
    // burn's learner wants an optimizer of burn's; this one is never used.
    let idle: ModuleOptimizer = burn::optim::SgdConfig::new().init().into();
    let result = supervised.launch(Learner::new(model, idle, 0.0));
    drop(result);
    let stop = outcome.lock().expect("the strategy is done").take().unwrap_or_else(|| Err(Error::message("training did not run")))?;
    let mut trainer = strategy.trainer.lock().expect("the strategy is done");
    if stop != Stop::Interrupted {
        trainer.average()?;
    }
    Ok(Outcome {
        stop,
        state: trainer.state.clone(),
        update_seconds: trainer.update_seconds,
        tokens: trainer.tokens,
    })
}
