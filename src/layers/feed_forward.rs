//! The position-wise feed-forward network of a Transformer layer.

pub use super::activation::Activation;

use super::{Init, Pass, fused};
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
        if pass.fuses(&input.device()) && pass.int8(self.inner.weight.id).is_none() {
            let dropout = pass.next_dropout(self.dropout_rate);
            return fused::feed_forward(input, [&self.inner, &self.outer], self.activation, dropout, pass);
        }
        let active = self.activation.forward(fused::linear_layer(&self.inner, input, pass));
        let active = pass.dropout(active, self.dropout_rate);
        fused::linear_layer(&self.outer, active, pass)
    }
}
