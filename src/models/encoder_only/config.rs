//! `[model]` with `kind = "encoder-only"`.

use crate::error::Result;
use crate::layers::attention::MultiHeadConfig;
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::Mixers;
use crate::layers::norm::NormKind;
use crate::layers::position::PositionConfig;
use crate::models::block::{BlockConfig, NormPosition};
use crate::models::{LengthLimit, LengthLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an encoder-only model answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// A word for each token of the source: its tag.
    Tags,
    /// One word for the whole source: its class.
    Class,
}

/// `[model]` with `kind = "encoder-only"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderOnlyConfig {
    /// What is answered.
    pub output: Answers,
    /// Whether a token sees only those before it, as in forecasting; otherwise all of them.
    pub is_causal: bool,
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
    /// What lets the positions exchange something: a mixer, or a list that the layers take in turn. A recurrence reads in both
    /// directions unless `is_causal` or its own `bidirectional = false` say otherwise.
    pub mixer: Mixers,
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
    /// The position scheme.
    pub positions: PositionConfig,
}

impl Default for EncoderOnlyConfig {
    fn default() -> Self {
        Self {
            output: Answers::Tags,
            is_causal: false,
            d_model: 256,
            d_feed_forward: 1024,
            n_heads: 4,
            n_key_value_heads: None,
            n_layers: 3,
            share_layers: false,
            mixer: Mixers::default(),
            dropout_rate: 0.1,
            embedding_dropout_rate: None,
            attention_dropout_rate: 0.0,
            activation_dropout_rate: 0.0,
            norm_position: NormPosition::Pre,
            norm: NormKind::Layer,
            activation: Activation::Relu,
            positions: PositionConfig::Rotary { base: 10_000.0 },
        }
    }
}

impl EncoderOnlyConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        self.block().validate(&[("n_layers", self.n_layers)], self.embedding_dropout_rate())?;
        let sizes = [self.d_model, self.n_heads, self.n_layers];
        self.mixer.validate_stack(sizes, self.share_layers, self.attention_dropout_rate)?;
        if self.is_causal {
            let why = "is for a model that sees all tokens, and by model.is_causal this one does not; leave it out";
            self.mixer.refuse_directions(why)?;
        }
        self.positions.validate("model.positions", self.d_model, self.n_heads)?;
        self.positions.check_attention("model.positions", self.mixer.has_attention(self.n_layers), "the model")
    }

    /// Heads of keys and values.
    pub fn n_key_value_heads(&self) -> usize {
        self.n_key_value_heads.unwrap_or(self.n_heads)
    }

    /// Probability of dropping an element of an embedding.
    pub fn embedding_dropout_rate(&self) -> f64 {
        self.embedding_dropout_rate.unwrap_or(self.dropout_rate)
    }

    /// Whether every layer mixes by attention, without a convolution before it.
    pub fn has_attention_alone(&self) -> bool {
        self.mixer.all().iter().all(|mixer| mixer.is_attention() && mixer.convolution.is_none())
    }

    /// How many words the answer to a source of so many tokens has, its end left out.
    pub fn answer_len(&self, source_len: usize) -> usize {
        match self.output {
            Answers::Tags => source_len,
            Answers::Class => 1,
        }
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
            activation: self.activation,
        }
    }

    /// Learned positions end somewhere.
    pub(super) fn limits(&self) -> LengthLimits {
        let source = self.positions.max_len().map(|len| LengthLimit { len, key: "model.positions.max_len" });
        LengthLimits { source, target: source.filter(|_| self.output == Answers::Tags) }
    }
}
