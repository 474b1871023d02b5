//! A feed-forward network as one operation.

use super::activation::{activated, inactivated};
use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::linear::{add_to_rows, affine, rows};
use super::matrix::Matrix;
use super::packed::{Slot, slot_product};
use super::pieces::{Threads, for_pieces, sum_of_rows};
use super::product::new_product;
use super::simd::Dropout;
use crate::layers::Pass;
use crate::layers::activation::Activation;
use burn::nn;
use burn::tensor::Tensor;

/// `dropout(f(x W_1 + b_1)) W_2 + b_2`.
#[derive(Debug)]
struct FeedForward {
    activation: Activation,
    dropout: Option<Dropout>,
    /// Of the two matrices.
    slots: [Option<Slot>; 2],
}

/// `dropout(f(x W_1 + b_1)) W_2 + b_2`. With `max(0, x)`, what lies between the products is made in place and kept once: where it
/// is zero, the unit was either negative or dropped, so the backward pass needs neither the sums nor the mask. With the others
/// both sums and units are kept.
///
/// # Shapes
/// - input, output: `[batch, len, d_model]`
pub fn feed_forward(
    input: Tensor<3>,
    [inner, outer]: [&nn::Linear; 2],
    activation: Activation,
    dropout: Option<Dropout>,
    pass: &Pass,
) -> Tensor<3> {
    let slots = [inner, outer].map(|linear| pass.slot(linear.weight.id));
    let parameters = [inner, outer].into_iter().flat_map(|linear| {
        let bias = linear.bias.as_ref().expect("the layers have biases").val();
        [linear.weight.val().into_dispatch(), bias.into_dispatch()]
    });
    apply(
        FeedForward { activation, dropout, slots },
        std::iter::once(input.into_dispatch()).chain(parameters).collect(),
    )
}

impl FeedForward {
    /// The gradient of the sums before `max(0, x)` and dropout, in the place of that after them.
    fn unrectify(&self, gradient: &mut [f32], active: &[f32], d_inner: usize) {
        let kept = self.dropout.map_or(1.0, |dropout| dropout.kept());
        for_pieces(
            gradient,
            d_inner,
            #[inline(always)]
            |start, piece| {
                // Multiplied in any case, so that the choice is an instruction and not a branch.
                for (value, active) in piece.iter_mut().zip(&active[start..]) {
                    let scaled = *value * kept;
                    *value = if *active > 0.0 { scaled } else { 0.0 };
                }
            },
        );
    }
}

impl Function for FeedForward {
    fn forward(&self, inputs: &[Input]) -> Output {
        let [x, w_1, b_1, w_2, b_2] = inputs else { unreachable!("five inputs") };
        let n_rows = x.values.len() / w_1.shape[0];
        let [d_sums, d_inner] = [w_1.shape[1], w_2.shape[0]];
        let [inner, outer] = self.slots.each_ref().map(Option::as_ref);
        let mut sums = slot_product(rows(x), rows(w_1), inner);
        let is_relu = self.activation == Activation::Relu;
        for_pieces(
            &mut sums,
            d_sums,
            #[inline(always)]
            |start, piece| {
                add_to_rows(piece, b_1.values);
                if !is_relu {
                    return;
                }
                piece.iter_mut().for_each(|value| *value = value.max(0.0));
                if let Some(dropout) = &self.dropout {
                    dropout.apply(start, piece);
                }
            },
        );
        let saved = if is_relu {
            vec![sums]
        } else {
            let active = activated(self.activation, &sums, d_inner, self.dropout.as_ref());
            vec![active, sums]
        };
        let values = affine(Matrix::new(&saved[0], n_rows, d_inner), rows(w_2), Some(b_2.values), outer);
        Output { shape: x.shape.to_vec(), values, saved }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let [x, w_1, _, w_2, _] = of.inputs else { unreachable!("five inputs") };
        let [d_model, d_sums, d_inner] = [w_1.shape[0], w_1.shape[1], w_2.shape[0]];
        let n_rows = x.values.len() / d_model;
        let active = &of.saved[0];
        let gradient = Matrix::new(of.gradient, n_rows, d_model);
        let of_inner = || new_product(gradient, rows(w_2).transposed(), Threads::All);
        let of_w_2 = || new_product(Matrix::new(active, n_rows, d_inner).transposed(), gradient, Threads::All);
        // Side by side, so that no core waits at the end of each.
        let (mut inner, of_w_2) = rayon::join(of_inner, || Gradient::when(of.wanted[3], of_w_2));
        match of.saved.get(1) {
            Some(sums) => inner = inactivated(self.activation, sums, inner, d_inner, self.dropout.as_ref()),
            None => self.unrectify(&mut inner, active, d_inner),
        }
        let inner_matrix = Matrix::new(&inner, n_rows, d_sums);
        let of_x = || new_product(inner_matrix, rows(w_1).transposed(), Threads::All);
        let of_w_1 = || new_product(rows(x).transposed(), inner_matrix, Threads::All);
        let (of_x, of_w_1) =
            rayon::join(|| Gradient::when(of.wanted[0], of_x), || Gradient::when(of.wanted[1], of_w_1));
        vec![
            of_x,
            of_w_1,
            Gradient::when(of.wanted[2], || sum_of_rows(&inner, d_sums)),
            of_w_2,
            Gradient::when(of.wanted[4], || sum_of_rows(of.gradient, d_model)),
        ]
    }
}
