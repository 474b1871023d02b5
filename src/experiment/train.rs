//! Training what a config describes.

use super::lessons::{MaskedLessons, PairLessons, Prepared, SequenceLessons, SeriesLessons, TextLessons};
use super::options::TrainOptions;
use super::run::{self, Run};
use super::together::{self, Facts, Follower};
use super::{Config, differences, race, resume};
use crate::backend::{Adapter, Backend};
use crate::data::Tokenizers;
use crate::error::{Error, Result};
use crate::memory;
use crate::models::{Autoregressive, LengthLimit, LengthLimits, Model, ModelConfig, Vocabularies, weights};
use crate::ranks;
use crate::training::{Dashboard, Lessons, Observer, Outcome, Setup, Trainer, checkpoint, fit};
use burn::module::Module;
use std::path::Path;
use std::sync::Arc;

/// Trains, or continues training, in the run folder `options.run`.
///
/// # Errors
/// If the data, the config or the run folder cannot be used, or training diverges.
pub fn train(config: &Config, adapter: &Adapter, options: &TrainOptions) -> Result<Outcome> {
    let ranks = &*options.ranks;
    // Other programs may say things in another form.
    ranks::check_program(ranks)?;
    let is_first = ranks.rank() == 0;
    let observer = if is_first { options.observer.clone() } else { Arc::new(Follower(options.observer.clone())) };
    let teller = observer.clone();
    let say = |line: String| teller.say(&line);
    config.validate()?;
    options.dashboard.check()?;
    if options.run.join(checkpoint::MODEL).is_file() {
        let message =
            "is an exported model, which has no state to go on from; give another --run and --init-from with this one";
        return Err(Error::file(&options.run, message));
    }
    let (run, lock, begun);
    let stub: Option<resume::Stub>;
    if is_first {
        resume::check_folder(&options.run)?;
        let is_own_folder = !options.run.exists();
        run = Run::create(&options.run)?;
        lock = Some(run.folder().lock()?);
        // Where others would be waiting for the folder, it stays.
        stub = (is_own_folder && ranks.size() == 1).then(|| resume::Stub(options.run.clone()));
        begun = resume::begun(&run, options.init_from.is_some())?;
    } else {
        let is_new = together::folder_is_ready(ranks, None);
        run = Run::open(&options.run)?.read_only();
        (lock, stub) = (None, None);
        begun = if is_new { None } else { Some(run.config()?) };
    }
    let is_new = begun.is_none();
    let mut config = config.clone();
    let began_with = if is_new { ranks.size() } else { run.environment().map_or(1, |environment| environment.ranks) };
    if !options.has_all_parts {
        config.training.accumulation = together::parts_of_update(&config, begun.as_ref(), began_with);
    }
    if let Some(begun) = &begun {
        config.decoding = config.decoding.with_cap_of(&begun.decoding);
        resume::check_config(begun, &config)?;
    }
    say(format!("run      {}{}", options.run.display(), if is_new { "" } else { " (continued)" }));
    let Prepared { lessons, tokenizers, sha256, said } =
        prepare(&run, &mut config, options.init_from.as_deref(), is_new && is_first)?;
    say(format!("data     {said}"));
    let config = &config;
    let vocabularies = run::vocabularies(&tokenizers);
    say(said_of(config, vocabularies));
    check_memory(config, vocabularies, adapter)?;
    let adapter = &faster(&run, config, vocabularies, lessons.clone(), adapter, options, &*observer)?;
    let mut model = config.model.init(vocabularies, config.seed, &adapter.device)?;
    if let Some(from) = &options.init_from {
        model = weights_from(model, from, config, &tokenizers, &*observer)?;
    }
    say(format!("model    {} parameters", model.num_params()));
    say(format!("device   {} ({})", adapter.backend, adapter.name));
    // A run that began before horizons were written down planned for its last update.
    let trained_by = if is_new { None } else { Some(run.environment()?) };
    let is_old = trained_by.as_ref().is_some_and(|environment| environment.format_version < 3);
    check_lengths(config, &*lessons, model.limits())?;
    let facts = Facts::new(config, &sha256, &tokenizers, model.num_params());
    let environment = resume::environment(adapter, options, sha256, model.num_params());
    if !is_first {
        // The first has written it all.
    } else if let Some(trained_by) = &trained_by {
        resume::check_data(trained_by, &environment)?;
        resume::note_changes(&run, config, &environment)?;
    } else {
        // Only this command knows where the parameters came from; the run has to know it without.
        let start = options.init_from.is_some().then(|| weights::collect(&model));
        resume::begin(&run, config, &tokenizers, &environment, start.as_ref())?;
    }
    if ranks.size() > 1 {
        if is_first {
            together::folder_is_ready(ranks, Some(is_new));
        }
        facts.check(ranks)?;
        say(together::said_of(ranks.size(), config.training.accumulation));
    }
    let unknown = lessons.unknown();
    // Where minutes decide, the speed of updates has to show first where the learning rate ends.
    let at_start = begun.as_ref().unwrap_or(config);
    let is_known = is_old || at_start.training.max_minutes.is_none() || config.training.max_minutes.is_none();
    let horizon = is_known.then_some(at_start.training.max_updates);
    // The others read the config when the first has noted its changes there.
    let horizon = ranks::say(ranks, horizon).swap_remove(0);
    let trainer = Trainer::new(Setup {
        training: config.training.clone(),
        seed: config.seed,
        width: config.model.family().width(),
        model,
        device: adapter.device.clone(),
        lessons,
        folder: run.folder().clone(),
        horizon,
        observer,
        ranks: options.ranks.clone(),
    })?;
    if let Some(horizon) = trainer.horizon().filter(|horizon| *horizon != config.training.max_updates) {
        say(format!("schedule the learning rate falls until update {horizon}, as planned when the run began"));
    }
    if let Some(unknown) = unknown {
        say(format!("unknown  {unknown}"));
    }
    let compiles = if adapter.backend.is_host() { "" } else { "; the first updates compile kernels" };
    say(format!("starting at update {}{compiles}", trainer.update() + 1));
    let dashboard = if is_first { options.dashboard } else { Dashboard::None };
    let outcome = fit(trainer, dashboard, |supervised| supervised);
    if let (true, Some(trained_by), Ok(outcome)) = (is_first, &trained_by, &outcome)
        && outcome.is_of_before()
    {
        resume::write_environment(&run, trained_by)?;
    }
    drop((stub, lock));
    outcome
}

