//! What a model computes at each step, as formulas: the one place where explaining looks into a config.
//!
//! Formulas are plain text: `_` begins an index, `^` a superscript, `_(...)` and `^(...)` longer ones. [`Formula::at`] puts a
//! step's number in place of `t`. Vectors are columns. The lines of a step, computed one after the other with the model's
//! parameters, give the numbers that the explanation shows; a test does that for every mechanism.

mod by_hand;
mod decoder_only;
mod encoder_only;
mod mixers;
mod recurrent;
mod sublayer;
mod transformer;

pub(crate) use by_hand::of_attention;

use crate::layers::mixer::Mixers;
use crate::layers::position::PositionConfig;
use crate::models::{Answers, ModelConfig};
use schemars::JsonSchema;
use serde::Serialize;

/// The part of a step that a formula belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The model itself.
    #[default]
    Model,
    /// Attention to the sequence's own tokens.
    SelfAttention,
    /// Attention to the source.
    CrossAttention,
}

/// One line of the computation.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Formula {
    /// What it makes: `start`, `input`, `query`, `memory`, `score`, `window`, `weights`, `context`, `residual`, `cell`, `state`,
    /// `attentional`, `readout`, `transform` or `output`.
    pub makes: &'static str,
    /// Where it belongs.
    pub part: Part,
    /// The formula.
    pub text: String,
    /// What it means.
    pub meaning: String,
}

/// How a model computes a step.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Mechanism {
    /// The model in words.
    pub title: String,
    /// How the encoder makes its states.
    pub encoder: Vec<Formula>,
    /// The lines of a step, in the order of computation.
    pub formulas: Vec<Formula>,
    /// Directions in which a recurrent encoder reads; 0 if it is not recurrent.
    pub n_directions: usize,
    /// Whether the source is read from its end.
    pub reads_backwards: bool,
    /// Whether the decoder attends to the source.
    pub has_attention: bool,
    /// What the decoder sees of the one context vector, where there is no attention.
    pub context_use: String,
    /// Whether there is no source: a language model, which continues a text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_text: bool,
    /// What is answered, where steps are answers that do not see each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
}

fn line(makes: &'static str, text: impl Into<String>, meaning: impl Into<String>) -> Formula {
    Formula { makes, part: Part::Model, text: text.into(), meaning: meaning.into() }
}

impl Formula {
    /// The formula of step `step`.
    pub fn at(&self, step: usize) -> String {
        at(&self.text, step)
    }

    fn of(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// `text` with the step's number in place of every `t` that stands for it: alone, in `t-1`, or before an index `i` or `j`.
fn at(text: &str, step: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_letter = |i: Option<usize>| i.and_then(|i| letters.get(i)).is_some_and(|c| c.is_alphabetic());
    let (mut filled, mut i) = (String::new(), 0);
    while i < letters.len() {
        let stands_alone = !is_letter(i.checked_sub(1)) && !is_letter(Some(i + 1));
        let is_first_index =
            i > 0 && letters[i - 1] == '_' && matches!(letters.get(i + 1), Some('i' | 'j')) && !is_letter(Some(i + 2));
        if letters[i] != 't' || !(stands_alone || is_first_index) {
            filled.push(letters[i]);
            i += 1;
            continue;
        }
        let is_last_step = letters[i + 1..].starts_with(&['-', '1']);
        filled += &if is_last_step { step - 1 } else { step }.to_string();
        i += if is_last_step { 3 } else { 1 };
    }
    // A single number needs no parentheses.
    filled.replace(&format!("_({})", step - 1), &format!("_{}", step - 1))
}

impl Mechanism {
    /// The mechanism of a model.
    pub fn new(config: &ModelConfig) -> Self {
        match config {
            ModelConfig::Rnn(config) => recurrent::mechanism(config),
            ModelConfig::Transformer(config) => transformer::mechanism(config),
            ModelConfig::DecoderOnly(config) => decoder_only::mechanism(config),
            ModelConfig::EncoderOnly(config) => encoder_only::mechanism(config),
        }
    }

    /// What the change of an encoder's state is.
    pub fn change_meaning(&self) -> &'static str {
        if self.n_directions > 0 {
            "change: the length of the difference between a state and the one read before it, |h_i - h_before|, and the cosine \
             of the two: far or at an angle where a word changes much."
        } else {
            "change: the length of the difference between a vector before and after the layer, |x_i^n - x_i^(n-1)|, and the \
             cosine of the two: far or at an angle where the layer changes much."
        }
    }

    /// The formula that makes `what` in `part`.
    pub fn formula(&self, what: &str, part: Part) -> Option<&Formula> {
        self.formulas.iter().find(|formula| formula.makes == what && formula.part == part)
    }
}

/// `3 heads`.
fn n(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// ` of 3 heads`, where a mixer has heads: attention, or a memory that is a matrix.
fn of_heads(mixers: &Mixers, n_layers: usize, n_heads: usize) -> String {
    let has_heads = mixers.in_layers(n_layers).any(|mixer| mixer.is_attention() || mixer.kind.rule().is_some());
    if has_heads { format!(" of {}", n(n_heads, "head")) } else { String::new() }
}

fn softmax(over: &str) -> Formula {
    let meaning = format!("the softmax over {over}: positive, sum 1");
    line("weights", "a_ti = exp(e_ti) / sum_j exp(e_tj)", meaning)
}

/// What a scheme adds to a score, and what it means. `query` and `key` are the names of the two positions.
fn score_term(positions: &PositionConfig, query: &str, key: &str) -> (String, &'static str) {
    match positions {
        PositionConfig::Alibi {} => {
            (format!(" - m |{query} - {key}|"), "; lower the further away (ALiBi), m is the head's slope")
        }
        PositionConfig::HardAlibi { .. } => (
            format!(" + w_({query}-{key})"),
            "; w hides what is outside of the head's window, if it has one (hard ALiBi)",
        ),
        PositionConfig::T5 { .. } => {
            (format!(" + b_({key}-{query})"), "; b is learned for the distance and the head (T5)")
        }
        PositionConfig::Sinusoidal {}
        | PositionConfig::Learned { .. }
        | PositionConfig::Rotary { .. }
        | PositionConfig::Shaw { .. }
        | PositionConfig::None {} => (String::new(), ""),
    }
}
