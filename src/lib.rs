//! Lookback: attention from the RNN encoder-decoder to the Transformer.
#![recursion_limit = "256"]

pub mod backend;
pub mod cli;
pub mod config;
pub mod data;
pub mod decoding;
pub mod error;
pub mod layers;
pub mod models;
pub mod random;
pub mod scoring;
pub mod training;
