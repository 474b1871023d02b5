//! Attention after each step of a recurrent decoder.

use super::alignment::{Alignment, AttentionMemory};
use super::local::WindowConfig;
use super::score::ScoreConfig;
use crate::layers::linear::linear_layer;
use crate::layers::{Init, Pass};
use crate::ops::{Placement, StepAttention};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `s_t = cell(y_(t-1), s_(t-1))`, `c_t = attend(s_t, h)`, `s~_t = tanh(W_c [c_t; s_t])`: the query is the state *after* the step,
/// and the output is made of the attentional vector `s~_t`.
///
/// Without input feeding no step depends on what an earlier one attended to, so a whole sentence attends at once. With input
/// feeding the next step reads `[y_t; s~_t]`, so that it knows where the last one looked; `s~_0` is zero.
///
/// # Reference
/// Luong, Pham and Manning, Effective Approaches to Attention-based Neural Machine Translation, 2015, sections 3.1 to 3.3 and
/// equation 5. **Differs from the paper:** `W_c` has a bias.
#[derive(Module, Debug)]
pub struct LuongAttention {
    pub(super) alignment: Alignment,
    /// `W_c` over `[c_t; s_t]`.
    attentional: Linear,
    /// The part of `s~_(t-1)` in the gates of the decoder's first layer.
    feeding_input: Option<Linear>,
}

impl LuongAttention {
    /// For decoder states of width `d_query`, encoder states of width `d_value` and a cell of `n_gates` gates.
    pub fn new(
        score: &ScoreConfig,
        window: &WindowConfig,
        input_feeding: bool,
        [d_query, d_value]: [usize; 2],
        n_gates: usize,
        init: &Init,
    ) -> Self {
        Self {
            alignment: Alignment::new(score, window, d_query, d_value, init),
            attentional: init.linear(d_value + d_query, d_query, 1),
            feeding_input: input_feeding.then(|| init.linear_without_bias(d_query, n_gates * d_query, n_gates)),
        }
    }

    /// The contexts of states after their steps, and the attentional vectors.
    ///
    /// # Shapes
    /// - states: `[batch, query_len, d_query]`; the queries of a sentence are its beams at one step, or its steps
    /// - steps: the step of each query, counted from zero, or one step for all
    /// - context: `[batch, query_len, d_value]`
    /// - attentional: `[batch, query_len, d_query]`
    pub fn forward(
        &self,
        states: Tensor<3>,
        steps: &[usize],
        memory: &AttentionMemory,
        pass: &mut Pass,
    ) -> (Tensor<3>, Tensor<3>) {
        pass.scoped("attention", |pass| {
            let context = self.alignment.forward(states.clone(), steps, memory, pass);
            let both = Tensor::cat(vec![context.clone(), states], 2);
            let attentional = linear_layer(&self.attentional, both, pass).tanh();
            pass.record("attentional", || attentional.clone());
            (context, attentional)
        })
    }

    /// The same at every step with input feeding, inside a recurrence of width `d_query`.
    pub(super) fn in_recurrence(&self, d_query: usize, memory: &AttentionMemory) -> Option<StepAttention> {
        let placement = Placement::After {
            attentional: self.attentional.weight.val(),
            attentional_bias: self.attentional.bias.as_ref().expect("the layer has a bias").val(),
            feeding: self.feeding_input.as_ref()?.weight.val(),
        };
        self.alignment.in_recurrence(d_query, placement, memory)
    }

    /// Whether a step reads the attentional vector of the last.
    pub fn feeds_input(&self) -> bool {
        self.feeding_input.is_some()
    }

    /// The part of the last attentional vector in the gates of the cell.
    ///
    /// # Shapes
    /// - attentional: `[rows, d_query]`
    /// - output: `[rows, n_gates * d_query]`
    pub fn feed(&self, attentional: Tensor<2>, pass: &Pass) -> Option<Tensor<2>> {
        self.feeding_input.as_ref().map(|linear| linear_layer(linear, attentional, pass))
    }
}
