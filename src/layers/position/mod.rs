//! Positions: how a Transformer, which sees a set, learns the order of a sequence.
//!
//! | scheme | acts on | any length | from |
//! | --- | --- | --- | --- |
//! | [`sinusoidal`] | embeddings | yes | Vaswani 2017 |
//! | [`learned`] | embeddings | no | Gehring 2017 |
//! | [`rotary`] | queries and keys | yes | Su 2021 |
//! | [`alibi`] | scores | yes | Press 2022 |
//! | [`hard_alibi`] | scores | yes | Jelassi 2024 |
//! | [`t5`] | scores | yes | Raffel 2020 |
//! | [`shaw`] | scores and values | yes | Shaw 2018 |
//! | [`none`] | nothing | yes | - |
//!
//! Encoder and decoder have a scheme each. None of them acts in cross-attention: a distance between a source and a target
//! position means nothing.

pub mod alibi;
pub mod hard_alibi;
pub mod learned;
pub mod none;
mod places;
pub mod rotary;
pub mod shaw;
pub mod sinusoidal;
pub mod t5;
mod table;

pub use alibi::Alibi;
pub use hard_alibi::HardAlibi;
pub use learned::LearnedPositions;
pub use none::NoPositions;
pub use places::Places;
pub use rotary::{Rotary, Rotation};
pub use shaw::{Shaw, ShawTables};
pub use sinusoidal::{Sinusoids, sinusoids};
pub use t5::T5Bias;

use table::PositionTable;

use super::Init;
use crate::error::{Error, Result};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a position scheme.
// Variants without fields have braces all the same: serde lets a unit variant pass with any field beside its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PositionConfig {
    /// Sines and cosines of the position, added to the embeddings; any length.
    Sinusoidal {},
    /// A learned vector for each position, added to the embeddings.
    Learned {
        /// Longest sequence, in tokens with the end symbol; longer input is refused.
        max_len: usize,
    },
    /// Queries and keys turned by an angle that grows with the position (RoPE); any length. The width of a head must be
    /// even.
    Rotary {
        /// How slowly the slowest pair turns: about this many tokens a radian.
        #[serde(default = "rotary::default_base")]
        base: f64,
    },
    /// Scores lowered in proportion to the distance, in each head by a slope of its own (ALiBi); any length.
    Alibi {},
    /// Some heads see the last few tokens alone, one head one, another two, and so on; the others see everything and know no
    /// positions; any length. For copying beyond the trained length.
    HardAlibi {
        /// Heads with a window; without it, half of the heads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        n_windows: Option<usize>,
    },
    /// A learned number for each head and bucket of distances, added to the scores (T5); any length.
    T5 {
        /// Buckets of distances; even. Half of them hold one distance each, the others ever more.
        #[serde(default = "t5::default_n_buckets")]
        n_buckets: usize,
        /// From this distance on, in tokens, all share a bucket.
        #[serde(default = "t5::default_max_distance")]
        max_distance: usize,
    },
    /// A learned key and a learned value for each distance, in every layer (Shaw); any length.
    Shaw {
        /// Distances beyond this, in tokens, count as this.
        #[serde(default = "shaw::default_max_distance")]
        max_distance: usize,
    },
    /// No positions at all.
    None {},
}

/// Where a scheme is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Every position sees every other.
    Encoder,
    /// Every position sees itself and the past.
    Decoder,
}

/// A position scheme of one stack of layers.
#[derive(Module, Debug)]
pub enum Position {
    /// Vaswani 2017.
    Sinusoidal(Sinusoids),
    /// Gehring 2017.
    Learned(LearnedPositions),
    /// Su 2021.
    Rotary(Rotary),
    /// Press 2022.
    Alibi(Alibi),
    /// Jelassi 2024.
    HardAlibi(HardAlibi),
    /// Raffel 2020.
    T5(T5Bias),
    /// Shaw 2018.
    Shaw(Shaw),
    /// No positions.
    None(NoPositions),
}

/// What a scheme brings into self-attention: made once for a pass, used by every layer.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, Default)]
pub enum AttentionPositions {
    /// Nothing.
    #[default]
    None,
    /// Queries and keys are turned.
    Rotation(Rotation),
    /// Added to the scores, in either form that [`attention`](crate::ops::attention()) takes.
    Bias(Tensor<4>),
    /// The row of each layer's [`ShawTables`] for every pair: `[query_len * key_len]`.
    Distances(Tensor<1, Int>),
}

impl AttentionPositions {
    /// What is added to the scores.
    pub fn bias(&self) -> Option<Tensor<4>> {
        match self {
            Self::Bias(bias) => Some(bias.clone()),
            Self::None | Self::Rotation(_) | Self::Distances(_) => None,
        }
    }
}

