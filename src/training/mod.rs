//! Training: from a model and its lessons to a folder of checkpoints.
//!
//! This part knows two traits: [`Trainable`], a model with the loss of one part of an update, and [`Lessons`], what it learns from
//! and is examined with. It knows no family of models, no config file and no tokenizer; [`experiment`](crate::experiment) joins
//! those. [`Trainer`] prepares the loop, and [`fit`] hands it to burn-train's `SupervisedTraining` as a strategy of its own: exact
//! resume, clipping by the norm of all gradients, batches by tokens and the handling of divergence live in the loop.

pub mod checkpoint;
mod config;
mod folder;
pub mod format;
mod gradient_set;
mod horizon;
mod lessons;
mod loader;
pub mod loss;
mod manifest;
mod metrics;
mod observer;
pub mod optimizer;
mod pace;
mod parts;
mod pointer;
mod record;
mod renderer;
mod saving;
pub mod schedule;
mod scheduled_sampling;
mod setup;
pub mod squared_error;
mod strategy;
mod tensorboard;
mod together;
mod trainer;
mod validation;

pub use config::{Criterion, TrainingConfig};
pub use folder::{Lock, RunFolder};
pub use lessons::{HeldOut, Lessons, Measured, Trainable, UpdatePart, gradients, learn};
pub(crate) use manifest::hash;
pub use metrics::{Scalar, Shown, Stats};
pub use observer::{Observer, Silent};
pub use pace::seconds_of_update;
pub(crate) use record::MetricsLine;
pub use renderer::{Dashboard, Progress, duration};
pub use scheduled_sampling::ScheduledSampling;
pub use setup::{Outcome, Setup, Stop};
pub use strategy::fit;
pub use trainer::Trainer;
