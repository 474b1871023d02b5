//! The position-wise feed-forward network of a Transformer layer.

pub use crate::kernels::activation::Activation;

use super::linear::weight_of;
use super::{Init, Pass};
use crate::ops;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `FFN(x) = f(x W_1 + b_1) W_2 + b_2`.
///
/// burn-nn's `PositionWiseFeedForward` has no gated form and draws its dropout from the device's generator.
///
/// # Reference
/// Vaswani et al. 2017, equation 2. **Differs from the paper:** dropout after the activation, as in tensor2tensor.
#[derive(Module, Debug)]
pub struct FeedForward {
    inner: Linear,
    outer: Linear,
    #[module(skip)]
    activation: Activation,
    #[module(skip)]
    dropout_rate: f64,
}

impl FeedForward {
    /// A network `d_model -> d_feed_forward -> d_model`.
    pub fn new(d_model: usize, d_feed_forward: usize, activation: Activation, dropout_rate: f64, init: &Init) -> Self {
        let n_packed = activation.n_packed();
        Self {
            inner: init.linear(d_model, n_packed * d_feed_forward, n_packed),
            outer: init.linear(d_feed_forward, d_model, 1),
            activation,
            dropout_rate,
        }
    }

    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        let dropout = pass.next_dropout(self.dropout_rate);
        let layers = [&self.inner, &self.outer].map(|layer| {
            let bias = layer.bias.as_ref().expect("both layers have biases").val();
            (weight_of(&layer.weight, false, pass), bias)
        });
        ops::feed_forward(input, layers, self.activation, dropout, pass.body())
    }
}
