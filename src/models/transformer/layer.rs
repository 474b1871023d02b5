//! The layers of encoder and decoder: sublayers, each inside a residual connection.

use super::{NormPosition, TransformerConfig};
use crate::layers::attention::multi_head::{CrossAttention, SelfAttention, SourceKeyValue};
use crate::layers::feed_forward::FeedForward;
use crate::layers::norm::Norm;
use crate::layers::position::AttentionPositions;
use crate::layers::{Init, Mask, Pass, fused};
use burn::module::Module;
use burn::tensor::Tensor;

/// `x + dropout(f(x))` with the norm before or after.
#[derive(Module, Debug)]
pub(super) struct Residual {
    norm: Norm,
    #[module(skip)]
    position: NormPosition,
    #[module(skip)]
    dropout_rate: f64,
}

impl Residual {
    pub(super) fn new(config: &TransformerConfig, init: &Init) -> Self {
        Self {
            norm: config.norm.init(config.d_model, init),
            position: config.norm_position,
            dropout_rate: config.dropout_rate,
        }
    }

    pub(super) fn around(
        &self,
        input: Tensor<3>,
        pass: &mut Pass,
        sublayer: impl FnOnce(Tensor<3>, &mut Pass) -> Tensor<3>,
    ) -> Tensor<3> {
        match self.position {
            NormPosition::Pre => {
                let output = sublayer(self.norm.forward(input.clone(), pass), pass);
                self.add(input, output, pass)
            }
            NormPosition::Post => {
                let output = sublayer(input.clone(), pass);
                self.norm.forward(self.add(input, output, pass), pass)
            }
        }
    }

    fn add(&self, input: Tensor<3>, output: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        if pass.fuses(&input.device()) {
            return fused::add_dropped(input, output, pass.next_dropout(self.dropout_rate));
        }
        input + pass.dropout(output, self.dropout_rate)
    }
}

/// Self-attention and a feed-forward network (Vaswani 2017, figure 1, left).
#[derive(Module, Debug)]
pub(super) struct EncoderLayer {
    attention: SelfAttention,
    attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl EncoderLayer {
    pub(super) fn new(config: &TransformerConfig, init: &Init) -> Self {
        Self {
            attention: SelfAttention::new(&config.multi_head(), &config.positions, init),
            attention_residual: Residual::new(config, init),
            feed_forward: feed_forward(config, init),
            feed_forward_residual: Residual::new(config, init),
        }
    }

    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let x = self.attention_residual.around(x, pass, |x, pass| {
            pass.scoped("self_attention", |pass| self.attention.forward(x, mask, positions, pass))
        });
        let x = self.feed_forward_residual.around(x, pass, |x, pass| self.feed_forward.forward(x, pass));
        pass.record("states", || x.clone());
        x
    }
}

fn feed_forward(config: &TransformerConfig, init: &Init) -> FeedForward {
    let (d, d_inner) = (config.d_model, config.d_feed_forward);
    FeedForward::new(d, d_inner, config.activation, config.activation_dropout_rate, init)
}

/// Masked self-attention, attention to the source, and a feed-forward network (Vaswani 2017, figure 1, right).
#[derive(Module, Debug)]
pub(super) struct DecoderLayer {
    pub(super) self_attention: SelfAttention,
    pub(super) self_residual: Residual,
    pub(super) cross_attention: CrossAttention,
    cross_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl DecoderLayer {
    pub(super) fn new(config: &TransformerConfig, init: &Init) -> Self {
        let sizes = config.multi_head();
        Self {
            self_attention: SelfAttention::new(&sizes, config.decoder_positions(), init),
            self_residual: Residual::new(config, init),
            cross_attention: CrossAttention::new(&sizes, init),
            cross_residual: Residual::new(config, init),
            feed_forward: feed_forward(config, init),
            feed_forward_residual: Residual::new(config, init),
        }
    }

    /// The sublayers after self-attention, which are the same for a whole sentence and for one step.
    pub(super) fn after_self_attention(
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
