//! The formulas of a recurrent encoder-decoder.

use super::{Formula, Mechanism, Part, line, mixers, softmax, transformer};
use crate::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use crate::layers::mixer::MixerKind;
use crate::layers::recurrent::CellKind;
use crate::models::RnnConfig;
use crate::models::readout::ReadoutConfig;
use crate::models::rnn::{Bridge, ContextUse, Directions, OutputKind};

pub(super) fn mechanism(config: &RnnConfig) -> Mechanism {
    let both = config.directions == Directions::Both;
    let cell = match &config.encoder.mixer {
        Some(mixers) => format!("{} over {}", cell(config.cell), mixers.names()),
        None => cell(config.cell).to_owned(),
    };
    let mut formulas = Vec::new();
    let word = "the new state, from the word before, the context and the state before";
    let how = match &config.attention {
        AttentionConfig::None {} => {
            formulas.push(line("context", fixed_context(config), "one vector for the whole source: the last states"));
            formulas.push(start(config));
            match config.context {
                ContextUse::EveryStep => formulas.extend(states(config, "[y_(t-1); c]", word)),
                ContextUse::Initial => formulas.extend(states(
                    config,
                    "y_(t-1)",
                    "the new state, from the word before and the state before",
                )),
            }
            "one fixed context vector".to_owned()
        }
        AttentionConfig::Bahdanau { score, window } => {
            formulas.push(start(config));
            formulas.push(
                line("query", "q_t = s_(t-1)", "the query is the state before the step").of(Part::CrossAttention),
            );
            formulas.extend(attend(score, window, config.d_hidden));
            formulas.extend(states(config, "[y_(t-1); c_t]", word));
            format!("{}, before each step (Bahdanau 2015)", name(score, window))
        }
        AttentionConfig::Luong { score, window, input_feeding } => {
            formulas.push(start(config));
            let (input, meaning) = match input_feeding {
                true => ("[y_(t-1); s~_(t-1)]", "the new state; input feeding: it reads the last attentional vector"),
                false => ("y_(t-1)", "the new state, from the word before and the state before"),
            };
            formulas.extend(states(config, input, meaning));
            formulas.push(line("query", "q_t = s_t", "the query is the new state").of(Part::CrossAttention));
            formulas.extend(attend(score, window, config.d_hidden));
            let meaning = "the attentional vector, from context and state";
            formulas.push(line("attentional", "s~_t = tanh(W_c [c_t; s_t] + b_c)", meaning));
            format!("{}, after each step (Luong 2015)", name(score, window))
        }
    };
    formulas.extend(output(config));
    Mechanism {
        title: format!("{cell} encoder-decoder with {how}"),
        encoder: encoder(config),
        formulas,
        n_directions: if both { 2 } else { 1 },
        reads_backwards: config.reverse_source,
        has_attention: config.attention.alignment().is_some(),
        context_use: context_use(config),
        is_text: false,
        answers: None,
    }
}

fn cell(kind: CellKind) -> &'static str {
    match kind {
        CellKind::Vanilla => "RNN",
        CellKind::Gru => "GRU",
        CellKind::Lstm => "LSTM",
    }
}

/// The encoder's last states. A direction that reads from the end of the source stops at its first word; where the words are
/// read in reverse, that is the last word, since the end symbol stays at the end.
fn fixed_context(config: &RnnConfig) -> String {
    match (config.directions, config.reverse_source) {
        // A residual connection adds to what others see of a state, not to the state itself.
        (Directions::Forward, _) if config.residual => "c = f_S".to_owned(),
        (Directions::Forward, _) => "c = h_S".to_owned(),
        (Directions::Both, false) => "c = [f_S; g_1]".to_owned(),
        (Directions::Both, true) => "c = [f_S; g_(S-1)]".to_owned(),
    }
}

