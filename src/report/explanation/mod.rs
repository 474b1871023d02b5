//! A worked example of decoding, with the model's own numbers.
//!
//! [`explain`] decodes a sentence (or takes a given translation), encodes it once more with a trace, and goes through the
//! steps one by one; [`explain_text`] does so with a language model that goes on with a text. The result is an [`Explanation`]: plain data that serialise to JSON and that the drawing code
//! ([`terminal`], [`html`]) renders without knowing any model. [`Detail`] says how much of it is computed.
//!
//! Layers, heads and steps count from 1, as in the formulas.

mod build;
pub mod by_hand;
mod detail;
mod encoder;
mod formulas;
pub mod html;
mod notes;
mod recurrences;
mod rows;
mod selection;
pub mod terminal;
mod text;
mod vectors;

pub use build::{Given, Question, explain, explain_trace};
pub use detail::{Detail, Stage};
pub use formulas::{Formula, Mechanism, Part};
pub use notes::{note_of_unknown, notes, unknown_words};
pub use recurrences::RecurrenceStep;
pub use selection::Selection;
pub use text::{TextQuestion, explain_text};
pub use vectors::{Change, Neighbour, State, StateLayer, WordVector};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// Influences, in nats and all together, below which a step is said to have none: they are rounding, and shares of them would
/// be shares of nothing.
const LEAST_INFLUENCE: f32 = 5e-4;

/// Everything about one decoded sentence.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Explanation {
    /// What the model is, in words.
    pub model: String,
    /// How it computes a step.
    pub mechanism: Mechanism,
    /// The source as it was given; for a language model the beginning of the text.
    pub source_text: String,
    /// The target as a person would write it.
    pub target_text: String,
    /// Whether the target was given; else the model chose it.
    pub forced: bool,
    /// What the reader should know, such as which words the vocabulary lacks.
    pub notes: Vec<String>,
    /// The source tokens, the end symbol last; for a language model the tokens of the beginning.
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
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Encoder {
    /// The states of every layer.
    pub layers: Vec<StateLayer>,
    /// Self-attention: one row for each layer, head and token.
    pub attention: Vec<AttentionRow>,
    /// The one vector that a model without attention keeps.
    pub context: Option<Vec<f32>>,
}

/// Keys and values of one head.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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

/// Names of tokens, which the rows of a step share.
pub type Tokens = Arc<[String]>;

fn tokens<S: Serializer>(tokens: &Tokens, serializer: S) -> Result<S::Ok, S::Error> {
    tokens.as_ref().serialize(serializer)
}

/// One query of one head: its scores, its weights and its context.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct AttentionRow {
    /// Where: `attention`, `decoder.0.cross_attention`.
    pub name: String,
    /// The layer.
    pub layer: usize,
    /// The head.
    pub head: usize,
    /// The step of the decoder; in the encoder the position of the query.
    pub step: usize,
    /// The tokens that are attended to.
    #[serde(serialize_with = "tokens")]
    pub source: Tokens,
    /// The token of the query: in the decoder the one that is about to be written.
    pub target: String,
    /// The query.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Choice {
    /// The token.
    pub token: String,
    /// Its id.
    pub id: u32,
    /// Its probability.
    pub probability: f32,
}

