//! `[model]` with `kind = "encoder-only"`.

use crate::error::{Error, Result};
use crate::layers::attention::MultiHeadConfig;
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::Mixers;
use crate::layers::norm::{EPSILON, NormKind};
use crate::layers::position::PositionConfig;
use crate::models::block::BlockConfig;
use crate::models::residual::NormPosition;
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
    /// The word of each token of a text, some of whose tokens are hidden; learnt from plain text (`data.text`).
    MaskedWords,
    /// Numbers for each step of a source of numbers, such as those of the next step.
    Values,
}

impl Answers {
    /// How many words the answer to a source of so many tokens has, its end left out.
    pub(super) fn len(self, source_len: usize) -> usize {
        match self {
            Self::Tags | Self::MaskedWords | Self::Values => source_len,
            Self::Class => 1,
        }
    }
}

/// `[model]` with `kind = "encoder-only"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderOnlyConfig {
    /// What is answered.
    pub output: Answers,
    /// Whether a token sees only those before it, as in forecasting; otherwise all of them.
    pub is_causal: bool,
    /// Whether embeddings are multiplied by the root of `d_model` (Vaswani 2017, 3.4); BERT does not.
    pub scales_embeddings: bool,
    /// Whether embeddings, with their positions, are normalized before the first layer, as in BERT.
    pub normalizes_embeddings: bool,
    /// Whether states go through a layer of their own, with a norm behind it, before words are scored, as in BERT; for
    /// `output = "masked-words"`.
    pub transforms_output: bool,
    /// Whether words are scored by their embeddings, and a bias; for `output = "masked-words"`.
    pub tied_embeddings: bool,
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
    /// What normalization adds to the variance; BERT has 1e-12.
    pub norm_epsilon: f64,
    /// The non-linearity of the feed-forward networks.
    pub activation: Activation,
    /// The position scheme.
    pub positions: PositionConfig,
    /// In training the positions of a sequence are a sorted sample of `0..N`, so that those of sequences up to N tokens are known
    /// (Ruoss 2023); N is above the longest sequence that is learnt from. Without it they follow each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomized_positions: Option<usize>,
}

impl Default for EncoderOnlyConfig {
    fn default() -> Self {
        Self {
            output: Answers::Tags,
            is_causal: false,
            scales_embeddings: true,
            normalizes_embeddings: false,
            transforms_output: false,
            tied_embeddings: false,
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
            norm_epsilon: EPSILON,
            activation: Activation::Relu,
            positions: PositionConfig::Rotary { base: 10_000.0 },
            randomized_positions: None,
        }
    }
}

impl EncoderOnlyConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        self.block().validate(&[("n_layers", self.n_layers)], self.embedding_dropout_rate())?;
        let sizes = [self.d_model, self.n_heads, self.n_layers];
        self.mixer.validate_stack(sizes, self.share_layers, self.attention_dropout_rate)?;
        self.validate_masked_words()?;
        if !(self.norm_epsilon > 0.0 && self.norm_epsilon.is_finite()) {
            let message = format!("must be above 0, got {}", self.norm_epsilon);
            return Err(Error::config("model.norm_epsilon", message));
        }
        if self.is_causal {
            let why = "is for a model that sees all tokens, and by model.is_causal this one does not; leave it out";
            self.mixer.refuse_directions(why)?;
        }
        let sizes = [self.d_model, self.n_heads];
        self.positions.validate("model.positions", sizes, self.randomized_positions)?;
        self.positions.check_attention("model.positions", self.mixer.has_attention(self.n_layers), "the model")
    }

    /// What is for masked words alone, and what is not for them.
    fn validate_masked_words(&self) -> Result<()> {
        if self.output == Answers::MaskedWords {
            if self.is_causal {
                let message = "is true, but a masked word is told by what stands on both sides of it; leave it out, or use kind = \
                               \"decoder-only\"";
                return Err(Error::config("model.is_causal", message));
            }
            if self.transforms_output && self.activation.n_packed() > 1 {
                let message = "needs an activation without a gate: set model.activation = \"gelu\", or leave this out";
                return Err(Error::config("model.transforms_output", message));
            }
            return Ok(());
        }
        for (key, is_set) in [("transforms_output", self.transforms_output), ("tied_embeddings", self.tied_embeddings)]
        {
            if is_set {
                let message =
                    "is for model.output = \"masked-words\", whose answers are words of the text; leave it out";
                return Err(Error::config(format!("model.{key}"), message));
            }
        }
        Ok(())
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
        self.mixer.in_layers(self.n_layers).all(|mixer| mixer.is_attention() && mixer.convolution.is_none())
    }

    /// How many words the answer to a source of so many tokens has, its end left out.
    pub fn answer_len(&self, source_len: usize) -> usize {
        self.output.len(source_len)
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
            norm_epsilon: self.norm_epsilon,
            activation: self.activation,
        }
    }

    /// Learned positions end somewhere.
    pub(super) fn limits(&self) -> LengthLimits {
        let source = self.positions.max_len().map(|len| LengthLimit { len, key: "model.positions.max_len" });
        LengthLimits { source, target: source.filter(|_| self.output != Answers::Class) }
    }
}
