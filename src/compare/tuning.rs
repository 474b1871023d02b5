//! A small search for a learning rate and dropout, as long for every contestant: no model is beaten because only the other
//! one was tuned.

use super::measure::curves;
use super::options::Options;
use super::plan::Entrant;
use super::progress::{Progress, check_stop};
use super::store::file_name;
use super::training::{finished, run_to_end};
use crate::backend::Adapter;
use crate::data::{Split, random};
use crate::error::Result;
use crate::experiment::{Config, Run, dataset, validate};
use crate::ranks::Alone;
use crate::report::comparison::Trial;
use crate::training::Observer;
use std::path::PathBuf;

/// Learning rates are drawn evenly on a logarithmic scale between these.
const RATES: [f64; 2] = [3e-4, 1e-2];
/// Dropout is drawn from these, where a config has any. One without it says that there is nothing to overfit, and a trial with it would
/// be no trial of its learning rate.
const DROPOUTS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];
/// The part of the updates of a run that a trial makes.
const PART: f64 = 0.25;
/// A trial makes at least so many updates, as far as the run does: fewer tell nothing.
const FEWEST_UPDATES: u64 = 100;

/// The learning rate and dropout of trial `trial`, counted from 1: first what the config itself has, then the same for every
/// contestant, except that a config without dropout stays without.
pub fn settings(config: &Config, trial: usize) -> (f64, f64) {
    let own = (config.training.learning_rate, config.model.family().dropout_rate());
    match trial {
        0 | 1 => own,
        _ => {
            let (rate, dropout) = candidate(1, trial - 1);
            (rate, if own.1 > 0.0 { dropout } else { 0.0 })
        }
    }
}

/// The `trial`-th random learning rate and dropout, counted from 1.
pub fn candidate(seed: u64, trial: usize) -> (f64, f64) {
    let mut rng = random::stream(seed, "compare/tune", trial as u64);
    let rate = (RATES[0].ln() + rng.unit() * (RATES[1] / RATES[0]).ln()).exp();
    // Two digits: what is written in the report is what was used.
    let rate = format!("{rate:.1e}").parse().unwrap_or(rate);
    (rate, *rng.pick(&DROPOUTS))
}

/// Sets both in a config.
pub fn set(config: &mut Config, (rate, dropout): (f64, f64)) {
    config.training.learning_rate = rate;
    *config.model.family_mut().dropout_rate_mut() = dropout;
}

/// Updates of a trial.
pub fn trial_updates(config: &Config) -> u64 {
    let updates = (PART * config.training.max_updates as f64) as u64;
    updates.max(FEWEST_UPDATES).min(config.training.max_updates)
}

/// The run of a trial.
pub fn folder(entrant: &Entrant, options: &Options, trial: usize) -> PathBuf {
    options.out.join("tuning").join(file_name(&format!("{}-trial{trial}", entrant.name)))
}

/// The config of a trial.
fn config_of(entrant: &Entrant, trial: usize) -> Config {
    let mut config = entrant.config.clone();
    set(&mut config, settings(&entrant.config, trial));
    let training = &mut config.training;
    training.max_updates = trial_updates(&entrant.config);
    training.warmup_updates = training.warmup_updates.min(training.max_updates / 5);
    training.max_minutes = training.max_minutes.map(|minutes| PART * minutes);
    training.validate_every = training.validate_every.min(training.max_updates.div_ceil(2));
    training.patience = 0;
    config
}

/// Trains what a trial tries for an entrant, counted from 1.
///
/// # Errors
/// If it fails or is interrupted.
pub fn run_trial(
    entrant: &Entrant,
    options: &Options,
    trial: usize,
    adapter: &Adapter,
    progress: &mut Progress,
    work: f64,
) -> Result<()> {
    let config = config_of(entrant, trial);
    let length = match config.training.max_minutes {
        Some(minutes) => format!("{minutes:.1} minutes"),
        None => format!("{} of {} updates", config.training.max_updates, entrant.config.training.max_updates),
    };
    let what = format!("tuning {}: trial {trial} of {}, {length}", entrant.name, options.trials);
    run_to_end(&config, &folder(entrant, options, trial), adapter, &options.command, progress, (&what, work))
}

/// What all trials of an entrant came to, which gets the settings of the one with the least validation loss.
///
/// # Errors
/// If a trial cannot be read.
pub fn choose(
    entrant: &mut Entrant,
    options: &Options,
    adapter: &Adapter,
    observer: &dyn Observer,
) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for trial in 1..=options.trials {
        let (learning_rate, dropout_rate) = settings(&entrant.config, trial);
        let config = config_of(entrant, trial);
        let folder = folder(entrant, options, trial);
        let valid_loss = least_valid_loss(&Run::open(&folder)?, adapter, observer)?;
        let contestant = entrant.name.clone();
        // Those that were planned have no end where minutes are the budget.
        let updates = finished(&folder, &config)?.updates;
        let run_updates = config.training.max_minutes.is_none().then_some(entrant.config.training.max_updates);
        let is_chosen = false;
        trials.push(Trial {
            contestant,
            trial,
            learning_rate,
            dropout_rate,
            updates,
            run_updates,
            valid_loss,
            is_chosen,
        });
    }
    let best = (0..trials.len()).min_by(|a, b| trials[*a].valid_loss.total_cmp(&trials[*b].valid_loss));
    if let Some(best) = best {
        trials[best].is_chosen = true;
        set(&mut entrant.config, (trials[best].learning_rate, trials[best].dropout_rate));
    }
    Ok(trials)
}

/// The least cross-entropy of the validations of a run. A run that its time ended before the first has none, and is measured
/// now: without a loss of its own no trial could be told from another. A model that has no finite loss is not chosen.
fn least_valid_loss(run: &Run, adapter: &Adapter, observer: &dyn Observer) -> Result<f64> {
    let losses: Vec<f64> = curves::read(run).1.into_iter().map(|point| point.loss).collect();
    if !losses.is_empty() {
        return Ok(losses.into_iter().fold(f64::MAX, f64::min));
    }
    check_stop(observer)?;
    let loaded = run.load_model(adapter, None, |line| observer.warn(&line))?;
    let config = &loaded.config;
    let pairs = dataset::pairs_of(&config.data, Split::Valid, config.seed)?;
    let sums =
        validate(&loaded.model, &dataset::encode(&pairs, &loaded.tokenizers), config.training.batch_tokens, &Alone);
    let loss = sums.cross_entropy / sums.n_tokens.max(1) as f64;
    Ok(if loss.is_finite() { loss } else { f64::MAX })
}
