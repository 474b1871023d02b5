//! Who takes part: from configs and run folders to contestants with one run for each seed.

use super::options::{Budget, Options};
use super::store::file_name;
use super::sweep::combinations;
use crate::error::{Error, Result};
use crate::experiment::{Config, Run, differences};
use std::path::{Path, PathBuf};

/// The built-in comparison: names and configs.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("fixed-context", include_str!("../../config/compare/fixed-context.toml")),
    ("attention", include_str!("../../config/compare/attention.toml")),
    ("transformer", include_str!("../../config/compare/transformer.toml")),
];

/// Updates that a schedule without an end is given under a budget of minutes.
const NO_END: u64 = 10_000_000;

/// A model that takes part.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// The name of its config or run.
    pub name: String,
    /// How it is trained; the seed is that of the first run.
    pub config: Config,
    /// One run for each seed.
    pub runs: Vec<EntrantRun>,
    /// Whether the runs were given, and are not to be trained here.
    pub is_given: bool,
}

/// One run of an entrant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrantRun {
    /// Its seed.
    pub seed: u64,
    /// Its folder.
    pub folder: PathBuf,
}

impl Entrant {
    /// The config of one run.
    pub fn config_of(&self, run: &EntrantRun) -> Config {
        Config { seed: run.seed, ..self.config.clone() }
    }
}

/// The contestants in the order in which they were given, configs first.
///
/// # Errors
/// If a config or run cannot be used, or two are the same.
pub fn entrants(options: &Options) -> Result<Vec<Entrant>> {
    let mut found = Vec::new();
    if options.configs.is_empty() && options.runs.is_empty() {
        for (name, text) in BUILT_IN {
            for (suffix, settings) in settings(options) {
                let config = Config::embedded(name, text, &settings)?;
                found.push(of_config(format!("{name}{suffix}"), config, options)?);
            }
        }
    }
    for path in &options.configs {
        let name = path.file_stem().map_or("config".into(), |stem| stem.to_string_lossy().into_owned());
        // What all have in common tells nobody apart.
        let is_alone = options.configs.len() == 1 && options.runs.is_empty() && !options.sweeps.is_empty();
        for (suffix, settings) in settings(options) {
            let config = Config::load(Some(path), &settings)?;
            let name = if is_alone { suffix.trim_start().to_string() } else { format!("{name}{suffix}") };
            found.push(of_config(name, config, options)?);
        }
    }
    for path in &options.runs {
        add_run(&mut found, path)?;
    }
    check(&found)?;
    Ok(found)
}

/// What is set for every contestant that a config makes.
fn settings(options: &Options) -> Vec<(String, Vec<String>)> {
    let with_common = |(suffix, own): (String, Vec<String>)| (suffix, options.set.iter().cloned().chain(own).collect());
    combinations(&options.sweeps).into_iter().map(with_common).collect()
}

fn of_config(name: String, mut config: Config, options: &Options) -> Result<Entrant> {
    if let Some(backend) = options.backend {
        config.backend = backend;
    }
    spend(&mut config, options.budget);
    // Before anything is trained: the last seed has to be one that a config can have.
    let last = Config { seed: config.seed.saturating_add((options.seeds as u64).saturating_sub(1)), ..config.clone() };
    last.validate().map_err(|error| {
        Error::message(format!("{name}, --seeds {} from seed {} on: {error}", options.seeds, config.seed))
    })?;
    let run = |seed: u64| {
        let folder = options.out.join("runs").join(file_name(&format!("{name}-seed{seed}")));
        EntrantRun { seed, folder }
    };
    let runs = (config.seed..=last.seed).map(run).collect();
    Ok(Entrant { runs, name, config, is_given: false })
}