/// One step of the decoder.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Step {
    /// Which one.
    pub step: usize,
    /// The token before.
    pub previous: String,
    /// The token that is written.
    pub chosen: Choice,
    /// The likeliest token.
    pub preferred: Choice,
    /// The likeliest token other than the written one: what [`Self::influence`] contrasts it with.
    pub contrast: Choice,
    /// The likeliest five.
    pub top: Vec<Choice>,
    /// What the decoder's first layer reads of the token before.
    pub input: Vec<f32>,
    /// The recurrent state before the step.
    pub previous_state: Vec<f32>,
    /// The state after it; in a Transformer the last layer's output.
    pub state: Vec<f32>,
    /// The output of every layer of a Transformer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Vec<f32>>,
    /// What a Luong decoder makes of context and state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attentional: Vec<f32>,
    /// What is compared with every word: the logits are its product with the output table.
    pub readout: Vec<f32>,
    /// The scores of all words.
    pub logits: Vec<f32>,
    /// Attention to the source.
    pub attention: Vec<AttentionRow>,
    /// Attention to the target so far; in a language model, to the whole text so far.
    pub self_attention: Vec<AttentionRow>,
    /// For each layer of cells with gates, the factor by which each element of what the cell has is multiplied: a GRU's update gate,
    /// an LSTM's forget gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Vec<f32>>,
    /// What the recurrences of the layers have kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recurrences: Vec<RecurrenceStep>,
    /// Gradient times input, for each source token (in a language model, for each token of the text so far), of the written token's log-odds against [`Self::contrast`]: in a model
    /// that is sure the probability no longer moves, the log-odds do. Empty where it was not computed.
    pub influence: Vec<f32>,
}

impl AttentionRow {
    /// How broadly the row looks, in nats: 0 at one token, `ln n` at `n` tokens alike.
    pub fn entropy(&self) -> f32 {
        let terms = self.weights.iter().filter(|weight| **weight > 0.0).map(|weight| -weight * weight.ln());
        // A weight that rounding has put above 1 makes it no less than nothing.
        terms.sum::<f32>().max(0.0)
    }
}

impl Step {
    /// The mean weight of every source token over all layers and heads; empty without attention.
    pub fn mean_weights(&self) -> Vec<f32> {
        mean_weights(&self.attention)
    }
}

/// The mean of several rows' weights.
fn mean_weights(rows: &[AttentionRow]) -> Vec<f32> {
    let Some(first) = rows.first() else { return Vec::new() };
    let n = rows.len() as f32;
    (0..first.weights.len()).map(|i| rows.iter().map(|row| row.weights[i]).sum::<f32>() / n).collect()
}

impl Explanation {
    /// The rows of a step that say what it looks at: attention to the source, or to the text so far.
    pub fn rows<'a>(&self, step: &'a Step) -> &'a [AttentionRow] {
        if self.mechanism.is_text { &step.self_attention } else { &step.attention }
    }

    /// The rows of attention to the target so far, where that is another one.
    fn own_rows<'a>(&self, step: &'a Step) -> &'a [AttentionRow] {
        if self.mechanism.is_text { &[] } else { &step.self_attention }
    }

    /// The mean weights of a step over all layers and heads; empty without attention.
    pub fn mean_weights(&self, step: &Step) -> Vec<f32> {
        mean_weights(self.rows(step))
    }

    /// What a step can look at: the source, or the text so far.
    pub fn in_sight(&self, step: &Step) -> Vec<String> {
        let n_written = if self.mechanism.is_text { step.step - 1 } else { 0 };
        self.source.iter().chain(&self.target[..n_written]).cloned().collect()
    }

    /// What that is called.
    fn sight(&self) -> &'static str {
        if self.mechanism.is_text { "text so far" } else { "source" }
    }

    /// What one head compares and averages.
    pub fn memory(&self, row: &AttentionRow) -> Option<&AttentionMemory> {
        self.memories.iter().find(|memory| memory.name == row.name && memory.head == row.head)
    }

    /// How much each source token had to do with the whole target: the mean of its share in the absolute influence, over the
    /// steps that have any that can be measured. The shares sum to one, or are all zero.
    pub fn shares(&self) -> Vec<f32> {
        let sum = |step: &Step| step.influence.iter().map(|value| value.abs()).sum::<f32>();
        let steps: Vec<(&Step, f32)> =
            self.steps.iter().map(|step| (step, sum(step))).filter(|(_, sum)| *sum >= LEAST_INFLUENCE).collect();
        let mut shares = vec![0.0; self.source.len()];
        for (step, sum) in &steps {
            for (share, value) in shares.iter_mut().zip(&step.influence) {
                *share += value.abs() / sum / steps.len() as f32;
            }
        }
        shares
    }
}
