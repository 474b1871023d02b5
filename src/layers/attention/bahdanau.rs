//! Attention between the steps of a recurrent decoder.

use super::alignment::{Alignment, AttentionMemory};
use super::local::WindowConfig;
use super::score::ScoreConfig;
use crate::layers::linear::linear_layer;
use crate::layers::{Init, Pass};
use crate::ops::{Placement, StepAttention};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `c_t = attend(s_(t-1), h)`, `s_t = cell([y_(t-1); c_t], s_(t-1))`: the query is the state *before* the step, and the context
/// enters the step.
///
/// # Reference
/// Bahdanau, Cho and Bengio, Neural Machine Translation by Jointly Learning to Align and Translate, 2015, section 3.1. As in
/// the paper with the additive score and the whole source; other scores and windows are Luong's.
#[derive(Module, Debug)]
pub struct BahdanauAttention {
    pub(super) alignment: Alignment,
    /// The context's part in the gates of the decoder's first layer.
    context_input: Linear,
}

impl BahdanauAttention {
    /// For decoder states of width `d_query`, encoder states of width `d_value` and a cell of `n_gates` gates.
    pub fn new(
        score: &ScoreConfig,
        window: &WindowConfig,
        [d_query, d_value]: [usize; 2],
        n_gates: usize,
        init: &Init,
    ) -> Self {
        Self {
            alignment: Alignment::new(score, window, d_query, d_value, init),
            context_input: init.linear_without_bias(d_value, n_gates * d_query, n_gates),
        }
    }

    /// The same at every step, inside a recurrence of width `d_query`.
    pub(super) fn in_recurrence(&self, d_query: usize, memory: &AttentionMemory) -> Option<StepAttention> {
        let placement = Placement::Before { context_input: self.context_input.weight.val() };
        self.alignment.in_recurrence(d_query, placement, memory)
    }

    /// The context for step `step`, and its part in the gates of the cell.
    ///
    /// # Shapes
    /// - previous: `[batch, beams, d_query]`, the states before the step
    /// - context: `[batch, beams, d_value]`
    /// - gates: `[batch, beams, n_gates * d_query]`
    pub fn forward(
        &self,
        previous: Tensor<3>,
        step: usize,
        memory: &AttentionMemory,
        pass: &mut Pass,
    ) -> (Tensor<3>, Tensor<3>) {
        let context = pass.scoped("attention", |pass| self.alignment.forward(previous, &[step], memory, pass));
        (context.clone(), linear_layer(&self.context_input, context, pass))
    }
}
