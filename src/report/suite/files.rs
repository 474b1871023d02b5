//! Everything that a suite writes beside the comparisons of its tasks.

use super::charts::{by_length, by_state, costs};
use super::data::Suite;
use super::html::page;
use super::matrix::table;
use crate::error::{Error, Result};
use crate::files::replace;
use crate::report::comparison::Comparison;
use crate::report::comparison::files::{picture, plain, remove_others};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How the names of charts go on after that of a task.
const PICTURES: [&str; 3] = ["-quality-", "-state", "-cost-"];

/// Writes all of it under `out`; the place of the page. `comparisons` are those of the tasks, in their order, as far as they are there.
///
/// # Errors
/// If the disk refuses.
pub fn write(suite: &Suite, comparisons: &[Option<Comparison>], out: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(out).map_err(Error::io(out))?;
    replace(&out.join("results.json"), json(suite).as_bytes())?;
    draw(suite, comparisons, out)
}

/// Writes all but `results.json`; the place of the page.
///
/// # Errors
/// If the disk refuses.
pub fn draw(suite: &Suite, comparisons: &[Option<Comparison>], out: &Path) -> Result<PathBuf> {
    let [report, pictures, data] = ["report", "report/charts", "report/tables"].map(|name| out.join(name));
    for folder in [&report, &pictures, &data] {
        std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    let charts = [by_length(suite, comparisons), by_state(suite), costs(suite, comparisons)];
    let mut drawn = BTreeSet::new();
    for chart in charts.into_iter().flatten() {
        drawn.insert(picture(&pictures, &chart.id, &chart.svg())?);
    }
    let tasks: Vec<String> = suite.tasks.iter().map(|task| plain(&task.name)).collect();
    let is_own = |name: &str| {
        let of = |task: &String| {
            name.strip_prefix(task.as_str()).is_some_and(|rest| PICTURES.iter().any(|own| rest.starts_with(own)))
        };
        tasks.iter().any(of)
    };
    remove_others(&pictures, is_own, &drawn);
    let table = table(suite);
    replace(&data.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
    let place = report.join("index.html");
    replace(&place, page(suite, comparisons).render().as_bytes())?;
    Ok(place)
}

/// `results.json` of a suite.
pub fn json(suite: &Suite) -> String {
    serde_json::to_string_pretty(suite).expect("a suite is plain data") + "\n"
}
