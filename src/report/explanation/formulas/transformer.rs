//! The formulas of a Transformer.

use super::sublayer::{added, after, before};
use super::{Formula, Mechanism, Part, line, n, score_term, softmax};
use crate::layers::feed_forward::Activation;
use crate::layers::mixer::{MixerConfig, Mixers};
use crate::layers::position::PositionConfig;
use crate::models::TransformerConfig;
use crate::models::transformer::TiedEmbeddings;

pub(super) fn mechanism(config: &TransformerConfig) -> Mechanism {
    let (heads, n_layers) = (config.n_heads, config.n_decoder_layers);
    let mut formulas = vec![input(config.decoder_positions(), scale(config), "t")];
    for (own, which) in mixers(config.decoder_mixers(), n_layers) {
        match own.is_attention() {
            true => formulas.extend(self_attention(config, &which)),
            false => formulas.extend(super::mixers::recurrence(config, own, &which)),
        }
    }
    formulas.extend(cross_attention(config));
    let (text, meaning) = feed_forward(config, "w_t", "x_t");
    formulas.push(line("state", text, meaning));
    formulas.push(output(config));
    Mechanism {
        title: format!(
            "Transformer with {} of {}{} (Vaswani 2017)",
            n(n_layers, "decoder layer"),
            n(heads, "head"),
            title_of_mixers(config)
        ),
        encoder: encoder(config, false),
        formulas,
        n_directions: 0,
        reads_backwards: false,
        has_attention: true,
        context_use: String::new(),
        is_text: false,
        answers: None,
    }
}

/// The kinds of mixer of a side with the layers that have them, each kind once: none named where there is one for all.
pub(super) fn mixers(mixers: &Mixers, n_layers: usize) -> Vec<(&MixerConfig, String)> {
    let mut found: Vec<(&MixerConfig, Vec<String>)> = Vec::new();
    for layer in 0..n_layers {
        let own = mixers.of_layer(layer);
        let number = (layer + 1).to_string();
        match found.iter_mut().find(|(other, _)| *other == own) {
            Some((_, layers)) => layers.push(number),
            None => found.push((own, vec![number])),
        }
    }
    let is_one = found.len() == 1;
    let words = |layers: Vec<String>| match (is_one, n_layers) {
        (true, last) => every_layer(last),
        (false, _) if layers.len() == 1 => format!(" in layer n = {}", layers[0]),
        (false, _) => format!(" in layers n = {}", layers.join(", ")),
    };
    found.into_iter().map(|(own, layers)| (own, words(layers))).collect()
}

/// What stands in place of self-attention.
fn title_of_mixers(config: &TransformerConfig) -> String {
    let shared = if config.share_layers { ", one for every depth" } else { "" };
    if config.has_attention_alone() {
        return shared.to_owned();
    }
    let (encoder, decoder) = (config.encoder_mixers().names(), config.decoder_mixers().names());
    format!("{shared}, encoder of {encoder}, decoder of {decoder}")
}

/// The vector of position `at` below the first layer; the word's vector is multiplied by the root of `scale`, if there is one.
pub(super) fn input(positions: &PositionConfig, scale: Option<usize>, at: &str) -> Formula {
    let word = if at == "t" { "y_(t-1)" } else { "x_i" };
    let (position, meaning) = match positions {
        PositionConfig::Sinusoidal {} => (format!(" + p_{at}"), ", with sines and cosines of its position"),
        PositionConfig::Learned { .. } => (format!(" + p_{at}"), ", with a learned vector for its position"),
        _ if scale.is_some() => (String::new(), ", scaled"),
        _ => (String::new(), ""),
    };
    let which = if at == "t" { "the vector of the word before" } else { "the word's vector" };
    let scale = scale.map(|width| format!("sqrt({width}) ")).unwrap_or_default();
    line("input", format!("x_{at}^0 = {scale}{word}{position}"), format!("{which}{meaning}"))
}

/// `[z_t^1; ...; z_t^4]`, the heads of a layer.
fn heads(n_heads: usize) -> String {
    match n_heads {
        1 => "z_t".to_owned(),
        2 => "[z_t^1; z_t^2]".to_owned(),
        n => format!("[z_t^1; ...; z_t^{n}]"),
    }
}

