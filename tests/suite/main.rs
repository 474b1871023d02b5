//! The one integration test binary: each further one would link all of burn again.
//!
//! | module | what belongs there |
//! | --- | --- |
//! | `architecture` | the tree has no circle |
//! | `backends` | backends against each other, a GPU included where there is one |
//! | `cli` | the program: results, exit codes, bad input |
//! | `compare` | comparisons: arithmetic, report, command |
//! | `config` | configs: shipped files, mistakes, every key |
//! | `dashboard` | burn-train's dashboard in a pseudo-terminal |
//! | `data` | corpora, generated tasks, tokenizers, what is held out, fetching |
//! | `decoding` | searches and samples of a model whose probabilities are known |
//! | `interop` | models of other programs, read and run as there |
//! | `layers` | layers, the loss, Adam and learning rates against PyTorch and by hand |
//! | `learning` | small models learn small tasks; about a minute |
//! | `manifest` | the packages that the program names |
//! | `models` | models against PyTorch, and the laws that every model keeps |
//! | `ops` | operations on slices against the same in burn's operations |
//! | `products` | products of matrices on a GPU against the host's |
//! | `reliability` | damage, full disks, closed terminals, hostile text, two of everything |
//! | `report` | attention maps, alignments, states: numbers by hand, drawings, pages |
//! | `scoring` | scores against sacreBLEU's and by hand |
//! | `serve` | the server: endpoints, batches, limits, how it ends |
//! | `support` | golden values, closed-form weights, tolerances, backends: what several modules need |
//! | `training` | exact resume, checkpoints, run folders, why training ends |
//! | `trust` | drivers are checked before they are trusted |
#![recursion_limit = "256"]

mod architecture;
mod backends;
mod cli;
mod compare;
mod config;
mod dashboard;
mod data;
mod decoding;
mod documents;
mod examples;
mod interop;
mod layers;
mod learning;
mod manifest;
mod models;
mod ops;
mod products;
mod reliability;
mod report;
mod scoring;
mod serve;
mod support;
#[cfg(feature = "wgpu")]
mod traffic;
mod training;
mod trust;

/// That of the program: trainings allocate and free the same memory at every update.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
