//! What the folder of a suite has of tasks that are not made now.

use super::config::{SuiteConfig, SuiteTaskConfig};
use super::{Found, answers, cells};
use crate::compare::Answered;
use crate::compare::assemble::BOOTSTRAP;
use crate::compare::measure::claims::claims;
use crate::compare::measure::quality::Scored;
use crate::compare::options::Options;
use crate::compare::test_set::TestSet;
use crate::error::{Error, Result};
use crate::report::documents::Results;
use crate::report::suite::{Cell, FORMAT, Suite};
use std::collections::BTreeSet;
use std::path::Path;

/// The results of a suite that were there before.
pub(super) struct Earlier(Suite);

impl Earlier {
    /// The names of their tasks.
    pub(super) fn tasks(&self) -> Vec<String> {
        self.0.tasks.iter().map(|task| task.name.clone()).collect()
    }

    /// Those in the folder `out`, which is that of the suite; none if it has none.
    ///
    /// # Errors
    /// If they are no results of a suite, or of another format.
    pub(super) fn read(out: &Path) -> Result<Option<Self>> {
        let results = out.join("results.json");
        if !results.exists() {
            return Ok(None);
        }
        let Results::Suite(earlier) = Results::read(&results)? else {
            return Err(Error::file(&results, "is not of a suite"));
        };
        if earlier.format != FORMAT {
            let message = format!("has format {}, and only results of format {FORMAT} can be added to", earlier.format);
            return Err(Error::file(&results, message));
        }
        Ok(Some(Self(*earlier)))
    }

