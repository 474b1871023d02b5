//! Label-smoothed cross-entropy in closed form.

use crate::data::tokenizer::PAD;
use burn::tensor::{Int, Tensor, TensorData, activation};
use rayon::prelude::*;

/// The sums of a batch; divide by the tokens for means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LossSums {
    /// What is minimised, in nats: with label smoothing.
    pub smoothed: f64,
    /// The cross-entropy in nats, without label smoothing: what perplexity is made of.
    pub cross_entropy: f64,
    /// Tokens to which the model gave the highest probability.
    pub n_correct: usize,
    /// Target tokens, end symbols included.
    pub n_tokens: usize,
}

impl std::ops::AddAssign for LossSums {
    fn add_assign(&mut self, other: Self) {
        self.smoothed += other.smoothed;
        self.cross_entropy += other.cross_entropy;
        self.n_correct += other.n_correct;
        self.n_tokens += other.n_tokens;
    }
}

/// The loss of a batch and the way to its gradient.
pub struct Loss {
    /// A scalar whose gradient with respect to the logits is that of `smoothed / n_total`. Its value is of no use.
    pub surrogate: Tensor<1>,
    /// The sums.
    pub sums: LossSums,
}

/// `(1 - a) * nll + a * mean over the vocabulary of -log p`, summed over the target tokens that are not padding.
///
/// Burn-nn's loss builds a one-hot matrix as large as the logits. The closed form needs the log-sum-exp of a row, its sum
/// and one element, and its gradient is `softmax - (1 - a) one_hot - a / vocab_size`. Where tensors lie in this process's
/// memory both are computed in one pass over all cores, and the gradient enters the graph as a constant factor of the logits:
/// the derivative of `sum(logits * g)` is `g`.
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

/// What one row of logits contributes.
struct Row {
    smoothed: f64,
    cross_entropy: f64,
    is_correct: bool,
}

/// One row: replaces the logits by the gradient of the smoothed loss times `scale`.
fn row_gradient(row: &mut [f32], target: usize, smoothing: f32, scale: f32) -> Row {
    let uniform = smoothing / row.len() as f32;
    let target_logit = row[target];
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let is_correct = target_logit == max;
    let mut sum_of_logits = 0f64;
    let mut sum_of_exp = 0f64;
    for chunk in row.chunks_mut(256) {
        let mut logits = 0f32;
        let mut exps = 0f32;
        for value in chunk {
            logits += *value;
            *value = exp(*value - max);
            exps += *value;
        }
        sum_of_logits += logits as f64;
        sum_of_exp += exps as f64;
    }
    let log_sum = max as f64 + sum_of_exp.ln();
    let cross_entropy = log_sum - target_logit as f64;
    let mean = log_sum - sum_of_logits / row.len() as f64;
    let factor = scale / sum_of_exp as f32;
    let offset = scale * uniform;
    for value in row.iter_mut() {
        *value = *value * factor - offset;
    }
    row[target] -= scale * (1.0 - smoothing);
    Row { smoothed: (1.0 - smoothing as f64) * cross_entropy + smoothing as f64 * mean, cross_entropy, is_correct }
}

/// `e^x` for `x <= 0`, to about 1e-7 of itself, in a form that compilers turn into vector instructions.
fn exp(x: f32) -> f32 {
    // exp(x) = 2^n * exp(r) with |r| <= ln(2) / 2; below -87 the result is not a normal number.
    let x = x.max(-87.0);
    let n = (x * std::f32::consts::LOG2_E + 12_582_912.0) - 12_582_912.0;
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p =
        1.0 + r * (1.0 + r * (0.5 + r * (0.166_666_67 + r * (0.041_666_54 + r * (0.008_333_95 + r * 0.001_394_4)))));
    p * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

fn on_host(logits: Tensor<3>, targets: &[u32], smoothing: f64, n_total: usize) -> Loss {
    let shape = logits.dims();
    let vocab_size = shape[2];
    let mut gradient = crate::models::weights::to_vec(logits.clone());
    let scale = (1.0 / n_total as f64) as f32;
    let rows: Vec<Option<Row>> = gradient
        .par_chunks_mut(vocab_size)
        .zip(targets)
        .map(|(row, target)| {
            if *target == PAD {
                row.fill(0.0);
                return None;
            }
            Some(row_gradient(row, *target as usize, smoothing as f32, scale))
        })
        .collect();
    let mut sums = LossSums::default();
    for row in rows.into_iter().flatten() {
        sums += LossSums {
            smoothed: row.smoothed,
            cross_entropy: row.cross_entropy,
            n_correct: row.is_correct as usize,
            n_tokens: 1,
        };
    }
    let gradient = Tensor::from_data(TensorData::new(gradient, shape), &logits.device());
    // Axis by axis: flex's full sum over a large tensor adds in an order that depends on its threads.
    let surrogate = (logits * gradient).sum_dim(2).sum();
    Loss { surrogate, sums }
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
        surrogate: smoothed.div_scalar(n_total as f64),
        sums: LossSums {
            smoothed: numbers[0] as f64,
            cross_entropy: numbers[1] as f64,
            n_correct: numbers[2].round() as usize,
            n_tokens: targets.iter().filter(|id| **id != PAD).count(),
        },
    }
}
