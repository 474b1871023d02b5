//! What a comparison measures, one folder for each: the rows of `results.json`, their charts and tables, and what is said of them.
//!
//! A new measure is a folder here, a line in [`MEASURES`], a field of [`Comparison`], and the file of that name in `compare::measure`,
//! where it is measured.

pub mod alignments;
pub mod costs;
pub mod curves;
pub mod faults;
mod lines;
pub mod positions;
pub mod quality;

use super::chart::Chart;
use super::contestants;
use super::data::Comparison;
use super::table::Table;
use maud::Markup;

/// How a measure is shown: a section of the page, and files.
pub struct Measure {
    /// The address of its section, and the beginning of the names of its charts.
    pub id: &'static str,
    /// The title of its section.
    pub title: &'static str,
    /// What its numbers mean.
    pub about: &'static str,
    /// Its charts; one without points is not shown.
    pub charts: fn(&Comparison) -> Vec<Chart>,
    /// Its tables; one without rows is not shown.
    pub tables: fn(&Comparison) -> Vec<Table>,
    /// What else its section shows, if there is more.
    pub pictures: fn(&Comparison) -> Option<Markup>,
}

/// All of them, in the order of the report.
pub const MEASURES: [Measure; 6] =
    [quality::MEASURE, positions::MEASURE, faults::MEASURE, costs::MEASURE, curves::MEASURE, alignments::MEASURE];

impl Measure {
    /// The charts that there is something to draw for.
    pub fn drawn(&self, comparison: &Comparison) -> Vec<Chart> {
        let mut found = (self.charts)(comparison);
        found.retain(|chart| !chart.is_empty());
        found
    }

    /// The tables that have rows.
    pub fn listed(&self, comparison: &Comparison) -> Vec<Table> {
        let mut found = (self.tables)(comparison);
        found.retain(|table| !table.rows.is_empty());
        found
    }
}

/// Every chart that there is something to draw for.
pub fn charts(comparison: &Comparison) -> Vec<Chart> {
    MEASURES.iter().flat_map(|measure| measure.drawn(comparison)).collect()
}

/// Every table that has rows: of the contestants, then of the measures.
pub fn tables(comparison: &Comparison) -> Vec<Table> {
    let mut found = contestants::tables(comparison);
    found.extend(MEASURES.iter().flat_map(|measure| measure.listed(comparison)));
    found
}
