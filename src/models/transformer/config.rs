//! `[model]` with `kind = "transformer"`.

use crate::error::{Error, Result};
use crate::layers::Init;
use crate::layers::attention::MultiHeadConfig;
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::{MixerConfig, Mixers, SideConfig};
use crate::layers::norm::{EPSILON, NormKind};
use crate::layers::position::PositionConfig;
use crate::models::block::BlockConfig;
use crate::models::readout::Output;
use crate::models::residual::NormPosition;
use crate::models::{LengthLimit, LengthLimits, Vocabularies};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which tables share their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TiedEmbeddings {
    /// None.
    None,
    /// The target embedding and the output projection.
    TargetOutput,
    /// Source embedding, target embedding and output projection; needs a shared vocabulary.
    All,
}

/// `[model]` with `kind = "transformer"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerConfig {
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// Width inside the feed-forward networks.
    pub d_feed_forward: usize,
    /// Attention heads; they divide `d_model`.
    pub n_heads: usize,
    /// Heads of keys and values, each for a group of neighbouring heads of queries; they divide `n_heads`. Without it, as many
    /// as `n_heads`.
    pub n_key_value_heads: Option<usize>,
    /// Encoder layers.
    pub n_encoder_layers: usize,
    /// Decoder layers.
    pub n_decoder_layers: usize,
    /// Whether all layers of a side are one, used again and again (Dehghani et al. 2019); with a list of mixers, one for each
    /// of them.
    pub share_layers: bool,
    /// What lets the positions of one sequence exchange something: a mixer, or a list that the layers of a side take in turn.
    pub mixer: Mixers,
    /// What the encoder has for itself.
    #[serde(skip_serializing_if = "SideConfig::is_empty")]
    pub encoder: SideConfig,
    /// What the decoder has for itself.
    #[serde(skip_serializing_if = "SideConfig::is_empty")]
    pub decoder: SideConfig,
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
    /// The position scheme of both sides.
    pub positions: PositionConfig,
    /// The position scheme of the decoder, if it is another; a learned one has a table of its own then.
    pub decoder_positions: Option<PositionConfig>,
    /// In training the positions of a sequence are a sorted sample of `0..N`, so that those of sequences up to N tokens are known
    /// (Ruoss 2023); N is above the longest sequence that is learnt from. Without it they follow each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub randomized_positions: Option<usize>,
    /// Which tables share their numbers.
    pub tied_embeddings: TiedEmbeddings,
    /// Whether embeddings are multiplied by the root of `d_model` (Vaswani 2017, 3.4).
    #[serde(skip_serializing_if = "is_true")]
    pub scales_embeddings: bool,
    /// Whether words have a number of their own added to their scores, also where the output is tied to a table; a projection
    /// always has one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
}

// serde gives a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_true(value: &bool) -> bool {
    *value
}

impl TiedEmbeddings {
    /// Refuses `model.output_bias` beside a projection.
    pub(in crate::models) fn check_bias(self, output_bias: bool) -> Result<()> {
        if output_bias && self == Self::None {
            let message = "is for an output that is tied to a table: a projection has a bias of its own; leave it out";
            return Err(Error::config("model.output_bias", message));
        }
        Ok(())
    }

    /// What is wrong with one table for two vocabularies.
    pub(in crate::models) fn needs_one_vocabulary() -> Error {
        let message =
            "\"all\" needs one vocabulary for both sides: set tokenizer.shared = true, or tie \"target-output\"";
        Error::config("model.tied_embeddings", message)
    }

    /// The last product of a model with vectors of width `d_model`.
    pub(in crate::models) fn output(
        self,
        d_model: usize,
        has_bias: bool,
        vocabularies: Vocabularies,
        init: &Init,
    ) -> Result<Output> {
        match self {
            Self::None => Ok(Output::projection(d_model, vocabularies.target, init)),
            Self::All if !vocabularies.shared => Err(Self::needs_one_vocabulary()),
            _ if has_bias => Ok(Output::tied_with_bias(vocabularies.target, init)),
            Self::TargetOutput | Self::All => Ok(Output::tied()),
        }
    }
}

