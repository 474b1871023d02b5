//! The general score: a dot product after a learned change of space.

use super::Dot;
use crate::layers::linear::linear_layer;
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `e_ti = s_t^T W h_i`.
///
/// `W h_i` is the same at every step, so it is the key, computed once; what is left at a step is a dot product.
///
/// # Reference
/// Luong et al. 2015, section 3.1. As in the paper.
#[derive(Module, Debug)]
pub struct General {
    /// `W`, transposed: `[d_value, d_query]`.
    key: Linear,
}

impl General {
    /// A score between decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn new(d_query: usize, d_value: usize, init: &Init) -> Self {
        Self { key: init.linear_without_bias(d_value, d_query, 1) }
    }

    /// `W h_i`.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    /// - output: `[batch, source_len, d_query]`
    pub fn keys(&self, values: Tensor<3>, pass: &Pass) -> Tensor<3> {
        linear_layer(&self.key, values, pass)
    }

    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - keys: `[batch, source_len, d_query]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        Dot.forward(query, keys)
    }
}
