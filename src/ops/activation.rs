//! Activations of feed-forward networks in burn's operations.

use crate::kernels::activation::{Activation, CUBIC};
use burn::tensor::{Tensor, activation};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

/// What becomes of the first product of a feed-forward network.
///
/// # Shapes
/// - inner: `[batch, len, n_packed * d_feed_forward]`
/// - output: `[batch, len, d_feed_forward]`
pub fn written_activation(kind: Activation, inner: Tensor<3>) -> Tensor<3> {
    match kind {
        Activation::Relu => activation::relu(inner),
        Activation::Gelu => gelu(inner),
        Activation::GeluTanh => gelu_tanh(inner),
        Activation::Silu => activation::silu(inner),
        Activation::Swiglu => {
            let half = inner.dims()[2] / 2;
            activation::silu(inner.clone().narrow(2, 0, half)) * inner.narrow(2, half, half)
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
