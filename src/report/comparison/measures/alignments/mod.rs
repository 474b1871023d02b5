//! What the models looked at.

mod html;
pub mod rows;

use super::Measure;

pub use html::map_svg;

pub(super) const MEASURE: Measure = Measure {
    id: "alignments",
    title: "What they looked at",
    about: "The mean of all cross-attention while each model wrote its own answer. A model without attention has no map.",
    charts: |_| Vec::new(),
    tables: |_| Vec::new(),
    pictures: html::alignments,
};
