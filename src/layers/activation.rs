//! The non-linearities of feed-forward networks.

use burn::tensor::{Tensor, activation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// The part of the cube in [`Activation::GeluTanh`].
pub const CUBIC: f64 = 0.044_715;

/// The non-linearity between the two products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(0, x)`, as in Vaswani 2017.
    Relu,
    /// `x Phi(x)`, Hendrycks and Gimpel 2016.
    Gelu,
    /// The approximation of it by tanh in the same paper, `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`: that of GPT-2.
    GeluTanh,
    /// `x sigmoid(x)`, Elfwing et al. 2017, also called swish: that of Marian's models.
    Silu,
    /// `silu(x W) * (x V)`, Shazeer 2020; the first product is twice as wide.
    Swiglu,
}

impl Activation {
    /// How many matrices the first product has side by side.
    pub fn n_packed(self) -> usize {
        if self == Self::Swiglu { 2 } else { 1 }
    }

    /// What becomes of the first product.
    ///
    /// # Shapes
    /// - inner: `[batch, len, n_packed * d_feed_forward]`
    /// - output: `[batch, len, d_feed_forward]`
    pub fn forward(self, inner: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Relu => activation::relu(inner),
            Self::Gelu => gelu(inner),
            Self::GeluTanh => gelu_tanh(inner),
            Self::Silu => activation::silu(inner),
            Self::Swiglu => {
                let half = inner.dims()[2] / 2;
                activation::silu(inner.clone().narrow(2, 0, half)) * inner.narrow(2, half, half)
            }
        }
    }
}

/// `x Phi(x)` by its definition. burn's own has on some backends the gradient of an approximation.
fn gelu(x: Tensor<3>) -> Tensor<3> {
    let phi = x.clone().mul_scalar(FRAC_1_SQRT_2).erf().add_scalar(1.0).mul_scalar(0.5);
    x * phi
}

/// [`Activation::GeluTanh`], likewise by its definition.
fn gelu_tanh(x: Tensor<3>) -> Tensor<3> {
    let cube = x.clone() * x.clone() * x.clone();
    let inner = (x.clone() + cube.mul_scalar(CUBIC)).mul_scalar(FRAC_2_PI.sqrt());
    x * inner.tanh().add_scalar(1.0).mul_scalar(0.5)
}
