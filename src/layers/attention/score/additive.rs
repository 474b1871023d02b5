//! The additive score: a small network looks at both states.

use super::alignment_network;
use crate::layers::linear::linear_layer;
use crate::layers::{Init, Pass};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `e_ti = v^T tanh(W s + U h_i + b)`.
///
/// # Reference
/// Bahdanau, Cho and Bengio, Neural Machine Translation by Jointly Learning to Align and Translate, 2015, section 3.1 and
/// appendix A.1.2. **Differs from the paper:** the sum has a bias; `v` starts Xavier-uniform instead of zero, since zero stops
/// the gradient of `W` and `U` at the first update.
#[derive(Module, Debug)]
pub struct Additive {
    /// `W`.
    query: Linear,
    /// `U` and `b`.
    key: Linear,
    /// `v`, as a column.
    vector: Param<Tensor<2>>,
}

impl Additive {
    /// A score between decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn new(d_query: usize, d_value: usize, d_attention: usize, init: &Init) -> Self {
        Self {
            query: init.linear_without_bias(d_query, d_attention, 1),
            key: init.linear(d_value, d_attention, 1),
            vector: init.uniform([d_attention, 1], (6.0 / (d_attention + 1) as f64).sqrt()),
        }
    }

    /// `U h_i + b`.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    /// - output: `[batch, source_len, d_attention]`
    pub fn keys(&self, values: Tensor<3>, pass: &Pass) -> Tensor<3> {
        linear_layer(&self.key, values, pass)
    }

    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - keys: `[batch, source_len, d_attention]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        alignment_network(self.query.forward(query), keys, self.vector.val())
    }

    /// `W s`.
    pub(super) fn query(&self, query: Tensor<3>, pass: &Pass) -> Tensor<3> {
        linear_layer(&self.query, query, pass)
    }

    /// `W` and `v`.
    pub(super) fn network(&self) -> (Tensor<2>, Tensor<2>) {
        (self.query.weight.val(), self.vector.val())
    }
}
