//! Cross-entropy on a GPU: two launches for the loss and what is counted beside it, which leave the gradient of the logits, and one that
//! multiplies it by that of the loss. burn's operations take about thirty.

use super::cube::{UNITS_OF_ROW, cube_for_each, max_of_cube, sum_of_cube};
use super::node::{Kept, node};
use super::{computed, new_like, unused};
use crate::kernels::cross_entropy::Weighting;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, AutodiffBackend, Backend, Dispatch, TensorMetadata, backend_extension};
use burn::tensor::{DType, Int, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;

/// Units that sum over the rows.
const UNITS: u32 = 256;

/// Backends with kernels for both passes.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait LossKernels: Backend {
    /// `[rows, 3]`, of each row its smoothed and its plain cross-entropy and whether its target has the highest logit; and the gradient of
    /// the logits, of one element if nothing is learnt.
    #[fusion(meta = |logits, targets, _how, is_learnt| {
        let of = |shape: burn::tensor::Shape| burn::backend::fusion::custom::TensorSpec::new(shape, logits.dtype);
        let of_logits = if *is_learnt { logits.clone() } else { of([1].into()) };
        (of([targets.shape.num_elements(), 3].into()), of_logits)
    })]
    fn losses_of_rows(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        how: Weighting,
        is_learnt: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);

    /// The sums of the three columns; and the first of them times `scale`.
    #[fusion(meta = |rows, _scale| {
        let of = |n: usize| burn::backend::fusion::custom::TensorSpec::new([n].into(), rows.dtype);
        (of(3), of(1))
    })]
    fn sums_of_losses(rows: FloatTensor<Self>, scale: f32) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// Backends on which that is an operation with gradients.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"), Autodiff)]
pub trait LossBackend: Backend {
    /// The loss; and the three sums, which are constants.
    #[fusion(meta = |logits, _targets, _how| {
        let of = |n: usize| burn::backend::fusion::custom::TensorSpec::new([n].into(), logits.dtype);
        (of(1), of(3))
    })]
    fn loss_of_rows(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        how: Weighting,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// The sum of the smoothed cross-entropy of all rows times the scale; and three constants: the sums of the smoothed and of the plain
/// cross-entropy, and the number of targets with the highest logit. None where the tensors are not ones of 32 bits on a device that has
/// these kernels.
///
/// # Shapes
/// - logits: `[batch, len, vocab_size]`
/// - targets: `batch * len`; a row without one has a loss of zero
pub fn cross_entropy(logits: &Tensor<3>, targets: &[Option<u32>], how: Weighting) -> Option<(Tensor<1>, Tensor<1>)> {
    let [batch, len, vocab_size] = logits.dims();
    assert_eq!(targets.len(), batch * len, "a target, or none, for each row");
    assert!(targets.iter().flatten().all(|target| (*target as usize) < vocab_size), "targets are words");
    let ids: Vec<i32> = targets.iter().map(|target| target.map_or(-1, |target| target as i32)).collect();
    let ids = Tensor::<1, Int>::from_data(ids.as_slice(), &logits.device()).into_dispatch();
    if ids.dtype() != DType::I32 {
        return None;
    }
    let (loss, sums) = Dispatch::loss_of_rows(computed(logits)?, ids, how);
    Some((Tensor::from_dispatch(loss), Tensor::from_dispatch(sums)))
}

#[derive(Clone, Debug)]
struct Loss<B: Backend> {
    of_logits: FloatTensor<B>,
}

impl<B: LossKernels> Kept<B, 1> for Loss<B> {
    fn gradients(self, gradient: FloatTensor<B>, _needed: [bool; 1]) -> [Option<FloatTensor<B>>; 1] {
        let gradient = B::float_reshape(gradient, [1, 1, 1].into());
        [Some(B::float_mul(self.of_logits, gradient))]
    }
}

impl<B: LossKernels, C: CheckpointStrategy> LossBackend for Autodiff<B, C> {
    fn loss_of_rows(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        how: Weighting,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (logits, parent) = logits.into_parts();
        let (rows, of_logits) = B::losses_of_rows(logits, targets, how, true);
        let (sums, loss) = B::sums_of_losses(rows, how.scale as f32);
        let loss = node::<B, C, _, 1>([parent], loss, Loss { of_logits });
        (loss, <Self as AutodiffBackend>::from_inner(sums))
    }
}

impl LossBackend for CubeBackend {
    fn loss_of_rows(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        how: Weighting,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (rows, _) = Self::losses_of_rows(logits, targets, how, false);
        let (sums, loss) = Self::sums_of_losses(rows, how.scale as f32);
        (loss, sums)
    }
}

impl LossKernels for CubeBackend {
    fn losses_of_rows(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        how: Weighting,
        is_learnt: bool,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let [logits, targets] = [logits, targets].map(into_contiguous);
        let shape = logits.meta.shape().clone();
        let (n_rows, width) = (targets.meta.shape().num_elements(), shape[2]);
        let rows = new_like(&logits, [n_rows, 3].into());
        let of_logits = if is_learnt { new_like(&logits, shape) } else { unused(&logits) };
        losses::launch(
            &logits.client.clone(),
            cube_for_each(n_rows),
            CubeDim::new_1d(UNITS_OF_ROW),
            logits.into_buffer_arg(),
            targets.into_buffer_arg(),
            rows.clone().into_buffer_arg(),
            of_logits.clone().into_buffer_arg(),
            n_rows,
            width,
            how.smoothing as f32,
            how.scale as f32,
            is_learnt,
        );
        (rows, of_logits)
    }

    fn sums_of_losses(rows: FloatTensor<Self>, scale: f32) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let n_rows = rows.meta.shape()[0];
        let [sums, loss] = [3, 1].map(|n| new_like(&rows, [n].into()));
        sum_losses::launch(
            &rows.client.clone(),
            CubeCount::Static(1, 1, 1),
            CubeDim::new_1d(UNITS),
            rows.into_buffer_arg(),
            sums.clone().into_buffer_arg(),
            loss.clone().into_buffer_arg(),
            n_rows,
            scale,
        );
        (sums, loss)
    }
}

