//! `[model]` with `kind = "rnn"`.

use crate::error::{Error, Result};
use crate::layers::attention::{AttentionConfig, ScoreConfig};
use crate::layers::mixer::{EncoderShape, MixerKind, Mixers, SideConfig};
use crate::layers::recurrent::CellKind;
use crate::models::readout::ReadoutConfig;
use crate::models::{LengthLimit, LengthLimits, check_rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directions in which the encoder reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// From the first word to the last.
    Forward,
    /// From both ends, states side by side.
    Both,
}

/// How a fixed context reaches the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextUse {
    /// It enters the decoder at every step (Cho 2014).
    EveryStep,
    /// It is the initial state (Sutskever 2014); a readout that reads the context still sees it.
    Initial,
}

/// Where the decoder's initial state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bridge {
    /// Zeros.
    Zeros,
    /// `tanh(W h + b)` of the encoder's last states, layer by layer.
    Learned,
}

/// The last product of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputKind {
    /// The readout, projected to the width of an embedding, times every target embedding.
    Similarity,
    /// A matrix of its own.
    Projection,
}

/// `[model]` with `kind = "rnn"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RnnConfig {
    /// The recurrent cell of encoder and decoder.
    pub cell: CellKind,
    /// What the encoder has for itself: recurrences that read the source instead of the cell.
    #[serde(skip_serializing_if = "SideConfig::is_empty")]
    pub encoder: SideConfig,
    /// Width of the word vectors.
    pub d_embedding: usize,
    /// Width of the state in each layer and direction.
    pub d_hidden: usize,
    /// Layers of the encoder and of the decoder.
    pub n_layers: usize,
    /// Add to the output of each layer from the second on what it has read (Wu et al. 2016, section 3.1).
    pub residual: bool,
    /// The directions in which the encoder reads.
    pub directions: Directions,
    /// Feed the source backwards, as Sutskever 2014.
    pub reverse_source: bool,
    /// The attention mechanism.
    pub attention: AttentionConfig,
    /// How a fixed context reaches the decoder; with attention always "every-step".
    pub context: ContextUse,
    /// Where the decoder's initial state comes from.
    pub bridge: Bridge,
    /// What is made of the state before the last product.
    pub readout: ReadoutConfig,
    /// The last product.
    pub output: OutputKind,
    /// Probability of dropping an element of an embedding, between layers and of the readout.
    pub dropout_rate: f64,
}

impl Default for RnnConfig {
    fn default() -> Self {
        Self {
            cell: CellKind::Gru,
            encoder: SideConfig::default(),
            d_embedding: 256,
            d_hidden: 512,
            n_layers: 1,
            residual: false,
            directions: Directions::Both,
            reverse_source: false,
            attention: AttentionConfig::None {},
            context: ContextUse::EveryStep,
            bridge: Bridge::Learned,
            readout: ReadoutConfig::DeepOutput { d_maxout: 256 },
            output: OutputKind::Similarity,
            dropout_rate: 0.2,
        }
    }
}

