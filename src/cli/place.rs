//! Where a command computes.

use super::terminal::Terminal;
use crate::backend::{Adapter, Backend};
use crate::error::Result;
use crate::experiment::{Run, race};
use crate::trust::{self, Check};
use clap::Args;
use std::sync::OnceLock;

/// Whether drivers are checked, as the command line says.
pub(super) static CHECK: OnceLock<Check> = OnceLock::new();

/// Whether drivers are checked.
pub(super) fn check() -> Check {
    CHECK.get().copied().unwrap_or_default()
}

/// A backend and one of its devices.
#[derive(Args, Clone, Debug)]
pub(super) struct PlaceArgs {
    /// Where the tensors live [default: as the config says].
    #[arg(short, long)]
    pub(super) backend: Option<Backend>,
    /// The device of that backend, as `devices` numbers them [default: the best].
    #[arg(long, value_name = "N", requires = "backend")]
    pub(super) device: Option<usize>,
}

impl PlaceArgs {
    /// The requested backend, or the backend `own`.
    pub(super) fn or(&self, own: Backend) -> Self {
        Self { backend: Some(self.backend.unwrap_or(own)), ..*self }
    }

    /// Opens a device whose driver can be trusted; without a backend of its own that of `own`.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn open(&self, own: Backend) -> Result<Adapter> {
        trust::open(self.backend.unwrap_or(own), self.device, check(), &Terminal)
    }

    /// As [`open`](Self::open), with the CPU behind a GPU that `auto` has found.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn open_rivals(&self, own: Backend) -> Result<Vec<Adapter>> {
        trust::open_rivals(self.backend.unwrap_or(own), self.device, check(), &Terminal)
    }

    /// The device on which the model of `run` translates the fastest, of those that can be trusted.
    ///
    /// # Errors
    /// If there is none, or the model cannot be loaded.
    pub(super) fn open_for(&self, run: &Run, checkpoint: Option<&str>) -> Result<Adapter> {
        race::of_sentences(run, self.open_rivals(run.config()?.backend)?, checkpoint, &Terminal)
    }
}