/// The device, or the one of its rivals on which this model learns faster. Several ranks do not choose: they would have to agree.
fn faster(
    run: &Run,
    config: &Config,
    vocabularies: Vocabularies,
    lessons: Arc<dyn Lessons<Model>>,
    adapter: &Adapter,
    options: &TrainOptions,
    observer: &dyn Observer,
) -> Result<Adapter> {
    let has_room = |adapter: &&Adapter| check_memory(config, vocabularies, adapter).is_ok();
    let rivals = options.rivals.iter().filter(has_room);
    let adapters: Vec<Adapter> = std::iter::once(adapter).chain(rivals).cloned().collect();
    if adapters.len() == 1 || options.ranks.size() > 1 {
        return Ok(adapter.clone());
    }
    race::of_updates(run.folder(), config, vocabularies, &lessons, &adapters, observer)
}

/// How many tokens or channels there are, in words.
fn said_of(config: &Config, vocabularies: Vocabularies) -> String {
    let Vocabularies { source, target, shared } = vocabularies;
    let shared = if shared { " shared" } else { "" };
    match config.model.learns_from_text() {
        _ if config.model.answers_with_numbers() => format!("channels {source} source, {target} target"),
        false => format!("tokens   {source} source, {target} target{shared}"),
        true => format!("tokens   {target}"),
    }
}

