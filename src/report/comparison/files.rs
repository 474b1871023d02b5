//! Everything that a comparison writes: `results.json`, the page, charts as SVG and PNG, tables as CSV.

use super::chart;
use super::data::Comparison;
use super::html::page;
use super::measures::alignments::map_svg;
use super::measures::{charts, tables};
use crate::error::{Error, Result};
use crate::files::replace;
use crate::report::png::png;
use crate::report::svg::Svg;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pixels of a PNG for each of a chart's own.
const SCALE: f32 = 2.0;
/// The same for the overview, which goes into documents.
const OVERVIEW_SCALE: f32 = 1.25;
/// The charts of the overview, by the beginning of their names.
const OVERVIEW: [&str; 6] =
    ["quality-", "positions-all", "faults-length", "cost-update-seconds", "cost-update-memory", "curves-seconds"];

/// How the names of charts begin.
const PICTURES: [&str; 6] = ["quality-", "positions-", "faults-", "cost-", "curves-", "alignment-"];
/// The tables.
const TABLES: [&str; 10] = [
    "quality",
    "faults",
    "costs",
    "growth",
    "crossings",
    "positions",
    "claims",
    "contestants",
    "differences",
    "trials",
];

/// Copies the results in `out`, if they have contestants that are not among `names`, to a name that nothing has; who those are, and the
/// place.
///
/// # Errors
/// If the disk refuses.
pub fn keep_others(names: &[&str], out: &Path) -> Result<Option<(Vec<String>, PathBuf)>> {
    let Ok(text) = fs::read_to_string(out.join("results.json")) else { return Ok(None) };
    let earlier: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let contestants = earlier["contestants"].as_array().into_iter().flatten();
    let theirs = contestants.filter_map(|contestant| contestant["name"].as_str());
    let others: Vec<String> = theirs.filter(|name| !names.contains(name)).map(str::to_owned).collect();
    if others.is_empty() {
        return Ok(None);
    }
    // Another process of the same command may have been here.
    let is_free = |place: &PathBuf| !place.exists() || fs::read_to_string(place).is_ok_and(|there| there == text);
    let mut places = (1..).map(|n| out.join(format!("results-before-{n}.json")));
    let kept = places.find(is_free).expect("numbers do not end");
    replace(&kept, text.as_bytes())?;
    Ok(Some((others, kept)))
}

/// Writes all of it under `out`; the place of the page.
///
/// # Errors
/// If the disk refuses.
pub fn write(comparison: &Comparison, out: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out).map_err(Error::io(out))?;
    replace(&out.join("results.json"), json(comparison).as_bytes())?;
    draw(comparison, out)
}

/// Writes all but `results.json`; the place of the page.
///
/// # Errors
/// If the disk refuses.
pub fn draw(comparison: &Comparison, out: &Path) -> Result<PathBuf> {
    let [report, pictures, data] = ["report", "report/charts", "report/tables"].map(|name| out.join(name));
    for folder in [&report, &pictures, &data] {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    let mut drawn = BTreeSet::new();
    for chart in charts(comparison) {
        drawn.insert(picture(&pictures, &chart.id, &chart.svg())?);
    }
    let overview = overview(comparison);
    replace(&report.join("overview.svg"), overview.as_bytes())?;
    replace(&report.join("overview.png"), &png(&overview, OVERVIEW_SCALE)?)?;
    for (i, sentence) in comparison.alignments.iter().enumerate() {
        for map in &sentence.maps {
            let name = format!("alignment-{}-{}", i + 1, map.contestant);
            drawn.insert(picture(&pictures, &name, &map_svg(map))?);
        }
    }
    remove_others(&pictures, |name| PICTURES.iter().any(|prefix| name.starts_with(prefix)), &drawn);
    let tables = tables(comparison);
    for table in &tables {
        replace(&data.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
    }
    remove_others(&data, |name| TABLES.contains(&name), &tables.iter().map(|table| table.id.to_string()).collect());
    let page_path = report.join("index.html");
    replace(&page_path, page(comparison).render().as_bytes())?;
    Ok(page_path)
}

/// Writes a chart into a folder, as SVG and as PNG; the name that it has there.
///
/// # Errors
/// If the disk refuses.
pub(in crate::report) fn picture(folder: &Path, id: &str, svg: &str) -> Result<String> {
    let name = plain(id);
    replace(&folder.join(format!("{name}.svg")), svg.as_bytes())?;
    replace(&folder.join(format!("{name}.png")), &png(svg, SCALE)?)?;
    Ok(name)
}

/// Removes what an earlier report left in `folder`: files of names that `are_own`, and that are not among `written`.
pub(in crate::report) fn remove_others(folder: &Path, are_own: impl Fn(&str) -> bool, written: &BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_of_kind = path.extension().is_some_and(|end| ["svg", "png", "csv"].iter().any(|own| end == *own));
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if is_of_kind && are_own(&name) && !written.contains(&name) {
            // What cannot be removed is out of date, nothing else.
            let _ = fs::remove_file(path);
        }
    }
}

/// The most telling charts in one picture, two in a row: for a README or a slide.
pub fn overview(comparison: &Comparison) -> String {
    let charts = charts(comparison);
    let chosen: Vec<_> =
        OVERVIEW.iter().filter_map(|prefix| charts.iter().find(|chart| chart.id.starts_with(prefix))).collect();
    let mut svg = Svg::default();
    let mut y = 0.0;
    for row in chosen.chunks(2) {
        for (i, chart) in row.iter().enumerate() {
            let x = i as f64 * chart::WIDTH;
            svg.raw(&format!("<g transform=\"translate({x} {y})\">\n{}</g>", chart.drawing()));
        }
        y += row.iter().map(|chart| chart.height()).fold(0.0, f64::max);
    }
    svg.finish(2.0 * chart::WIDTH, y.max(1.0))
}

/// `results.json`.
pub fn json(comparison: &Comparison) -> String {
    serde_json::to_string_pretty(comparison).expect("a comparison is plain data") + "\n"
}

/// A name that any file system takes, and that leads nowhere else.
pub(in crate::report) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
