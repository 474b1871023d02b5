//! How fast the models learnt.

mod charts;
pub mod rows;

use super::Measure;
pub use charts::band;

pub(super) const MEASURE: Measure = Measure {
    id: "curves",
    title: "Learning",
    about: "How fast the models learnt, by updates and by time.",
    charts: charts::charts,
    tables: |_| Vec::new(),
    pictures: |_| None,
};
