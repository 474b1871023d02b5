//! The loop as a strategy of burn-train, whose dashboard and metrics it uses.

use super::learner::{Outcome, Stop, Trainer};
use super::renderer::Dashboard;
use super::run::Run;
use crate::error::{Error, Result};
use crate::models::Model;
use burn::data::dataloader::{DataLoader, DataLoaderIterator};
use burn::optim::ModuleOptimizer;
use burn::tensor::Device;
use burn_train::logger::MetricLogger;
use burn_train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn_train::metric::{MetricDefinition, NumericEntry};
use burn_train::{
    Interrupter, Learner, SupervisedLearningStrategy, SupervisedTraining, SupervisedTrainingEventProcessor,
    TrainLoader, TrainingComponents, TrainingStrategy, ValidLoader,
};
use std::sync::{Arc, Mutex};

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

/// Standard error goes into `log.txt` while this lives, as the terminal belongs to the dashboard. Besides, the dashboard writes to
/// standard error while it unwinds, and would end the process where its terminal has been closed.
struct StandardError {
    #[cfg(unix)]
    before: Option<std::os::fd::OwnedFd>,
}

impl StandardError {
    #[cfg(unix)]
    fn into_log(run: &Run) -> Self {
        let redirect = || -> std::io::Result<_> {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(run.join("log.txt"))?;
            let before = rustix::io::dup(std::io::stderr())?;
            rustix::stdio::dup2_stderr(log)?;
            Ok(before)
        };
        Self { before: redirect().ok() }
    }

    #[cfg(not(unix))]
    fn into_log(_run: &Run) -> Self {
        Self {}
    }
}

impl Drop for StandardError {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(before) = self.before.take() {
            let _ = rustix::stdio::dup2_stderr(before);
        }
    }
}

/// Runs the loop under burn-train's dashboard.
pub(super) fn launch(trainer: Trainer, dashboard: Dashboard) -> Result<Outcome> {
    let interrupter = Interrupter::new();
    let training = &trainer.config.training;
    let renderer = dashboard.renderer(&interrupter, &trainer.progress, training.log_every);
    let (shown_metrics, metric) = (trainer.lessons.shown(), trainer.lessons.metric());
    let n_stretches = training.max_updates.div_ceil(training.validate_every) as usize;
    let model = trainer.model().clone();
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
    for metric in shown_metrics.shared {
        supervised = supervised.metric_train_numeric(metric.clone()).metric_valid_numeric(metric);
    }
    for metric in shown_metrics.of_training {
        supervised = supervised.metric_train_numeric(metric);
    }
    if let Some(metric) = metric {
        supervised = supervised.metric_valid_numeric(metric);
    }
    // burn's learner wants an optimizer of burn's; this one is never used.
    let idle: ModuleOptimizer = burn::optim::SgdConfig::new().init();
    let shown = dashboard.is_tui().then(|| StandardError::into_log(&run));
    // A user who kills training from the dashboard makes its threads panic, and this one with them.
    let launch = std::panic::AssertUnwindSafe(|| drop(supervised.launch(Learner::new(model, idle, 0.0))));
    let ended = match shown.is_some() {
        true => std::panic::catch_unwind(launch).is_ok(),
        false => {
            launch();
            true
        }
    };
    drop(shown);
    if !ended {
        let message = "training was killed from the dashboard, or its dashboard failed: log.txt says which; the same command goes \
                       on from the last checkpoint";
        return Err(Error::file(run.path(), message));
    }
    let stop = outcome
        .lock()
        .expect("the strategy is done")
        .take()
        .unwrap_or_else(|| Err(Error::message("training did not run")))?;
    let mut trainer = strategy.trainer.lock().expect("the strategy is done");
    if stop != Stop::Interrupted {
        trainer.average()?;
    }
    Ok(Outcome {
        stop,
        state: trainer.state.clone(),
        update_seconds: trainer.update_seconds,
        tokens: trainer.tokens,
        cut: trainer.last_cut,
    })
}
