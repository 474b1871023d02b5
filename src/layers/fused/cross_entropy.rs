//! Label-smoothed cross-entropy and its gradient in one pass over the logits, which may be made on the way.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::linear::{add_to_rows, gradients_of_product, rows};
use super::matrix::Matrix;
use super::pieces::{Start, Threads, new_pieces, sum_of_rows, task_rows};
use super::product::new_product;
use super::simd::{exponentials, max, sum, vectorized};
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::borrow::Cow;
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

/// What is to be predicted, and what has been found out about it.
#[derive(Debug)]
struct Targets {
    words: Vec<Option<u32>>,
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
    let (targets, rows) = Targets::new(targets, smoothing, scale);
    let loss = apply(CrossEntropy { targets }, vec![logits.into_dispatch()]);
    (loss, rows())
}

/// [`cross_entropy`] of the logits `x W + b`, or `x W^T + b` if `transposed`. They are made for the rows that have a target only,
/// and become their gradient where they lie: of a large vocabulary, logits are the largest tensor of an update, and padding is
/// a third of a batch of short sentences.
///
/// # Shapes
/// - input: `[batch, len, d_input]`
/// - weight: `[d_input, vocab_size]`, or `[vocab_size, d_input]` if `transposed`
/// - targets: `batch * len`
/// - output: `[1]`
pub fn projected_cross_entropy(
    input: Tensor<3>,
    (weight, bias, transposed): (Tensor<2>, Option<Tensor<1>>, bool),
    targets: Vec<Option<u32>>,
    smoothing: f64,
    scale: f64,
) -> (Tensor<1>, Vec<Option<RowLoss>>) {
    let (targets, rows) = Targets::new(targets, smoothing, scale);
    let mut inputs = vec![input.into_dispatch(), weight.into_dispatch()];
    inputs.extend(bias.map(Tensor::into_dispatch));
    let loss = apply(ProjectedCrossEntropy { targets, transposed }, inputs);
    (loss, rows())
}

impl Targets {
    /// The targets, and where the rows' parts are when a function has used them.
    fn new(words: Vec<Option<u32>>, smoothing: f64, scale: f64) -> (Self, impl FnOnce() -> Vec<Option<RowLoss>>) {
        let rows = Arc::new(OnceLock::new());
        let targets = Self { words, smoothing, scale, rows: rows.clone() };
        (targets, move || rows.get().expect("the function has run").clone())
    }

    /// One row: its part of the loss. Its logits become their gradient.
    #[inline(always)]
    fn row(&self, values: &mut [f32], target: usize) -> RowLoss {
        let (smoothing, scale) = (self.smoothing as f32, self.scale as f32);
        let highest = max(values);
        let logit = values[target];
        let n = values.len();
        let mut sum_of_logits = 0f64;
        let mut sum_of_exp = 0f64;
        // Sums of a few hundred in 32 bits, the sum of those in 64.
        for values in values.chunks_mut(256) {
            sum_of_logits += sum(
                [values],
                #[inline(always)]
                |[logit]| logit,
            ) as f64;
            sum_of_exp += exponentials(values, highest) as f64;
        }
        let log_sum = highest as f64 + sum_of_exp.ln();
        let cross_entropy = log_sum - logit as f64;
        let mean = log_sum - sum_of_logits / n as f64;
        let factor = scale / sum_of_exp as f32;
        let offset = scale * smoothing / n as f32;
        values.iter_mut().for_each(|value| *value = *value * factor - offset);
        values[target] -= scale * (1.0 - smoothing);
        let smoothed = (1.0 - self.smoothing) * cross_entropy + self.smoothing * mean;
        RowLoss { smoothed, cross_entropy, is_correct: logit == highest }
    }

    /// The loss, when every row's part is known.
    fn output(&self, rows: Vec<Option<RowLoss>>, gradient: Vec<f32>) -> Output {
        let loss = rows.iter().flatten().map(|row| row.smoothed).sum::<f64>() * self.scale;
        self.rows.set(rows).expect("a function runs once");
        Output { shape: vec![1], values: vec![loss as f32], saved: vec![gradient] }
    }
}

