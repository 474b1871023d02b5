//! `mixer` of `[model]`: what lets the positions of one sequence exchange something.

use crate::error::{Error, Result};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// What mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MixerKind {
    /// Multi-head self-attention (Vaswani 2017).
    Attention,
    /// `h' = tanh(W x + U h + b)` (Elman 1990).
    Vanilla,
    /// Gated recurrent unit (Cho et al. 2014).
    Gru,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997).
    Lstm,
    /// A GRU whose gate does not see the state (Feng et al. 2024).
    MinGru,
    /// An LSTM whose gates do not see the state (Feng et al. 2024).
    MinLstm,
    /// The simpler simple recurrent unit (Kim et al. 2019).
    Ssru,
    /// The real-gated linear recurrent unit (De et al. 2024).
    RgLru,
    /// Linear attention: a matrix that every position adds to (Katharopoulos et al. 2020).
    Linear,
    /// The same with a matrix that fades, each row at a rate of its own (Yang et al. 2023).
    GatedLinear,
    /// The delta rule: what a key had is replaced, not added to (Schlag et al. 2021; Yang et al. 2024).
    Delta,
    /// The delta rule in a matrix that fades (Yang et al. 2025).
    GatedDelta,
}

impl MixerKind {
    /// Every mixer whose state has a fixed size.
    pub const RECURRENT: [Self; 11] = [
        Self::Vanilla,
        Self::Gru,
        Self::Lstm,
        Self::MinGru,
        Self::MinLstm,
        Self::Ssru,
        Self::RgLru,
        Self::Linear,
        Self::GatedLinear,
        Self::Delta,
        Self::GatedDelta,
    ];

    /// Whether what it carries on is one vector.
    pub fn has_vector(self) -> bool {
        !matches!(self, Self::Attention | Self::Linear | Self::GatedLinear | Self::Delta | Self::GatedDelta)
    }

    /// As a config has it: `min-gru`.
    pub fn name(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// One mixer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixerConfig {
    /// What mixes.
    pub kind: MixerKind,
    /// Width, in tokens, of a causal convolution before the mixer, channel by channel; without it none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convolution: Option<usize>,
    /// Whether an encoder's recurrence reads from both ends, without it yes. A decoder reads forwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bidirectional: Option<bool>,
    /// Width of a recurrence's state in widths of the model, without it 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expansion: Option<usize>,
    /// Whether a delta rule may turn what it replaces around, which lets it count modulo a number (Grazzi et al. 2025);
    /// without it no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negative_eigenvalues: Option<bool>,
}

impl MixerConfig {
    /// A mixer of that kind, with what it has when nothing is said.
    pub fn new(kind: MixerKind) -> Self {
        Self { kind, convolution: None, bidirectional: None, expansion: None, negative_eigenvalues: None }
    }

    /// Whether this is attention.
    pub fn is_attention(&self) -> bool {
        self.kind == MixerKind::Attention
    }

    /// The directions in which an encoder reads.
    pub fn n_directions(&self) -> usize {
        if self.is_attention() || self.bidirectional == Some(false) { 1 } else { 2 }
    }

    /// Width of the state in widths of the model.
    pub fn expansion(&self) -> usize {
        self.expansion.unwrap_or(1)
    }

    fn validate(&self, key: &str, d_model: usize, n_heads: usize) -> Result<()> {
        use MixerKind::{Attention, Delta, GatedDelta, GatedLinear, Linear};
        let fault = |name: &str, message: &str| Err(Error::config(format!("{key}.{name}"), message.to_string()));
        let has_matrix = matches!(self.kind, Linear | GatedLinear | Delta | GatedDelta);
        if self.convolution == Some(0) {
            return fault("convolution", "must be at least 1, got 0; leave it out for none");
        }
        if self.kind == Attention && self.bidirectional.is_some() {
            return fault("bidirectional", "is for recurrences: attention of an encoder sees every position");
        }
        if (self.kind == Attention || has_matrix) && self.expansion.is_some() {
            return fault("expansion", "is for recurrences whose state is a vector; leave it out");
        }
        if self.expansion == Some(0) {
            return fault("expansion", "must be at least 1, got 0");
        }
        if self.negative_eigenvalues.is_some() && !matches!(self.kind, Delta | GatedDelta) {
            return fault("negative_eigenvalues", "is for \"delta\" and \"gated-delta\"; leave it out");
        }
        if has_matrix && !d_model.is_multiple_of(n_heads) {
            return fault("kind", "needs model.n_heads that divide model.d_model");
        }
        Ok(())
    }
}

/// One mixer for all layers of a side, or a list that they take in turn.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Mixers {
    /// The same in every layer.
    One(MixerConfig),
    /// In turn, from the first layer on.
    InTurn(Vec<MixerConfig>),
}

