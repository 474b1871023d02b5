//! What a model computes at each step, as formulas: the one place where explaining looks into a config.
//!
//! Formulas are plain text: `_` begins an index, `_(...)` a longer one. [`Formula::at`] puts a step's number in place of `t`.

use crate::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use crate::layers::position::PositionConfig;
use crate::layers::recurrent::CellKind;
use crate::models::readout::ReadoutConfig;
use crate::models::rnn::{ContextUse, Directions, OutputKind};
use crate::models::{ModelConfig, RnnConfig, TransformerConfig};
use serde::Serialize;

/// One line of the computation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Formula {
    /// What it makes: `query`, `score`, `window`, `weights`, `context`, `state` or `output`.
    pub makes: &'static str,
    /// The formula.
    pub text: String,
    /// What it means.
    pub meaning: String,
}

/// How a model computes a step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Mechanism {
    /// The model in words.
    pub title: String,
    /// How the encoder makes its states.
    pub encoder: String,
    /// The lines of a step, in the order of computation.
    pub formulas: Vec<Formula>,
    /// Directions in which a recurrent encoder reads; 0 if it is not recurrent.
    pub n_directions: usize,
    /// Whether the source is read from its end.
    pub reads_backwards: bool,
    /// Whether the decoder attends to the source.
    pub has_attention: bool,
}

fn line(makes: &'static str, text: impl Into<String>, meaning: impl Into<String>) -> Formula {
    Formula { makes, text: text.into(), meaning: meaning.into() }
}

impl Formula {
    /// The formula of step `step`.
    pub fn at(&self, step: usize) -> String {
        self.text.replace("_(t-1)", &format!("_{}", step - 1)).replace("_t", &format!("_{step}"))
    }
}

impl Mechanism {
    /// The mechanism of a model.
    pub fn new(config: &ModelConfig) -> Self {
        match config {
            ModelConfig::Rnn(config) => Self::recurrent(config),
            ModelConfig::Transformer(config) => Self::transformer(config),
        }
    }

    /// The formula that makes `what`.
    pub fn formula(&self, what: &str) -> Option<&Formula> {
        self.formulas.iter().find(|formula| formula.makes == what)
    }

    fn recurrent(config: &RnnConfig) -> Self {
        let cell = match config.cell {
            CellKind::Vanilla => "RNN",
            CellKind::Gru => "GRU",
            CellKind::Lstm => "LSTM",
        };
        let both = config.directions == Directions::Both;
        let mut formulas = Vec::new();
        let word = "the new state: the word before, what was read of the source, and the state before";
        let how = match &config.attention {
            AttentionConfig::None {} => {
                let (state, meaning) = match config.context {
                    ContextUse::EveryStep => (format!("s_t = {cell}([y_(t-1); c], s_(t-1))"), word),
                    ContextUse::Initial => {
                        (format!("s_t = {cell}(y_(t-1), s_(t-1))"), "the new state; c is in the first one alone")
                    }
                };
                formulas.push(line("context", "c = last state of the encoder", "one vector for the whole source"));
                formulas.push(line("state", state, meaning));
                "one fixed context vector".to_owned()
            }
            AttentionConfig::Bahdanau { score, window } => {
                formulas.push(line("query", "q_t = s_(t-1)", "the state before the step asks"));
                formulas.extend(attend(score, window));
                formulas.push(line("state", format!("s_t = {cell}([y_(t-1); c_t], s_(t-1))"), word));
                format!("{}, before each step (Bahdanau 2015)", name(score, window))
            }
            AttentionConfig::Luong { score, window, input_feeding } => {
                let (state, meaning) = if *input_feeding {
                    (
                        "[y_(t-1); s~_(t-1)]",
                        "the new state; input feeding: it sees what the last step made of its context",
                    )
                } else {
                    ("y_(t-1)", "the new state: the word before and the state before")
                };
                formulas.push(line("state", format!("s_t = {cell}({state}, s_(t-1))"), meaning));
                formulas.push(line("query", "q_t = s_t", "the new state asks"));
                formulas.extend(attend(score, window));
                format!("{}, after each step (Luong 2015)", name(score, window))
            }
        };
        formulas.push(output(config));
        Self {
            title: format!("{cell} encoder-decoder with {how}"),
            encoder: if both {
                format!("h_i = [{cell}(x_i, h_(i-1)); {cell}'(x_i, h_(i+1))]")
            } else {
                format!("h_i = {cell}(x_i, h_(i-1))")
            },
            formulas,
            n_directions: if both { 2 } else { 1 },
            reads_backwards: config.reverse_source,
            has_attention: config.attention.alignment().is_some(),
        }
    }

