//! Attention: a weighted mean of what was read, with weights that depend on what is asked.
//!
//! Two families live here.
//!
//! * For recurrent decoders: a [`score`] compares the decoder state with every encoder state, a softmax over the whole source
//!   or over a [`local`] window turns the scores into weights, the weighted sum is the context ([`alignment`]). It is made
//!   between the decoder's steps ([`bahdanau`]) or after each of them ([`luong`]). Any score goes with any window and either
//!   placement; a new score is a file beside [`score::dot`], a variant of [`ScoreConfig`] and one of [`score::Score`].
//! * For Transformers, all queries at once: [`scaled_dot_product`] and, in several heads, [`multi_head`].

pub mod alignment;
pub mod bahdanau;
pub mod local;
pub mod luong;
pub mod multi_head;
pub mod scaled_dot_product;
pub mod score;

pub use alignment::{Alignment, AttentionMemory};
pub use bahdanau::BahdanauAttention;
pub use local::WindowConfig;
pub use luong::LuongAttention;
pub use multi_head::{CrossAttention, MultiHeadConfig, SelfAttention};
pub use score::ScoreConfig;

use super::{Init, Pass};
use crate::ops::StepAttention;
use burn::module::Module;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a mechanism for a recurrent decoder.
// Braces as in `ScoreConfig`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttentionConfig {
    /// No attention: one fixed vector carries the whole source.
    None {},
    /// Between decoder steps: the last state asks, the context enters the next step (Bahdanau 2015).
    Bahdanau {
        /// How a source position is compared with the state.
        #[serde(default = "additive")]
        score: ScoreConfig,
        /// What a step may look at.
        #[serde(default)]
        window: WindowConfig,
    },
    /// After each decoder step: the new state asks, context and state make the output (Luong 2015).
    Luong {
        /// How a source position is compared with the state.
        #[serde(default = "general")]
        score: ScoreConfig,
        /// What a step may look at.
        #[serde(default)]
        window: WindowConfig,
        /// Whether the next step reads what this one made of its context.
        #[serde(default = "yes")]
        input_feeding: bool,
    },
}

fn additive() -> ScoreConfig {
    ScoreConfig::Additive { d_attention: 256 }
}

fn general() -> ScoreConfig {
    ScoreConfig::General {}
}

fn yes() -> bool {
    true
}

/// A mechanism for a recurrent decoder.
#[derive(Module, Debug)]
pub enum Attention {
    /// Between decoder steps.
    Bahdanau(BahdanauAttention),
    /// After each decoder step.
    Luong(LuongAttention),
}

impl AttentionConfig {
    /// The mechanism of Bahdanau 2015: additive, over the whole source.
    pub fn bahdanau(d_attention: usize) -> Self {
        Self::Bahdanau { score: ScoreConfig::Additive { d_attention }, window: WindowConfig::Global {} }
    }

    /// The mechanism of Luong 2015 with the general score over the whole source and input feeding.
    pub fn luong() -> Self {
        Self::Luong { score: general(), window: WindowConfig::Global {}, input_feeding: yes() }
    }

    /// Makes the layer for decoder states of width `d_query`, encoder states of width `d_value` and a cell of `n_gates` gates.
    pub fn init(&self, d_query: usize, d_value: usize, n_gates: usize, init: &Init) -> Option<Attention> {
        let widths = [d_query, d_value];
        match self {
            Self::None {} => None,
            Self::Bahdanau { score, window } => {
                Some(Attention::Bahdanau(BahdanauAttention::new(score, window, widths, n_gates, init)))
            }
            Self::Luong { score, window, input_feeding } => {
                Some(Attention::Luong(LuongAttention::new(score, window, *input_feeding, widths, n_gates, init)))
            }
        }
    }

    /// The score and the window, where there is attention.
    pub fn alignment(&self) -> Option<(&ScoreConfig, &WindowConfig)> {
        match self {
            Self::None {} => None,
            Self::Bahdanau { score, window } | Self::Luong { score, window, .. } => Some((score, window)),
        }
    }
}

impl Attention {
    /// Attention inside a recurrence of width `d_query`: where the next step depends on it, and there is such a
    /// recurrence for its score and window.
    pub fn in_recurrence(&self, d_query: usize, memory: &AttentionMemory) -> Option<StepAttention> {
        match self {
            Self::Bahdanau(attention) => attention.in_recurrence(d_query, memory),
            Self::Luong(attention) => attention.in_recurrence(d_query, memory),
        }
    }

    /// Whether a step depends on what an earlier one attended to, or on its own attention.
    pub fn is_in_recurrence(&self) -> bool {
        match self {
            Self::Bahdanau(_) => true,
            Self::Luong(attention) => attention.feeds_input(),
        }
    }

    /// Does the source-side work that is the same at every step.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    pub fn prepare(&self, values: Tensor<3>, lengths: &[usize], pass: &Pass) -> AttentionMemory {
        match self {
            Self::Bahdanau(attention) => attention.alignment.prepare(values, lengths, pass),
            Self::Luong(attention) => attention.alignment.prepare(values, lengths, pass),
        }
    }
}
