//! A stack of layers over vectors, as encoders have it.

use super::block::{Block, normalized};
use crate::layers::norm::Norm;
use crate::layers::position::AttentionPositions;
use crate::layers::{Mask, Pass};
use burn::tensor::Tensor;

/// The layers of an encoder, gone through again where there are fewer than `depth`, and the norm behind the last.
pub(super) struct Stack<'a> {
    pub(super) layers: &'a [Block],
    pub(super) depth: usize,
    pub(super) norm: &'a Option<Norm>,
}

impl Stack<'_> {
    /// What the layers make of sequences that end in padding.
    ///
    /// # Shapes
    /// - x, output: `[batch, len, d_model]`
    pub(super) fn forward(
        &self,
        mut x: Tensor<3>,
        lengths: &[usize],
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        for depth in 0..self.depth {
            let layer = &self.layers[depth % self.layers.len()];
            x = pass.scoped(format_args!("encoder.{depth}"), |pass| {
                let x = layer.mixing().forward(x, Some(lengths), mask, positions, pass);
                layer.after_mixing(x, pass)
            });
        }
        normalized(self.norm, x, pass)
    }
}
