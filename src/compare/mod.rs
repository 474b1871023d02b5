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
pub mod work;

pub use options::{Budget, Options};
pub use progress::{Show, Status};
pub use sweep::Sweep;

use crate::backend::Adapter;
use crate::decoding::DecodingConfig;
use crate::error::{Error, Result};
use crate::report::comparison::{Comparison, Trial, files};
use crate::trust;
use jobs::Jobs;
use measure::quality::Scored;
use plan::{Entrant, EntrantRun};
use progress::Progress;
use test_set::TestSet;
use work::Work;

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
    /// How all of them decode.
    pub decoding: DecodingConfig,
}

/// Makes a comparison, or goes on with it.
///
/// # Errors
/// If the options, configs, runs or data cannot be used, training fails, or the observer stops it.
pub fn compare(options: &Options, show: &Show<'_>) -> Result<Comparison> {
    Ok(answered(options, &|_| Ok(()), show)?.comparison)
}

/// A comparison, and what it was made from.
pub(crate) struct Answered {
    pub(crate) comparison: Comparison,
    /// What every contestant made of every test sentence.
    pub(crate) scored: Vec<Scored>,
    pub(crate) test: TestSet,
}

/// As [`compare`], unless `accepts` refuses what is tested on, before anything is trained.
fn answered(options: &Options, accepts: &dyn Fn(&TestSet) -> Result<()>, show: &Show<'_>) -> Result<Answered> {
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
    let decoding = decoding(&entrants[0], options)?;
    let test = test_set::test_set(&entrants, options)?;
    accepts(&test)?;
    std::fs::create_dir_all(&options.out).map_err(Error::io(&options.out))?;
    let jobs = Jobs::open(&options.out)?;
    let is_made = |entrant: &Entrant| options.only.is_empty() || options.only.contains(&entrant.name);
    let made = entrants.iter().filter(|entrant| is_made(entrant));
    let names: Vec<&str> = made.map(|entrant| entrant.name.as_str()).collect();
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
    entrants.retain(is_made);
    let guess = |entrant: &Entrant| Work::guess(entrant, options, &test, decoding.beam_size);
    let mut work: Vec<Work> = entrants.iter().map(guess).collect();
    let [total, foreseen] = work::totals(&entrants, &work, options);
    let mut progress = Progress::new(total, foreseen, options.processes, show, options.observer.clone());
    let trials = tune(&mut entrants, options, &adapter, &jobs, &mut progress, &work)?;
    if !trials.is_empty() {
        for (entrant, work) in entrants.iter().zip(&mut work).filter(|(entrant, _)| !entrant.is_given) {
            *work = work.as_in_trials(entrant, options);
        }
        let [total, foreseen] = work::totals(&entrants, &work, options);
        progress = Progress::new(total, foreseen, options.processes, show, options.observer.clone());
        progress.skip(trials_of(&entrants, &work, options).map(|(_, _, seconds)| seconds).sum());
    }
    let to_train = entrants.iter().zip(&work).filter(|(entrant, _)| !entrant.is_given);
    let to_train: Vec<_> = to_train
        .flat_map(|(entrant, work)| entrant.runs.iter().map(move |run| (entrant, run, work.training)))
        .collect();
    let name = |(entrant, run, _): &(&Entrant, &EntrantRun, f64)| format!("train-{}-seed{}", entrant.name, run.seed);
    jobs.share(&to_train, &mut progress, name, |(entrant, run, work), progress| {
        let what = match entrant.runs.len() {
            1 => format!("training {}", entrant.name),
            _ => format!("training {}, seed {}", entrant.name, run.seed),
        };
        let state = (what.as_str(), *work);
        training::run_to_end(&entrant.config_of(run), &run.folder, &adapter, &options.command, progress, state)
    })?;
    let prepared = Prepared { entrants, test, trials, adapter, decoding };
    let (comparison, scored) = assemble::assemble(&prepared, options, &jobs, &mut progress, &work)?;
    Ok(Answered { comparison, scored, test: prepared.test })
}

/// How all contestants decode: as the first of them, unless the options have a beam.
fn decoding(first: &Entrant, options: &Options) -> Result<DecodingConfig> {
    let mut decoding = first.config.decoding.clone();
    if let Some(beam) = options.beam {
        decoding.beam_size = beam;
        decoding.n_best = decoding.n_best.min(beam);
        decoding.sampling = None;
    }
    decoding.validate()?;
    Ok(decoding)
}

/// Tries settings for every entrant that is trained here, and gives each its best.
fn tune(
    entrants: &mut [Entrant],
    options: &Options,
    adapter: &Adapter,
    jobs: &Jobs,
    progress: &mut Progress,
    work: &[Work],
) -> Result<Vec<Trial>> {
    let trials: Vec<_> = trials_of(entrants, work, options).collect();
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

/// The trials of all entrants that are trained here: whose, which, and the seconds that it takes.
fn trials_of<'a>(
    entrants: &'a [Entrant],
    work: &'a [Work],
    options: &Options,
) -> impl Iterator<Item = (&'a Entrant, usize, f64)> {
    let tuned = entrants.iter().zip(work).filter(|(entrant, _)| !entrant.is_given);
    let n = options.trials;
    tuned.flat_map(move |(entrant, work)| (1..=n).map(move |trial| (entrant, trial, work.trial)))
}
