//! `lookback compare`: trains what is not yet trained, measures every model in the same way, and puts it all into one
//! [`Comparison`].
//!
//! The folder of a comparison holds the runs, the finished measurements, `results.json` and the report. Everything that is
//! finished is found again, so that an interrupted comparison goes on where it stopped and comes to the same report.

mod assemble;
pub(crate) mod describe;
pub mod fairness;
mod jobs;
pub mod measure;
pub mod options;
pub mod plan;
pub mod progress;
pub mod store;
pub mod suite;
pub mod sweep;
pub mod test_set;
pub mod training;
pub mod tuning;
pub mod width;

pub use options::{Budget, Options};
pub use progress::{Show, Status};
pub use sweep::Sweep;

use crate::backend::Adapter;
use crate::error::{Error, Result};
use crate::models::Vocabularies;
use crate::report::comparison::{Comparison, Trial, files};
use crate::trust;
use jobs::Jobs;
use plan::{Entrant, EntrantRun};
use progress::Progress;
use test_set::TestSet;

/// Work of measuring one run, as a part of training one.
const MEASURING: f64 = 0.25;

/// A comparison whose runs are trained.
pub struct Prepared {
    /// Who takes part.
    pub entrants: Vec<Entrant>,
    /// What they are tested on.
    pub test: TestSet,
    /// The search before training.
    pub trials: Vec<Trial>,
    /// Where tensors live.
    pub adapter: Adapter,
}

/// Makes a comparison, or goes on with it.
///
/// # Errors
/// If the options, configs, runs or data cannot be used, training fails, or the observer stops it.
pub fn compare(options: &Options, show: &Show<'_>) -> Result<Comparison> {
    plan::check_folder(&options.out)?;
    if suite::is_suite(&options.out) {
        return Err(Error::file(
            &options.out,
            "is the folder of a suite; give a folder of its own to the comparison with --out",
        ));
    }
    let mut entrants = plan::entrants(options)?;
    let adapter = trust::open(
        options.backend.unwrap_or(entrants[0].config.backend),
        options.device,
        options.check,
        &*options.observer,
    )?;
    let test = test_set::test_set(&entrants, options)?;
    std::fs::create_dir_all(&options.out).map_err(Error::io(&options.out))?;
    let jobs = Jobs::open(&options.out)?;
    let names: Vec<&str> = entrants.iter().map(|entrant| entrant.name.as_str()).collect();
    if let Some((others, kept)) = files::keep_others(&names, &options.out)? {
        options.observer.warn(&format!(
            "{out} has a report with {others}, which the new one will replace; its numbers are kept: lookback compare --redraw {kept} --out \
             FOLDER",
            out = options.out.display(),
            others = others.join(", "),
            kept = kept.display()
        ));
    }
    if options.match_parameters {
        width::match_parameters(&mut entrants, &adapter)?;
    }
    let by_minutes = entrants.iter().all(|entrant| entrant.config.training.max_minutes.is_some());
    let work: Vec<f64> = entrants.iter().map(|entrant| work_of(entrant, by_minutes)).collect();
    let n_runs = |entrant: &Entrant| entrant.runs.len() as f64;
    let (mut total, mut foreseen) = (0.0, 0.0);
    for (entrant, work) in entrants.iter().zip(&work) {
        total += work * n_runs(entrant) * MEASURING * (1.0 + assemble::TIMING);
        if !entrant.is_given {
            let trial = tuning_work(entrant, options, *work);
            total += work * n_runs(entrant) + trial * options.trials as f64;
            foreseen += entrant.runs.iter().filter(|run| training::is_finished(&run.folder)).count() as f64 * work;
            let tried = |n: &usize| training::is_finished(&tuning::folder(entrant, options, *n));
            foreseen += (1..=options.trials).filter(tried).count() as f64 * trial;
        }
    }
    let mut progress = Progress::new(total, foreseen, options.processes, show, options.observer.clone());
    let trials = tune(&mut entrants, options, &adapter, &jobs, &mut progress, &work)?;
    let to_train = entrants.iter().zip(&work).filter(|(entrant, _)| !entrant.is_given);
    let to_train: Vec<_> =
        to_train.flat_map(|(entrant, work)| entrant.runs.iter().map(move |run| (entrant, run, *work))).collect();
    let name = |(entrant, run, _): &(&Entrant, &EntrantRun, f64)| format!("train-{}-seed{}", entrant.name, run.seed);
    jobs.share(&to_train, &mut progress, name, |(entrant, run, work), progress| {
        let what = match entrant.runs.len() {
            1 => format!("training {}", entrant.name),
            _ => format!("training {}, seed {}", entrant.name, run.seed),
        };
        let state = (what.as_str(), *work);
        training::run_to_end(&entrant.config_of(run), &run.folder, &adapter, &options.command, progress, state)
    })?;
    let prepared = Prepared { entrants, test, trials, adapter };
    assemble::assemble(
        &prepared,
        options,
        &jobs,
        &mut progress,
        &work.iter().map(|work| work * MEASURING).collect::<Vec<_>>(),
    )
}

/// Tries settings for every entrant that is trained here, and gives each its best.
fn tune(
    entrants: &mut [Entrant],
    options: &Options,
    adapter: &Adapter,
    jobs: &Jobs,
    progress: &mut Progress,
    work: &[f64],
) -> Result<Vec<Trial>> {
    let tuned = entrants.iter().zip(work).filter(|(entrant, _)| !entrant.is_given);
    let trials: Vec<_> = tuned
        .flat_map(|(entrant, work)| {
            let each = tuning_work(entrant, options, *work);
            (1..=options.trials).map(move |trial| (entrant, trial, each))
        })
        .collect();
    let name = |(entrant, trial, _): &(&Entrant, usize, f64)| format!("tune-{}-trial{trial}", entrant.name);
    jobs.share(&trials, progress, name, |(entrant, trial, work), progress| {
        tuning::run_trial(entrant, options, *trial, adapter, progress, *work)
    })?;
    let mut found = Vec::new();
    for entrant in entrants.iter_mut().filter(|entrant| !entrant.is_given) {
        found.extend(tuning::choose(entrant, options, adapter, &**progress.observer())?);
    }
    Ok(found)
}

fn tuning_work(entrant: &Entrant, options: &Options, work: f64) -> f64 {
    if options.trials == 0 {
        return 0.0;
    }
    work * tuning::trial_updates(&entrant.config) as f64 / entrant.config.training.max_updates as f64
}

/// What a token takes beside its arithmetic, in operations of the forward pass: a guess, without which small models would count
/// for nothing.
const OPERATIONS_BESIDE: f64 = 3e6;

/// About how long training takes: in minutes if they are the budget of all, else in operations.
fn work_of(entrant: &Entrant, by_minutes: bool) -> f64 {
    let training = &entrant.config.training;
    if let Some(minutes) = training.max_minutes.filter(|_| by_minutes) {
        return minutes;
    }
    // The vocabulary is not known before the data are read; a middling one stands for it.
    let (len, vocabularies) = (32, Vocabularies { source: 1000, target: 1000, shared: true });
    let operations = entrant.config.model.family().forward_flops(vocabularies, len) / len as f64;
    (training.max_updates * training.batch_tokens as u64) as f64 * (operations + OPERATIONS_BESIDE)
}
