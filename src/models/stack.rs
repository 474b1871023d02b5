//! A stack of layers over vectors, as encoders have it.

use super::block::Block;
use super::residual::ResidualStream;
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
        x: Tensor<3>,
        lengths: &[usize],
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let mut stream = ResidualStream::from(x);
        for depth in 0..self.depth {
            let layer = &self.layers[depth % self.layers.len()];
            stream = pass.scoped(format_args!("encoder.{depth}"), |pass| {
                let mixed = layer.mixing().forward(stream, Some(lengths), mask, positions, pass);
                layer.after_mixing(mixed, pass)
            });
        }
        stream.normalized(self.norm, pass)
    }
}
