//! A recurrent decoder's deep output as one operation.

use super::linear::{Weight, linear_on_gpu, rows};
use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::residual::written_dropout;
use super::weights::{PreparedWeight, prepared_product};
use crate::kernels::dropout::Dropout;
use crate::kernels::machine::Threads;
use crate::kernels::matrix::{Matrix, MatrixMut};
use crate::kernels::maxout::{self, maxout};
use crate::kernels::memory::zeros;
use crate::kernels::product::{add_product, new_product, product};
use crate::kernels::rows::sum_of_rows;
use burn::tensor::Tensor;
use std::ops::Range;

named! {
    /// What `DeepOutput` takes.
    DeepOutputInputs {
        /// The decoder's states: `[batch, len, d_state]`.
        state: one 3,
        /// The words before: `[batch, len, d_embedding]`.
        embedded: one 3,
        /// The contexts: `[batch, len, d_context]`.
        context: one 3,
        /// `U`, `V` and `C` one below the other: `[d_state + d_embedding + d_context, 2 d_maxout]`.
        weight: one 2,
        /// `[2 d_maxout]`.
        bias: one 1,
    }
}

/// `dropout(maxout(U s + V y + C c + b))`.
#[derive(Debug)]
struct DeepOutput {
    dropout: Option<Dropout>,
    prepared: Option<PreparedWeight>,
}

/// `dropout(maxout(U s + V y + C c + b))`, where the weight has `U`, `V` and `C` one below the other and the two numbers of each
/// maximum half its width apart. In training its inputs are never put side by side; of every pair only the larger number is kept.
///
/// # Shapes
/// - state, embedded, context: `[batch, len, _]` each
/// - output: `[batch, len, d_maxout]`
///
/// # Reference
/// Bahdanau 2015, A.2.2.
pub fn deep_output(
    [state, embedded, context]: [Tensor<3>; 3],
    weight: Weight,
    bias: Tensor<1>,
    dropout: Option<Dropout>,
    body: Body,
) -> Tensor<3> {
    let inputs = DeepOutputInputs { state, embedded, context, weight: weight.matrix, bias };
    run(DeepOutput { dropout, prepared: weight.prepared }, inputs, body).output
}

/// The inputs as matrices, each with its rows of the weight.
fn parts<'a>(inputs: &DeepOutputInputs<Views<'a>>) -> [(Matrix<'a>, Range<usize>); 3] {
    let mut first = 0;
    [&inputs.state, &inputs.embedded, &inputs.context].map(|input: &View<'a, 3>| {
        let x = rows(input);
        first += x.n_columns();
        (x, first - x.n_columns()..first)
    })
}

impl DeepOutput {
    /// `U s + V y + C c`.
    fn sums(&self, inputs: &DeepOutputInputs<Views>) -> Vec<f32> {
        let weight = rows(&inputs.weight);
        let parts = parts(inputs);
        let (n_rows, width) = (parts[0].0.n_rows(), weight.n_columns());
        if self.prepared.is_some() {
            // One product with the whole matrix, which is there in one piece.
            let mut all = Vec::with_capacity(n_rows * weight.n_rows());
            (0..n_rows).for_each(|i| parts.iter().for_each(|(x, _)| all.extend_from_slice(x.row(i))));
            return prepared_product(Matrix::new(&all, n_rows, weight.n_rows()), weight, self.prepared.as_ref());
        }
        let [(state, of_state), others @ ..] = parts;
        let mut sums = new_product(state, weight.rows(of_state), Threads::All);
        for (x, rows) in others {
            add_product(MatrixMut::new(&mut sums, n_rows, width), x, weight.rows(rows), 1.0, Threads::All);
        }
        sums
    }
}

impl Operation for DeepOutput {
    type Inputs = DeepOutputInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    /// One for each maximum that is the second of its pair, else zero.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        let inputs = DeepOutputInputs { state: true, embedded: true, context: true, weight: true, bias: false };
        Keeps { inputs, outputs: Output::<3, Flags>::none() }
    }

    fn forward(&self, inputs: DeepOutputInputs<Views>) -> (Output<3, Arrays>, Vec<f32>) {
        let [batch, len, _] = inputs.state.shape;
        let bias = inputs.bias.values;
        let [values, is_second] = maxout(&self.sums(&inputs), bias, self.dropout.as_ref());
        (Output::new([batch, len, bias.len() / 2], values), is_second)
    }

    fn backward(&self, of: Backward<Self>) -> DeepOutputInputs<Gradients> {
        let weight = rows(&of.inputs.weight);
        let (n_inputs, width) = (weight.n_rows(), weight.n_columns());
        let n_pairs = width / 2;
        let gradient = of.gradients.output.values;
        let n_rows = gradient.len() / n_pairs;
        let of_sums = maxout::back(gradient, &of.kept, n_pairs, self.dropout.as_ref());
        let of_sums_matrix = Matrix::new(&of_sums, n_rows, width);
        let parts = parts(&of.inputs);
        let of_weight = || {
            let mut out = zeros(n_inputs * width);
            for (x, rows) in &parts {
                let out = &mut out[rows.start * width..rows.end * width];
                let out = MatrixMut::new(out, rows.len(), width);
                product(out, x.transposed(), of_sums_matrix, 1.0, Threads::All);
            }
            out
        };
        let of_input = |part: usize, needed| {
            let weight = weight.rows(parts[part].1.clone()).transposed();
            Gradient::when(needed, || new_product(of_sums_matrix, weight, Threads::All))
        };
        let of_inputs =
            || [of_input(0, of.needed.state), of_input(1, of.needed.embedded), of_input(2, of.needed.context)];
        // Side by side, so that no core waits at the end of each.
        let ([state, embedded, context], weight) =
            rayon::join(of_inputs, || Gradient::when(of.needed.weight, of_weight));
        let bias = Gradient::when(of.needed.bias, || sum_of_rows(&of_sums, width));
        DeepOutputInputs { state, embedded, context, weight, bias }
    }

    fn written(&self, inputs: DeepOutputInputs<Tensors>) -> Output<3, Tensors> {
        self.in_burn(inputs, Body::Written)
    }

    fn on_gpu(&self, inputs: &DeepOutputInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let DeepOutputInputs { state, embedded, context, weight, bias } = inputs;
        let [state, embedded, context] = [state, embedded, context].map(Clone::clone);
        let inputs = DeepOutputInputs { state, embedded, context, weight: weight.clone(), bias: bias.clone() };
        Some(self.in_burn(inputs, Body::Fused))
    }
}

impl DeepOutput {
    /// In burn's operations, but for the product if `body` allows another.
    fn in_burn(&self, inputs: DeepOutputInputs<Tensors>, body: Body) -> Output<3, Tensors> {
        let DeepOutputInputs { state, embedded, context, weight, bias } = inputs;
        let pairs = linear_on_gpu(Tensor::cat(vec![state, embedded, context], 2), weight, false, Some(bias), body);
        let half = pairs.dims()[2] / 2;
        let larger = pairs.clone().narrow(2, 0, half).max_pair(pairs.narrow(2, half, half));
        Output { output: written_dropout(larger, self.dropout.as_ref()) }
    }
}
