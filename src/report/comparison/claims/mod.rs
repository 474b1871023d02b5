//! Claims: every statement about a difference, or about a score and a level, and how it is told.

pub mod rows;
pub mod table;
pub mod words;