impl PositionConfig {
    /// Makes the layer for one side of a model with vectors of width `d_model` in `n_heads` heads.
    pub fn init(&self, d_model: usize, n_heads: usize, side: Side, init: &Init) -> Position {
        match *self {
            Self::Sinusoidal {} => Position::Sinusoidal(Sinusoids::default()),
            Self::Learned { max_len } => Position::Learned(LearnedPositions::new(max_len, d_model, init)),
            Self::Rotary { base } => Position::Rotary(Rotary::new(d_model / n_heads, base)),
            Self::Alibi {} => Position::Alibi(Alibi::new(n_heads)),
            Self::HardAlibi { n_windows } => {
                Position::HardAlibi(HardAlibi::new(n_heads, n_windows.unwrap_or(n_heads / 2)))
            }
            Self::T5 { n_buckets, max_distance } => {
                let deviation = (d_model as f64).powf(-0.5);
                Position::T5(T5Bias::new(t5::Buckets { n_buckets, max_distance, side }, n_heads, deviation, init))
            }
            Self::Shaw { max_distance } => Position::Shaw(Shaw::new(max_distance)),
            Self::None {} => Position::None(NoPositions),
        }
    }

    /// The tables of one layer, for the one scheme that has some in every layer.
    pub fn init_layer(&self, d_head: usize, init: &Init) -> Option<ShawTables> {
        match self {
            Self::Shaw { max_distance } => Some(ShawTables::new(*max_distance, d_head, init)),
            _ => None,
        }
    }

    /// Whether encoder and decoder cannot share the layer, even if their schemes are the same.
    pub fn depends_on_side(&self) -> bool {
        matches!(self, Self::T5 { .. })
    }

    /// Whether attention with it has a number for each query and key, besides their scores. Biases have one for each distance, unless
    /// positions are drawn.
    pub fn has_pairs(&self, are_drawn: bool) -> bool {
        match self {
            Self::Shaw { .. } => true,
            Self::T5 { .. } | Self::Alibi { .. } | Self::HardAlibi { .. } => are_drawn,
            Self::Sinusoidal {} | Self::Learned { .. } | Self::Rotary { .. } | Self::None {} => false,
        }
    }

    /// Refuses a scheme that acts in attention where there is none; `who` has no attention.
    pub fn check_attention(&self, key: &str, has_attention: bool, who: &str) -> Result<()> {
        if has_attention || matches!(self, Self::Sinusoidal {} | Self::Learned { .. } | Self::None {}) {
            return Ok(());
        }
        let name = self.name();
        let message = format!(
            "\"{name}\" acts in attention, and by model.mixer no layer of {who} has any; recurrences know the order, take \
             {{ kind = \"none\" }}"
        );
        Err(Error::config(key, message))
    }

    /// Checks a range that positions are drawn from in training; `own` is where the scheme stands in the config.
    fn validate_range(&self, own: &str, range: usize) -> Result<()> {
        let key = "model.randomized_positions";
        match self {
            Self::None {} | Self::HardAlibi { .. } => {
                let message =
                    format!("draws positions, and {own} knows none; leave it out, or choose another scheme there");
                Err(Error::config(key, message))
            }
            Self::Learned { max_len } if *max_len < range => {
                let message = format!("is {range}, more than {own}.max_len = {max_len}; raise that, or lower it");
                Err(Error::config(key, message))
            }
            _ if range < 2 => Err(Error::config(key, format!("must be at least 2, got {range}"))),
            _ => Ok(()),
        }
    }