impl Default for Mixers {
    fn default() -> Self {
        Self::One(MixerConfig::new(MixerKind::Attention))
    }
}

impl From<MixerKind> for Mixers {
    fn from(kind: MixerKind) -> Self {
        Self::One(MixerConfig::new(kind))
    }
}

impl Mixers {
    /// Checks the mixers of a model that is one stack of layers.
    ///
    /// # Errors
    /// Names the key and the rule.
    pub fn validate_stack(
        &self,
        [d_model, n_heads, n_layers]: [usize; 3],
        share_layers: bool,
        attention_dropout_rate: f64,
    ) -> Result<()> {
        let n_mixers = self.all().len();
        if share_layers && n_layers <= n_mixers {
            let message = format!(
                "shares nothing: one layer for each mixer, of which there are {n_mixers}, makes model.n_layers = {n_layers}; raise \
                 it or leave this out"
            );
            return Err(Error::config("model.share_layers", message));
        }
        self.validate("model.mixer", d_model, n_heads)?;
        if attention_dropout_rate > 0.0 && !self.has_attention(n_layers) {
            let message = "drops weights of attention, and by model.mixer no layer has any; leave it out";
            return Err(Error::config("model.attention_dropout_rate", message));
        }
        Ok(())
    }

    /// Refuses a mixer that says in which directions it reads; `why` is the reason.
    ///
    /// # Errors
    /// Names the first such mixer.
    pub fn refuse_directions(&self, why: &str) -> Result<()> {
        let Some(mixer) = self.all().iter().position(|mixer| mixer.bidirectional.is_some()) else { return Ok(()) };
        Err(Error::config(format!("{}.bidirectional", self.key("model.mixer", mixer)), why))
    }

    /// The mixers in the order in which layers take them.
    pub fn all(&self) -> &[MixerConfig] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::InTurn(list) => list,
        }
    }

    /// That of a layer, counted from 0.
    pub fn of_layer(&self, layer: usize) -> &MixerConfig {
        let all = self.all();
        &all[layer % all.len()]
    }

    /// Those that `n_layers` take: a list may have more.
    pub fn in_layers(&self, n_layers: usize) -> impl Iterator<Item = &MixerConfig> {
        (0..n_layers).map(|layer| self.of_layer(layer))
    }

    /// The mixers of the layers that are made for `n_layers`: one for each, or each once where layers are shared.
    pub fn made(&self, n_layers: usize, share_layers: bool) -> Vec<MixerConfig> {
        let n = if share_layers { n_layers.min(self.all().len()) } else { n_layers };
        (0..n).map(|layer| *self.of_layer(layer)).collect()
    }

    /// The kinds, in turn, as a config has them: `min-gru, attention`.
    pub fn names(&self) -> String {
        self.all().iter().map(|mixer| mixer.kind.name()).collect::<Vec<_>>().join(", ")
    }

    /// Whether one of the first `n_layers` layers mixes by attention.
    pub fn has_attention(&self, n_layers: usize) -> bool {
        self.in_layers(n_layers).any(MixerConfig::is_attention)
    }

    /// Where the mixer `i` stands in the config if they all stand at `key`.
    pub fn key(&self, key: &str, i: usize) -> String {
        match self {
            Self::One(_) => key.to_string(),
            Self::InTurn(_) => format!("{key}[{i}]"),
        }
    }

    /// Checks the values; `key` is where the mixers stand in the config.
    pub fn validate(&self, key: &str, d_model: usize, n_heads: usize) -> Result<()> {
        if self.all().is_empty() {
            return Err(Error::config(key, "is an empty list; name a mixer, as in { kind = \"attention\" }"));
        }
        for (i, mixer) in self.all().iter().enumerate() {
            mixer.validate(&self.key(key, i), d_model, n_heads)?;
        }
        Ok(())
    }
}

// Not derived: serde's own error for what fits neither form names no key.
impl<'de> Deserialize<'de> for Mixers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrList;
        impl<'de> Visitor<'de> for OneOrList {
            type Value = Mixers;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a table with a `kind`, or a list of such tables")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mixers, A::Error> {
                MixerConfig::deserialize(MapAccessDeserializer::new(map)).map(Mixers::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Mixers, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Mixers::InTurn)
            }
        }
        deserializer.deserialize_any(OneOrList)
    }
}

/// What one side of a model has for itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SideConfig {
    /// The mixer of this side's layers, or a list that they take in turn; without it, `model.mixer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixer: Option<Mixers>,
}

impl SideConfig {
    /// Whether it has nothing for itself.
    pub fn is_empty(&self) -> bool {
        self.mixer.is_none()
    }
}