/// The decoder's state before the first step.
fn start(config: &RnnConfig) -> Formula {
    let layers = if config.n_layers == 1 { "" } else { ", layer by layer" };
    let memory = if config.cell == CellKind::Lstm { "; its memory in the same way" } else { "" };
    match config.bridge {
        Bridge::Zeros => line("start", "s_0 = 0", "the first state"),
        Bridge::Learned => {
            let from = if config.attention.alignment().is_some() {
                format!("the first state, from the encoder's last states c{layers}{memory}")
            } else {
                format!("the first state, from c{layers}{memory}")
            };
            line("start", "s_0 = tanh(W_s c + b_s)", from)
        }
    }
}

/// The new state of a decoder whose first layer reads `input`.
fn states(config: &RnnConfig, input: &str, meaning: &str) -> Vec<Formula> {
    let (cell, n) = (cell(config.cell), config.n_layers);
    if n == 1 {
        return vec![line("state", format!("s_t = {cell}({input}, s_(t-1))"), meaning)];
    }
    let sum = |last: &str| if last == "2" { "s_t^1 + s_t^2".to_owned() } else { format!("s_t^1 + ... + s_t^{last}") };
    let (below, state, remark) = match config.residual {
        false => ("s_t^(n-1)".to_owned(), format!("s_t^{n}"), "the output of the last layer"),
        true => (sum("(n-1)"), sum(&n.to_string()), "the sum over the layers, by residual connections"),
    };
    vec![
        line("cell", format!("s_t^1 = {cell}({input}, s_(t-1)^1)"), format!("first layer: {meaning}")),
        line(
            "cell",
            format!("s_t^n = {cell}({below}, s_(t-1)^n)"),
            format!("layers n = 2 to {n}, over the layers below"),
        ),
        line("state", format!("s_t = {state}"), remark),
    ]
}