    /// Its name in configs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sinusoidal {} => "sinusoidal",
            Self::Learned { .. } => "learned",
            Self::Rotary { .. } => "rotary",
            Self::Alibi {} => "alibi",
            Self::HardAlibi { .. } => "hard-alibi",
            Self::T5 { .. } => "t5",
            Self::Shaw { .. } => "shaw",
            Self::None {} => "none",
        }
    }

    /// The longest sequence that the scheme can number, in tokens with the end symbol.
    pub fn max_len(&self) -> Option<usize> {
        match self {
            Self::Learned { max_len } => Some(*max_len),
            _ => None,
        }
    }

    /// Checks the values, and those of a range that positions are drawn from in training, if there is one; `key` is where the
    /// scheme stands in the config.
    pub fn validate(&self, key: &str, [d_model, n_heads]: [usize; 2], range: Option<usize>) -> Result<()> {
        let fault = |name: &str, message: String| Err(Error::config(format!("{key}.{name}"), message));
        match *self {
            Self::Learned { max_len: 0 } => fault("max_len", "must be at least 1, got 0".into()),
            Self::Rotary { base } if !(base > 1.0 && base.is_finite()) => {
                fault("base", format!("must be above 1 and finite, got {base}"))
            }
            Self::Rotary { .. } if !(d_model / n_heads).is_multiple_of(2) => {
                let d_head = d_model / n_heads;
                let message = format!(
                    "\"rotary\" turns pairs of numbers, so that the width of a head, model.d_model / model.n_heads, must \
                     be even, got {d_model} / {n_heads} = {d_head}"
                );
                Err(Error::config(key, message))
            }
            Self::HardAlibi { n_windows: Some(n) } if n == 0 || n > n_heads => {
                fault("n_windows", format!("must lie in 1..={n_heads}, the heads, got {n}"))
            }
            Self::HardAlibi { n_windows: None } if n_heads < 2 => {
                let message =
                    "\"hard-alibi\" has windows in half of the heads, so that it needs two, got model.n_heads = 1";
                Err(Error::config(key, message))
            }
            Self::T5 { n_buckets, .. } if n_buckets < 4 || !n_buckets.is_multiple_of(2) => {
                fault("n_buckets", format!("must be even and at least 4, got {n_buckets}"))
            }
            Self::T5 { n_buckets, max_distance } if max_distance <= n_buckets / 2 => {
                fault("max_distance", format!("must be above n_buckets / 2, got {max_distance} and {n_buckets} / 2"))
            }
            Self::Shaw { max_distance: 0 } => fault("max_distance", "must be at least 1, got 0".into()),
            _ => range.map_or(Ok(()), |range| self.validate_range(key, range)),
        }
    }
}

impl Position {
    /// Adds the positions `offset, offset + 1, ...` to embeddings, if this scheme does.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a learned table is shorter than `offset + len`; callers check lengths first.
    pub fn embed(&self, input: Tensor<3>, offset: usize) -> Tensor<3> {
        let len = input.dims()[1];
        self.embed_at(input, &Places::Following { offset, len })
    }

    /// Adds positions to embeddings, if this scheme does.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a position lies beyond a learned table; callers check lengths first.
    pub fn embed_at(&self, input: Tensor<3>, places: &Places) -> Tensor<3> {
        match self {
            Self::Sinusoidal(sinusoids) => sinusoids.forward(input, places),
            Self::Learned(learned) => learned.forward(input, places),
            Self::Rotary(_) | Self::Alibi(_) | Self::HardAlibi(_) | Self::T5(_) | Self::Shaw(_) | Self::None(_) => {
                input
            }
        }
    }

    /// Adds to each row the position `places` has for it, if this scheme adds positions; none is above `last`.
    ///
    /// # Shapes
    /// - input, output: `[rows, 1, d_model]`
    /// - places: `[rows]`
    pub fn embed_each(&self, input: Tensor<3>, places: Tensor<1, Int>, last: usize) -> Tensor<3> {
        match self {
            Self::Sinusoidal(_) | Self::Learned(_) => {
                let d_model = input.dims()[2];
                let table = self.embed(Tensor::zeros([1, last + 1, d_model], &input.device()), 0);
                input + table.squeeze_dim::<2>(0).select(0, places).unsqueeze_dim(1)
            }
            Self::Rotary(_) | Self::Alibi(_) | Self::HardAlibi(_) | Self::T5(_) | Self::Shaw(_) | Self::None(_) => {
                input
            }
        }
    }

    /// What self-attention needs when the queries stand at `offset, ..., offset + query_len - 1` and the keys at
    /// `0, ..., offset + query_len - 1`, the earlier ones in the cache.
    pub fn in_attention(&self, offset: usize, query_len: usize, device: &Device) -> AttentionPositions {
        self.in_attention_at(&Places::Following { offset, len: query_len }, device)
    }

    /// What self-attention needs for queries at these positions.
    pub fn in_attention_at(&self, places: &Places, device: &Device) -> AttentionPositions {
        match self {
            Self::Rotary(rotary) => AttentionPositions::Rotation(rotary.rotation(places, device)),
            Self::Alibi(alibi) => AttentionPositions::Bias(alibi.bias(places, device)),
            Self::HardAlibi(alibi) => AttentionPositions::Bias(alibi.bias(places, device)),
            Self::T5(t5) => AttentionPositions::Bias(t5.bias(places)),
            Self::Shaw(shaw) => AttentionPositions::Distances(shaw.distances(places, device)),
            Self::Sinusoidal(_) | Self::Learned(_) | Self::None(_) => AttentionPositions::None,
        }
    }
}
