//! The report of a suite: families of models by tasks, one matrix, every cell a claim.
//!
//! [`Suite`] is the whole of `results.json`. Each task is a comparison of its own, with a report of its own; here is what they say
//! together. [`matrix`] makes the table, [`words`] says it in sentences, [`charts`] chooses what is drawn, [`html`] puts it on one page
//! and [`files`] writes it all.

pub mod charts;
mod data;
pub mod files;
pub mod html;
pub mod matrix;
pub mod words;

pub use data::{Cell, CellScore, FORMAT, Family, Standing, Suite, SuiteTask};
