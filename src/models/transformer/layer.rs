//! The layer of a decoder that attends to a source.

use super::TransformerConfig;
use crate::layers::attention::multi_head::{CrossAttention, SelfAttention, SourceKeyValue};
use crate::layers::feed_forward::FeedForward;
use crate::layers::mixer::{MixerConfig, RecurrentMixer, ShortConvolution};
use crate::layers::{Init, Mask, Pass};
use crate::models::block::{Mixing, Residual, mixer};
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
