//! The loop as a strategy of burn-train, whose dashboard, metrics, loaders and interrupter it uses.

use super::folder::RunFolder;
use super::lessons::{HeldOut, Trainable};
use super::loader::OneItem;
use super::optimizer::AdamConfig;
use super::renderer::Dashboard;
use super::setup::{Outcome, Stop};
use super::trainer::Trainer;
use crate::error::{Error, Result};
use crate::ranks::Ended;
use burn::optim::{AdamWConfig, ModuleOptimizer};
use burn_train::logger::MetricLogger;
use burn_train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn_train::metric::{MetricDefinition, NumericEntry};
use burn_train::{
    Interrupter, Learner, SupervisedLearningStrategy, SupervisedTraining, SupervisedTrainingEventProcessor,
    TrainLoader, TrainingComponents, TrainingStrategy, ValidLoader,
};
use std::any::Any;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The strategy that burn-train runs.
struct Strategy<M: Trainable> {
    trainer: Mutex<Trainer<M>>,
    outcome: Mutex<Option<Result<Stop>>>,
}

impl<M: Trainable> SupervisedLearningStrategy<M> for Strategy<M> {
    fn fit(
        &self,
        mut components: TrainingComponents<M>,
        learner: Learner<M>,
        train: TrainLoader<M>,
        valid: ValidLoader<M>,
        _starting_epoch: usize,
    ) -> (M, SupervisedTrainingEventProcessor<M>) {
        let mut trainer = self.trainer.lock().expect("the strategy runs once");
        // The learner lends its model as a copy only, and an update moves parameters in place only where nobody else holds them.
        trainer.set_model(learner.model());
        drop(learner);
        let result = trainer.run(&train, &valid, &mut components.event_processor, &components.interrupter);
        *self.outcome.lock().expect("the strategy runs once") = Some(result);
        (trainer.take_model(), components.event_processor)
    }
}

/// `metrics.jsonl` is written by the loop, not by a logger of burn-train: that one is called on another thread, some time after the
/// update, so that a checkpoint could be saved before the line that belongs to it; and it cannot say that the disk is full.
struct NoLogger;

impl MetricLogger for NoLogger {
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
    fn into_log(run: &RunFolder) -> Self {
        let redirect = || -> std::io::Result<_> {
            let log = std::fs::OpenOptions::new().create(true).append(true).open(run.join("log.txt"))?;
            let before = rustix::io::dup(std::io::stderr())?;
            rustix::stdio::dup2_stderr(log)?;
            Ok(before)
        };
        Self { before: redirect().ok() }
    }

    #[cfg(not(unix))]
    fn into_log(_run: &RunFolder) -> Self {
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

/// The rule of [`Adam`](super::optimizer::Adam) as burn has it. The loop steps its own, for the reasons that stand there; this is what
/// a learner has to be handed.
fn optimizer_of(config: &AdamConfig) -> ModuleOptimizer {
    AdamWConfig::new()
        .with_beta_1(config.beta_1 as f32)
        .with_beta_2(config.beta_2 as f32)
        .with_epsilon(config.epsilon as f32)
        .with_weight_decay(config.weight_decay as f32)
        .init()
}

/// What a panic under the dashboard comes to. A rank that another has left unwinds further: that one says why.
fn killed(panic: Box<dyn Any + Send>, folder: &Path) -> Error {
    if panic.is::<Ended>() {
        resume_unwind(panic);
    }
    let message = "training was killed from the dashboard, or its dashboard failed: log.txt says which; the same command goes \
                   on from the last checkpoint";
    Error::file(folder, message)
}

/// Runs the loop under burn-train's dashboard. `adapt` may add to what burn-train shows and does: metrics, a progress logger.
///
/// # Errors
/// If training diverges, the disk refuses, or burn-train stops with an error; what was learnt until then is saved.
pub fn fit<M: Trainable>(
    mut trainer: Trainer<M>,
    dashboard: Dashboard,
    adapt: impl FnOnce(SupervisedTraining<M>) -> SupervisedTraining<M>,
) -> Result<Outcome> {
    trainer.observer.begin(&trainer.progress);
    let interrupter = Interrupter::new();
    let training = trainer.training.clone();
    let renderer = dashboard.renderer(&interrupter, &trainer.progress, training.log_every);
    let (shown_metrics, metric) = (trainer.lessons.shown(), trainer.lessons.metric());
    let n_stretches = training.max_updates.div_ceil(training.validate_every) as usize;
    let label = trainer.folder.path().display().to_string();
    let folder = trainer.folder.clone();
    let train = Arc::new(trainer.loader());
    let valid = Arc::new(OneItem(HeldOut::new(trainer.lessons.clone(), trainer.ranks.clone())));
    let learner = Learner::new(trainer.take_model(), optimizer_of(&training.optimizer), training.learning_rate);
    let strategy = Arc::new(Strategy { trainer: Mutex::new(trainer), outcome: Mutex::default() });
    let mut supervised = SupervisedTraining::new(folder.path(), train, valid)
        .with_training_strategy(TrainingStrategy::Custom(strategy.clone()))
        .with_application_logger(None)
        .with_metric_logger(NoLogger)
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
    let supervised = adapt(supervised);
    let shown = dashboard.is_tui().then(|| StandardError::into_log(&folder));
    // A user who kills training from the dashboard makes its threads panic, and this one with them.
    let launch = std::panic::AssertUnwindSafe(|| supervised.launch(learner));
    let result = match shown.is_some() {
        true => std::panic::catch_unwind(launch),
        false => Ok(launch()),
    };
    drop(shown);
    let result = result.map_err(|panic| killed(panic, folder.path()))?;
    let outcome = strategy.outcome.lock().expect("the strategy is done").take();
    let stop = outcome.unwrap_or_else(|| Err(Error::message("training did not run")))?;
    if let Some(error) = result.error {
        return Err(Error::message(format!("{error}; what was learnt is saved, the same command goes on")));
    }
    let mut trainer = strategy.trainer.lock().expect("the strategy is done");
    if stop != Stop::Interrupted {
        trainer.measure_end(&result.model)?;
        trainer.average(result.model)?;
    }
    Ok(Outcome {
        stop,
        state: trainer.state.clone(),
        update_seconds: trainer.update_seconds,
        tokens: trainer.tokens,
        cut: trainer.last_cut,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_was_left_under_the_dashboard_does_not_hide_why_the_other_ended() {
        let folder = Path::new("run");
        let unwound = std::panic::catch_unwind(|| killed(Box::new(Ended), folder));
        assert!(unwound.expect_err("it unwinds further").is::<Ended>());
        assert!(killed(Box::new("a panic of the dashboard"), folder).to_string().contains("killed from the dashboard"));
    }
}
