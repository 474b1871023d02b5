//! The one integration test binary: each further one would link all of burn again.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `dashboard` | burn-train's dashboard in a pseudo-terminal |
//! | `data` | corpora, generated tasks, tokenizers, fetching |
//! | `scoring` | scores against sacreBLEU's and by hand |
#![recursion_limit = "256"]

mod dashboard;
mod cli;
mod config;
mod backends;
mod decoding;
mod data;
mod layers;
mod models;
mod scoring;
mod support;
mod training;
