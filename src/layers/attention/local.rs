//! Local attention: the softmax sees a window of the source, not all of it.

use super::AttentionMemory;
use crate::layers::mask::HIDDEN;
use crate::layers::{Init, Pass};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData, activation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of what a decoder step may look at.
// Braces as in `ScoreConfig`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WindowConfig {
    /// The whole source.
    Global {},
    /// Positions `t - D` to `t + D` at step `t`: source and target run in parallel.
    LocalM {
        /// `D`.
        half_width: usize,
    },
    /// Positions within `D` of a predicted centre, the nearer the heavier.
    LocalP {
        /// `D`.
        half_width: usize,
    },
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self::Global {}
    }
}

/// Turns scores into weights inside a window of `2D + 1` positions around a centre `p_t`.
///
/// - local-m: `p_t = t`, held at `S` where the target is longer than the source;
///   `a_t = softmax(e_ti)` over `|i - p_t| <= D`
/// - local-p: `p_t = S sigmoid(v^T tanh(W s_t))`;
///   `a_ti = softmax(e_ti) exp(-(i - p_t)^2 / (2 (D/2)^2))` over `|i - p_t| <= D`
///
/// Positions and steps are counted from one and `S` counts the end symbol. The weights of local-p add up to less than one,
/// since the Gaussian multiplies what the softmax has normalized. A window is never empty: `p_t` lies in `[0, S]`, and a
/// position lies within one of it.
///
/// # Reference
/// Luong et al. 2015, section 3.2, equations 9 and 10 for local-p. As in the paper; that local-m stays at the last position
/// when the target is longer is left open there.
#[derive(Module, Debug)]
pub struct LocalWindow {
    /// Predicts the centre of local-p; local-m has none.
    predictor: Option<CentrePredictor>,
    #[module(skip)]
    half_width: usize,
}

/// `sigmoid(v^T tanh(W s))`.
#[derive(Module, Debug)]
struct CentrePredictor {
    /// `W`, square.
    projection: Linear,
    /// `v`, as a column.
    vector: Param<Tensor<2>>,
}

impl WindowConfig {
    /// Makes the layer for decoder states of width `d_query`; nothing for the whole source.
    pub fn init(&self, d_query: usize, init: &Init) -> Option<LocalWindow> {
        match self {
            Self::Global {} => None,
            Self::LocalM { half_width } => Some(LocalWindow { predictor: None, half_width: *half_width }),
            Self::LocalP { half_width } => {
                let predictor = CentrePredictor {
                    projection: init.linear_without_bias(d_query, d_query, 1),
                    vector: init.uniform([d_query, 1], (6.0 / (d_query + 1) as f64).sqrt()),
                };
                Some(LocalWindow { predictor: Some(predictor), half_width: *half_width })
            }
        }
    }

    /// `D`, where there is a window.
    pub fn half_width(&self) -> Option<usize> {
        match self {
            Self::Global {} => None,
            Self::LocalM { half_width } | Self::LocalP { half_width } => Some(*half_width),
        }
    }
}

impl LocalWindow {
    /// The weights of each query.
    ///
    /// # Shapes
    /// - scores, output: `[batch, query_len, source_len]`
    /// - query: `[batch, query_len, d_query]`
    /// - steps: the step of each query, counted from zero, or one step for all
    pub fn weights(
        &self,
        scores: Tensor<3>,
        query: Tensor<3>,
        steps: &[usize],
        memory: &AttentionMemory,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [_, _, source_len] = scores.dims();
        let device = scores.device();
        let centre = self.centre(query, steps, memory);
        pass.record("center", || centre.clone());
        let positions: Vec<f32> = (1..=source_len).map(|position| position as f32).collect();
        let positions = Tensor::<3>::from_data(TensorData::new(positions, [1, 1, source_len]), &device);
        let distance = positions - centre;
        let outside = distance.clone().abs().greater_elem(self.half_width as f32);
        let weights = memory.softmax(scores.mask_fill(outside, HIDDEN));
        if self.predictor.is_none() {
            return weights;
        }
        let variance = (self.half_width as f64 / 2.0).powi(2);
        weights * (distance.clone() * distance).mul_scalar(-0.5 / variance).exp()
    }

    /// `p_t`: `[batch, query_len, 1]`.
    fn centre(&self, query: Tensor<3>, steps: &[usize], memory: &AttentionMemory) -> Tensor<3> {
        match &self.predictor {
            None => {
                let steps: Vec<f32> = steps.iter().map(|step| (step + 1) as f32).collect();
                let shape = [1, steps.len(), 1];
                let [batch, query_len, _] = query.dims();
                let steps = Tensor::<3>::from_data(TensorData::new(steps, shape), &query.device());
                steps.expand([batch, query_len, 1]).min_pair(memory.lengths.clone().expand([batch, query_len, 1]))
            }
            Some(predictor) => {
                let inner = predictor.projection.forward(query).tanh();
                activation::sigmoid(inner.matmul(predictor.vector.val().unsqueeze())) * memory.lengths.clone()
            }
        }
    }
}
