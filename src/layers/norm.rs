//! Normalization of vectors, so that layer upon layer keeps its scale.

use super::{Init, Pass, fused};
use burn::module::Module;
use burn::nn::{LayerNorm, RmsNorm};
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Added to the variance.
pub const EPSILON: f64 = 1e-5;

/// The choice of a normalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// Mean zero and deviation one, then a learned scale and shift, as in Vaswani 2017.
    Layer,
    /// Root mean square one, then a learned scale.
    Rms,
}

/// `gamma (x - mean(x)) / sqrt(var(x) + eps) + beta`, or `gamma x / sqrt(mean(x^2) + eps)`; both burn-nn's.
///
/// # Shapes
/// - input, output: `[.., d_model]`
///
/// # Reference
/// Ba et al., Layer Normalization, 2016, equation 4; Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, equation
/// 4. As in the papers, with `eps = 1e-5` in both.
#[derive(Module, Debug)]
pub enum Norm {
    /// Ba 2016.
    Layer(LayerNorm),
    /// Zhang 2019.
    Rms(RmsNorm),
}

impl NormKind {
    /// Makes the layer.
    pub fn init(self, d_model: usize, init: &Init) -> Norm {
        match self {
            Self::Layer => Norm::Layer(init.layer_norm(d_model)),
            Self::Rms => Norm::Rms(init.rms_norm(d_model)),
        }
    }
}

impl Norm {
    /// Normalizes along the last axis.
    pub fn forward<const D: usize>(&self, input: Tensor<D>, pass: &Pass) -> Tensor<D> {
        match self {
            Self::Layer(norm) if pass.fuses(&input.device()) => {
                let beta = norm.beta.as_ref().expect("the norm has a shift").val();
                fused::layer_norm(input, norm.gamma.val(), beta, EPSILON)
            }
            Self::Layer(norm) => norm.forward(input),
            Self::Rms(norm) => norm.forward(input),
        }
    }
}
