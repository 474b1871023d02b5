//! Everything that a comparison writes: `results.json`, the page, charts as SVG and PNG, tables as CSV.

use super::charts::charts;
use super::data::Comparison;
use super::html::{map_svg, page};
use super::tables::tables;
use crate::error::{Error, Result};
use crate::report::png::png;
use std::fs;
use std::path::{Path, PathBuf};

/// Pixels of a PNG for each of a chart's own.
const SCALE: f32 = 2.0;

/// Writes all of it under `out`; the place of the page.
///
/// # Errors
/// If the disk refuses.
pub fn write(comparison: &Comparison, out: &Path) -> Result<PathBuf> {
    let [report, pictures, data] = ["report", "report/charts", "report/tables"].map(|name| out.join(name));
    for folder in [&report, &pictures, &data] {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    put(&out.join("results.json"), json(comparison).as_bytes())?;
    for chart in charts(comparison) {
        let svg = chart.svg();
        put(&pictures.join(format!("{}.svg", chart.id)), svg.as_bytes())?;
        put(&pictures.join(format!("{}.png", chart.id)), &png(&svg, SCALE)?)?;
    }
    for (i, sentence) in comparison.alignments.iter().enumerate() {
        for map in &sentence.maps {
            let name = format!("alignment-{}-{}", i + 1, plain(&map.contestant));
            let svg = map_svg(map);
            put(&pictures.join(format!("{name}.svg")), svg.as_bytes())?;
            put(&pictures.join(format!("{name}.png")), &png(&svg, SCALE)?)?;
        }
    }
    for table in tables(comparison) {
        put(&data.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
    }
    let page_path = report.join("index.html");
    put(&page_path, page(comparison).render().as_bytes())?;
    Ok(page_path)
}

/// `results.json`.
pub fn json(comparison: &Comparison) -> String {
    serde_json::to_string_pretty(comparison).expect("a comparison is plain data") + "\n"
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(Error::io(path))
}

/// A name that any file system takes.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
