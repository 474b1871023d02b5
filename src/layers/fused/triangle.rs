//! The inverse of many small triangular matrices.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::pieces::{Start, new_pieces, task_rows};
use super::simd::{sum, update};
use burn::tensor::Tensor;

/// `(I + A)^-1` for `A` with numbers below its diagonal only; what stands elsewhere is not looked at.
///
/// Written out, the halves of halves are cut apart and put together again at every level, each time through memory of its own;
/// here each matrix is solved row by row where it lies.
///
/// # Shapes
/// - matrices, output: `[n, size, size]`
pub fn inverse(matrices: Tensor<3>) -> Tensor<3> {
    apply(Inverse, vec![matrices.into_dispatch()])
}

#[derive(Debug)]
struct Inverse;

/// Elements of whole matrices that one task works on.
fn piece(size: usize) -> usize {
    (task_rows(size * size)) * size * size
}

impl Function for Inverse {
    fn forward(&self, inputs: &[Input]) -> Output {
        let [matrices] = inputs else { unreachable!("one input") };
        let size = matrices.shape[2];
        let (values, _) = new_pieces(
            Start::Zeros(matrices.values.len()),
            piece(size),
            #[inline(always)]
            |start, out| {
                let given = matrices.values[start..].chunks_exact(size * size);
                for (solved, given) in out.chunks_exact_mut(size * size).zip(given) {
                    // x_i = e_i - sum_(j < i) a_ij x_j, of which the numbers up to the diagonal are not zero.
                    for i in 0..size {
                        let (before, rest) = solved.split_at_mut(i * size);
                        for (j, row) in before.chunks_exact(size).enumerate() {
                            let factor = given[i * size + j];
                            update(
                                [&row[..=j]],
                                [&mut rest[..=j]],
                                #[inline(always)]
                                |[x], [sum]| [sum - factor * x],
                            );
                        }
                        rest[i] = 1.0;
                    }
                }
            },
        );
        Output { shape: matrices.shape.to_vec(), values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let size = of.inputs[0].shape[2];
        // The gradient is -X^T G X^T, below the diagonal.
        let of_matrices = || {
            let (values, _) = new_pieces(
                Start::Zeros(of.output.len()),
                piece(size),
                #[inline(always)]
                |start, out| {
                    let solved = of.output[start..].chunks_exact(size * size);
                    let gradients = of.gradient[start..].chunks_exact(size * size);
                    let mut product = vec![0.0; size];
                    for (out, (solved, gradient)) in out.chunks_exact_mut(size * size).zip(solved.zip(gradients)) {
                        for i in 0..size {
                            let gradient = &gradient[i * size..][..size];
                            // Row i of G X^T, as far as it is asked for.
                            for (j, product) in product[..i].iter_mut().enumerate() {
                                *product = sum(
                                    [&gradient[..=j], &solved[j * size..][..=j]],
                                    #[inline(always)]
                                    |[g, x]| g * x,
                                );
                            }
                            for a in 1..=i {
                                let factor = solved[i * size + a];
                                update(
                                    [&product[..a]],
                                    [&mut out[a * size..][..a]],
                                    #[inline(always)]
                                    |[product], [sum]| [sum - factor * product],
                                );
                            }
                        }
                    }
                },
            );
            values
        };
        vec![Gradient::when(of.wanted[0], of_matrices)]
    }
}
