//! A worked example of decoding, with the model's own numbers.
//!
//! [`explain`] decodes a sentence (or takes a given translation), encodes it again with somebody watching, and goes through
//! the steps one by one. What it saw is an [`Explanation`]: plain data that serialise to JSON and that the drawing code
//! ([`terminal`], [`html`]) renders without knowing any model.
//!
//! Layers, heads and steps count from 1, as in the formulas.

mod build;
mod encoder;
mod formulas;
pub mod html;
mod rows;
mod selection;
pub mod terminal;
mod vectors;

pub use build::{Question, explain, explain_trace};
pub use formulas::{Formula, Mechanism};
pub use selection::Selection;
pub use vectors::{Change, Neighbour, State, StateLayer, WordVector};

use serde::Serialize;

/// What stands before the first target token.
const START: &str = crate::data::tokenizer::SPECIALS[crate::data::tokenizer::BOS as usize];

/// Everything about one decoded sentence.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// What the model is, in words.
    pub model: String,
    /// How it computes a step.
    pub mechanism: Mechanism,
    /// The source as it was given.
    pub source_text: String,
    /// The target as a person would write it.
    pub target_text: String,
    /// Whether the target was given; else the model chose it.
    pub forced: bool,
    /// What the reader should know, such as which words the vocabulary lacks.
    pub notes: Vec<String>,
    /// The source tokens, the end symbol last.
    pub source: Vec<String>,
    /// The target tokens, the end symbol last if there is one.
    pub target: Vec<String>,
    /// The vector of every source token.
    pub source_words: Vec<WordVector>,
    /// The vector of every target token.
    pub target_words: Vec<WordVector>,
    /// What the encoder did.
    pub encoder: Encoder,
    /// What attention compares and averages, once for each layer and head.
    pub memories: Vec<AttentionMemory>,
    /// What the decoder did, step by step.
    pub steps: Vec<Step>,
}

/// What the encoder did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Encoder {
    /// The states of every layer.
    pub layers: Vec<StateLayer>,
    /// Self-attention: one row for each layer, head and token that asks.
    pub attention: Vec<AttentionRow>,
    /// The one vector that a model without attention keeps.
    pub context: Option<Vec<f32>>,
}

/// Keys and values of one head.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttentionMemory {
    /// Where: `attention`, `decoder.0.cross_attention`.
    pub name: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// What is compared with the query, one vector for each position.
    pub keys: Vec<Vec<f32>>,
    /// What is averaged, one vector for each position.
    pub values: Vec<Vec<f32>>,
}

/// One query of one head: whom it compares itself with, and what comes of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AttentionRow {
    /// Where: `attention`, `decoder.0.cross_attention`.
    pub name: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// The step of the decoder; in the encoder the position that asks.
    pub step: usize,
    /// The tokens that can be looked at.
    pub source: Vec<String>,
    /// The token that asks: in the decoder the one that is about to be written.
    pub target: String,
    /// What asks.
    pub query: Vec<f32>,
    /// One score for each token of `source`.
    pub scores: Vec<f32>,
    /// The weights: the softmax of the scores, or what the formula says.
    pub weights: Vec<f32>,
    /// The weighted sum of the values.
    pub context: Vec<f32>,
    /// Where a local window is centred, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center: Option<f32>,
    /// First and last position of the window, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<[usize; 2]>,
}

/// A word that may come next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    /// The token.
    pub token: String,
    /// Its id.
    pub id: u32,
    /// Its probability.
    pub probability: f32,
}

/// One step of the decoder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Step {
    /// Which one.
    pub step: usize,
    /// The token before.
    pub previous: String,
    /// The token that is written.
    pub chosen: Choice,
    /// The likeliest token.
    pub preferred: Choice,
    /// The likeliest five.
    pub top: Vec<Choice>,
    /// The recurrent state before the step.
    pub previous_state: Vec<f32>,
    /// The state after it; in a Transformer the last layer's output.
    pub state: Vec<f32>,
    /// What is compared with every word: the logits are its product with the output table.
    pub readout: Vec<f32>,
    /// The scores of all words.
    pub logits: Vec<f32>,
    /// Attention to the source.
    pub attention: Vec<AttentionRow>,
    /// Attention to the target so far.
    pub self_attention: Vec<AttentionRow>,
    /// Gradient times input of the written token's log-probability, for each source token.
    pub influence: Vec<f32>,
}

impl AttentionRow {
    /// How broadly the row looks, in nats: 0 at one token, `ln n` at `n` tokens alike.
    pub fn entropy(&self) -> f32 {
        self.weights.iter().filter(|weight| **weight > 0.0).map(|weight| -weight * weight.ln()).sum()
    }
}

impl Step {
    /// The mean weight of every source token over all layers and heads; empty without attention.
    pub fn mean_weights(&self) -> Vec<f32> {
        let Some(first) = self.attention.first() else { return Vec::new() };
        let n = self.attention.len() as f32;
        (0..first.weights.len()).map(|i| self.attention.iter().map(|row| row.weights[i]).sum::<f32>() / n).collect()
    }
}

impl Explanation {
    /// What one head compares and averages.
    pub fn memory(&self, row: &AttentionRow) -> Option<&AttentionMemory> {
        self.memories.iter().find(|memory| memory.name == row.name && memory.head == row.head)
    }

    /// How much each source token had to do with the whole target: the mean over the steps of its share in the absolute
    /// influence. The shares sum to one.
    pub fn shares(&self) -> Vec<f32> {
        let mut shares = vec![0.0; self.source.len()];
        for step in &self.steps {
            let sum: f32 = step.influence.iter().map(|value| value.abs()).sum();
            for (share, value) in shares.iter_mut().zip(&step.influence) {
                *share += value.abs() / sum.max(f32::MIN_POSITIVE) / self.steps.len() as f32;
            }
        }
        shares
    }
}
