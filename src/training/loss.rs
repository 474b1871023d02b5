//! The loss of a batch: label-smoothed cross-entropy in closed form, or the squared error of numbers.

use crate::data::PAD;
use crate::kernels::cross_entropy::Weighting;
use crate::models::weights::to_vec;
use crate::ops::{self, Body, RowLosses, Rows, Targets};
use crate::scoring::ErrorSums;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The sums of a batch; divide by the tokens for means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossSums {
    /// What is minimised: cross-entropy in nats, with label smoothing; of numbers, the squared error of the scaled ones.
    pub smoothed: f64,
    /// The cross-entropy in nats, without label smoothing: what perplexity is made of. Nothing of numbers.
    pub cross_entropy: f64,
    /// Tokens to which the model gave the highest probability.
    pub n_correct: usize,
    /// Target tokens, end symbols included; of numbers, steps.
    pub n_tokens: usize,
    /// Where answers are numbers, their errors in the units of the data.
    pub errors: Option<ErrorSums>,
}

impl std::ops::AddAssign for LossSums {
    fn add_assign(&mut self, other: Self) {
        self.smoothed += other.smoothed;
        self.cross_entropy += other.cross_entropy;
        self.n_correct += other.n_correct;
        self.n_tokens += other.n_tokens;
        if let Some(errors) = other.errors {
            *self.errors.get_or_insert_default() += errors;
        }
    }
}

/// The loss of a batch.
pub struct Loss {
    /// `smoothed / n_total`, from which gradients are computed.
    pub mean: Tensor<1>,
    /// What the sums are read from.
    pub(super) sums: Unread,
}

/// The sums of a batch, which on a device are read only when they are needed: reading waits until everything before is computed.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
pub(super) enum Unread {
    Known(LossSums),
    /// Sums that a function makes of the numbers of a tensor.
    OnDevice(Tensor<1>, SumsOf),
}

type SumsOf = Box<dyn FnOnce(&[f32]) -> LossSums + Send>;

impl Unread {
    /// The sums of several batches, and the numbers of `besides`, which lies on the same device: all of them read at once.
    pub(super) fn read_all(all: Vec<Self>, besides: Option<Tensor<1>>) -> (LossSums, Vec<f32>) {
        let mut tensors: Vec<Tensor<1>> = besides.into_iter().collect();
        let n_besides = tensors.first().map_or(0, |tensor| tensor.dims()[0]);
        let mut total = LossSums::default();
        let mut waiting = Vec::new();
        for unread in all {
            match unread {
                Self::Known(sums) => total += sums,
                Self::OnDevice(numbers, sums) => {
                    waiting.push((numbers.dims()[0], sums));
                    tensors.push(numbers);
                }
            }
        }
        let numbers = if tensors.is_empty() { Vec::new() } else { to_vec(Tensor::cat(tensors, 0)) };
        let (besides, mut rest) = numbers.split_at(n_besides);
        for (len, sums) in waiting {
            let (own, others) = rest.split_at(len);
            total += sums(own);
            rest = others;
        }
        (total, besides.to_vec())
    }
}

impl Loss {
    /// A loss whose sums are known.
    pub fn known(mean: Tensor<1>, sums: LossSums) -> Self {
        Self { mean, sums: Unread::Known(sums) }
    }

    /// A loss whose sums are made of the numbers of a tensor on a device.
    pub fn on_device(
        mean: Tensor<1>,
        numbers: Tensor<1>,
        sums: impl FnOnce(&[f32]) -> LossSums + Send + 'static,
    ) -> Self {
        Self { mean, sums: Unread::OnDevice(numbers, Box::new(sums)) }
    }

    /// The sums. On a device this waits for all that has been enqueued.
    pub fn sums(self) -> LossSums {
        Unread::read_all(vec![self.sums], None).0
    }
}

/// `(1 - a) * nll + a * mean over the vocabulary of -log p`, summed over the target tokens that are not padding.
///
/// burn-nn's loss builds a one-hot matrix as large as the logits. The closed form needs the log-sum-exp of a row, its sum
/// and one element, and its gradient is `softmax - (1 - a) one_hot - a / vocab_size`. Where tensors lie in this process's
/// memory both are computed in one pass over all cores.
///
/// # Shapes
/// - logits: `[batch, target_len, vocab_size]`
/// - targets: `batch * target_len` ids, row-major, [`PAD`] where nothing is to be learnt
///
/// # Reference
/// Szegedy et al., Rethinking the Inception Architecture, 2016, section 7; Vaswani 2017, section 5.4.
pub fn smoothed_cross_entropy(logits: Tensor<3>, targets: &[u32], smoothing: f64, n_total: usize) -> Loss {
    Loss::of_rows(ops::cross_entropy(logits, real_targets(targets, smoothing, n_total), Body::Fused), targets)
}

/// What is to be predicted: nothing in place of [`PAD`].
pub(crate) fn real_targets(targets: &[u32], smoothing: f64, n_total: usize) -> Targets {
    let words = targets.iter().map(|target| (*target != PAD).then_some(*target)).collect();
    Targets { words, weighting: Weighting { smoothing, scale: 1.0 / n_total as f64 } }
}

impl Loss {
    /// The loss of the rows of a batch that are not padding.
    pub(crate) fn of_rows(RowLosses { loss, rows }: RowLosses, targets: &[u32]) -> Self {
        match rows {
            Rows::Known(rows) => {
                let mut sums = LossSums::default();
                for row in rows.into_iter().flatten() {
                    sums += LossSums {
                        smoothed: row.smoothed,
                        cross_entropy: row.cross_entropy,
                        n_correct: row.is_correct as usize,
                        n_tokens: 1,
                        errors: None,
                    };
                }
                Self::known(loss, sums)
            }
            Rows::OnDevice(sums) => {
                let n_tokens = targets.iter().filter(|id| **id != PAD).count();
                Self::on_device(loss, sums, move |numbers| LossSums {
                    smoothed: numbers[0] as f64,
                    cross_entropy: numbers[1] as f64,
                    n_correct: numbers[2].round() as usize,
                    n_tokens,
                    errors: None,
                })
            }
        }
    }
}
