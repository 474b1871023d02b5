//! Normalization of vectors, so that layer upon layer keeps its scale.

use super::{Init, Pass};
use crate::kernels::dropout::Dropout;
use crate::ops;
use burn::module::{Module, Param};
use burn::nn::RmsNorm;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is added to the variance, unless a model says otherwise.
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

/// `gamma (x - mean(x)) / sqrt(var(x) + eps) + beta`, or `gamma x / sqrt(mean(x^2) + eps)`; the parameters of the second are burn-nn's.
///
/// # Shapes
/// - input, output: `[.., d_model]`
///
/// # Reference
/// Ba et al., Layer Normalization, 2016, equation 4; Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, equation
/// 4. As in the papers, with an `eps` in both.
#[derive(Module, Debug)]
pub enum Norm {
    /// Ba 2016.
    Layer(LayerNorm),
    /// Zhang 2019.
    Rms(RmsNorm),
}

/// Layer normalization. burn-nn's keeps its epsilon to itself, which the operation needs.
#[derive(Module, Debug)]
pub struct LayerNorm {
    /// The scale: `[d_model]`.
    pub gamma: Param<Tensor<1>>,
    /// The shift: `[d_model]`.
    pub beta: Param<Tensor<1>>,
    /// Added to the variance.
    #[module(skip)]
    pub epsilon: f64,
}

impl NormKind {
    /// Makes the layer; `epsilon` is above zero.
    pub fn init(self, d_model: usize, epsilon: f64, init: &Init) -> Norm {
        match self {
            Self::Layer => Norm::Layer(init.layer_norm(d_model, epsilon)),
            Self::Rms => Norm::Rms(init.rms_norm(d_model, epsilon)),
        }
    }
}

impl Norm {
    /// Normalizes along the last axis.
    pub fn forward<const D: usize>(&self, input: Tensor<D>, pass: &Pass) -> Tensor<D> {
        match self {
            Self::Layer(norm) => ops::layer_norm(input, norm.gamma.val(), norm.beta.val(), norm.epsilon, pass.body()),
            Self::Rms(norm) => ops::rms_norm(input, norm.gamma.val(), norm.epsilon, pass.body()),
        }
    }

    /// Normalizes `x + dropout(y)` of `x` that goes around a layer and `y` that has gone through it.
    pub fn of_sum(&self, both: [Tensor<3>; 2], dropout: Option<Dropout>, pass: &Pass) -> Tensor<3> {
        let (gamma, beta, epsilon) = self.parameters();
        ops::norm_of_sum(both, dropout, gamma, beta, epsilon, pass.body())
    }

    /// `x + dropout(y)` of `x` that goes around the layers and `y` that has gone through the last, and the same normalized for the next.
    pub fn with_sum(&self, both: [Tensor<3>; 2], dropout: Option<Dropout>, pass: &Pass) -> [Tensor<3>; 2] {
        let (gamma, beta, epsilon) = self.parameters();
        ops::norm_with_sum(both, dropout, gamma, beta, epsilon, pass.body())
    }

    /// The scale, the shift if there is one, and epsilon.
    fn parameters(&self) -> (Tensor<1>, Option<Tensor<1>>, f64) {
        match self {
            Self::Layer(norm) => (norm.gamma.val(), Some(norm.beta.val()), norm.epsilon),
            Self::Rms(norm) => (norm.gamma.val(), None, norm.epsilon),
        }
    }
}
