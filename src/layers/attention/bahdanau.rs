//! Additive attention: a small network scores every source position.

use super::AttentionMemory;
use crate::layers::{Init, Mask, Pass};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `e_ti = v^T tanh(W s_(t-1) + U h_i + b)`, `a_t = softmax(e_t)`, `c_t = sum_i a_ti h_i`.
///
/// The query is the decoder state *before* the step, and the context enters the step.
///
/// # Reference
/// Bahdanau, Cho and Bengio, Neural Machine Translation by Jointly Learning to Align and Translate, 2015, section 3.1 and
/// appendix A.1.2. **Differs from the paper:** the sum has a bias; `v` starts Xavier-uniform instead of zero, since zero stops
/// the gradient of `W` and `U` at the first update.
#[derive(Module, Debug)]
pub struct BahdanauAttention {
    /// `W`.
    query: Linear,
    /// `U` and `b`.
    key: Linear,
    /// `v`, as a column.
    score: Param<Tensor<2>>,
}

impl BahdanauAttention {
    /// A scorer for decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn new(d_query: usize, d_value: usize, d_attention: usize, init: &Init) -> Self {
        Self {
            query: init.linear_without_bias(d_query, d_attention, 1),
            key: init.linear(d_value, d_attention, 1),
            score: init.uniform([d_attention, 1], (6.0 / (d_attention + 1) as f64).sqrt()),
        }
    }

    /// Computes `U h_i` once for the whole sentence.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    pub fn prepare(&self, values: Tensor<3>, mask: Mask) -> AttentionMemory {
        AttentionMemory { keys: self.key.forward(values.clone()), values, mask }
    }

    /// # Shapes
    /// - query: `[batch * beams, d_query]`
    /// - output: `[batch * beams, d_value]`
    pub fn forward(&self, query: Tensor<2>, memory: &AttentionMemory, pass: &mut Pass) -> Tensor<2> {
        let [batch, source_len, d_attention] = memory.keys.dims();
        let beams = query.dims()[0] / batch;
        let query = self.query.forward(query).reshape([batch, beams, 1, d_attention]);
        // [batch, beams, source_len, d_attention]
        let energies = (memory.keys.clone().unsqueeze_dim::<4>(1) + query).tanh();
        let scores = energies.reshape([batch * beams * source_len, d_attention]).matmul(self.score.val());
        memory.average(scores.reshape([batch, beams, source_len]), pass)
    }
}