impl Default for TransformerConfig {
    fn default() -> Self {
        Self {
            d_model: 256,
            d_feed_forward: 1024,
            n_heads: 4,
            n_key_value_heads: None,
            n_encoder_layers: 3,
            n_decoder_layers: 3,
            share_layers: false,
            mixer: Mixers::default(),
            encoder: SideConfig::default(),
            decoder: SideConfig::default(),
            dropout_rate: 0.1,
            embedding_dropout_rate: None,
            attention_dropout_rate: 0.0,
            activation_dropout_rate: 0.0,
            norm_position: NormPosition::Pre,
            norm: NormKind::Layer,
            activation: Activation::Relu,
            positions: PositionConfig::Sinusoidal {},
            decoder_positions: None,
            randomized_positions: None,
            tied_embeddings: TiedEmbeddings::None,
            scales_embeddings: true,
            output_bias: false,
        }
    }
}

impl TransformerConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        let n_layers = [("n_encoder_layers", self.n_encoder_layers), ("n_decoder_layers", self.n_decoder_layers)];
        self.block().validate(&n_layers, self.embedding_dropout_rate())?;
        self.tied_embeddings.check_bias(self.output_bias)?;
        let shares = |mixers: &Mixers, n_layers: usize| n_layers > mixers.all().len();
        if self.share_layers
            && !shares(self.encoder_mixers(), self.n_encoder_layers)
            && !shares(self.decoder_mixers(), self.n_decoder_layers)
        {
            let message = "shares nothing: no side has more layers than mixers; raise their number or leave this out";
            return Err(Error::config("model.share_layers", message));
        }
        let sides = [("model.encoder.mixer", &self.encoder.mixer), ("model.decoder.mixer", &self.decoder.mixer)];
        let own = sides.iter().filter_map(|(key, mixers)| mixers.as_ref().map(|mixers| (*key, mixers)));
        for (key, mixers) in own.chain([("model.mixer", &self.mixer)]) {
            mixers.validate(key, self.d_model, self.n_heads)?;
        }
        let own = self.decoder_positions.as_ref().map(|positions| ("model.decoder_positions", positions));
        for (key, positions) in [("model.positions", &self.positions)].into_iter().chain(own) {
            positions.validate(key, [self.d_model, self.n_heads], self.randomized_positions)?;
        }
        let attends = [
            self.encoder_mixers().has_attention(self.n_encoder_layers),
            self.decoder_mixers().has_attention(self.n_decoder_layers),
        ];
        match &self.decoder_positions {
            None => self.positions.check_attention("model.positions", attends.contains(&true), "either side"),
            Some(positions) => {
                self.positions.check_attention("model.positions", attends[0], "the encoder")?;
                positions.check_attention("model.decoder_positions", attends[1], "the decoder")
            }
        }
    }

    /// The mixers of the encoder's layers.
    pub fn encoder_mixers(&self) -> &Mixers {
        self.encoder.mixer.as_ref().unwrap_or(&self.mixer)
    }

    /// The mixers of the decoder's layers.
    pub fn decoder_mixers(&self) -> &Mixers {
        self.decoder.mixer.as_ref().unwrap_or(&self.mixer)
    }

    /// Whether every layer mixes by attention.
    pub fn has_attention_alone(&self) -> bool {
        self.encoder_mixers().in_layers(self.n_encoder_layers).all(MixerConfig::is_attention)
            && self.decoder_mixers().in_layers(self.n_decoder_layers).all(MixerConfig::is_attention)
    }

    /// Heads of keys and values.
    pub fn n_key_value_heads(&self) -> usize {
        self.n_key_value_heads.unwrap_or(self.n_heads)
    }

    /// Probability of dropping an element of an embedding.
    pub fn embedding_dropout_rate(&self) -> f64 {
        self.embedding_dropout_rate.unwrap_or(self.dropout_rate)
    }

    /// The position scheme of the decoder.
    pub fn decoder_positions(&self) -> &PositionConfig {
        self.decoder_positions.as_ref().unwrap_or(&self.positions)
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
        let limit = |positions: &PositionConfig, key| positions.max_len().map(|len| LengthLimit { len, key });
        let target_key = match self.decoder_positions {
            Some(_) => "model.decoder_positions.max_len",
            None => "model.positions.max_len",
        };
        LengthLimits {
            source: limit(&self.positions, "model.positions.max_len"),
            target: limit(self.decoder_positions(), target_key),
        }
    }
}