    /// The cells of a task whose families are not among `made`.
    fn others<'a>(&'a self, task: &'a str, made: &'a [String]) -> impl Iterator<Item = &'a Cell> {
        self.0.cells.iter().filter(move |cell| cell.task == task && !made.contains(&cell.family))
    }

    /// Refuses to make the families `made` of a task alone if the others that are there could not be compared with them.
    ///
    /// # Errors
    /// Then; says what to do instead.
    pub(super) fn check_part(&self, task: &SuiteTaskConfig, made: &[String]) -> Result<()> {
        match self.others(&task.name, made).find(|cell| cell.right.is_empty()) {
            Some(cell) => Err(Error::message(format!(
                "--family: of {} in the task {} the results do not have which answers are right, so that no other family can be compared \
                 with it; make the task without --family, or in another folder with --out",
                cell.family, task.name
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options with which the cells that stay could not stand beside the new ones: another number of seeds, other settings,
    /// another beam. Tasks `made` are made of the families `families`, or of all if none is named.
    ///
    /// # Errors
    /// Then.
    pub(super) fn check_options(
        &self,
        made: &[&SuiteTaskConfig],
        families: &[String],
        options: &Options,
    ) -> Result<()> {
        let is_made = |cell: &Cell| {
            let is_named = families.is_empty() || families.contains(&cell.family);
            is_named && made.iter().any(|task| task.name == cell.task)
        };
        let mut kept = self.0.cells.iter().filter(|cell| !is_made(cell)).peekable();
        if kept.peek().is_none() {
            return Ok(());
        }
        if let Some(Cell { task, family, seeds, .. }) = kept.find(|cell| cell.seeds.len() != options.seeds) {
            return Err(Error::message(format!(
                "--seeds {}: in the results, {family} in the task {task} has {}; take as many, or give another folder with --out",
                options.seeds,
                seeds.len()
            )));
        }
        let set = |set: &[String]| if set.is_empty() { "nothing".to_string() } else { set.join(", ") };
        let beam = |beam: Option<usize>| beam.map_or("as the configs have it".to_string(), |beam| beam.to_string());
        let sorted = |set: &[String]| set.iter().cloned().collect::<BTreeSet<_>>();
        let differs = if sorted(&options.set) != sorted(&self.0.set) {
            Some(("--set", set(&options.set), set(&self.0.set)))
        } else if options.beam != self.0.beam {
            Some(("--beam", beam(options.beam), beam(self.0.beam)))
        } else {
            None
        };
        match differs {
            Some((option, now, before)) => Err(Error::message(format!(
                "{option}: {now}, and {before} in the results that are there, beside which these would stand; give the same, or another \
                 folder with --out"
            ))),
            None => Ok(()),
        }
    }

    /// The answers of the families of a task that are not among `made`.
    ///
    /// # Errors
    /// If they are not of the sentences of `test`.
    pub(super) fn answers(&self, task: &str, made: &[String], test: &TestSet) -> Result<Vec<Scored>> {
        let of_task = self.0.tasks.iter().find(|own| own.name == task);
        let is_same = of_task.is_none_or(|own| own.test_sha256 == test.sha256);
        let of = |cell: &Cell| answers::scored(&cell.family, &cell.right, test.pairs.len()).filter(|_| is_same);
        self.others(task, made).map(of).collect::<Option<_>>().ok_or_else(|| {
            Error::message(format!(
                "the families of the task {task} that are there were tested on other sentences; make the task without --family, or in \
                 another folder with --out"
            ))
        })
    }

    /// Puts the cells of the families that were there beside those of `made` in a task of `new`, and compares all of them. Whether there
    /// were any.
    ///
    /// # Errors
    /// As [`answers`](Self::answers).
    pub(super) fn complete(&self, suite: &SuiteConfig, new: &mut Suite, task: &str, made: &Answered) -> Result<bool> {
        let Answered { comparison, scored, test } = made;
        let names: Vec<String> = scored.iter().map(|scored| scored.name.clone()).collect();
        // In the order of the suite, as if all had been made together: of several with one score the first counts as the best.
        let mut all = self.answers(task, &names, test)?;
        if all.is_empty() {
            return Ok(false);
        }
        all.extend(scored.iter().cloned());
        all.sort_by_key(|scored| suite.row(&scored.name));
        new.cells.extend(self.others(task, &names).cloned());
        new.cells.sort_by_key(|cell| suite.row(&cell.family));
        let claims = claims(&all, test, &[comparison.headline().to_string()], &BOOTSTRAP)?;
        cells::judge(new, task, &claims);
        Ok(true)
    }

    /// These and the new ones, in the order of the suite; `is_completed` says whether some of these are among the new ones already.
    ///
    /// # Errors
    /// If a comparison in the folder cannot be read.
    pub(super) fn join(
        self,
        suite: &SuiteConfig,
        (mut new, comparisons): Found,
        is_completed: bool,
        out: &Path,
    ) -> Result<Found> {
        let Self(old) = self;
        let mut made: Vec<_> = std::mem::take(&mut new.tasks).into_iter().zip(comparisons).collect();
        let mut kept = old.tasks;
        kept.retain(|task| made.iter().all(|(own, _)| own.name != task.name));
        let is_kept = |name: &str| kept.iter().any(|task| task.name == name);
        let is_joined = is_completed || !kept.is_empty();
        new.cells.extend(old.cells.into_iter().filter(|cell| is_kept(&cell.task)));
        // What is said of a part is said of the whole where it is the same, and side by side where it is not.
        let whole = [
            (&mut new.version, old.version, "; "),
            (&mut new.platform, old.platform, "; "),
            (&mut new.backend, old.backend, "; "),
            (&mut new.device, old.device, "; "),
            (&mut new.command, old.command, "\n"),
        ];
        for (own, old, between) in whole.into_iter().filter(|_| is_joined) {
            if !old.split(between).any(|part| part == own) {
                *own = old + between + own;
            } else {
                *own = old;
            }
        }
        for (own, old) in new.families.iter_mut().zip(old.families) {
            if own.model.is_empty() {
                own.model = old.model;
            }
        }
        for task in kept {
            let file = out.join(&task.name).join("results.json");
            let comparison = file.exists().then(|| Results::read_comparison(&file)).transpose()?;
            made.push((task, comparison));
        }
        let place = |name: &str| suite.task.iter().position(|task| task.name == name);
        made.sort_by_key(|(task, _)| place(&task.name));
        new.cells.sort_by_key(|cell| (place(&cell.task), suite.row(&cell.family)));
        let comparisons;
        (new.tasks, comparisons) = made.into_iter().unzip();
        Ok((new, comparisons))
    }
}
