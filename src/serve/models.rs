//! What a run answers with.

use crate::decoding::{DecodingConfig, Hypothesis, Request, decode};
use crate::models::{Ensemble, Model, PreparedModel};

/// The model of a run, and the one that decodes.
pub(super) struct Models {
    pub(super) model: Model,
    pub(super) prepared: Ensemble<PreparedModel>,
}

impl Models {
    pub(super) fn decode(&self, requests: &[Request], config: &DecodingConfig, seed: u64) -> Vec<Vec<Hypothesis>> {
        decode(&self.prepared, requests, config, seed, |_| ())
    }
}
