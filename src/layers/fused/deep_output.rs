//! A recurrent decoder's deep output as one operation.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::linear::rows;
use super::matrix::{Matrix, MatrixMut};
use super::pieces::{Start, Threads, mapped, new_pieces, sum_of_rows, task_rows, zeros};
use super::product::{add_product, new_product, product};
use super::simd::Dropout;
use burn::nn;
use burn::tensor::Tensor;
use std::ops::Range;

/// `dropout(maxout(U s + V y + C c + b))`.
#[derive(Debug)]
struct DeepOutput {
    dropout: Option<Dropout>,
}

/// `dropout(maxout(U s + V y + C c + b))`, where `layer` has `U`, `V` and `C` one below the other and the two numbers of each maximum
/// half its width apart. Its inputs are never put side by side, and of every pair only the larger number is kept.
///
/// # Shapes
/// - inputs: `[batch, len, _]` each
/// - output: `[batch, len, d_maxout]`
///
/// # Reference
/// Bahdanau 2015, A.2.2.
pub fn deep_output(inputs: [Tensor<3>; 3], layer: &nn::Linear, dropout: Option<Dropout>) -> Tensor<3> {
    let bias = layer.bias.as_ref().expect("the layer has a bias").val();
    let parameters = [layer.weight.val().into_dispatch(), bias.into_dispatch()];
    apply(DeepOutput { dropout }, inputs.map(Tensor::into_dispatch).into_iter().chain(parameters).collect())
}

/// The inputs as matrices, each with its rows of the weight.
fn parts<'a>(inputs: &'a [Input]) -> [(Matrix<'a>, Range<usize>); 3] {
    let mut first = 0;
    std::array::from_fn(|i| {
        let x = rows(&inputs[i]);
        first += x.n_columns();
        (x, first - x.n_columns()..first)
    })
}

impl Function for DeepOutput {
    fn forward(&self, inputs: &[Input]) -> Output {
        let (weight, bias) = (rows(&inputs[3]), inputs[4].values);
        let [state, others @ ..] = parts(inputs);
        let (n_rows, n_pairs) = (state.0.n_rows(), bias.len() / 2);
        let mut sums = new_product(state.0, weight.rows(state.1), Threads::All);
        for (x, rows) in others {
            add_product(MatrixMut::new(&mut sums, n_rows, bias.len()), x, weight.rows(rows), 1.0, Threads::All);
        }
        let (left, right) = bias.split_at(n_pairs);
        let (values, larger) = new_pieces(
            Start::Zeros(n_rows * n_pairs),
            task_rows(bias.len()) * n_pairs,
            #[inline(always)]
            |start, out| {
                let mut is_right = vec![0.0; out.len()];
                let sums = sums[2 * start..].chunks_exact(2 * n_pairs);
                for ((out, is_right), sums) in
                    out.chunks_exact_mut(n_pairs).zip(is_right.chunks_exact_mut(n_pairs)).zip(sums)
                {
                    let (first, second) = sums.split_at(n_pairs);
                    for (j, (out, is_right)) in out.iter_mut().zip(is_right).enumerate() {
                        let (a, b) = (first[j] + left[j], second[j] + right[j]);
                        *is_right = if a < b { 1.0 } else { 0.0 };
                        *out = if a < b { b } else { a };
                    }
                }
                if let Some(dropout) = &self.dropout {
                    dropout.apply(start, out);
                }
                is_right
            },
        );
        let [batch, len] = [inputs[0].shape[0], inputs[0].shape[1]];
        Output { shape: vec![batch, len, n_pairs], values, saved: vec![larger.concat()] }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let weight = rows(&of.inputs[3]);
        let (n_inputs, width) = (weight.n_rows(), weight.n_columns());
        let n_pairs = width / 2;
        let n_rows = of.gradient.len() / n_pairs;
        let is_right = &of.saved[0];
        let dropped = self.dropout.map(|dropout| {
            mapped(
                of.gradient,
                n_pairs,
                #[inline(always)]
                |start, piece| dropout.apply(start, piece),
            )
        });
        let gradient = dropped.as_deref().unwrap_or(of.gradient);
        // Of each pair, the larger number has the gradient.
        let of_sums = new_pieces(
            Start::Zeros(n_rows * width),
            task_rows(width) * width,
            #[inline(always)]
            |start, out| {
                for (i, out) in out.chunks_exact_mut(width).enumerate() {
                    let place = start / 2 + i * n_pairs;
                    let (left, right) = out.split_at_mut(n_pairs);
                    let (gradient, is_right) = (&gradient[place..][..n_pairs], &is_right[place..][..n_pairs]);
                    for j in 0..n_pairs {
                        right[j] = gradient[j] * is_right[j];
                        left[j] = gradient[j] - right[j];
                    }
                }
            },
        )
        .0;
        let of_sums_matrix = Matrix::new(&of_sums, n_rows, width);
        let of_weight = || {
            let mut out = zeros(n_inputs * width);
            for (x, rows) in parts(of.inputs) {
                let out = &mut out[rows.start * width..rows.end * width];
                let out = MatrixMut::new(out, rows.len(), width);
                product(out, x.transposed(), of_sums_matrix, 1.0, Threads::All);
            }
            out
        };
        let of_inputs = || {
            parts(of.inputs).map(|(_, rows)| rows).into_iter().zip(of.wanted).map(|(rows, wanted)| {
                Gradient::when(*wanted, || new_product(of_sums_matrix, weight.rows(rows).transposed(), Threads::All))
            })
        };
        // Side by side, so that no core waits at the end of each.
        let (mut gradients, of_weight) =
            rayon::join(|| of_inputs().collect::<Vec<_>>(), || Gradient::when(of.wanted[3], of_weight));
        gradients.push(of_weight);
        gradients.push(Gradient::when(of.wanted[4], || sum_of_rows(&of_sums, width)));
        gradients
    }
}
