//! The report of `lookback compare`: what was measured, as plain data, and how it is drawn.
//!
//! [`Comparison`] is the whole of `results.json`; the schema is described in `docs/reference/results-json.md`. Everything else here knows that
//! type and nothing of models, runs or training: [`measures`] has a folder for each measure with its rows, charts, tables and sentences,
//! [`claims`] what is said of differences, [`chart`] draws, [`words`] puts the sentences in order, [`score`] knows scores by their names,
//! [`html`] puts it all on one page, [`files`] writes it, and [`documents`](super::documents) writes it into the book.

pub mod chart;
pub mod claims;
mod contestants;
mod data;
pub mod files;
pub mod html;
mod marker;
pub mod measures;
mod scale;
pub mod score;
pub mod table;
pub mod words;

pub use claims::rows::{Claim, ClaimKind, Threshold};
pub use data::{Comparison, Contestant, Difference, FORMAT, Fact, Group, GroupKind, Resampling, Task, Trial};
pub use measures::alignments::rows::{AlignedSentence, Map};
pub use measures::costs::rows::{Cost, CostKind, Crossing, Growth};
pub use measures::curves::rows::{Curve, CurvePoint};
pub use measures::faults::rows::Faults;
pub use measures::positions::rows::PositionAccuracy;
pub use measures::quality::rows::{Quality, Score};
pub use scale::Division;
pub use score::{key_of, metric_of};
