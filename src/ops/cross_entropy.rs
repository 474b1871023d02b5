//! Label-smoothed cross-entropy and its gradient in one pass over the logits, which may be made on the way.

use super::linear::{Weight, gradients_of_product, linear_on_gpu, rows, written_linear};
use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu;
use crate::kernels::cross_entropy::{RowLoss, Weighting, row_losses};
use crate::kernels::machine::Threads;
use crate::kernels::matrix::Matrix;
use crate::kernels::memory::copied;
use crate::kernels::product::new_product;
use crate::kernels::rows::sum_of_rows;
use burn::tensor::{Int, Tensor, TensorData, activation};
use rayon::prelude::*;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// What is to be predicted.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The word of each row, nothing where there is nothing to learn.
    pub words: Vec<Option<u32>>,
    /// How rows become a loss.
    pub weighting: Weighting,
}

/// The loss of rows of logits.
pub struct RowLosses {
    /// The scaled sum over all rows that have a target: `[1]`.
    pub loss: Tensor<1>,
    /// What each row contributes, unscaled.
    pub rows: Rows,
}

/// What each row contributes.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum Rows {
    /// Row by row, nothing for those without a target.
    Known(Vec<Option<RowLoss>>),
    /// The sums over all rows, on the device: smoothed loss, cross-entropy, rows that are correct. `[3]`.
    OnDevice(Tensor<1>),
}

/// The smoothed cross-entropy of every row of logits that has a target, times `scale`, summed; and every row's part. See
/// [`smoothed_cross_entropy`](crate::training::loss::smoothed_cross_entropy).
///
/// # Shapes
/// - logits: `[batch, len, vocab_size]`
/// - targets: `batch * len`
pub fn cross_entropy(logits: Tensor<3>, targets: Targets, body: Body) -> RowLosses {
    let found = Found::default();
    let operation = CrossEntropy { targets, found: found.clone() };
    found.with(run(operation, CrossEntropyInputs { logits }, body).output)
}

/// [`cross_entropy`] of the logits `x W + b`. On slices, they are made for the rows that have a target only, and become their gradient where
/// they lie: of a large vocabulary, logits are the largest tensor of an update, and padding is a third of a batch of short
/// sentences.
///
/// # Shapes
/// - input: `[batch, len, d_input]`
/// - bias: `[vocab_size]`
/// - targets: `batch * len`
pub fn projected_cross_entropy(
    input: Tensor<3>,
    weight: Weight,
    bias: Option<Tensor<1>>,
    targets: Targets,
    body: Body,
) -> RowLosses {
    let found = Found::default();
    let operation = ProjectedCrossEntropy { targets, is_transposed: weight.is_transposed, found: found.clone() };
    found.with(run(operation, ProjectedInputs { input, weight: weight.matrix, bias }, body).output)
}

/// Where an operation leaves what it finds beside the loss: in 64 bits, which no tensor holds.
#[derive(Clone, Debug, Default)]
struct Found(Arc<OnceLock<Rows>>);

impl Found {
    fn set(&self, rows: Rows) {
        self.0.set(rows).expect("an operation runs once");
    }

    fn with(&self, loss: Tensor<1>) -> RowLosses {
        RowLosses { loss, rows: self.0.get().expect("the operation has run").clone() }
    }
}

impl Targets {
    /// The loss, when every row's part is known.
    fn loss(&self, rows: &[Option<RowLoss>]) -> Output<1, Arrays> {
        let loss = rows.iter().flatten().map(|row| row.smoothed).sum::<f64>() * self.weighting.scale;
        Output::new([1], vec![loss as f32])
    }

    /// The loss of logits by kernels of ours for a GPU.
    fn on_gpu(&self, logits: &Tensor<3>, found: &Found) -> Option<Tensor<1>> {
        let (loss, sums) = gpu::cross_entropy(logits, &self.words, self.weighting)?;
        found.set(Rows::OnDevice(sums));
        Some(loss)
    }

