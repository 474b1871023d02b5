//! The layer of a decoder that attends to a source.

use super::TransformerConfig;
use super::state::{TransformerMemory, TransformerState};
use crate::layers::attention::multi_head::{CrossAttention, SelfAttention, SourceKeyValue};
use crate::layers::feed_forward::FeedForward;
use crate::layers::mixer::{MixerConfig, RecurrentMixer, ShortConvolution};
use crate::layers::position::AttentionPositions;
use crate::layers::{Init, Mask, Pass};
use crate::models::block::{LayerState, Mixing, Residual, mixer};
use burn::module::Module;
use burn::tensor::Tensor;

/// A mixer, which in the paper is masked self-attention, attention to the source, and a feed-forward network (Vaswani 2017,
/// figure 1, right).
#[derive(Module, Debug)]
pub(super) struct DecoderLayer {
    self_attention: Option<SelfAttention>,
    recurrence: Option<RecurrentMixer>,
    convolution: Option<ShortConvolution>,
    self_residual: Residual,
    pub(super) cross_attention: CrossAttention,
    cross_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    pub(super) fn new(config: &TransformerConfig, own: &MixerConfig, init: &Init) -> Self {
        let block = config.block();
        let (self_attention, recurrence, convolution) = mixer(&block, own, 1, config.decoder_positions(), init);
        Self {
            self_attention,
            recurrence,
            convolution,
            self_residual: Residual::new(&block, init),
            cross_attention: CrossAttention::new(&block.heads, init),
            cross_residual: Residual::new(&block, init),
            feed_forward: block.feed_forward(init),
            feed_forward_residual: Residual::new(&block, init),
        }
    }

    /// What the target's positions make of each other.
    pub(super) fn mixing(&self) -> Mixing<'_> {
        Mixing {
            attention: self.self_attention.as_ref(),
            recurrence: self.recurrence.as_ref(),
            convolution: self.convolution.as_ref(),
            residual: &self.self_residual,
        }
    }

    /// The sublayers after the mixer, which are the same for a whole sentence and for one step.
    pub(super) fn after_mixing(
        &self,
        x: Tensor<3>,
        memory: &SourceKeyValue,
        mask: &Mask,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [rows, len, d] = x.dims();
        // The beams of a sentence are queries of one attention: the memory is never repeated.
        let batch = memory.batch();
        let x = x.reshape([batch, rows * len / batch, d]);
        let x = self.cross_residual.around(x, pass, |x, pass| {
            pass.scoped("cross_attention", |pass| self.cross_attention.forward(x, memory, mask, pass))
        });
        let x = self.feed_forward_residual.around(x, pass, |x, pass| self.feed_forward.forward(x, pass));
        let x = x.reshape([rows, len, d]);
        pass.record("states", || x.clone());
        x
    }
}

/// The layers of a decoder, gone through again where there are fewer than `depth`.
pub(super) struct DecoderLayers<'a> {
    pub(super) layers: &'a [DecoderLayer],
    pub(super) depth: usize,
}

impl DecoderLayers<'_> {
    /// The source-side work of every layer, once for a sentence.
    pub(super) fn prepare(&self, encoded: Tensor<3>, mask: Mask, pass: &Pass) -> TransformerMemory {
        let layers = self.layers.iter().map(|layer| layer.cross_attention.prepare(encoded.clone(), pass)).collect();
        TransformerMemory { layers, mask }
    }

    /// Nothing seen yet.
    pub(super) fn start(&self) -> TransformerState {
        TransformerState { layers: vec![LayerState::default(); self.depth], len: 0 }
    }

    /// Through all layers; `mix` says how a mixer is called, at which depth.
    pub(super) fn run(
        &self,
        mut x: Tensor<3>,
        memory: &TransformerMemory,
        pass: &mut Pass,
        mut mix: impl FnMut(Mixing<'_>, usize, Tensor<3>, &mut Pass) -> Tensor<3>,
    ) -> Tensor<3> {
        for depth in 0..self.depth {
            let i = depth % self.layers.len();
            let layer = &self.layers[i];
            x = pass.scoped(format_args!("decoder.{depth}"), |pass| {
                let x = mix(layer.mixing(), depth, x, pass);
                layer.after_mixing(x, &memory.layers[i], &memory.mask, pass)
            });
        }
        x
    }

    /// The next position alone.
    pub(super) fn step(
        &self,
        x: Tensor<3>,
        state: &mut TransformerState,
        positions: &AttentionPositions,
        memory: &TransformerMemory,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let x = self.run(x, memory, pass, |mixing, depth, x, pass| {
            mixing.step(x, &mut state.layers[depth], &Mask::none(), positions, pass)
        });
        state.len += 1;
        x
    }
}