/// `R_t (...)` where queries and keys are turned by their position.
fn turned(positions: &PositionConfig, at: &str, projection: String) -> String {
    match positions {
        PositionConfig::Rotary { .. } => format!("R_{at} ({projection})"),
        _ => projection,
    }
}

/// The lines of one head's attention to the target so far, in layer `n`.
pub(super) fn self_attention(config: &TransformerConfig, which: &str) -> Vec<Formula> {
    let positions = config.decoder_positions();
    let x = |at: &str| before(config, &format!("x_{at}^(n-1)"));
    let query = turned(positions, "t", format!("W^Q {} + b^Q", x("t")));
    let key = turned(positions, "i", format!("W^K {} + b^K", x("i")));
    let rotary = match positions {
        PositionConfig::Rotary { .. } => "; R turns a vector by its position (RoPE)",
        _ => "",
    };
    let which = of_heads(config, which);
    let n_layers = config.n_decoder_layers;
    let of_layer = |text: String| if n_layers == 1 { text.replace("^(n-1)", "^0") } else { text };
    let mut lines = vec![
        line("query", format!("q_t = {query}"), format!("self-attention{which}: the query{rotary}")),
        line(
            "memory",
            format!("k_i = {key}, v_i = W^V {} + b^V", x("i")),
            format!("key and value of each target position i up to t{}", groups(config)),
        ),
        score(positions, config, "target position up to t"),
        softmax("the target positions up to t"),
        context(positions),
        line(
            "residual",
            format!("u_t = {}", after(config, "x_t^(n-1)", &format!("W^O {} + b^O", heads(config.n_heads)))),
            added(config, "the heads side by side"),
        ),
    ];
    for formula in &mut lines {
        formula.text = of_layer(std::mem::take(&mut formula.text));
        formula.part = Part::SelfAttention;
    }
    lines
}

/// The lines of one head's attention to the source, in layer `n`.
fn cross_attention(config: &TransformerConfig) -> Vec<Formula> {
    // Positions do not act between source and target.
    let positions = PositionConfig::None {};
    let lines = vec![
        line(
            "query",
            format!("q_t = W^Q {} + b^Q", before(config, "u_t")),
            format!("attention to the source{}: the query", of_heads(config, &every_layer(config.n_decoder_layers))),
        ),
        line(
            "memory",
            "k_i = W^K h_i + b^K, v_i = W^V h_i + b^V",
            format!("key and value of each source position i{}", groups(config)),
        ),
        score(&positions, config, "source position"),
        softmax("the source positions"),
        context(&positions),
        line(
            "residual",
            format!("w_t = {}", after(config, "u_t", &format!("W^O {} + b^O", heads(config.n_heads)))),
            added(config, "the heads side by side"),
        ),
    ];
    lines.into_iter().map(|line| line.of(Part::CrossAttention)).collect()
}

pub(super) fn every_layer(n_layers: usize) -> String {
    match n_layers {
        1 => String::new(),
        last => format!(" in each layer n = 1 to {last}"),
    }
}

/// Layers, and each head of them.
pub(super) fn of_heads(config: &TransformerConfig, layers: &str) -> String {
    match (config.n_heads, layers) {
        (1, layers) => layers.to_owned(),
        (_, "") => " in each head".to_owned(),
        (_, layers) => format!("{layers} and head"),
    }
}

/// Which heads share keys and values.
fn groups(config: &TransformerConfig) -> String {
    match config.n_heads / config.n_key_value_heads().max(1) {
        0 | 1 => String::new(),
        n => format!(", shared by {n} neighbouring heads"),
    }
}

fn score(positions: &PositionConfig, config: &TransformerConfig, over: &str) -> Formula {
    let d_head = config.d_model / config.n_heads.max(1);
    let (term, meaning) = score_term(positions, "t", "i");
    let (key, shaw) = match positions {
        PositionConfig::Shaw { .. } => ("(k_i + r_(i-t))", "; r is a learned vector for the distance (Shaw)"),
        _ => ("k_i", ""),
    };
    let meaning = format!("the query against the key of each {over}{meaning}{shaw}");
    line("score", format!("e_ti = q_t . {key} / sqrt({d_head}){term}"), meaning)
}

