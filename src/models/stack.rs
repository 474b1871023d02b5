//! A stack of layers over vectors.

use super::block::{Block, Mixing};
use super::residual::ResidualStream;
use crate::layers::norm::Norm;
use crate::layers::position::AttentionPositions;
use crate::layers::{Mask, Pass};
use burn::tensor::Tensor;

/// The layers of a model without attention to another sequence, gone through again where there are fewer than `depth`, and the norm behind
/// the last.
pub(super) struct Stack<'a> {
    pub(super) layers: &'a [Block],
    pub(super) depth: usize,
    pub(super) norm: &'a Option<Norm>,
}

impl Stack<'_> {
    /// Through all layers, which are traced as those of `side`; `mix` says how a mixer is called, at which depth.
    pub(super) fn run(
        &self,
        side: &str,
        x: Tensor<3>,
        pass: &mut Pass,
        mut mix: impl FnMut(Mixing<'_>, usize, ResidualStream, &mut Pass) -> ResidualStream,
    ) -> ResidualStream {
        let mut stream = ResidualStream::from(x);
        for depth in 0..self.depth {
            let layer = &self.layers[depth % self.layers.len()];
            stream = pass.scoped(format_args!("{side}.{depth}"), |pass| {
                let mixed = mix(layer.mixing(), depth, stream, pass);
                layer.after_mixing(mixed, pass)
            });
        }
        stream
    }

    /// What the layers of an encoder make of sequences that end in padding.
    ///
    /// # Shapes
    /// - x, output: `[batch, len, d_model]`
    pub(super) fn encode(
        &self,
        x: Tensor<3>,
        lengths: &[usize],
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let stream = self.run("encoder", x, pass, |mixing, _, stream, pass| {
            mixing.forward(stream, Some(lengths), mask, positions, pass)
        });
        stream.normalized(self.norm, pass)
    }
}
