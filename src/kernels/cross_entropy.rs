//! Label-smoothed cross-entropy of rows of logits, which become their gradient.

use super::machine::vectorized;
use super::memory::task_rows;
use super::rows::add_to_piece;
use super::vectors::{exponentials, max, sum, update};
use rayon::prelude::*;

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

/// How rows become a loss.
#[derive(Clone, Copy, Debug)]
pub struct Weighting {
    /// The part of the loss that is spread over all words.
    pub smoothing: f64,
    /// What the sum over rows is multiplied by.
    pub scale: f64,
}

/// The part of every row in the loss, the logits being those of `logits` and `bias` together. `logits` become the gradient of the scaled
/// sum; that of a row without a target is zero.
///
/// # Shapes
/// - logits: `[targets, vocab_size]`
/// - bias: `[vocab_size]`
pub fn row_losses(
    logits: &mut [f32],
    bias: Option<&[f32]>,
    targets: &[Option<u32>],
    how: Weighting,
) -> Vec<Option<RowLoss>> {
    let mut found = vec![None; targets.len()];
    let vocab_size = logits.len() / targets.len().max(1);
    let rows = logits.par_chunks_mut(vocab_size.max(1)).zip(targets).zip(&mut found);
    rows.with_min_len(task_rows(vocab_size)).for_each(|((logits, target), found)| match target {
        Some(target) => *found = Some(row_loss(logits, bias, *target as usize, how)),
        None => logits.fill(0.0),
    });
    found
}

fn row_loss(logits: &mut [f32], bias: Option<&[f32]>, target: usize, how: Weighting) -> RowLoss {
    vectorized(
        #[inline(always)]
        || {
            if let Some(bias) = bias {
                add_to_piece(logits, bias);
            }
            let highest = max(logits);
            let logit = logits[target];
            let n = logits.len() as f64;
            let mut sum_of_logits = 0f64;
            let mut sum_of_exp = 0f64;
            // Sums of a few hundred in 32 bits, the sum of those in 64.
            for values in logits.chunks_mut(256) {
                sum_of_logits += sum(
                    [values],
                    #[inline(always)]
                    |[logit]| logit,
                ) as f64;
                sum_of_exp += exponentials(values, highest) as f64;
            }
            let log_sum = highest as f64 + sum_of_exp.ln();
            let cross_entropy = log_sum - logit as f64;
            let mean = log_sum - sum_of_logits / n;
            let (smoothing, scale) = (how.smoothing as f32, how.scale as f32);
            let factor = scale / sum_of_exp as f32;
            let offset = scale * smoothing / n as f32;
            update(
                [],
                [logits],
                #[inline(always)]
                |[], [value]| [value * factor - offset],
            );
            logits[target] -= scale * (1.0 - smoothing);
            let smoothed = (1.0 - how.smoothing) * cross_entropy + how.smoothing * mean;
            RowLoss { smoothed, cross_entropy, is_correct: logit == highest }
        },
    )
}
