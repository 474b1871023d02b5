//! The weights of attention on a GPU: scaling, hiding, softmax and dropout in one launch, and their gradient in another, where burn's
//! operations take about twenty.

use super::cube::{UNITS_OF_ROW, cube_for_each, max_of_cube, sum_of_cube};
use super::dropout::{Dropping, dropping, factor_at};
use super::node::{Kept, node};
use super::{computed, new_like, unused};
use crate::backend::gpu::Softening;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::{Device, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Backends with kernels for both passes.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait SoftmaxKernels: Backend {
    /// The weights after dropout, and before. What `hiding` is if nothing `hides` does not matter.
    #[fusion(meta = |scores, _hiding, _hides, _how| (scores.clone(), scores.clone()))]
    fn weights_of_scores(
        scores: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        hides: bool,
        how: Softening,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The gradient of the scores, from that of the weights after dropout and the weights before it.
    #[fusion(meta = |weights, _gradient, _how| weights.clone())]
    fn gradient_of_scores(weights: FloatTensor<Self>, gradient: FloatTensor<Self>, how: Softening)
    -> FloatTensor<Self>;
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait SoftmaxBackend: Backend {
    /// The weights after dropout.
    #[fusion(meta = |scores, _hiding, _hides, _how| scores.clone())]
    fn softened_scores(
        scores: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        hides: bool,
        how: Softening,
    ) -> FloatTensor<Self>;
}

/// `dropout(softmax(scale * scores + hiding))` along the last axis. None where the tensors are not ones of 32-bit floats on a device that
/// has these kernels.
///
/// # Shapes
/// - scores, output: `[batch, n_heads, query_len, key_len]`
/// - hiding, which is a constant: `[batch or 1, 1, query_len or 1, key_len]`
pub fn softmax(scores: &Tensor<4>, hiding: Option<&Tensor<4>>, how: Softening) -> Option<Tensor<4>> {
    let device = scores.device();
    if let Some(hiding) = hiding {
        check_hiding(hiding, scores.dims());
    }
    let scores = computed(scores)?;
    let of_hidden = computed(&hiding.cloned().unwrap_or_else(|| nothing(&device)))?;
    Some(Tensor::from_dispatch(Dispatch::softened_scores(scores, of_hidden, hiding.is_some(), how)))
}

/// A kernel reads whatever lies there: shapes that do not fit would go unnoticed.
pub(super) fn check_hiding(hiding: &Tensor<4>, [batch, _, query_len, key_len]: [usize; 4]) {
    let [sentences, heads, queries, keys] = hiding.dims();
    let fits = |found: usize, n: usize| found == 1 || found == n;
    assert!(
        fits(sentences, batch) && heads == 1 && fits(queries, query_len) && keys == key_len,
        "a mask of shape {:?} for {batch} sentences, {query_len} queries and {key_len} keys",
        hiding.dims()
    );
}

/// A kernel takes as many buffers as it names: one that it does not read has one element.
pub(super) fn nothing(device: &Device) -> Tensor<4> {
    Tensor::empty([1; 4], device)
}

#[derive(Clone, Debug)]
struct Softmax<B: Backend> {
    weights: FloatTensor<B>,
    how: Softening,
}

impl<B: SoftmaxKernels> Kept<B, 1> for Softmax<B> {
    fn gradients(self, gradient: FloatTensor<B>, _needed: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        [Some(B::gradient_of_scores(self.weights, gradient, self.how))]
    }
}

impl<B: SoftmaxKernels, C: CheckpointStrategy> SoftmaxBackend for Autodiff<B, C> {
    fn softened_scores(
        scores: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        hides: bool,
        how: Softening,
    ) -> FloatTensor<Self> {
        let (scores, of_scores) = scores.into_parts();
        let (hiding, _) = hiding.into_parts();
        let (dropped, weights) = B::weights_of_scores(scores, hiding, hides, how);
        node::<B, C, _, 1>([of_scores], dropped, Softmax { weights, how })
    }
}

impl SoftmaxBackend for CubeBackend {
    fn softened_scores(
        scores: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        hides: bool,
        how: Softening,
    ) -> FloatTensor<Self> {
        Self::weights_of_scores(scores, hiding, hides, how).0
    }
}

impl SoftmaxKernels for CubeBackend {
    fn weights_of_scores(
        scores: FloatTensor<Self>,
        hiding: FloatTensor<Self>,
        hides: bool,
        how: Softening,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let scores = into_contiguous(scores);
        let shape = scores.meta.shape().clone();
        let [batch, n_heads, query_len, width] = [0, 1, 2, 3].map(|axis| shape[axis]);
        let n_rows = batch * n_heads * query_len;
        let weights = new_like(&scores, shape.clone());
        let dropped = if how.dropout.is_some() { new_like(&scores, shape) } else { weights.clone() };
        let hiding = into_contiguous(hiding);
        // A row is found in the hidden positions by its sentence and its query, where those have rows of their own.
        let axes = hiding.meta.shape().clone();
        let of_query = if hides && axes[2] > 1 { width } else { 0 };
        let of_sentence = if hides && axes[0] > 1 { axes[2] * width } else { 0 };
        soften::launch(
            &scores.client.clone(),
            cube_for_each(n_rows),
            CubeDim::new_1d(UNITS_OF_ROW),
            scores.clone().into_buffer_arg(),
            hiding.into_buffer_arg(),
            weights.clone().into_buffer_arg(),
            if how.dropout.is_some() { dropped.clone() } else { unused(&scores) }.into_buffer_arg(),
            n_rows,
            width,
            how.scale,
            n_heads * query_len,
            query_len,
            of_sentence,
            of_query,
            dropping(how.dropout),
            hides,
            how.dropout.is_some(),
        );
        (dropped, weights)
    }

    fn gradient_of_scores(
        weights: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        how: Softening,
    ) -> FloatTensor<Self> {
        let [weights, gradient] = [weights, gradient].map(into_contiguous);
        let shape = weights.meta.shape().clone();
        let width = shape[3];
        let n_rows = shape.num_elements() / width.max(1);
        let of_scores = new_like(&weights, shape);
        backward::launch(
            &weights.client.clone(),
            cube_for_each(n_rows),
            CubeDim::new_1d(UNITS_OF_ROW),
            weights.into_buffer_arg(),
            gradient.into_buffer_arg(),
            of_scores.clone().into_buffer_arg(),
            n_rows,
            width,
            how.scale,
            dropping(how.dropout),
            how.dropout.is_some(),
        );
        of_scores
    }
}

/// Each cube a row; each unit every so-many-th element of it.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn soften(
    scores: &[f32],
    hiding: &[f32],
    weights: &mut [f32],
    dropped: &mut [f32],
    n_rows: usize,
    width: usize,
    scale: f32,
    rows_of_sentence: usize,
    query_len: usize,
    of_sentence: usize,
    of_query: usize,
    dropping: Dropping,
    #[comptime] hides: bool,
    #[comptime] drops: bool,
) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * width;
        let start_of_hiding = (row / rows_of_sentence) * of_sentence + (row % query_len) * of_query;
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let mut own = f32::min_value();
        let mut at = first;
        while at < width {
            let mut score = scores[start + at] * scale;
            if hides {
                score += hiding[start_of_hiding + at];
            }
            weights[start + at] = score;
            own = max(own, score);
            at += step;
        }
        let highest = max_of_cube(own, UNITS_OF_ROW);
        own = 0.0f32;
        at = first;
        while at < width {
            let exponential = (weights[start + at] - highest).exp();
            weights[start + at] = exponential;
            own += exponential;
            at += step;
        }
        let sum = sum_of_cube(own, UNITS_OF_ROW);
        at = first;
        while at < width {
            let weight = weights[start + at] / sum;
            weights[start + at] = weight;
            if drops {
                dropped[start + at] = weight * factor_at(&dropping, start + at);
            }
            at += step;
        }
    }
}

#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn backward(
    weights: &[f32],
    gradient: &[f32],
    of_scores: &mut [f32],
    n_rows: usize,
    width: usize,
    scale: f32,
    dropping: Dropping,
    #[comptime] drops: bool,
) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * width;
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let mut own = 0.0f32;
        let mut at = first;
        while at < width {
            let mut of_weight = gradient[start + at];
            if drops {
                of_weight *= factor_at(&dropping, start + at);
            }
            of_scores[start + at] = of_weight;
            own += of_weight * weights[start + at];
            at += step;
        }
        let along = sum_of_cube(own, UNITS_OF_ROW);
        at = first;
        while at < width {
            of_scores[start + at] = scale * weights[start + at] * (of_scores[start + at] - along);
            at += step;
        }
    }
}
