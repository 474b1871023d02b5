//! The concat score: a small network looks at both states, side by side.

use super::alignment_network;
use crate::layers::{Init, Pass};
use crate::ops::{self, Weight};
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// `e_ti = v^T tanh(W [s_t; h_i])`.
///
/// A product with two vectors side by side is the sum of two products, `W_s s_t + W_h h_i`: the additive score without a
/// bias. So `W_h h_i` is the key, computed once, and no pair of states is ever laid side by side.
///
/// # Reference
/// Luong et al. 2015, section 3.1. As in the paper, with `v` for its `v_a` and `W` for its `W_a`.
#[derive(Module, Debug)]
pub struct Concat {
    /// `W`, transposed, the rows of `s` above those of `h`: `[d_query + d_value, d_attention]`.
    weight: Param<Tensor<2>>,
    /// `v`, as a column.
    vector: Param<Tensor<2>>,
    #[module(skip)]
    d_query: usize,
}

impl Concat {
    /// A score between decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn new(d_query: usize, d_value: usize, d_attention: usize, init: &Init) -> Self {
        Self {
            weight: init.linear_without_bias(d_query + d_value, d_attention, 1).weight,
            vector: init.uniform([d_attention, 1], (6.0 / (d_attention + 1) as f64).sqrt()),
            d_query,
        }
    }

    /// `W_h h_i`.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    /// - output: `[batch, source_len, d_attention]`
    pub fn keys(&self, values: Tensor<3>, pass: &Pass) -> Tensor<3> {
        let d_value = values.dims()[2];
        let weight = self.weight.val().narrow(0, self.d_query, d_value);
        ops::linear(values, Weight::plain(weight), None, pass.body())
    }

    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - keys: `[batch, source_len, d_attention]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        let query = query.matmul(self.weight.val().narrow(0, 0, self.d_query).unsqueeze());
        alignment_network(query, keys, self.vector.val())
    }

    /// The rows of `W` for the state, and `v`.
    pub(super) fn network(&self) -> (Tensor<2>, Tensor<2>) {
        (self.weight.val().narrow(0, 0, self.d_query), self.vector.val())
    }
}