/// The gradient that the forward pass has left, times that of the loss.
fn saved_gradient(of: &mut Backprop) -> Vec<f32> {
    let mut gradient = of.saved.pop().expect("the forward pass has saved it");
    if of.gradient[0] != 1.0 {
        gradient.par_iter_mut().for_each(|value| *value *= of.gradient[0]);
    }
    gradient
}

#[derive(Debug)]
struct CrossEntropy {
    targets: Targets,
}

impl Function for CrossEntropy {
    fn forward(&self, inputs: &[Input]) -> Output {
        let vocab_size = inputs[0].shape[2];
        let (gradient, rows) = new_pieces(
            Start::Copy(inputs[0].values),
            vocab_size,
            #[inline(always)]
            |start, values| match self.targets.words[start / vocab_size] {
                Some(target) => Some(self.targets.row(values, target as usize)),
                None => {
                    values.fill(0.0);
                    None
                }
            },
        );
        self.targets.output(rows, gradient)
    }

    fn backward(&self, mut of: Backprop) -> Vec<Gradient> {
        vec![Gradient::New(saved_gradient(&mut of))]
    }
}

#[derive(Debug)]
struct ProjectedCrossEntropy {
    targets: Targets,
    transposed: bool,
}

impl ProjectedCrossEntropy {
    /// The rows that have a target.
    fn live(&self) -> Vec<usize> {
        self.targets.words.iter().enumerate().filter_map(|(row, target)| target.map(|_| row)).collect()
    }

    /// Those rows of the input, one after the other.
    fn live_input<'a>(&self, input: &Input<'a>, live: &[usize]) -> Cow<'a, [f32]> {
        let d = input.shape[2];
        if live.len() == self.targets.words.len() {
            return Cow::Borrowed(input.values);
        }
        let mut values = Vec::with_capacity(live.len() * d);
        live.iter().for_each(|row| values.extend_from_slice(&input.values[row * d..][..d]));
        Cow::Owned(values)
    }
}

impl Function for ProjectedCrossEntropy {
    fn forward(&self, inputs: &[Input]) -> Output {
        let live = self.live();
        let x = self.live_input(&inputs[0], &live);
        let weight = if self.transposed { rows(&inputs[1]).transposed() } else { rows(&inputs[1]) };
        let (d, vocab_size) = (weight.n_rows(), weight.n_columns());
        let mut values = new_product(Matrix::new(&x, live.len(), d), weight, Threads::All);
        let mut found: Vec<Option<RowLoss>> = vec![None; live.len()];
        values.par_chunks_mut(vocab_size).zip(&live).zip(&mut found).with_min_len(task_rows(vocab_size)).for_each(
            |((logits, row), found)| {
                vectorized(
                    #[inline(always)]
                    || {
                        if let Some(bias) = inputs.get(2) {
                            add_to_rows(logits, bias.values);
                        }
                        let target = self.targets.words[*row].expect("these rows have targets");
                        *found = Some(self.targets.row(logits, target as usize));
                    },
                )
            },
        );
        let mut all = vec![None; self.targets.words.len()];
        live.iter().zip(found).for_each(|(row, found)| all[*row] = found);
        self.targets.output(all, values)
    }

    fn backward(&self, mut of: Backprop) -> Vec<Gradient> {
        let gradient = saved_gradient(&mut of);
        let [input, weight] = [&of.inputs[0], &of.inputs[1]];
        let d = input.shape[2];
        let live = self.live();
        let x = self.live_input(input, &live);
        let x = Matrix::new(&x, live.len(), d);
        let vocab_size = weight.shape[if self.transposed { 0 } else { 1 }];
        let matrix = Matrix::new(&gradient, live.len(), vocab_size);
        let [of_x, of_weight] =
            gradients_of_product(x, rows(weight), self.transposed, matrix, [of.wanted[0], of.wanted[1]]);
        let of_input = match of_x {
            Gradient::New(of_x) if live.len() < self.targets.words.len() => {
                let mut all = vec![0.0; input.values.len()];
                live.iter().zip(of_x.chunks_exact(d)).for_each(|(row, of_x)| all[row * d..][..d].copy_from_slice(of_x));
                Gradient::New(all)
            }
            of_x => of_x,
        };
        let mut gradients = vec![of_input, of_weight];
        if let Some(wanted) = of.wanted.get(2) {
            gradients.push(Gradient::when(*wanted, || sum_of_rows(&gradient, vocab_size)));
        }
        gradients
    }
}
