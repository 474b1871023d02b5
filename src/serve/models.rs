//! What a run answers with.

use crate::decoding::{DecodingConfig, Hypothesis, Request, decode};
use crate::models::{Ensemble, Int8Model, Model};

/// The model of a run, and the one that decodes where that multiplies in 8 bits.
pub(super) struct Models {
    pub(super) model: Model,
    pub(super) int8: Option<Ensemble<Int8Model>>,
}

impl Models {
    pub(super) fn decode(&self, requests: &[Request], config: &DecodingConfig, seed: u64) -> Vec<Vec<Hypothesis>> {
        match &self.int8 {
            Some(model) => decode(model, requests, config, seed, |_| ()),
            None => decode(&self.model, requests, config, seed, |_| ()),
        }
    }
}
