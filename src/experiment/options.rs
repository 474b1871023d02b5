//! The options of training.

use crate::backend::Adapter;
use crate::ranks::{Alone, Ranks};
use crate::training::{Dashboard, Observer, Silent};
use std::path::PathBuf;
use std::sync::Arc;

/// The options of `train` besides the config.
#[derive(Clone, Debug)]
pub struct TrainOptions {
    /// The run folder.
    pub run: PathBuf,
    /// How it is shown.
    pub dashboard: Dashboard,
    /// Whether the config is the run's own, which names the parts of an update of all ranks together, and not those of one.
    pub has_all_parts: bool,
    /// A finished run whose parameters are the start.
    pub init_from: Option<PathBuf>,
    /// The command line, to be written down.
    pub command: String,
    /// The observer, which may stop it.
    pub observer: Arc<dyn Observer>,
    /// Devices that are tried beside the one that is handed in: this very model is trained where an update is fastest.
    pub rivals: Vec<Adapter>,
    /// The processes or threads that train together; each calls [`train`](super::train) with its own.
    pub ranks: Arc<dyn Ranks>,
}

impl TrainOptions {
    /// In the folder `run`, without a word.
    pub fn new(run: impl Into<PathBuf>) -> Self {
        Self {
            run: run.into(),
            dashboard: Dashboard::None,
            has_all_parts: false,
            init_from: None,
            command: String::new(),
            observer: Arc::new(Silent),
            rivals: Vec::new(),
            ranks: Arc::new(Alone),
        }
    }
}
