//! Scores by source length: who is better, and up to where.

mod charts;
pub mod lengths;
pub mod rows;
mod table;
pub mod words;

use super::Measure;
use crate::report::comparison::claims;

pub(super) const MEASURE: Measure = Measure {
    id: "quality",
    title: "Quality by source length",
    about: "The shaded part is longer than any sentence of training: what a model does there it was never shown.",
    charts: charts::charts,
    tables: |comparison| vec![table::table(comparison), claims::table::table(comparison)],
    pictures: |_| None,
};
