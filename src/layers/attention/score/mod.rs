//! Scores: how well a source position answers a decoder state.
//!
//! One file for each. A score has two halves: [`Score::keys`] does what depends on the source alone, once for a sentence;
//! [`Score::forward`] compares one or more queries with those keys.
//!
//! | score | `e_ti` | widths | from |
//! | --- | --- | --- | --- |
//! | [`dot`] | `s_t . h_i` | equal | Luong 2015 |
//! | [`scaled_dot`] | `s_t . h_i / sqrt(d)` | equal | Vaswani 2017 |
//! | [`general`] | `s_t^T W h_i` | any | Luong 2015 |
//! | [`additive`] | `v^T tanh(W s_t + U h_i + b)` | any | Bahdanau 2015 |
//! | [`concat`](mod@concat) | `v^T tanh(W [s_t; h_i])` | any | Luong 2015 |
//! | [`cosine`] | `cos(s_t, h_i) / temperature` | equal | Graves 2014 |
//! | [`location`] | `(W s_t)_i` | any; a longest source | Luong 2015 |

pub mod additive;
pub mod concat;
pub mod cosine;
pub mod dot;
pub mod general;
pub mod location;
pub mod scaled_dot;

pub use additive::Additive;
pub use concat::Concat;
pub use cosine::Cosine;
pub use dot::Dot;
pub use general::General;
pub use location::Location;
pub use scaled_dot::ScaledDot;

use crate::kernels::alignment::AlignmentScore;
use crate::layers::{Init, Pass};
pub(in crate::layers) use crate::ops::alignment_network;
use crate::ops::{self, Weight};
use burn::module::Module;
use burn::tensor::Tensor;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a score.
// Variants without fields have braces all the same: serde lets a unit variant pass with any field beside its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScoreConfig {
    /// `s . h`; needs equal widths.
    Dot {},
    /// `s . h / sqrt(d)`; needs equal widths.
    ScaledDot {},
    /// `s^T W h`.
    General {},
    /// `v^T tanh(W s + U h + b)`.
    Additive {
        /// Width of the alignment network.
        d_attention: usize,
    },
    /// `v^T tanh(W [s; h])`.
    Concat {
        /// Width of the alignment network.
        d_attention: usize,
    },
    /// The cosine of the angle between `s` and `h`, over a learned temperature; needs equal widths.
    Cosine {},
    /// `(W s)_i`: the state alone says where to look.
    Location {
        /// Longest source, in tokens with the end symbol; longer input is refused.
        max_source_len: usize,
    },
}

/// A score.
// One exists at a time; boxing would only put a pointer before every call.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub enum Score {
    /// [`ScoreConfig::Dot`].
    Dot(Dot),
    /// [`ScoreConfig::ScaledDot`].
    ScaledDot(ScaledDot),
    /// [`ScoreConfig::General`].
    General(General),
    /// [`ScoreConfig::Additive`].
    Additive(Additive),
    /// [`ScoreConfig::Concat`].
    Concat(Concat),
    /// [`ScoreConfig::Cosine`].
    Cosine(Cosine),
    /// [`ScoreConfig::Location`].
    Location(Location),
}

impl ScoreConfig {
    /// Makes the layer for decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn init(&self, d_query: usize, d_value: usize, init: &Init) -> Score {
        match self {
            Self::Dot {} => Score::Dot(Dot),
            Self::ScaledDot {} => Score::ScaledDot(ScaledDot),
            Self::General {} => Score::General(General::new(d_query, d_value, init)),
            Self::Additive { d_attention } => Score::Additive(Additive::new(d_query, d_value, *d_attention, init)),
            Self::Concat { d_attention } => Score::Concat(Concat::new(d_query, d_value, *d_attention, init)),
            Self::Cosine {} => Score::Cosine(Cosine::new(init)),
            Self::Location { max_source_len } => Score::Location(Location::new(d_query, *max_source_len, init)),
        }
    }

    /// Whether the score compares the two states element by element.
    pub fn needs_equal_widths(&self) -> bool {
        matches!(self, Self::Dot {} | Self::ScaledDot {} | Self::Cosine {})
    }
}

impl Score {
    /// The source's side of the score, the same at every step.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    /// - output: `[batch, source_len, d_key]`, the width that the score compares
    pub fn keys(&self, values: Tensor<3>, pass: &Pass) -> Tensor<3> {
        match self {
            Self::Dot(_) | Self::ScaledDot(_) | Self::Location(_) => values,
            Self::General(score) => score.keys(values, pass),
            Self::Additive(score) => score.keys(values, pass),
            Self::Concat(score) => score.keys(values, pass),
            Self::Cosine(score) => score.keys(values),
        }
    }

    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - keys: `[batch, source_len, d_key]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        match self {
            Self::Dot(score) => score.forward(query, keys),
            Self::ScaledDot(score) => score.forward(query, keys),
            Self::General(score) => score.forward(query, keys),
            Self::Additive(score) => score.forward(query, keys),
            Self::Concat(score) => score.forward(query, keys),
            Self::Cosine(score) => score.forward(query, keys),
            Self::Location(score) => score.forward(query, keys),
        }
    }
}

impl Score {
    /// The query's side of the score, as [`ops::contexts`] compares it with the keys, and the last layer of the network that
    /// compares, if it is one. None for scores that it does not know.
    ///
    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - output: `[batch, query_len, d_key]`
    #[allow(clippy::type_complexity)]
    pub(super) fn projected_query(
        &self,
        query: Tensor<3>,
        pass: &Pass,
    ) -> Option<(AlignmentScore, Tensor<3>, Option<Tensor<2>>)> {
        let (score, network) = self.comparison(query.dims()[2])?;
        Some(match (self, network) {
            (Self::Additive(additive), Some((_, vector))) => (score, additive.query(query, pass), Some(vector)),
            (_, Some((matrix, vector))) => {
                (score, ops::linear(query, Weight::plain(matrix), None, pass.body()), Some(vector))
            }
            (_, None) => (score, query, None),
        })
    }

    /// How the score compares, and the network that does, if it is one. None for scores that [`ops`] does not know.
    pub(super) fn comparison(&self, d_query: usize) -> Option<(AlignmentScore, Option<(Tensor<2>, Tensor<2>)>)> {
        match self {
            Self::Dot(_) | Self::General(_) => Some((AlignmentScore::Dot { scale: 1.0 }, None)),
            Self::ScaledDot(_) => Some((AlignmentScore::Dot { scale: (d_query as f32).sqrt().recip() }, None)),
            Self::Additive(score) => Some((AlignmentScore::Network, Some(score.network()))),
            Self::Concat(score) => Some((AlignmentScore::Network, Some(score.network()))),
            Self::Cosine(_) | Self::Location(_) => None,
        }
    }
}