/// Each cube a row; each unit every so-many-th element of it.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn losses(
    logits: &[f32],
    targets: &[i32],
    rows: &mut [f32],
    of_logits: &mut [f32],
    n_rows: usize,
    width: usize,
    smoothing: f32,
    scale: f32,
    #[comptime] is_learnt: bool,
) {
    let row = CUBE_POS;
    if row < n_rows {
        let start = row * width;
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let n = f32::cast_from(width);
        // A row without a target is computed as if it had the first word, so that all units wait for one another, and left out.
        let is_real = targets[row] >= 0;
        let target = select(is_real, targets[row], 0i32) as usize;
        let mut own = f32::min_value();
        let mut at = first;
        while at < width {
            own = max(own, logits[start + at]);
            at += step;
        }
        let highest = max_of_cube(own, UNITS_OF_ROW);
        let mut own_of_exp = 0.0f32;
        let mut own_below = 0.0f32;
        at = first;
        while at < width {
            let below = logits[start + at] - highest;
            own_of_exp += below.exp();
            own_below += below;
            at += step;
        }
        let sum_of_exp = sum_of_cube(own_of_exp, UNITS_OF_ROW);
        let sum_below = sum_of_cube(own_below, UNITS_OF_ROW);
        if is_learnt {
            let offset = scale * smoothing / n;
            at = first;
            while at < width {
                let mut of_logit = (logits[start + at] - highest).exp() * scale / sum_of_exp - offset;
                if at == target {
                    of_logit -= scale * (1.0f32 - smoothing);
                }
                of_logits[start + at] = select(is_real, of_logit, 0.0f32);
                at += step;
            }
        }
        if UNIT_POS == 0 {
            let log_sum = sum_of_exp.ln();
            let cross_entropy = log_sum - (logits[start + target] - highest);
            let smoothed = (1.0f32 - smoothing) * cross_entropy + smoothing * (log_sum - sum_below / n);
            let is_correct = select(logits[start + target] == highest, 1.0f32, 0.0f32);
            rows[3 * row] = select(is_real, smoothed, 0.0f32);
            rows[3 * row + 1] = select(is_real, cross_entropy, 0.0f32);
            rows[3 * row + 2] = select(is_real, is_correct, 0.0f32);
        }
    }
}

/// One cube; each unit every so-many-th row.
#[cube(launch)]
fn sum_losses(rows: &[f32], sums: &mut [f32], loss: &mut [f32], n_rows: usize, scale: f32) {
    let mut smoothed = 0.0f32;
    let mut cross_entropy = 0.0f32;
    let mut correct = 0.0f32;
    let mut row = UNIT_POS as usize;
    while row < n_rows {
        smoothed += rows[3 * row];
        cross_entropy += rows[3 * row + 1];
        correct += rows[3 * row + 2];
        row += comptime!(UNITS as usize).runtime();
    }
    let all_smoothed = sum_of_cube(smoothed, UNITS);
    let all_cross_entropy = sum_of_cube(cross_entropy, UNITS);
    let all_correct = sum_of_cube(correct, UNITS);
    if UNIT_POS == 0 {
        sums[0] = all_smoothed;
        sums[1] = all_cross_entropy;
        sums[2] = all_correct;
        loss[0] = all_smoothed * scale;
    }
}
