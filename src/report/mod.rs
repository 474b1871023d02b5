//! Looking inside: what a model attends to and what its states mean, as data first and as pictures and pages after.
//!
//! The data are plain serialisable types that any program can use. The drawing code ([`page`]) knows strings and numbers and
//! no model.

pub mod attribution;
pub mod explanation;
pub mod page;