fn context(positions: &PositionConfig) -> Formula {
    match positions {
        PositionConfig::Shaw { .. } => line(
            "context",
            "z_t = sum_i a_ti (v_i + r'_(i-t))",
            "the weighted sum of the values and of a learned vector for each distance (Shaw)",
        ),
        _ => line("context", "z_t = sum_i a_ti v_i", "the weighted sum of the values"),
    }
}

/// The last sublayer: `to^n` from `from`.
pub(super) fn feed_forward(config: &TransformerConfig, from: &str, to: &str) -> (String, String) {
    let n = if to == "x_t" && config.n_decoder_layers == 1 { "1" } else { "n" };
    let text = format!("{to}^{n} = {}", after(config, from, &format!("FFN({})", before(config, from))));
    let network = match config.activation {
        Activation::Relu => "W_2 relu(W_1 x + b_1) + b_2",
        Activation::Gelu | Activation::GeluTanh => "W_2 gelu(W_1 x + b_1) + b_2",
        Activation::Silu => "W_2 silu(W_1 x + b_1) + b_2",
        Activation::Swiglu => "W_2 (silu(W_1 x + b_1) * (V_1 x + c_1)) + b_2",
    };
    (text, format!("the layer's output; FFN(x) = {network}"))
}

/// What the vectors of words are multiplied by the root of.
fn scale(config: &TransformerConfig) -> Option<usize> {
    config.scales_embeddings.then_some(config.d_model)
}

/// From the last layer to the distribution over words.
pub(super) fn output(config: &TransformerConfig) -> Formula {
    let x = before(config, &format!("x_t^{}", config.n_decoder_layers));
    match config.tied_embeddings {
        TiedEmbeddings::TargetOutput | TiedEmbeddings::All if config.output_bias => line(
            "output",
            format!("p(y_t) = softmax(b_o + E {x})"),
            "the last layer's output times the vector of every word, and a number of its own, then the softmax",
        ),
        TiedEmbeddings::None => {
            line("output", format!("p(y_t) = softmax(W_o {x} + b_o)"), "one score for every word, then the softmax")
        }
        TiedEmbeddings::TargetOutput | TiedEmbeddings::All => line(
            "output",
            format!("p(y_t) = softmax(E {x})"),
            "the last layer's output times the vector of every word, then the softmax",
        ),
    }
}

/// How the encoder's output is made.
pub(super) fn encoder(config: &TransformerConfig, is_causal: bool) -> Vec<Formula> {
    let d_head = config.d_model / config.n_heads.max(1);
    let (term, meaning) = score_term(&config.positions, "i", "j");
    let key = if matches!(config.positions, PositionConfig::Shaw { .. }) { "(k_j + r_(j-i))" } else { "k_j" };
    let attention = format!("attention({})_i", before(config, "x^(n-1)"));
    let last = format!("x_i^{}", config.n_encoder_layers);
    let (text, network) = feed_forward(config, "u_i", "x_i");
    let mut lines = vec![input(&config.positions, scale(config), "i")];
    let against = if is_causal {
        "every source position against itself and those before it"
    } else {
        "every source position against every other"
    };
    for (own, which) in mixers(config.encoder_mixers(), config.n_encoder_layers) {
        if own.is_attention() {
            let of = config.n_encoder_layers;
            let which = if config.has_attention_alone() { format!(" in layer n of {of}") } else { which };
            lines.push(line(
                "residual",
                format!("u_i = {}", after(config, "x_i^(n-1)", &attention)),
                format!("self-attention{which}"),
            ));
            lines.push(line(
                "score",
                format!("e_ij = q_i . {key} / sqrt({d_head}){term}"),
                format!("its scores: {against}{meaning}"),
            ));
        } else {
            let read = format!("{}({})_i", own.kind.name(), before(config, "x^(n-1)"));
            let is_both = own.n_directions() == 2 && !is_causal;
            let directions = if is_both { "from both ends" } else { "from the first word on" };
            lines.push(line(
                "residual",
                format!("u_i = {}", after(config, "x_i^(n-1)", &read)),
                format!("a recurrence{which}, which reads the source {directions}"),
            ));
        }
    }
    lines.push(line("state", text, network));
    lines.push(line("state", format!("h_i = {}", before(config, &last)), "what the decoder attends to"));
    lines
}
