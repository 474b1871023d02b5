//! The position-wise feed-forward network of a Transformer layer.

use super::{Init, Pass, fused};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The non-linearity between the two products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(0, x)`, as in Vaswani 2017.
    Relu,
    /// `x Phi(x)`, Hendrycks and Gimpel 2016.
    Gelu,
    /// `silu(x W) * (x V)`, Shazeer 2020; the first product is twice as wide.
    Swiglu,
}

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

/// `x Phi(x)` by its definition. burn's own has on some backends the gradient of an approximation.
fn gelu(x: Tensor<3>) -> Tensor<3> {
    let phi = x.clone().mul_scalar(std::f64::consts::FRAC_1_SQRT_2).erf().add_scalar(1.0).mul_scalar(0.5);
    x * phi
}

impl FeedForward {
    /// A network `d_model -> d_feed_forward -> d_model`.
    pub fn new(d_model: usize, d_feed_forward: usize, activation: Activation, dropout_rate: f64, init: &Init) -> Self {
        let n_packed = if activation == Activation::Swiglu { 2 } else { 1 };
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
        let is_int8 = pass.int8(self.inner.weight.id).is_some();
        if self.activation == Activation::Relu && pass.fuses(&input.device()) && !is_int8 {
            let dropout = pass.next_dropout(self.dropout_rate);
            return fused::feed_forward(input, [&self.inner, &self.outer], dropout, pass);
        }
        let inner = fused::linear_layer(&self.inner, input, pass);
        let active = match self.activation {
            Activation::Relu => activation::relu(inner),
            Activation::Gelu => gelu(inner),
            Activation::Swiglu => {
                let half = inner.dims()[2] / 2;
                activation::silu(inner.clone().narrow(2, 0, half)) * inner.narrow(2, half, half)
            }
        };
        let active = pass.dropout(active, self.dropout_rate);
        fused::linear_layer(&self.outer, active, pass)
    }
}
