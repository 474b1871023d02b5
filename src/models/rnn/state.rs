//! What a recurrent model remembers: of the sources, and from step to step.

use crate::layers::attention::AttentionMemory;
use crate::layers::recurrent::CellState;
use crate::models::Rows;
use burn::tensor::{Int, Tensor};

/// The sources as the decoder sees them.
#[derive(Clone, Debug)]
pub struct RnnMemory {
    /// The fixed context: the last real state of the top layer's cells, `[batch, d_encoded]`.
    pub context: Tensor<2>,
    /// Its part in the gates of the first layer, where it enters every step: `[batch, n_gates * d_hidden]`.
    pub(super) fixed: Option<Tensor<2>>,
    pub(super) start: Vec<CellState>,
    pub(super) attention: Option<AttentionMemory>,
}

/// The decoder's state.
#[derive(Clone, Debug)]
pub struct RnnState {
    /// What each layer's cell carries on.
    pub(super) layers: Vec<CellState>,
    /// `s_t`, what left the top layer: `[rows, d_hidden]`.
    pub(super) output: Tensor<2>,
    /// `s~_t`, where the next step reads it: `[rows, d_hidden]`.
    pub(super) attentional: Option<Tensor<2>>,
    /// Steps made.
    pub(super) step: usize,
}

impl Rows for RnnMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            context: self.context.clone().select(0, rows.clone()),
            fixed: self.fixed.clone().map(|fixed| fixed.select(0, rows.clone())),
            start: self.start.iter().map(|state| state.select(rows)).collect(),
            attention: self.attention.as_ref().map(|attention| attention.select(rows)),
        }
    }
}

impl Rows for RnnState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            layers: self.layers.iter().map(|layer| layer.select(rows)).collect(),
            output: self.output.clone().select(0, rows.clone()),
            attentional: self.attentional.clone().map(|attentional| attentional.select(0, rows.clone())),
            step: self.step,
        }
    }
}
