//! Training: from data and a config to a run folder.
//!
//! [`train`] prepares the run and hands it to burn-train's `SupervisedTraining`, whose dashboard and metrics it uses, with the
//! update loop of `learner` plugged in as a custom strategy: exact resume, clipping by the norm of all gradients, batches
//! by tokens and the handling of divergence live in the loop.

pub mod checkpoint;
mod config;
pub mod dataset;
mod export;
pub mod format;
mod horizon;
mod learner;
mod lessons;
pub mod loss;
mod manifest;
mod metrics;
pub mod optimizer;
mod pointer;
mod record;
mod renderer;
mod resume;
pub mod run;
mod saving;
pub mod schedule;
mod scheduled_sampling;
pub mod series;
pub mod signal;
pub mod squared_error;
mod strategy;
mod tensorboard;
mod validation;

pub use config::{Criterion, TrainingConfig};
pub use export::{ExportOptions, export, export_parts};
pub(crate) use export::{check_free, model_card};
pub use learner::{Outcome, Stop};
pub use lessons::{sample_of_masked, sample_of_text};
pub use metrics::Stats;
pub(crate) use record::MetricsLine;
pub use renderer::{Dashboard, Progress, duration};
pub use run::{LoadedModel, Run};
pub use scheduled_sampling::ScheduledSampling;
pub use validation::{Sample, sample_score, validate};

use crate::backend::Adapter;
use crate::config::{Config, differences};
use crate::data::batch::Batch;
use crate::data::{Tokenizers, TokenizersConfig};
use crate::error::{Error, Result};
use crate::layers::Pass;
use crate::memory;
use crate::models::{Model, weights};
use crate::notice;
use burn::module::Module;
use burn::optim::GradientsParams;
use burn_train::{InferenceStep, TrainOutput, TrainStep};
use learner::Trainer;
use lessons::{MaskedLessons, PairLessons, Prepared, SeriesLessons, TextLessons};
use loss::{LossSums, batch_loss};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What `train` is asked for besides the config.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The run folder.
    pub run: PathBuf,
    /// How it is shown.
    pub dashboard: Dashboard,
    /// A finished run whose parameters are the start.
    pub init_from: Option<PathBuf>,
    /// The command line, to be written down.
    pub command: String,
}

/// One micro-batch of an update.
#[derive(Clone, Debug)]
pub struct UpdatePart {
    /// The sentences.
    pub batch: Batch,
    /// Target tokens of the whole update; of numbers, steps.
    pub n_total: usize,
    /// Label smoothing.
    pub smoothing: f64,
    /// Seed of dropout.
    pub seed: u64,
    /// The place of the micro-batch in the data, epoch and position: with the seed it decides which units are dropped.
    pub place: (u64, u64),
    /// Whether layers are fused where they can be.
    pub is_fused: bool,
    /// Probability that a recurrent decoder reads its own last word instead of the true one.
    pub replacement_rate: f64,
}

/// The gradient of one micro-batch, normalised by the target tokens of the whole update.
pub fn gradients(model: &Model, part: &UpdatePart) -> (GradientsParams, LossSums) {
    let pass = Pass::training(part.seed, part.place.0, part.place.1).fused(part.is_fused);
    let mut pass = pass.replacing_inputs(part.replacement_rate);
    let loss = batch_loss(model, &part.batch, part.smoothing, part.n_total, &mut pass);
    (GradientsParams::from_grads(loss.mean.backward(), model), loss.sums)
}

impl TrainStep for Model {
    type Input = UpdatePart;
    type Output = Stats;

    fn step(&self, part: UpdatePart) -> TrainOutput<Stats> {
        let (grads, sums) = gradients(self, &part);
        TrainOutput { grads, item: Stats::new(sums) }
    }
}

impl InferenceStep for Model {
    type Input = Batch;
    type Output = Stats;

    fn step(&self, batch: Batch) -> Stats {
        Stats::new(batch_loss(self, &batch, 0.0, 1, &mut Pass::inference()).sums)
    }
}

/// Trains, or goes on training, in the run folder `options.run`.
///
/// # Errors
/// If the data, the config or the run folder cannot be used, or training diverges.
pub fn train(config: &Config, adapter: &Adapter, options: &TrainOptions) -> Result<Outcome> {
    run_training(config, adapter, options, notice::say, |_| ())
}

/// [`train`] without a word on standard error; `watch` is handed what tells how far training is.
///
/// # Errors
/// As [`train`].
pub fn train_watched(
    config: &Config,
    adapter: &Adapter,
    options: &TrainOptions,
    watch: impl FnOnce(Arc<Mutex<Progress>>),
) -> Result<Outcome> {
    run_training(config, adapter, options, |_| (), watch)
}