/// From scores to the context of a recurrent decoder with states of width `d_query`.
fn attend(score: &ScoreConfig, window: &WindowConfig, d_query: usize) -> Vec<Formula> {
    let scaled = format!("e_ti = q_t . h_i / sqrt({d_query})");
    let (text, meaning) = match score {
        ScoreConfig::Dot {} => ("e_ti = q_t . h_i", "the score of position i: the dot product"),
        ScoreConfig::ScaledDot {} => (&scaled[..], "the dot product, scaled so that wide vectors keep it small"),
        ScoreConfig::General {} => ("e_ti = q_t . W h_i", "the dot product after a learned projection"),
        ScoreConfig::Additive { .. } => ("e_ti = v . tanh(W q_t + U h_i + b)", "a small network scores both states"),
        ScoreConfig::Concat { .. } => ("e_ti = v . tanh(W [q_t; h_i])", "a small network scores both states"),
        ScoreConfig::Cosine {} => ("e_ti = exp(g) cos(q_t, h_i)", "the cosine, sharpened by a learned factor"),
        ScoreConfig::Location { .. } => ("e_ti = (W q_t)_i", "the query alone decides; h_i takes no part"),
    };
    let mut formulas = vec![line("score", text, meaning)];
    let local = "only positions near the centre p take part";
    match window {
        WindowConfig::Global {} => formulas.push(softmax("the source positions")),
        WindowConfig::LocalM { half_width } => {
            formulas.push(line("window", format!("p_t = min(t, S), |i - p_t| <= {half_width}"), local));
            formulas.push(softmax("the window"));
        }
        WindowConfig::LocalP { half_width } => {
            let centre = format!("p_t = S sigmoid(v_p . tanh(W_p q_t)), |i - p_t| <= {half_width}");
            formulas.push(line("window", centre, local));
            let text = format!("a_ti = softmax(e_t)_i exp(-(i - p_t)^2 / (2 ({half_width}/2)^2))");
            let meaning = "the softmax over the window, times a Gaussian: the weights sum to less than one";
            formulas.push(line("weights", text, meaning));
        }
    }
    formulas.push(line("context", "c_t = sum_i a_ti h_i", "the weighted sum of the encoder's states"));
    formulas.into_iter().map(|formula| formula.of(Part::CrossAttention)).collect()
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
fn output(config: &RnnConfig) -> Vec<Formula> {
    let (state, context) = match config.attention {
        AttentionConfig::None {} => ("s_t", "c"),
        AttentionConfig::Bahdanau { .. } => ("s_t", "c_t"),
        AttentionConfig::Luong { .. } => ("s~_t", "c_t"),
    };
    let (read, meaning) = match config.readout {
        ReadoutConfig::State {} => (state.to_owned(), "the readout is the state"),
        ReadoutConfig::StateContext {} => (format!("[{state}; {context}]"), "the readout: state and context"),
        ReadoutConfig::DeepOutput { .. } => (
            format!("maxout(U_r {state} + V_r y_(t-1) + C_r {context} + b_r)"),
            "the readout: a small network over state, word before and context",
        ),
    };
    match config.output {
        OutputKind::Similarity => vec![
            line("readout", format!("r_t = W_o {read} + b_o"), format!("{meaning}, as wide as a word vector")),
            line(
                "output",
                "p(y_t) = softmax(E r_t)",
                "its dot product with the vector of every word, then the softmax",
            ),
        ],
        OutputKind::Projection => vec![
            line("readout", format!("r_t = {read}"), meaning),
            line("output", "p(y_t) = softmax(W_o r_t + b_o)", "one score for every word, then the softmax"),
        ],
    }
}

/// How the encoder makes its states.
fn encoder(config: &RnnConfig) -> Vec<Formula> {
    let (before, after) = if config.reverse_source { ("i+1", "i-1") } else { ("i-1", "i+1") };
    let meaning = "the state after word i, from the word and the state before; zero before the first";
    let order = match config.reverse_source {
        false => "",
        true => "; words are read from the last to the first, then the end symbol",
    };
    let meaning = format!("{meaning}{order}");
    // A cell goes by its name; what the encoder has for itself is written out.
    let cell = if config.encoder.is_empty() { cell(config.cell) } else { "R" };
    let forwards = line("cell", format!("f_i = {cell}(x_i, f_({before}))"), meaning.clone());
    let mut lines = match config.directions {
        Directions::Forward if config.residual => vec![forwards],
        Directions::Forward => vec![line("state", format!("h_i = {cell}(x_i, h_({before}))"), meaning)],
        Directions::Both => {
            vec![forwards, line("cell", format!("g_i = {cell}'(x_i, g_({after}))"), "the same in the other direction")]
        }
    };
    if let Some(own) = &config.encoder.mixer {
        for (own, layers) in transformer::mixers(own, config.n_layers) {
            let shown = if own.kind == MixerKind::Ssru { "relu(m_i)" } else { "m_i" };
            let meaning = format!("what others see of {}{layers}", own.kind.name());
            lines.push(line("cell", format!("R(x_i, m_({before})) = {shown}"), meaning));
            lines.extend(mixers::of_encoder(own, before, &layers));
        }
    }
    let states = if config.directions == Directions::Both { "[f_i; g_i]" } else { "f_i" };
    if config.residual {
        lines.push(line(
            "state",
            format!("h_i = {states} + x_i"),
            "what a layer reads is added from the second layer on",
        ));
    } else if config.directions == Directions::Both {
        lines.push(line("state", format!("h_i = {states}"), "both side by side"));
    }
    if config.n_layers > 1 {
        let meaning = format!("layers n = 2 to {} read the states of the layer below", config.n_layers);
        lines.push(line("cell", "x_i^n = h_i^(n-1)", meaning));
    }
    lines
}

/// What reaches the decoder of a model without attention.
fn context_use(config: &RnnConfig) -> String {
    if config.attention.alignment().is_some() {
        return String::new();
    }
    let learned = config.bridge == Bridge::Learned;
    let beside = if learned && (config.n_layers > 1 || config.cell == CellKind::Lstm) {
        " The decoder's first states are made from all last states of the encoder."
    } else {
        ""
    };
    let reads_context = config.readout != (ReadoutConfig::State {});
    let how = match (config.context, reads_context) {
        (ContextUse::EveryStep, _) => "Every step sees this vector and nothing else of the source.",
        (ContextUse::Initial, true) => {
            "The first state is made from this vector, and the readout of every step sees it."
        }
        (ContextUse::Initial, false) => {
            "The first state is made from this vector. Later steps see only what their state has kept of it."
        }
    };
    format!("{how}{beside}")
}
