//! `[model]` with `kind = "decoder-only"`.

use crate::error::{Error, Result};
use crate::layers::attention::MultiHeadConfig;
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::Mixers;
use crate::layers::norm::{EPSILON, NormKind};
use crate::layers::position::PositionConfig;
use crate::models::block::BlockConfig;
use crate::models::residual::NormPosition;
use crate::models::transformer::TiedEmbeddings;
use crate::models::{LengthLimit, LengthLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[model]` with `kind = "decoder-only"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DecoderOnlyConfig {
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_feed_forward: usize,
    /// Attention heads; they divide `d_model`.
    pub n_heads: usize,
    /// Heads of keys and values, each for a group of neighbouring heads of queries; they divide `n_heads`. Without it, as many
    /// as `n_heads`.
    pub n_key_value_heads: Option<usize>,
    /// Layers.
    pub n_layers: usize,
    /// Whether all layers are one, used again and again; with a list of mixers, one for each of them.
    pub share_layers: bool,
    /// What lets the positions exchange something: a mixer, or a list that the layers take in turn.
    pub mixer: Mixers,
    /// Whether there is a source that the text goes on from; without it, this is a language model of plain text (`data.text`).
    pub reads_source: bool,
    /// Whether the words of a source see those behind them too, as in an encoder (a prefix language model, Raffel 2020, 3.2);
    /// for attention alone.
    pub sees_whole_source: bool,
    /// Whether embeddings are multiplied by the root of `d_model` (Vaswani 2017, 3.4); GPT-2 does not.
    pub scales_embeddings: bool,
    /// Probability of dropping an element of a sublayer's output.
    pub dropout_rate: f64,
    /// Probability of dropping an element of an embedding; without it, `dropout_rate`.
    pub embedding_dropout_rate: Option<f64>,
    /// Probability of dropping an attention weight.
    pub attention_dropout_rate: f64,
    /// Probability of dropping an element inside a feed-forward network.
    pub activation_dropout_rate: f64,
    /// Where normalization stands.
    pub norm_position: NormPosition,
    /// Which normalization.
    pub norm: NormKind,
    /// The non-linearity of the feed-forward networks.
    pub activation: Activation,
    /// The position scheme. Learned positions are shared out between source and target, if there is one, half of them for each.
    pub positions: PositionConfig,
    /// In training the positions of a sequence are a sorted sample of `0..N`, so that those of sequences up to N tokens are known
    /// (Ruoss 2023); N is above the longest sequence that is learnt from. Without it they follow each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomized_positions: Option<usize>,
    /// Which tables share their numbers.
    pub tied_embeddings: TiedEmbeddings,
    /// Whether words have a number of their own added to their scores, also where the output is tied to a table; a projection
    /// always has one.
    pub output_bias: bool,
}

impl Default for DecoderOnlyConfig {
    fn default() -> Self {
        Self {
            d_model: 256,
            d_feed_forward: 1024,
            n_heads: 4,
            n_key_value_heads: None,
            n_layers: 6,
            share_layers: false,
            mixer: Mixers::default(),
            reads_source: true,
            sees_whole_source: false,
            scales_embeddings: true,
            dropout_rate: 0.1,
            embedding_dropout_rate: None,
            attention_dropout_rate: 0.0,
            activation_dropout_rate: 0.0,
            norm_position: NormPosition::Pre,
            norm: NormKind::Layer,
            activation: Activation::Gelu,
            positions: PositionConfig::Rotary { base: 10_000.0 },
            randomized_positions: None,
            tied_embeddings: TiedEmbeddings::None,
            output_bias: false,
        }
    }
}

impl DecoderOnlyConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        self.block().validate(&[("n_layers", self.n_layers)], self.embedding_dropout_rate())?;
        let sizes = [self.d_model, self.n_heads, self.n_layers];
        self.mixer.validate_stack(sizes, self.share_layers, self.attention_dropout_rate)?;
        self.mixer.refuse_directions("is for encoders: here every word is written after those before it")?;
        if self.sees_whole_source && !self.reads_source {
            let message = "is for models with a source, and by model.reads_source there is none; leave it out";
            return Err(Error::config("model.sees_whole_source", message));
        }
        if self.sees_whole_source && !self.has_attention_alone() {
            let message = "is for attention alone: a recurrence reads forwards, and so does a convolution";
            return Err(Error::config("model.sees_whole_source", message));
        }
        if let (true, PositionConfig::Learned { max_len: 1 }) = (self.reads_source, &self.positions) {
            let message = "must be at least 2, for a source and a target, got 1";
            return Err(Error::config("model.positions.max_len", message));
        }
        self.tied_embeddings.check_bias(self.output_bias)?;
        let sizes = [self.d_model, self.n_heads];
        self.positions.validate("model.positions", sizes, self.randomized_positions)?;
        self.positions.check_attention("model.positions", self.has_attention(), "the model")
    }

    /// Heads of keys and values.
    pub fn n_key_value_heads(&self) -> usize {
        self.n_key_value_heads.unwrap_or(self.n_heads)
    }

    /// Probability of dropping an element of an embedding.
    pub fn embedding_dropout_rate(&self) -> f64 {
        self.embedding_dropout_rate.unwrap_or(self.dropout_rate)
    }

    /// Whether any layer mixes by attention.
    pub fn has_attention(&self) -> bool {
        self.mixer.has_attention(self.n_layers)
    }

    /// Whether every layer mixes by attention, without a convolution before it.
    pub fn has_attention_alone(&self) -> bool {
        self.mixer.in_layers(self.n_layers).all(|mixer| mixer.is_attention() && mixer.convolution.is_none())
    }

    /// What its layers have in common.
    pub(super) fn block(&self) -> BlockConfig {
        BlockConfig {
            heads: MultiHeadConfig {
                d_model: self.d_model,
                n_heads: self.n_heads,
                n_key_value_heads: self.n_key_value_heads(),
                dropout_rate: self.attention_dropout_rate,
            },
            d_feed_forward: self.d_feed_forward,
            dropout_rate: self.dropout_rate,
            activation_dropout_rate: self.activation_dropout_rate,
            norm_position: self.norm_position,
            norm: self.norm,
            norm_epsilon: EPSILON,
            activation: self.activation,
        }
    }

    /// Learned positions end somewhere.
    pub(super) fn limits(&self) -> LengthLimits {
        let limit = |len| LengthLimit { len: self.len_of_side(len), key: "model.positions.max_len" };
        let limit = self.positions.max_len().map(limit);
        LengthLimits { source: limit.filter(|_| self.reads_source), target: limit }
    }

    /// What a source, if there is one, and a target may have each of `len` positions: they are one sequence.
    pub fn len_of_side(&self, len: usize) -> usize {
        if self.reads_source { len / 2 } else { len }
    }
}