fn run_training(
    config: &Config,
    adapter: &Adapter,
    options: &TrainOptions,
    say: impl Fn(String),
    watch: impl FnOnce(Arc<Mutex<Progress>>),
) -> Result<Outcome> {
    config.validate()?;
    options.dashboard.check()?;
    let _listening = signal::listen();
    if options.run.join(checkpoint::MODEL).is_file() {
        let message =
            "is an exported model, which has no state to go on from; give another --run and --init-from with this one";
        return Err(Error::file(&options.run, message));
    }
    let run = Run::create(&options.run)?;
    let _lock = run.lock()?;
    let begun = resume::begun(&run, options.init_from.is_some())?;
    let is_new = begun.is_none();
    let mut config = config.clone();
    if let Some(begun) = &begun {
        config.decoding = config.decoding.with_cap_of(&begun.decoding);
        resume::check_config(begun, &config)?;
    }
    say(format!("run      {}{}", options.run.display(), if is_new { "" } else { " (continued)" }));
    let Prepared { lessons, tokenizers, sha256, said } =
        prepare(&run, &mut config, options.init_from.as_deref(), is_new)?;
    say(format!("data     {said}"));
    let config = &config;
    let vocabularies = run::vocabularies(&tokenizers);
    let shared = if vocabularies.shared { " shared" } else { "" };
    say(match config.model.learns_from_text() {
        _ if config.model.answers_with_numbers() => {
            format!("channels {} source, {} target", vocabularies.source, vocabularies.target)
        }
        false => format!("tokens   {} source, {} target{shared}", vocabularies.source, vocabularies.target),
        true => format!("tokens   {}", vocabularies.target),
    });
    memory::check_training(&config.model, vocabularies, adapter)?;
    let mut model = config.model.init(vocabularies, config.seed, &adapter.device)?;
    if let Some(from) = &options.init_from {
        model = weights_from(model, from, config, &tokenizers)?;
    }
    say(format!("model    {} parameters", model.num_params()));
    say(format!("device   {} ({})", adapter.backend, adapter.name));
    // A run that began before horizons were written down planned for its last update.
    let is_old = !is_new && run.environment()?.format_version < 3;
    let environment = resume::environment(adapter, options, sha256, model.num_params());
    if is_new {
        // Only this command knows where the parameters came from; the run has to know it without.
        let start = options.init_from.is_some().then(|| weights::collect(&model));
        resume::begin(&run, config, &tokenizers, &environment, start.as_ref())?;
    } else {
        resume::check_data(&run.environment()?, &environment)?;
        resume::note_changes(&run, config, &environment)?;
    }
    // Where minutes decide, the speed of updates has to show first where the learning rate ends.
    let at_start = begun.as_ref().unwrap_or(config);
    let planned = (is_old || at_start.training.max_minutes.is_none()).then_some(at_start.training.max_updates);
    let unknown = lessons.unknown();
    let trainer = Trainer::new(config, &run, adapter, lessons, model, planned)?;
    if let Some(horizon) = trainer.state.horizon.filter(|horizon| *horizon != config.training.max_updates) {
        say(format!("schedule the learning rate falls until update {horizon}, as planned when the run began"));
    }
    if let Some(unknown) = unknown {
        say(format!("unknown  {unknown}"));
    }
    if adapter.backend.is_host() {
        say(format!("starting at update {}", trainer.update() + 1));
    } else {
        say(format!("starting at update {}; the first updates compile kernels", trainer.update() + 1));
    }
    watch(trainer.progress.clone());
    strategy::launch(trainer, options.dashboard)
}

/// The data of a run with its tokenizers: those of the run if it has begun, those of the run that is fine-tuned, or new ones.
fn prepare(run: &Run, config: &mut Config, init_from: Option<&Path>, is_new: bool) -> Result<Prepared> {
    let known = match (is_new, init_from) {
        (false, _) => Some(run.tokenizers()?),
        (true, Some(from)) => Some(tokenizers_of(from, &config.tokenizer)?),
        (true, None) => None,
    };
    let own = config.tokenizer.clone();
    match config.data.text.clone() {
        Some(text) => {
            let has_masks = config.model.has_masks();
            let tokenizers =
                |lines: &[String]| known.map_or_else(|| Tokenizers::train_text(lines, &own, has_masks), Ok);
            match has_masks {
                true => MaskedLessons::prepare(config, &text, tokenizers),
                false => TextLessons::prepare(config, &text, tokenizers),
            }
        }
        None if config.model.answers_with_numbers() => {
            SeriesLessons::prepare(config, |corpus| known.map_or_else(|| Tokenizers::train(&corpus.train, &own), Ok))
        }
        None => PairLessons::prepare(config, |corpus| known.map_or_else(|| Tokenizers::train(&corpus.train, &own), Ok)),
    }
}

/// The tokenizers of a run that is fine-tuned.
fn tokenizers_of(from: &Path, config: &TokenizersConfig) -> Result<Tokenizers> {
    let tokenizers = Run::open(from)?.tokenizers()?;
    if tokenizers.config() != config {
        let message =
            format!("differs from that of {}; a model can only be fine-tuned with its own tokenizer", from.display());
        return Err(Error::config("tokenizer", message));
    }
    Ok(tokenizers)
}

/// `model` with the parameters of the run in `from`.
fn weights_from(model: Model, from: &Path, config: &Config, tokenizers: &Tokenizers) -> Result<Model> {
    let other = Run::open(from)?;
    if other.tokenizers()?.fingerprint() != tokenizers.fingerprint() {
        return Err(Error::file(from, "has another tokenizer; a model can only be fine-tuned with its own"));
    }
    let of_model = |(key, theirs, ours): (String, String, String)| {
        key.starts_with("model").then(|| format!("{key} is {ours} here and {theirs} there"))
    };
    let differing: Vec<String> = differences(&other.config()?, config).into_iter().filter_map(of_model).collect();
    let (_, parameters) = other.parameters(None, notice::warn)?;
    match weights::apply(model, &parameters.weights, &parameters.file) {
        Ok(model) => {
            if !differing.is_empty() {
                notice::say(format_args!(
                    "note: differs from {}, whose parameters fit all the same: {}",
                    from.display(),
                    differing.join(", ")
                ));
            }
            Ok(model)
        }
        Err(_) if !differing.is_empty() => Err(Error::config(
            "model",
            format!("parameters of {} do not fit this model: {}", from.display(), differing.join(", ")),
        )),
        Err(error) => Err(error),
    }
}