    fn transformer(config: &TransformerConfig) -> Self {
        let (heads, layers) = (config.n_heads, config.n_decoder_layers);
        let d_head = config.d_model / heads.max(1);
        let formulas = vec![
            line("query", "q_t = W^Q x_t", "the target so far asks, in each layer and head"),
            line(
                "score",
                format!("e_ti = q_t . k_i / sqrt({d_head})"),
                "each query against the key of each source position",
            ),
            softmax(),
            line("context", "z_t = sum_i a_ti v_i", "the weighted sum of the values, one for each head"),
            line(
                "state",
                "x_t = x_t + [z_t^1; ...; z_t^h] W^O",
                "the heads side by side, added; a feed-forward network follows",
            ),
            line("output", "p(y_t) = softmax(E x_t)", "the last layer's output against every word"),
        ];
        Self {
            title: format!("Transformer with {} of {} (Vaswani 2017)", n(layers, "decoder layer"), n(heads, "head")),
            encoder: match config.positions {
                PositionConfig::Sinusoidal {} | PositionConfig::Learned { .. } => {
                    "h_i = layers(x_i + position_i)".to_owned()
                }
                _ => "h_i = layers(x_i)".to_owned(),
            },
            formulas,
            n_directions: 0,
            reads_backwards: false,
            has_attention: true,
        }
    }
}

/// `3 heads`.
fn n(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// From scores to the context of a recurrent decoder.
fn attend(score: &ScoreConfig, window: &WindowConfig) -> Vec<Formula> {
    let (text, meaning) = match score {
        ScoreConfig::Dot {} => ("e_ti = q_t . h_i", "how well position i answers: the dot product"),
        ScoreConfig::ScaledDot {} => ("e_ti = q_t . h_i / sqrt(d)", "the dot product, kept small in wide vectors"),
        ScoreConfig::General {} => ("e_ti = q_t . W h_i", "the dot product after a learned projection"),
        ScoreConfig::Additive { .. } => ("e_ti = v . tanh(W q_t + U h_i + b)", "a small network looks at both states"),
        ScoreConfig::Concat { .. } => ("e_ti = v . tanh(W [q_t; h_i])", "a small network looks at both states"),
        ScoreConfig::Cosine {} => {
            ("e_ti = exp(g) cos(q_t, h_i)", "the angle between the two, sharpened by a learned factor")
        }
        ScoreConfig::Location { .. } => ("e_ti = (W q_t)_i", "the state alone says where to look"),
    };
    let mut formulas = vec![line("score", text, meaning)];
    let local = "only positions near the centre count";
    match window {
        WindowConfig::Global {} => formulas.push(softmax()),
        WindowConfig::LocalM { half_width } => {
            formulas.push(line("window", format!("p_t = min(t, S), |i - p_t| <= {half_width}"), local));
            formulas.push(softmax());
        }
        WindowConfig::LocalP { half_width } => {
            let centre = format!("p_t = S sigmoid(v_p . tanh(W_p q_t)), |i - p_t| <= {half_width}");
            formulas.push(line("window", centre, local));
            let text = format!("a_ti = softmax(e_t)_i exp(-(i - p_t)^2 / (2 ({half_width}/2)^2))");
            formulas.push(line("weights", text, "the nearer the centre the heavier: they sum to less than one"));
        }
    }
    formulas.push(line("context", "c_t = sum_i a_ti h_i", "the weighted sum of the encoder's states"));
    formulas
}

fn softmax() -> Formula {
    line("weights", "a_ti = exp(e_ti) / sum_j exp(e_tj)", "the softmax: positive, and they sum to one")
}

/// The attention in words.
fn name(score: &ScoreConfig, window: &WindowConfig) -> String {
    let score = match score {
        ScoreConfig::Dot {} => "dot-product",
        ScoreConfig::ScaledDot {} => "scaled dot-product",
        ScoreConfig::General {} => "general (bilinear)",
        ScoreConfig::Additive { .. } => "additive",
        ScoreConfig::Concat { .. } => "concat",
        ScoreConfig::Cosine {} => "cosine",
        ScoreConfig::Location { .. } => "location",
    };
    match window {
        WindowConfig::Global {} => format!("{score} attention"),
        WindowConfig::LocalM { half_width } => format!("{score} attention in a window of {half_width} around step t"),
        WindowConfig::LocalP { half_width } => {
            format!("{score} attention in a window of {half_width} around a predicted centre")
        }
    }
}

/// From the state to the distribution over words.
fn output(config: &RnnConfig) -> Formula {
    let (state, context) = match config.attention {
        AttentionConfig::None {} => ("s_t", "c"),
        AttentionConfig::Bahdanau { .. } => ("s_t", "c_t"),
        AttentionConfig::Luong { .. } => ("tanh(W_c [c_t; s_t])", "c_t"),
    };
    let read = match config.readout {
        ReadoutConfig::State {} => state.to_owned(),
        ReadoutConfig::StateContext {} => format!("[{state}; {context}]"),
        ReadoutConfig::DeepOutput { .. } => format!("maxout(U {state} + V y_(t-1) + C {context})"),
    };
    match config.output {
        OutputKind::Similarity => {
            line("output", format!("p(y_t) = softmax(E W_o {read})"), "similarity with the vector of every word")
        }
        OutputKind::Projection => {
            line("output", format!("p(y_t) = softmax(W_o {read})"), "one score for every word, then the softmax")
        }
    }
}
