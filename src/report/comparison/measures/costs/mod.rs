//! Time, memory and state by length.

mod charts;
mod names;
pub mod rows;
mod tables;
pub mod words;

use super::Measure;

pub(super) const MEASURE: Measure = Measure {
    id: "cost",
    title: "Cost by length",
    about: "One pair of sentences with random weights: only the size of the model and the length count.",
    charts: charts::charts,
    tables: |comparison| vec![tables::costs(comparison), tables::growth(comparison), tables::crossings(comparison)],
    pictures: |_| None,
};
