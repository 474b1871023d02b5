//! The layer of a decoder that attends to a source.

use super::TransformerConfig;
use super::state::{TransformerMemory, TransformerState};
use crate::layers::attention::multi_head::{CrossAttention, SelfAttention, SourceKeyValue};
use crate::layers::feed_forward::FeedForward;
use crate::layers::mixer::{MixerConfig, RecurrentMixer, ShortConvolution};
use crate::layers::position::AttentionPositions;
use crate::layers::{Init, Mask, Pass};
use crate::models::block::{LayerState, Mixing, mixer};
use crate::models::residual::{Residual, ResidualStream};
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
            self_residual: block.residual(init),
            cross_attention: CrossAttention::new(&block.heads, init),
            cross_residual: block.residual(init),
            feed_forward: block.feed_forward(init),
            feed_forward_residual: block.residual(init),
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
        stream: ResidualStream,
        memory: &SourceKeyValue,
        mask: &Mask,
        pass: &mut Pass,
    ) -> ResidualStream {
        let [rows, len, d] = stream.dims();
        // The beams of a sentence are queries of one attention: the memory is never repeated.
        let batch = memory.batch();
        let stream = stream.reshape([batch, rows * len / batch, d]);
        let stream = self.cross_residual.around(stream, pass, |x, pass| {
            pass.scoped("cross_attention", |pass| self.cross_attention.forward(x, memory, mask, pass))
        });
        let stream = self.feed_forward_residual.around(stream, pass, |x, pass| self.feed_forward.forward(x, pass));
        stream.reshape([rows, len, d]).recorded(pass)
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
        x: Tensor<3>,
        memory: &TransformerMemory,
        pass: &mut Pass,
        mut mix: impl FnMut(Mixing<'_>, usize, ResidualStream, &mut Pass) -> ResidualStream,
    ) -> ResidualStream {
        let mut stream = ResidualStream::from(x);
        for depth in 0..self.depth {
            let i = depth % self.layers.len();
            let layer = &self.layers[i];
            stream = pass.scoped(format_args!("decoder.{depth}"), |pass| {
                let mixed = mix(layer.mixing(), depth, stream, pass);
                layer.after_mixing(mixed, &memory.layers[i], &memory.mask, pass)
            });
        }
        stream
    }

    /// The next position alone.
    pub(super) fn step(
        &self,
        x: Tensor<3>,
        state: &mut TransformerState,
        positions: &AttentionPositions,
        memory: &TransformerMemory,
        pass: &mut Pass,
    ) -> ResidualStream {
        let stream = self.run(x, memory, pass, |mixing, depth, stream, pass| {
            mixing.step(stream, &mut state.layers[depth], &Mask::none(), positions, pass)
        });
        state.len += 1;
        stream
    }
}
