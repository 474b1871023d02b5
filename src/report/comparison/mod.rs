//! The report of `lookback compare`: what was measured, as plain data, and how it is drawn.
//!
//! [`Comparison`] is the whole of `results.json`; the schema is described in `docs/reference/results-json.md`. Everything else here knows that
//! type and nothing of models, runs or training: [`charts`] and [`tables`] choose what is shown, [`chart`] draws, [`words`] says
//! it in sentences, [`score`] knows scores by their names, [`html`] puts it on one page, [`files`] writes it all, and
//! [`documents`](super::documents) writes it into the book.

pub mod chart;
pub mod charts;
mod data;
pub mod files;
pub mod html;
mod marker;
mod measured;
mod scale;
pub mod score;
pub mod tables;
pub mod words;

pub use data::{Comparison, Contestant, Difference, FORMAT, Fact, Group, GroupKind, Resampling, Task, Trial};
pub use scale::Division;
pub use score::{key_of, metric_of};

pub use measured::{
    AlignedSentence, Claim, ClaimKind, Cost, CostKind, Crossing, Curve, CurvePoint, Faults, Growth, Map,
    PositionAccuracy, Quality, Score, Threshold,
};
