//! What is forgotten: how often a token is right, by the place of what it needs.

mod charts;
pub mod rows;
mod table;
pub mod words;

use super::Measure;

pub(super) const MEASURE: Measure = Measure {
    id: "positions",
    title: "What is forgotten",
    about: "Accuracy by the place of what a token needs. A model that forgets what it read first is low on the left, or on the right if it \
            reads the source backwards.",
    charts: charts::charts,
    tables: |comparison| vec![table::table(comparison)],
    pictures: |_| None,
};