/// Applies a budget: the same end for every model, and no early stopping before it.
fn spend(config: &mut Config, budget: Option<Budget>) {
    let training = &mut config.training;
    match budget {
        None => return,
        Some(Budget::Updates(updates)) => {
            training.max_updates = updates;
            training.warmup_updates = training.warmup_updates.min(updates / 5);
            training.max_minutes = None;
        }
        Some(Budget::Minutes(minutes)) => {
            training.max_minutes = Some(minutes);
            training.max_updates = NO_END;
        }
    }
    training.patience = 0;
}

/// Refuses a folder that is something else than a comparison's.
///
/// # Errors
/// If it is a run folder, which the files of both would mix in.
pub fn check_folder(out: &Path) -> Result<()> {
    if Run::has_begun(out) || out.join("checkpoints").is_dir() {
        return Err(Error::file(out, "is a run folder; give a folder of its own to the comparison with --out"));
    }
    Ok(())
}

/// Adds a run as a contestant, or as another seed of one that is there.
fn add_run(found: &mut Vec<Entrant>, path: &Path) -> Result<()> {
    let run = Run::open(path)?;
    let config = run.config()?;
    run.parameters(None, |_| ())?;
    let real = |path: &Path| path.canonicalize().map_err(Error::io(path));
    let folder = real(path)?;
    for other in found.iter().filter(|other| other.is_given).flat_map(|other| &other.runs) {
        if real(&other.folder)? == folder {
            return Err(Error::file(path, "is given twice; leave one out"));
        }
    }
    let entry = EntrantRun { seed: config.seed, folder: path.to_path_buf() };
    let same = found.iter_mut().find(|other| other.is_given && is_same_experiment(&other.config, &config));
    if let Some(same) = same {
        if let Some(twin) = same.runs.iter().find(|run| run.seed == config.seed) {
            let message = format!(
                "is the same experiment with the same seed as {}; a model compared with itself says nothing",
                twin.folder.display()
            );
            return Err(Error::file(path, message));
        }
        same.runs.push(entry);
        same.runs.sort_by_key(|run| run.seed);
        return Ok(());
    }
    let short = path.file_name().map_or(path.display().to_string(), |name| name.to_string_lossy().into_owned());
    // The folders that `compare` itself makes are called after the seed; the model is not.
    let short = short.strip_suffix(&format!("-seed{}", config.seed)).unwrap_or(&short).to_string();
    let is_taken = found.iter().any(|other| other.name == short);
    let name = if is_taken { path.display().to_string() } else { short };
    found.push(Entrant { name, config, runs: vec![entry], is_given: true });
    Ok(())
}

/// Whether two configs differ in nothing but the seed, where they run and how they decode.
fn is_same_experiment(left: &Config, right: &Config) -> bool {
    let is_free = |key: &str| key == "seed" || key == "backend" || key.starts_with("decoding.");
    differences(left, right).iter().all(|(key, _, _)| is_free(key))
}

fn check(entrants: &[Entrant]) -> Result<()> {
    for (i, left) in entrants.iter().enumerate() {
        if left.config.model.learns_from_text() {
            let what = if left.config.model.has_masks() { "model of masked words" } else { "language model" };
            let message = format!(
                "{} is a {what}, and what is compared is what models write for a source; `lookback evaluate` measures it on text",
                left.name
            );
            return Err(Error::message(message));
        }
        if left.config.model.answers_with_numbers() {
            let message = format!(
                "{} answers with numbers, and what is compared is what models write in words; `lookback evaluate` measures its \
                 errors",
                left.name
            );
            return Err(Error::message(message));
        }
        for right in &entrants[i + 1..] {
            if left.name == right.name {
                let message = format!("two contestants are called \"{}\"; rename one of the files", left.name);
                return Err(Error::message(message));
            }
            if !left.is_given && !right.is_given && is_same_experiment(&left.config, &right.config) {
                let message = format!(
                    "{} and {} are the same experiment; to repeat one with other seeds, give it once and --seeds N",
                    left.name, right.name
                );
                return Err(Error::message(message));
            }
        }
    }
    Ok(())
}