    /// The loss of logits in burn's operations, by the closed form: the log-sum-exp of a row, its sum and one element.
    fn written(&self, logits: Tensor<3>, found: &Found) -> Tensor<1> {
        let Weighting { smoothing, scale } = self.weighting;
        let [batch, len, _] = logits.dims();
        let device = logits.device();
        let ids: Vec<i32> = self.words.iter().map(|word| word.unwrap_or(0) as i32).collect();
        let real: Vec<f32> = self.words.iter().map(|word| if word.is_some() { 1.0 } else { 0.0 }).collect();
        let ids = Tensor::<3, Int>::from_data(TensorData::new(ids, [batch, len, 1]), &device);
        let real = Tensor::<3>::from_data(TensorData::new(real, [batch, len, 1]), &device);
        let correct = logits.clone().detach().argmax(2).equal(ids.clone()).float() * real.clone();
        let log_p = activation::log_softmax(logits, 2);
        let cross_entropy = log_p.clone().gather(2, ids).neg() * real.clone();
        let mean = log_p.mean_dim(2).neg() * real;
        let smoothed = cross_entropy.clone().mul_scalar(1.0 - smoothing) + mean.mul_scalar(smoothing);
        let smoothed = smoothed.sum();
        let sums = vec![smoothed.clone().detach(), cross_entropy.detach().sum(), correct.sum()];
        found.set(Rows::OnDevice(Tensor::cat(sums, 0)));
        smoothed.mul_scalar(scale)
    }
}

/// The gradient that the forward pass has left, times that of the loss.
fn scaled(mut gradient: Vec<f32>, of_loss: View<1>) -> Vec<f32> {
    let factor = of_loss.values[0];
    if factor != 1.0 {
        gradient.par_iter_mut().for_each(|value| *value *= factor);
    }
    gradient
}

named! {
    /// What `CrossEntropy` takes.
    CrossEntropyInputs {
        /// `[batch, len, vocab_size]`.
        logits: one 3,
    }
}

#[derive(Debug)]
struct CrossEntropy {
    targets: Targets,
    found: Found,
}

impl Operation for CrossEntropy {
    type Inputs = CrossEntropyInputs<Tensors>;
    type Outputs = Output<1, Tensors>;
    /// The gradient of the logits.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: CrossEntropyInputs::none(), outputs: Output::<1, Flags>::none() }
    }

    fn forward(&self, inputs: CrossEntropyInputs<Views>) -> (Output<1, Arrays>, Vec<f32>) {
        let mut gradient = copied(inputs.logits.values);
        let rows = row_losses(&mut gradient, None, &self.targets.words, self.targets.weighting);
        let loss = self.targets.loss(&rows);
        self.found.set(Rows::Known(rows));
        (loss, gradient)
    }

    fn backward(&self, of: Backward<Self>) -> CrossEntropyInputs<Gradients> {
        CrossEntropyInputs { logits: Gradient::New(scaled(of.kept, of.gradients.output)) }
    }

    fn written(&self, inputs: CrossEntropyInputs<Tensors>) -> Output<1, Tensors> {
        Output { output: self.targets.written(inputs.logits, &self.found) }
    }

    fn on_gpu(&self, inputs: &CrossEntropyInputs<Tensors>) -> Option<Output<1, Tensors>> {
        Some(Output { output: self.targets.on_gpu(&inputs.logits, &self.found)? })
    }
}

named! {
    /// What `ProjectedCrossEntropy` takes.
    ProjectedInputs {
        /// `[batch, len, d_input]`.
        input: one 3,
        /// `[d_input, vocab_size]`, or `[vocab_size, d_input]` if it is transposed.
        weight: one 2,
        /// `[vocab_size]`.
        bias: maybe 1,
    }
}

#[derive(Debug)]
struct ProjectedCrossEntropy {
    targets: Targets,
    is_transposed: bool,
    found: Found,
}

impl ProjectedCrossEntropy {
    /// The rows that have a target.
    fn live(&self) -> Vec<usize> {
        self.targets.words.iter().enumerate().filter_map(|(row, target)| target.map(|_| row)).collect()
    }

