//! What the folder of a suite has of tasks that are not made now.

use super::Found;
use super::config::SuiteConfig;
use crate::error::{Error, Result};
use crate::report::documents::Results;
use crate::report::suite::{FORMAT, Suite};
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

    /// These and the new ones, in the order of the suite.
    ///
    /// # Errors
    /// If a comparison in the folder cannot be read.
    pub(super) fn join(self, suite: &SuiteConfig, (mut new, comparisons): Found, out: &Path) -> Result<Found> {
        let Self(old) = self;
        let mut made: Vec<_> = std::mem::take(&mut new.tasks).into_iter().zip(comparisons).collect();
        let mut kept = old.tasks;
        kept.retain(|task| made.iter().all(|(own, _)| own.name != task.name));
        let is_kept = |name: &str| kept.iter().any(|task| task.name == name);
        new.cells.extend(old.cells.into_iter().filter(|cell| is_kept(&cell.task)));
        // What is said of a part is said of the whole where it is the same, and side by side where it is not.
        let whole = [
            (&mut new.version, old.version, "; "),
            (&mut new.platform, old.platform, "; "),
            (&mut new.backend, old.backend, "; "),
            (&mut new.device, old.device, "; "),
            (&mut new.command, old.command, "\n"),
        ];
        for (own, old, between) in whole.into_iter().filter(|_| !kept.is_empty()) {
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
        new.cells.sort_by_key(|cell| place(&cell.task));
        let comparisons;
        (new.tasks, comparisons) = made.into_iter().unzip();
        Ok((new, comparisons))
    }
}
