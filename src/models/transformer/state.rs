//! What a Transformer carries: the sources as its decoder sees them, and what its decoder has seen of the target.

use crate::layers::Mask;
use crate::layers::attention::multi_head::SourceKeyValue;
use crate::models::Rows;
use crate::models::block::LayerState;
use burn::tensor::{Int, Tensor};

/// The sources as the decoder's layers see them.
#[derive(Clone, Debug)]
pub struct TransformerMemory {
    /// One for each layer that is made.
    pub(super) layers: Vec<SourceKeyValue>,
    pub(super) mask: Mask,
}

/// What each layer keeps of the target so far.
#[derive(Clone, Debug)]
pub struct TransformerState {
    /// One for each depth, also where layers are shared.
    pub(super) layers: Vec<LayerState>,
    pub(super) len: usize,
}

impl Rows for TransformerMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        let layers = self.layers.iter().map(|layer| layer.select(rows)).collect();
        Self { layers, mask: self.mask.select(rows) }
    }
}

impl Rows for TransformerState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { layers: self.layers.iter().map(|layer| layer.select(rows)).collect(), len: self.len }
    }
}
