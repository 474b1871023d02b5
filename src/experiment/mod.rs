//! An experiment: a config, its data, a model and its training, joined here and nowhere else.
//!
//! [`Config`] is what a user writes; each part of it belongs to the module that it configures. [`train`] makes data and model of it
//! and hands them to [`training`](crate::training), which knows neither. A [`Run`] is what becomes of it: the folder that every other
//! command reads.

mod config;
pub mod dataset;
mod devices;
mod export;
mod format;
mod learning;
mod lessons;
mod options;
mod prepared;
pub mod race;
mod resume;
pub mod run;
pub mod series;
mod together;
mod train;
mod validation;

pub use config::{Config, QUICK_START, differences};
pub use devices::train_on;
pub use export::{ExportOptions, export, export_parts};
pub(crate) use export::{check_free, model_card};
pub use learning::batch_loss;
pub use lessons::{check_can_hide, sample_of_masked, sample_of_text};
pub use options::TrainOptions;
pub use prepared::{PrepareOptions, Prepared, Preparing, SHARD_TOKENS, prepare};
pub use run::{LoadedModel, Run};
pub use train::{check_data, train};
pub use validation::{Sample, sample_score, validate};