    /// Those rows of the input, one after the other.
    fn live_input<'a>(&self, input: &View<'a, 3>, live: &[usize]) -> Cow<'a, [f32]> {
        let d = input.shape[2];
        if live.len() == self.targets.words.len() {
            return Cow::Borrowed(input.values);
        }
        let mut values = Vec::with_capacity(live.len() * d);
        live.iter().for_each(|row| values.extend_from_slice(&input.values[row * d..][..d]));
        Cow::Owned(values)
    }
}

impl Operation for ProjectedCrossEntropy {
    type Inputs = ProjectedInputs<Tensors>;
    type Outputs = Output<1, Tensors>;
    /// The gradient of the logits of the rows that have a target.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        let inputs = ProjectedInputs { input: true, weight: true, ..ProjectedInputs::none() };
        Keeps { inputs, outputs: Output::<1, Flags>::none() }
    }

    fn forward(&self, inputs: ProjectedInputs<Views>) -> (Output<1, Arrays>, Vec<f32>) {
        let ProjectedInputs { input, weight, bias } = inputs;
        let live = self.live();
        let x = self.live_input(&input, &live);
        let weight = if self.is_transposed { rows(&weight).transposed() } else { rows(&weight) };
        let mut values = new_product(Matrix::new(&x, live.len(), weight.n_rows()), weight, Threads::All);
        let words: Vec<Option<u32>> = live.iter().map(|row| self.targets.words[*row]).collect();
        let found = row_losses(&mut values, bias.map(|bias| bias.values), &words, self.targets.weighting);
        let mut all = vec![None; self.targets.words.len()];
        live.iter().zip(found).for_each(|(row, found)| all[*row] = found);
        let loss = self.targets.loss(&all);
        self.found.set(Rows::Known(all));
        (loss, values)
    }

    fn backward(&self, of: Backward<Self>) -> ProjectedInputs<Gradients> {
        let ProjectedInputs { input, weight, .. } = of.inputs;
        let gradient = scaled(of.kept, of.gradients.output);
        let d = input.shape[2];
        let live = self.live();
        let x = self.live_input(&input, &live);
        let x = Matrix::new(&x, live.len(), d);
        let vocab_size = weight.shape[if self.is_transposed { 0 } else { 1 }];
        let matrix = Matrix::new(&gradient, live.len(), vocab_size);
        let needed = [of.needed.input, of.needed.weight];
        let [of_x, of_weight] = gradients_of_product(x, rows(&weight), self.is_transposed, matrix, needed);
        let of_input = match of_x {
            Gradient::New(of_x) if live.len() < self.targets.words.len() => {
                let mut all = vec![0.0; input.values.len()];
                live.iter().zip(of_x.chunks_exact(d)).for_each(|(row, of_x)| all[row * d..][..d].copy_from_slice(of_x));
                Gradient::New(all)
            }
            of_x => of_x,
        };
        let of_bias = |needed| Gradient::when(needed, || sum_of_rows(&gradient, vocab_size));
        ProjectedInputs { input: of_input, weight: of_weight, bias: of.needed.bias.map(of_bias) }
    }

    fn written(&self, inputs: ProjectedInputs<Tensors>) -> Output<1, Tensors> {
        let logits = written_linear(inputs.input, inputs.weight, self.is_transposed, inputs.bias);
        Output { output: self.targets.written(logits, &self.found) }
    }

    fn on_gpu(&self, inputs: &ProjectedInputs<Tensors>) -> Option<Output<1, Tensors>> {
        let ProjectedInputs { input, weight, bias } = inputs;
        let logits = linear_on_gpu(input.clone(), weight.clone(), self.is_transposed, bias.clone(), Body::Fused);
        let loss = self.targets.on_gpu(&logits, &self.found);
        Some(Output { output: loss.unwrap_or_else(|| self.targets.written(logits, &self.found)) })
    }
}