impl RnnConfig {
    /// Checks the values against each other.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in
            [("d_embedding", self.d_embedding), ("d_hidden", self.d_hidden), ("n_layers", self.n_layers)]
        {
            if value == 0 {
                return Err(Error::config(format!("model.{key}"), "must be at least 1, got 0"));
            }
        }
        if self.residual && self.n_layers < 2 {
            let message =
                "connects the second layer and those above it, but model.n_layers is 1; raise it or leave this out";
            return Err(Error::config("model.residual", message));
        }
        self.validate_encoder()?;
        self.validate_attention()?;
        if let ReadoutConfig::DeepOutput { d_maxout: 0 } = self.readout {
            return Err(Error::config("model.readout.d_maxout", "must be at least 1, got 0"));
        }
        if self.context == ContextUse::Initial {
            let reason = match (&self.attention, self.bridge) {
                (AttentionConfig::None {}, Bridge::Learned) => None,
                (AttentionConfig::None {}, Bridge::Zeros) => Some("the decoder would see nothing of the source"),
                _ => Some("attention makes a new context at every step"),
            };
            if let Some(reason) = reason {
                return Err(Error::config("model.context", format!("\"initial\" cannot be used here: {reason}")));
            }
        }
        check_rate("dropout_rate", self.dropout_rate)
    }

    /// What reads the source has a state that is a vector, as wide as the others, which the decoder starts from.
    fn validate_encoder(&self) -> Result<()> {
        let Some(mixers) = &self.encoder.mixer else { return Ok(()) };
        const KEY: &str = "model.encoder.mixer";
        // Heads are for states that are matrices.
        mixers.validate(KEY, self.d_hidden, 1)?;
        for (i, mixer) in mixers.all().iter().enumerate() {
            let key = mixers.key(KEY, i);
            if !mixer.kind.has_vector() {
                let known: Vec<String> = MixerKind::RECURRENT
                    .into_iter()
                    .filter(|kind| kind.has_vector())
                    .map(|kind| format!("\"{}\"", kind.name()))
                    .collect();
                let message = format!(
                    "\"{}\" has no state that is a vector, from which this decoder could start; take one of {}, or \
                     model.kind = \"transformer\"",
                    mixer.kind.name(),
                    known.join(", ")
                );
                return Err(Error::config(format!("{key}.kind"), message));
            }
            if mixer.bidirectional.is_some() {
                let message = "is said by model.directions here; leave it out";
                return Err(Error::config(format!("{key}.bidirectional"), message));
            }
            if mixer.expansion.is_some() {
                let message = "is for Transformers: here model.d_hidden is the width of every state; leave it out";
                return Err(Error::config(format!("{key}.expansion"), message));
            }
        }
        Ok(())
    }

    fn validate_attention(&self) -> Result<()> {
        let Some((score, window)) = self.attention.alignment() else { return Ok(()) };
        let size = match score {
            ScoreConfig::Additive { d_attention } | ScoreConfig::Concat { d_attention } => {
                Some(("d_attention", *d_attention))
            }
            ScoreConfig::Location { max_source_len } => Some(("max_source_len", *max_source_len)),
            ScoreConfig::Dot {} | ScoreConfig::ScaledDot {} | ScoreConfig::Cosine {} | ScoreConfig::General {} => None,
        };
        if let Some((key, 0)) = size {
            return Err(Error::config(format!("model.attention.score.{key}"), "must be at least 1, got 0"));
        }
        if window.half_width() == Some(0) {
            let message = "must be at least 1, got 0: a window of one position leaves the softmax nothing to choose";
            return Err(Error::config("model.attention.window.half_width", message));
        }
        if score.needs_equal_widths() && self.directions == Directions::Both {
            let message = format!(
                "compares states of equal width, but decoder states have {} elements and those of an encoder that reads in \
                 both directions {}; set model.directions = \"forward\", or use the score \"general\"",
                self.d_hidden,
                2 * self.d_hidden
            );
            return Err(Error::config("model.attention.score", message));
        }
        Ok(())
    }

    /// The recurrence of each layer of the encoder.
    pub(crate) fn encoder_mixers(&self) -> Mixers {
        self.encoder.mixer.clone().unwrap_or_else(|| MixerKind::from(self.cell).into())
    }

    pub(super) fn encoder_shape(&self) -> EncoderShape {
        EncoderShape {
            mixers: self.encoder_mixers(),
            d_input: self.d_embedding,
            d_hidden: self.d_hidden,
            n_layers: self.n_layers,
            n_directions: self.n_directions(),
            residual: self.residual,
            dropout_rate: self.dropout_rate,
            is_reversed: self.reverse_source,
        }
    }

    /// The location score has one weight for each source position.
    pub(super) fn limits(&self) -> LengthLimits {
        let source = match self.attention.alignment() {
            Some((ScoreConfig::Location { max_source_len }, _)) => {
                Some(LengthLimit { len: *max_source_len, key: "model.attention.score.max_source_len" })
            }
            _ => None,
        };
        LengthLimits { source, target: None }
    }

    pub(crate) fn n_directions(&self) -> usize {
        match self.directions {
            Directions::Forward => 1,
            Directions::Both => 2,
        }
    }
}
