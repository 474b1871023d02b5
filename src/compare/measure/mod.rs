//! What is measured of each model, one file for each measurement.

pub mod alignments;
pub mod cell;
pub mod claims;
pub mod costs;
pub mod curves;
pub mod faults;
pub mod growth;
pub mod positions;
pub mod quality;
pub mod threshold;
pub mod translations;
