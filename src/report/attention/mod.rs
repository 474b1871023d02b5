//! Attention maps of a sentence pair, or of a text, whatever model made them.
//!
//! [`collect`](collect::collect) runs any [`Seq2Seq`](crate::models::Seq2Seq) model and gives [`SentenceMaps`]: the tokens
//! and one [`AttentionMap`] for each layer and head, or a single one for a recurrent model. Everything after works on these
//! plain data: numbers ([`measure`]), choices and averages ([`select`]), files ([`files`]), pages ([`html`]). What recurrences
//! keep ([`memory`]) has maps of the same form.

pub mod ablation;
pub mod collect;
pub mod files;
pub mod html;
pub mod measure;
pub mod memory;
pub mod select;

use crate::data::tokenizer::{EOS, SPECIALS};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Who looks at whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The target at the source.
    Cross,
    /// The source at itself.
    Encoder,
    /// The target at what it has written so far.
    Decoder,
    /// What the recurrences of a decoder, or of a model without an encoder, keep of each token: see [`memory`].
    Memory,
    /// The same of an encoder that reads from the first token on.
    EncoderMemory,
    /// The same of an encoder that reads from the last token on.
    EncoderMemoryBackward,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Cross, Self::Encoder, Self::Decoder, Self::Memory, Self::EncoderMemory, Self::EncoderMemoryBackward];

    /// The name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cross => "cross",
            Self::Encoder => "encoder",
            Self::Decoder => "decoder",
            Self::Memory => "memory",
            Self::EncoderMemory => "encoder-memory",
            Self::EncoderMemoryBackward => "encoder-memory-backward",
        }
    }

    /// Whether its maps are of what a recurrence keeps, not of attention.
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Memory | Self::EncoderMemory | Self::EncoderMemoryBackward)
    }

    /// The columns of row `row` that are not zero by construction, in a map of `n_columns`. Of an encoder that sees no
    /// future there are fewer: [`AttentionMap::seen`] knows.
    pub fn seen(self, row: usize, n_columns: usize) -> Range<usize> {
        match self {
            Self::Cross | Self::Encoder => 0..n_columns,
            Self::Decoder | Self::Memory | Self::EncoderMemory => 0..row + 1,
            Self::EncoderMemoryBackward => row..n_columns,
        }
    }
}

/// The weights of one head, or of several averaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttentionMap {
    /// Who looks at whom.
    pub part: Part,
    /// The layer, counted from 1; none for a recurrent model's attention, and for an average of layers.
    pub layer: Option<usize>,
    /// The head, counted from 1; none where there is but one, and for an average of heads.
    pub head: Option<usize>,
    /// Positions that look.
    pub n_rows: usize,
    /// Positions that are looked at.
    pub n_columns: usize,
    /// Row-major: `weights[row * n_columns + column]`. A row sums to one, or to less where a window cuts it or where
    /// one attention spans source and target; what a recurrence keeps are shares, each between 0 and 1.
    pub weights: Vec<f32>,
    /// Whether this is of an encoder in which a position sees itself and those before it alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_causal: bool,
}

impl AttentionMap {
    /// The columns of a row that are not zero by construction.
    pub fn seen(&self, row: usize) -> Range<usize> {
        if self.is_causal { 0..row + 1 } else { self.part.seen(row, self.n_columns) }
    }

    /// The weights of one position that looks.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.weights[row * self.n_columns..][..self.n_columns]
    }

    /// `layer 2, head 1`, as far as it has them.
    pub fn label(&self) -> String {
        match (self.layer, self.head) {
            (Some(layer), Some(head)) => format!("layer {layer}, head {head}"),
            (Some(layer), None) => format!("layer {layer}"),
            (None, Some(head)) => format!("head {head}"),
            (None, None) => self.part.name().to_string(),
        }
    }

    /// `cross.2.1`, the name in files.
    pub fn name(&self) -> String {
        let mut name = self.part.name().to_string();
        for number in [self.layer, self.head].into_iter().flatten() {
            name += &format!(".{number}");
        }
        name
    }
}

/// Where a map stands: its part, its layer and its head.
type Place = (Part, Option<usize>, Option<usize>);

/// The attention of a model while it wrote one target for one source, or read a text that has no source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentenceMaps {
    /// The number of the sentence in its file, counted from 1.
    pub number: usize,
    /// The source as it was given; empty where there is none.
    pub source_text: String,
    /// The target, the model's own or a given one; or the text.
    pub target_text: String,
    /// The source's tokens, the end symbol last; of a series, its steps; none where there is no source.
    pub source: Vec<String>,
    /// What the decoder is given, one token for each of the target: the start symbol, or the first token of a text, then every
    /// token of the target but the last.
    pub input: Vec<String>,
    /// The target's tokens, the end symbol last unless the target was cut; of a text what is predicted, and of a series none.
    pub target: Vec<String>,
    /// The model's probability of each target token after those before it.
    pub probabilities: Vec<f32>,
    /// Every map, ordered by part, layer and head.
    pub maps: Vec<AttentionMap>,
}

impl SentenceMaps {
    /// Whether this is a text that has no source.
    pub fn is_text(&self) -> bool {
        self.source.is_empty()
    }

    /// Whether the source ends with its end symbol, as that of a series does not.
    pub fn has_end(&self) -> bool {
        self.source.last().is_some_and(|token| token == SPECIALS[EOS as usize])
    }

    /// What the rows of a part stand for: in cross-attention the word that is being written, in the decoder's
    /// self-attention the word that was put in, which is the one before it.
    pub fn rows(&self, part: Part) -> Vec<&str> {
        match part {
            Part::Cross => self.target.iter().map(String::as_str).collect(),
            part => self.columns(part),
        }
    }

    /// What the columns of a part stand for.
    pub fn columns(&self, part: Part) -> Vec<&str> {
        match part {
            Part::Cross | Part::Encoder | Part::EncoderMemory | Part::EncoderMemoryBackward => {
                self.source.iter().map(String::as_str).collect()
            }
            // Where source and target are one sequence, a recurrence reads both.
            Part::Memory if self.part(part).any(|map| map.n_columns > self.input.len()) => {
                self.source.iter().chain(&self.input).map(String::as_str).collect()
            }
            Part::Decoder | Part::Memory => self.input.iter().map(String::as_str).collect(),
        }
    }

    /// The maps of one part.
    pub fn part(&self, part: Part) -> impl Iterator<Item = &AttentionMap> {
        self.maps.iter().filter(move |map| map.part == part)
    }

    /// The mean of all maps of a part, if it has any: what the model as a whole looks at.
    pub fn average(&self, part: Part) -> Option<AttentionMap> {
        select::average(&self.part(part).collect::<Vec<_>>())
    }
}
