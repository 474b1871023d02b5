//! Looking inside: what a model attends to and what its states mean, as data first and as pictures and pages after.
//!
//! The data are plain serialisable types that any program can use: [`attention`], [`alignment`], [`faithfulness`], [`states`]. The drawing code
//! ([`svg`], [`heat_map`], [`png`](mod@png), [`page`]) knows strings and numbers and no model.

pub mod alignment;
pub mod attention;
pub mod attribution;
pub mod by_position;
pub(crate) mod columns;
pub mod comparison;
pub mod documents;
pub mod explanation;
pub mod faithfulness;
pub mod heat_map;
pub mod page;
pub mod png;
pub mod states;
pub mod suite;
pub mod svg;