/// Refuses a model that can never be trained here.
fn check_memory(config: &Config, vocabularies: Vocabularies, adapter: &Adapter) -> Result<()> {
    // Nothing is allocated for a blank model until it is used.
    let n_parameters = config.model.blank(vocabularies, &adapter.device)?.num_params();
    memory::check_training(n_parameters as u64, adapter.backend.is_host())
}

/// The data of a run with its tokenizers: those of the run if it has begun, those of the run that is fine-tuned, or new ones.
fn prepare(run: &Run, config: &mut Config, init_from: Option<&Path>, is_new: bool) -> Result<Prepared> {
    let known = match (is_new, init_from) {
        (false, _) => Some(run.tokenizers()?),
        (true, Some(from)) => Some(run::tokenizers_to_go_on(from, &config.tokenizer)?),
        (true, None) => None,
    };
    read(config, known)
}

/// Refuses data that are longer than the model takes.
fn check_lengths(config: &Config, lessons: &dyn SequenceLessons, limits: LengthLimits) -> Result<()> {
    lessons.check_lengths(limits)?;
    let Some(len) = config.model.family().randomized_positions() else { return Ok(()) };
    let len = if let ModelConfig::DecoderOnly(model) = &config.model { model.len_of_side(len) } else { len };
    let range = Some(LengthLimit { len, key: "model.randomized_positions" });
    lessons.check_lengths(LengthLimits { source: range, target: range })
}

/// Reads the data of `config` as training would, and sees whether the model takes them; the tokenizers that it would have.
///
/// # Errors
/// As [`train`], as far as data, tokenizers and lengths go.
pub fn check_data(config: &Config) -> Result<Arc<Tokenizers>> {
    let mut config = config.clone();
    let Prepared { lessons, tokenizers, .. } = read(&mut config, None)?;
    // Nothing is computed, so that any device will do.
    let device = Backend::Flex.open().or_else(|_| Backend::Ndarray.open()).or_else(|_| config.backend.open())?.device;
    let model = config.model.blank(run::vocabularies(&tokenizers), &device)?;
    check_lengths(&config, &*lessons, model.limits())?;
    Ok(tokenizers)
}

fn read(config: &mut Config, known: Option<Tokenizers>) -> Result<Prepared> {
    match config.data.text.clone() {
        Some(text) if config.model.has_masks() => MaskedLessons::prepare(config, &text, known),
        Some(text) => TextLessons::prepare(config, &text, known),
        None if config.model.answers_with_numbers() => SeriesLessons::prepare(config, known),
        None => PairLessons::prepare(config, known),
    }
}

/// `model` with the parameters of the run in `from`.
fn weights_from(
    model: Model,
    from: &Path,
    config: &Config,
    tokenizers: &Tokenizers,
    observer: &dyn Observer,
) -> Result<Model> {
    let other = Run::open(from)?;
    if other.tokenizers()?.fingerprint() != tokenizers.fingerprint() {
        return Err(Error::file(from, "has another tokenizer; a model can only be fine-tuned with its own"));
    }
    let all_differing = differences(&other.config()?, config);
    if let Some((_, theirs, ours)) = all_differing.iter().find(|(key, _, _)| key == "model.kind") {
        let message = format!("is a model of kind {theirs}, and this one is of kind {ours}: parameters do not fit");
        return Err(Error::file(from, message));
    }
    let of_model = |(key, theirs, ours): (String, String, String)| {
        key.starts_with("model").then(|| format!("{key} is {ours} here and {theirs} there"))
    };
    let differing: Vec<String> = all_differing.into_iter().filter_map(of_model).collect();
    let (_, parameters) = other.parameters(None, |line| observer.warn(&line))?;
    match weights::apply(model, &parameters.weights, &parameters.file) {
        Ok(model) => {
            if !differing.is_empty() {
                observer.say(&format!(
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
