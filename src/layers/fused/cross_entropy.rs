//! Label-smoothed cross-entropy and its gradient in one pass over the logits.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::product::{Start, new_pieces};
use super::simd::{exponentials, max, sum};
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::{Arc, OnceLock};

/// What one row of logits contributes.
#[derive(Clone, Copy, Debug)]
pub struct RowLoss {
    /// The loss in nats, with label smoothing.
    pub smoothed: f64,
    /// The cross-entropy in nats.
    pub cross_entropy: f64,
    /// Whether the target has the highest logit.
    pub is_correct: bool,
}

#[derive(Debug)]
struct CrossEntropy {
    targets: Vec<Option<u32>>,
    smoothing: f64,
    scale: f64,
    rows: Arc<OnceLock<Vec<Option<RowLoss>>>>,
}

/// The smoothed cross-entropy of every row of logits that has a target, times `scale`, summed; and every row's part. See
/// [`smoothed_cross_entropy`](crate::training::loss::smoothed_cross_entropy).
///
/// # Shapes
/// - logits: `[batch, len, vocab_size]`
/// - targets: `batch * len`
/// - output: `[1]`
pub fn cross_entropy(
    logits: Tensor<3>,
    targets: Vec<Option<u32>>,
    smoothing: f64,
    scale: f64,
) -> (Tensor<1>, Vec<Option<RowLoss>>) {
    let rows = Arc::new(OnceLock::new());
    let function = CrossEntropy { targets, smoothing, scale, rows: rows.clone() };
    let loss = apply(function, vec![logits.into_dispatch()]);
    let rows = rows.get().expect("the function has run").clone();
    (loss, rows)
}

impl CrossEntropy {
    /// One row: its part of the loss, and its gradient in `out`.
    #[inline(always)]
    fn row(&self, logits: &[f32], target: usize, out: &mut [f32]) -> RowLoss {
        let (smoothing, scale) = (self.smoothing as f32, self.scale as f32);
        let highest = max(logits);
        out.copy_from_slice(logits);
        let mut sum_of_logits = 0f64;
        let mut sum_of_exp = 0f64;
        // Sums of a few hundred in 32 bits, the sum of those in 64.
        for (out, logits) in out.chunks_mut(256).zip(logits.chunks(256)) {
            sum_of_logits += sum(
                [logits],
                #[inline(always)]
                |[logit]| logit,
            ) as f64;
            sum_of_exp += exponentials(out, highest) as f64;
        }
        let log_sum = highest as f64 + sum_of_exp.ln();
        let cross_entropy = log_sum - logits[target] as f64;
        let mean = log_sum - sum_of_logits / logits.len() as f64;
        let factor = scale / sum_of_exp as f32;
        let offset = scale * smoothing / logits.len() as f32;
        out.iter_mut().for_each(|value| *value = *value * factor - offset);
        out[target] -= scale * (1.0 - smoothing);
        let smoothed = (1.0 - self.smoothing) * cross_entropy + self.smoothing * mean;
        RowLoss { smoothed, cross_entropy, is_correct: logits[target] == highest }
    }
}

impl Function for CrossEntropy {
    fn forward(&self, inputs: &[Input]) -> Output {
        let logits = inputs[0].values;
        let vocab_size = inputs[0].shape[2];
        let (gradient, rows) = new_pieces(
            Start::Zeros(logits.len()),
            vocab_size,
            #[inline(always)]
            |start, out| {
                let target = self.targets[start / vocab_size]?;
                Some(self.row(&logits[start..][..vocab_size], target as usize, out))
            },
        );
        let loss = rows.iter().flatten().map(|row| row.smoothed).sum::<f64>() * self.scale;
        self.rows.set(rows).expect("a function runs once");
        Output { shape: vec![1], values: vec![loss as f32], saved: vec![gradient] }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let mut gradient = of.saved.into_iter().next().expect("the forward pass has saved it");
        if of.gradient[0] != 1.0 {
            gradient.par_iter_mut().for_each(|value| *value *= of.gradient[0]);
        }
        vec![Gradient::New(gradient)]
    }
}
