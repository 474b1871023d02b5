//! The loss of a batch: label-smoothed cross-entropy in closed form, or the squared error of numbers.

use crate::data::PAD;
use crate::layers::fused::{self, RowLoss};
use crate::scoring::ErrorSums;
use burn::tensor::{Int, Tensor, TensorData, activation};
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

/// The loss of a batch and the way to its gradient.
pub struct Loss {
    /// `smoothed / n_total`, to go back from.
    pub mean: Tensor<1>,
    /// The sums.
    pub sums: LossSums,
}

/// `(1 - a) * nll + a * mean over the vocabulary of -log p`, summed over the target tokens that are not padding.
///
/// Burn-nn's loss builds a one-hot matrix as large as the logits. The closed form needs the log-sum-exp of a row, its sum
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
    if crate::backend::is_host(&logits.device()) {
        on_host(logits, targets, smoothing, n_total)
    } else {
        on_device(logits, targets, smoothing, n_total)
    }
}

/// Targets, with nothing in place of [`PAD`].
pub(crate) fn real(targets: &[u32]) -> Vec<Option<u32>> {
    targets.iter().map(|target| (*target != PAD).then_some(*target)).collect()
}

fn on_host(logits: Tensor<3>, targets: &[u32], smoothing: f64, n_total: usize) -> Loss {
    from_rows(fused::cross_entropy(logits, real(targets), smoothing, 1.0 / n_total as f64))
}

/// The loss of the rows of a batch that are not padding.
pub(crate) fn from_rows((mean, rows): (Tensor<1>, Vec<Option<RowLoss>>)) -> Loss {
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
    Loss { mean, sums }
}

fn on_device(logits: Tensor<3>, targets: &[u32], smoothing: f64, n_total: usize) -> Loss {
    let [batch, len, _] = logits.dims();
    let device = logits.device();
    let ids: Vec<i32> = targets.iter().map(|id| *id as i32).collect();
    let real: Vec<f32> = targets.iter().map(|id| if *id == PAD { 0.0 } else { 1.0 }).collect();
    let ids = Tensor::<3, Int>::from_data(TensorData::new(ids, [batch, len, 1]), &device);
    let real = Tensor::<3>::from_data(TensorData::new(real, [batch, len, 1]), &device);
    let correct = logits.clone().argmax(2).equal(ids.clone()).float() * real.clone();
    let log_p = activation::log_softmax(logits, 2);
    let cross_entropy = log_p.clone().gather(2, ids).neg() * real.clone();
    let mean = log_p.mean_dim(2).neg() * real;
    let smoothed = cross_entropy.clone().mul_scalar(1.0 - smoothing) + mean.mul_scalar(smoothing);
    let smoothed = smoothed.sum();
    let numbers = Tensor::cat(vec![smoothed.clone().detach(), cross_entropy.detach().sum(), correct.detach().sum()], 0);
    let numbers = crate::models::weights::to_vec(numbers);
    Loss {
        mean: smoothed.div_scalar(n_total as f64),
        sums: LossSums {
            smoothed: numbers[0] as f64,
            cross_entropy: numbers[1] as f64,
            n_correct: numbers[2].round() as usize,
            n_tokens: targets.iter().filter(|id| **id != PAD).count(),
            errors: None,
        },
    }
}
