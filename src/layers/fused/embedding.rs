//! Embeddings as one operation.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::pieces::{Start, new_pieces, task_rows, zeros};
use super::simd::{update, vectorized};
use crate::layers::Pass;
use burn::nn;
use burn::tensor::{Int, Tensor};

#[derive(Debug)]
struct Embedding {
    ids: Vec<usize>,
    /// `[batch, len]`.
    shape: [usize; 2],
    scale: f32,
}

/// `scale E[id]` for every id, fused if `pass` says so: burn scales in a pass of its own, and clears the gradient of the table, as
/// large as the table, on one core.
///
/// # Shapes
/// - ids: `[batch, len]`
/// - output: `[batch, len, d_embedding]`
pub fn embedding(ids: Tensor<2, Int>, layer: &nn::Embedding, scale: f64, pass: &Pass) -> Tensor<3> {
    if !pass.fuses(&ids.device()) {
        let embedded = layer.forward(ids);
        return if scale == 1.0 { embedded } else { embedded.mul_scalar(scale) };
    }
    let shape = ids.dims();
    let ids = ids.try_into_vec_as::<i64>().expect("ids can be read").into_iter().map(|id| id as usize).collect();
    apply(Embedding { ids, shape, scale: scale as f32 }, vec![layer.weight.val().into_dispatch()])
}

impl Function for Embedding {
    fn forward(&self, inputs: &[Input]) -> Output {
        let (table, width) = (inputs[0].values, inputs[0].shape[1]);
        let copy = |start: usize, out: &mut [f32]| {
            for (out, id) in out.chunks_exact_mut(width).zip(&self.ids[start / width..]) {
                update(
                    [&table[id * width..][..width]],
                    [out],
                    #[inline(always)]
                    |[value], _| [self.scale * value],
                );
            }
        };
        let values = new_pieces(Start::Zeros(self.ids.len() * width), task_rows(width) * width, copy).0;
        Output { shape: vec![self.shape[0], self.shape[1], width], values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let [n_words, width] = *of.inputs[0].shape else { unreachable!("a table has two axes") };
        let mut out = zeros(n_words * width);
        // Row after row: a word that occurs twice has both gradients, always added in this order.
        vectorized(
            #[inline(always)]
            || {
                for (gradient, id) in of.gradient.chunks_exact(width).zip(&self.ids) {
                    update(
                        [gradient],
                        [&mut out[id * width..][..width]],
                        #[inline(always)]
                        |[gradient], [sum]| [sum + self.scale * gradient],
                    );
                }
            },
        );
        vec![Gradient::New(out)]
    }
}
