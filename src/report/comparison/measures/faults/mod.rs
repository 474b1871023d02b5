//! What goes wrong with length.

mod charts;
pub mod rows;
mod table;
pub mod words;

use super::Measure;

pub(super) const MEASURE: Measure = Measure {
    id: "faults",
    title: "What goes wrong with length",
    about: "Answers that are too long or too short, that repeat themselves, end early, or leave words of the source unread.",
    charts: charts::charts,
    tables: |comparison| vec![table::table(comparison)],
    pictures: |_| None,
};
