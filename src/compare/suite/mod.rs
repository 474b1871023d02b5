//! A suite: families of models by tasks. Each task is a comparison of its own, in a folder of its own, and what they say together
//! becomes one matrix.

mod answers;
mod cells;
mod config;
mod earlier;

pub use config::{BUILT_IN, FamilyConfig, SuiteConfig, SuiteTaskConfig};
use earlier::Earlier;

use super::jobs::Jobs;
use super::options::Options;
use super::progress::{Show, Status};
use super::test_set::TestSet;
use super::{Answered, answered, plan};
use crate::error::{Error, Result};
use crate::files::replace;
use crate::report::comparison::{Comparison, files};
use crate::report::suite::{Suite, files as suite_files};
use std::path::{Path, PathBuf};

/// The file of the suite, beside the folders of its tasks.
const FILE: &str = "suite.toml";

/// A suite and the comparisons of its tasks, in their order; none for a task that was made elsewhere, if its comparison is not in the
/// folder.
type Found = (Suite, Vec<Option<Comparison>>);

/// What is made of a suite: the tasks and families that are named, and all where none is.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Names of tasks.
    pub tasks: Vec<String>,
    /// Names of families.
    pub families: Vec<String>,
}

impl Part {
    fn is_whole(&self) -> bool {
        self.tasks.is_empty() && self.families.is_empty()
    }
}

/// Makes a suite in `options.out`, or goes on with it; its results and report, and the comparisons of its tasks with theirs, are there
/// then. Gives what was found out, and the place of the page. Of `options` count the folder, what is set, the number of seeds, where
/// tensors live, and who is told. With `part`, only that is made, and what the folder's results have of others stays, so that several
/// machines or processes can each make a part.
///
/// # Errors
/// If the suite, its configs or data cannot be used, the suite has no such part, the folder has results of another suite or such that the
/// part cannot be compared with, training fails, or the observer stops it.
pub fn run(suite: &SuiteConfig, part: &Part, options: &Options, show: &Show<'_>) -> Result<(Suite, PathBuf)> {
    suite.check_families(&part.families)?;
    let takes_part = |task: &&SuiteTaskConfig| {
        part.families.is_empty() || suite.of_task(task).any(|family| part.families.contains(&family.name))
    };
    let made: Vec<_> = suite.chosen(&part.tasks)?.into_iter().filter(takes_part).collect();
    if made.is_empty() {
        return Err(Error::message(format!("--family: nobody of {} takes part", part.families.join(", "))));
    }
    let earlier = Earlier::read(&options.out);
    prepare(suite, earlier.as_ref().ok().and_then(Option::as_ref), &options.out)?;
    // All tasks anew need nothing of results that cannot be read.
    let earlier = if part.is_whole() { None } else { earlier? };
    // Whose families are compared with those that are made.
    let others = of_others(earlier.as_ref(), &made, part, options)?;
    let n = made.len() as f64;
    let mut answers = Vec::new();
    for (i, task) in made.iter().enumerate() {
        let out = options.out.join(&task.name);
        let folder = out.join("configs");
        std::fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let mut configs = Vec::new();
        for family in suite.of_task(task) {
            let path = folder.join(format!("{}.toml", family.name));
            replace(&path, suite.text_of(task, family)?.as_bytes())?;
            configs.push(path);
        }
        // Where no times are to be measured, none of a task are.
        let longest_cost = task.costs.filter(|_| !options.cost_lengths.is_empty()).unwrap_or(0);
        let own = Options {
            configs,
            only: part.families.clone(),
            out: out.clone(),
            trials: suite.tune,
            match_parameters: suite.match_parameters,
            lengths: task.lengths.clone(),
            per_length: task.per_length,
            cost_lengths: Options::cost_lengths(longest_cost),
            ..options.clone()
        };
        let show = |status: &Status| {
            show(&Status {
                done: (i as f64 + status.done) / n,
                what: format!("{}: {}", task.name, status.what),
                // What the tasks after this one take is not known.
                seconds_left: status.seconds_left.filter(|_| i + 1 == made.len()),
            })
        };
        let accepts =
            |test: &TestSet| others.map_or(Ok(()), |others| others.answers(&task.name, &part.families, test).map(drop));
        let found = answered(&own, &accepts, &show)?;
        files::write(&found.comparison, &out)?;
        answers.push(found);
    }
    let _lock = Jobs::open(&options.out)?.wait_for("results", &*options.observer, |_| ())?;
    // Another process may have made another part meanwhile.
    let earlier = if part.is_whole() { None } else { Earlier::read(&options.out)? };
    let others = of_others(earlier.as_ref(), &made, part, options)?;
    let mut found = cells::suite(suite, &made, options, &answers)?;
    let mut is_completed = false;
    if let Some(others) = others {
        for (task, answered) in made.iter().zip(&answers) {
            is_completed |= others.complete(suite, &mut found, &task.name, answered)?;
        }
    }
    let comparisons = answers.into_iter().map(|Answered { comparison, .. }| Some(comparison)).collect();
    let (found, comparisons) = match earlier {
        Some(earlier) => earlier.join(suite, (found, comparisons), is_completed, &options.out)?,
        None => (found, comparisons),
    };
    let page = suite_files::write(&found, &comparisons, &options.out)?;
    Ok((found, page))
}

/// The earlier results whose families are compared with those that are made, where a part names families.
///
/// # Errors
/// If the part could not stand beside the earlier results.
fn of_others<'a>(
    earlier: Option<&'a Earlier>,
    made: &[&SuiteTaskConfig],
    part: &Part,
    options: &Options,
) -> Result<Option<&'a Earlier>> {
    let Some(earlier) = earlier else { return Ok(None) };
    earlier.check_options(made, &part.families, options)?;
    if part.families.is_empty() {
        return Ok(None);
    }
    made.iter().try_for_each(|task| earlier.check_part(task, &part.families))?;
    Ok(Some(earlier))
}

/// Makes the folder, unless it is something else's, or has results that the suite's file would not make now: cells beside each other
/// would answer other questions, or be lost.
fn prepare(suite: &SuiteConfig, earlier: Option<&Earlier>, out: &Path) -> Result<()> {
    plan::check_folder(out)?;
    let file = out.join(FILE);
    if out.join("results.json").exists() {
        if !file.exists() {
            let message = "is the folder of a comparison; give a folder of its own to the suite with --out";
            return Err(Error::file(out, message));
        }
        let difference = match SuiteConfig::read(&file) {
            // Results that cannot be read may have all tasks.
            Ok(old) => suite.differs_from(&old, &earlier.map_or_else(|| old.tasks(), Earlier::tasks)),
            Err(error) => Some(error.to_string()),
        };
        if let Some(what) = difference {
            let message =
                format!("is not the suite {} as it is now: {what}; give another folder with --out", suite.name);
            return Err(Error::file(&file, message));
        }
    }
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    replace(&file, suite.text.as_bytes())
}

/// Whether a folder is that of a suite.
pub(super) fn is_suite(out: &Path) -> bool {
    out.join(FILE).exists()
}
