//! A layer between the states of a stack and the scores of words.

use crate::layers::feed_forward::Activation;
use crate::layers::linear::linear_layer;
use crate::layers::norm::Norm;
use crate::layers::{Init, Pass};
use crate::models::block::BlockConfig;
use crate::ops::written_activation;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `norm(f(h W + b))`: what becomes of a state before its similarity with the words' embeddings says which word it is.
///
/// # Reference
/// Devlin et al., BERT, 2019; not in the paper's text, but in its program (`get_masked_lm_output` of `run_pretraining.py`).
#[derive(Module, Debug)]
pub(super) struct Transform {
    inner: Linear,
    norm: Norm,
    #[module(skip)]
    activation: Activation,
}

impl Transform {
    pub(super) fn new(config: &BlockConfig, init: &Init) -> Self {
        let d_model = config.heads.d_model;
        Self { inner: init.linear(d_model, d_model, 1), norm: config.norm(init), activation: config.activation }
    }

    /// # Shapes
    /// - states, output: `[batch, len, d_model]`
    pub(super) fn forward(&self, states: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let inner = linear_layer(&self.inner, states, pass);
        self.norm.forward(written_activation(self.activation, inner), pass)
    }
}
