//! `lookback compare --redraw`: the report of finished results, drawn again from their numbers.

use crate::compare::plan::check_folder;
use crate::error::{Error, Result};
use crate::files::are_same;
use crate::notice;
use crate::report::comparison::{Comparison, files};
use crate::report::documents::Results;
use crate::report::suite::{Suite, files as suite_files};
use std::path::{Component, Path, PathBuf};

/// Draws the report of `results`, a `results.json` or the folder that has it, under `out` or where it lies; the place of the page.
pub(super) fn redraw(results: &Path, out: Option<&Path>) -> Result<PathBuf> {
    let file = if results.is_dir() { results.join("results.json") } else { results.to_path_buf() };
    let from = file.parent().unwrap_or(Path::new("")).to_path_buf();
    let is_there = |out: &Path| are_same(&file, &out.join(file.file_name().unwrap_or_default()));
    if !file.exists() {
        return Err(Error::file(
            &file,
            "is not there; give the results.json of a comparison, or the folder that has it",
        ));
    }
    if out.is_none() && file.file_name().is_some_and(|name| name != "results.json") {
        let message =
            "has another name than results.json, so that the report beside it may be another; give a folder with --out";
        return Err(Error::file(&file, message));
    }
    let out = Out { folder: out.unwrap_or(&from).to_path_buf(), is_copy: out.is_some_and(|out| !is_there(out)) };
    if out.is_copy {
        check_folder(&out.folder)?;
    }
    match Results::read(&file)? {
        Results::Comparison(found) => out.comparison(&found, ""),
        Results::Suite(found) => {
            let comparisons = tasks(&found, &from)?;
            // Before the first of its tasks is written.
            out.check("", |there| matches!(there, Results::Suite(there) if *there == *found))?;
            for (task, comparison) in found.tasks.iter().zip(&comparisons) {
                if let Some(comparison) = comparison {
                    out.comparison(comparison, &task.name)?;
                }
            }
            out.suite(&found, &comparisons)
        }
        Results::Evaluations(_) => Err(Error::file(&file, "is of single models; `lookback results --add` takes it")),
    }
}

/// Where the report goes, and whether that is another place than that of the results, which are copied then: where they lie, they stay
/// as they are.
struct Out {
    folder: PathBuf,
    is_copy: bool,
}

impl Out {
    /// Refuses to put results in the place of others.
    fn check(&self, task: &str, is_same: impl FnOnce(Results) -> bool) -> Result<()> {
        let there = self.folder.join(task).join("results.json");
        if !self.is_copy || !there.exists() || Results::read(&there).is_ok_and(is_same) {
            return Ok(());
        }
        Err(Error::file(&there, "has other results, which would be lost; give another folder with --out"))
    }

    fn comparison(&self, found: &Comparison, task: &str) -> Result<PathBuf> {
        self.check(task, |there| matches!(there, Results::Comparison(there) if *there == *found))?;
        let write = if self.is_copy { files::write } else { files::draw };
        write(found, &self.folder.join(task))
    }

    fn suite(&self, found: &Suite, comparisons: &[Option<Comparison>]) -> Result<PathBuf> {
        let write = if self.is_copy { suite_files::write } else { suite_files::draw };
        write(found, comparisons, &self.folder)
    }
}

/// The comparisons of a suite's tasks, as far as they lie beside its results.
fn tasks(suite: &Suite, from: &Path) -> Result<Vec<Option<Comparison>>> {
    let mut found = Vec::new();
    for task in &suite.tasks {
        // It names a folder that is read, and one that is written.
        let mut parts = Path::new(&task.name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            return Err(Error::file(from, format!("has a task called {:?}, which is no name of a folder", task.name)));
        }
        let file = from.join(&task.name).join("results.json");
        if !file.exists() {
            notice::say(format_args!(
                "{}: is not there, so that the report has the matrix, and no charts of this task by length or time",
                file.display()
            ));
            found.push(None);
            continue;
        }
        found.push(Some(Results::read_comparison(&file)?));
    }
    Ok(found)
}
