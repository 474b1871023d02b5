//! The inverse of many small triangular matrices.

use super::named::{Arrays, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::kernels::memory::{Start, new_pieces, task_rows};
use crate::kernels::vectors::{sum, update};
use burn::tensor::Tensor;

named! {
    /// What `Inverse` takes.
    InverseInputs {
        /// `[n, size, size]`.
        matrices: one 3,
    }
}

/// `(I + A)^-1` for `A` with numbers below its diagonal only; what stands elsewhere is not looked at.
///
/// In burn's operations, the halves of halves are cut apart and put together again at every level, each time through memory of its own;
/// here each matrix is solved row by row where it lies.
///
/// # Shapes
/// - matrices, output: `[n, size, size]`, the size a power of two
pub fn inverse(matrices: Tensor<3>, body: Body) -> Tensor<3> {
    run(Inverse, InverseInputs { matrices }, body).output
}

#[derive(Debug)]
struct Inverse;

/// Elements of whole matrices that one task works on.
fn piece(size: usize) -> usize {
    (task_rows(size * size)) * size * size
}

/// The same half by half: `[[B, 0], [C, D]]^-1 = [[B^-1, 0], [-D^-1 C B^-1, D^-1]]`.
///
/// The sum of powers of `-A` would take as many products and no cutting, but its terms grow like binomials where keys repeat,
/// and 32 bits lose what is left of them.
fn by_halves(matrices: Tensor<3>) -> Tensor<3> {
    let [n, size, _] = matrices.dims();
    let device = matrices.device();
    if size == 1 {
        return Tensor::ones([n, 1, 1], &device);
    }
    let half = size / 2;
    let quarter = |row: usize, column: usize| matrices.clone().narrow(1, row, half).narrow(2, column, half);
    let halves = by_halves(Tensor::cat(vec![quarter(0, 0), quarter(half, half)], 0));
    let (first, second) = (halves.clone().narrow(0, 0, n), halves.narrow(0, n, n));
    let corner = second.clone().matmul(quarter(half, 0)).matmul(first.clone()).neg();
    let top = Tensor::cat(vec![first, Tensor::zeros([n, half, half], &device)], 2);
    Tensor::cat(vec![top, Tensor::cat(vec![corner, second], 2)], 1)
}

impl Operation for Inverse {
    type Inputs = InverseInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        Keeps { inputs: InverseInputs::none(), outputs: Output { output: true } }
    }

    fn forward(&self, inputs: InverseInputs<Views>) -> (Output<3, Arrays>, ()) {
        let matrices = inputs.matrices;
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
        (Output::new(matrices.shape, values), ())
    }

    fn backward(&self, of: Backward<Self>) -> InverseInputs<Gradients> {
        let size = of.inputs.matrices.shape[2];
        let (output, gradient) = (of.outputs.output.values, of.gradients.output.values);
        // The gradient is -X^T G X^T, below the diagonal.
        let of_matrices = || {
            let (values, _) = new_pieces(
                Start::Zeros(output.len()),
                piece(size),
                #[inline(always)]
                |start, out| {
                    let solved = output[start..].chunks_exact(size * size);
                    let gradients = gradient[start..].chunks_exact(size * size);
                    let mut product = vec![0.0; size];
                    for (out, (solved, gradient)) in out.chunks_exact_mut(size * size).zip(solved.zip(gradients)) {
                        for i in 0..size {
                            let gradient = &gradient[i * size..][..size];
                            // Row i of G X^T, as far as it is needed.
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
        InverseInputs { matrices: Gradient::when(of.needed.matrices, of_matrices) }
    }

    fn written(&self, inputs: InverseInputs<Tensors>) -> Output<3, Tensors> {
        Output { output: by_halves(inputs.matrices) }
    }
}
