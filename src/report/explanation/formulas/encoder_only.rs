//! The formulas of an encoder-only model: those of a Transformer's encoder, and an answer read off its states.

use super::transformer::{encoder, every_layer, input};
use super::{Formula, Mechanism, line, n, of_heads};
use crate::layers::feed_forward::Activation;
use crate::models::{Answers, EncoderOnlyConfig, TransformerConfig};

pub(super) fn mechanism(config: &EncoderOnlyConfig) -> Mechanism {
    let mut lines = encoder(&as_encoder(config), config.is_causal);
    lines[0] = embedded(config);
    let (state, what) = match config.output {
        Answers::Tags => {
            ("h_t", "the state of the token that is answered for, a score for every tag, then the softmax")
        }
        Answers::MaskedWords => {
            ("h_t", "the state of the token that is hidden, a score for every word, then the softmax")
        }
        Answers::Values => ("h_t", "the state of the step, a number for each channel, and no softmax"),
        Answers::Class => (
            "v_t",
            "a score for every class, then the softmax: v_1 = h_S, the state of the end symbol; v_2 is a vector that is learnt for the end",
        ),
    };
    if let Some(last) = lines.last_mut() {
        last.meaning = "what answers are read off".into();
    }
    if config.is_causal {
        let meaning = format!("each token sees itself and those before it{}", every_layer(config.n_layers));
        lines.push(line("state", "h_i = f(x_1, ..., x_i)", meaning));
    }
    let mixed = if config.has_attention_alone() { String::new() } else { format!(" of {}", config.mixer.names()) };
    let paper = if config.mixer.has_attention(config.n_layers) { "Devlin 2019" } else { "Graves 2005" };
    let shared = if config.share_layers { ", one for every depth" } else { "" };
    let causal = if config.is_causal { ", causal," } else { "" };
    Mechanism {
        title: format!(
            "Encoder-only model{causal} with {}{}{shared}{mixed} ({paper})",
            n(config.n_layers, "layer"),
            of_heads(&config.mixer, config.n_layers, config.n_heads)
        ),
        encoder: lines,
        formulas: output(config, state, what),
        n_directions: 0,
        reads_backwards: false,
        has_attention: false,
        context_use: "An answer is read off one state; no answer sees another.".into(),
        is_text: false,
        answers: Some(config.output),
    }
}

/// The vector of a token below the first layer.
fn embedded(config: &EncoderOnlyConfig) -> Formula {
    let own = input(&config.positions, config.scales_embeddings.then_some(config.d_model), "i");
    match own.text.split_once(" = ") {
        Some((name, sum)) if config.normalizes_embeddings => {
            line("input", format!("{name} = norm({sum})"), format!("{}, normalized", own.meaning))
        }
        _ => own,
    }
}

/// The scores of an answer that is read off `state`.
fn output(config: &EncoderOnlyConfig, state: &str, what: &str) -> Vec<Formula> {
    let name = match config.activation {
        Activation::Relu => "relu",
        Activation::Gelu | Activation::GeluTanh => "gelu",
        Activation::Silu => "silu",
        Activation::Swiglu => "swiglu",
    };
    if config.output == Answers::Values {
        return vec![line("output", format!("y_t = W_o {state} + b_o"), what)];
    }
    let table = if config.tied_embeddings { "E" } else { "W_o" };
    let mut lines = Vec::new();
    let mut read = state;
    if config.transforms_output {
        let text = format!("u_t = norm({name}(W_u {state} + b_u))");
        lines.push(line("transform", text, "what becomes of a state before its similarity with words is taken"));
        read = "u_t";
    }
    let what = if config.tied_embeddings { format!("{what}; E has the words' embeddings") } else { what.to_owned() };
    lines.push(line("output", format!("p(y_t) = softmax({table} {read} + b_o)"), what));
    lines
}

/// The layers as those of an encoder beside a decoder.
fn as_encoder(config: &EncoderOnlyConfig) -> TransformerConfig {
    TransformerConfig {
        d_model: config.d_model,
        d_feed_forward: config.d_feed_forward,
        n_heads: config.n_heads,
        n_key_value_heads: config.n_key_value_heads,
        n_encoder_layers: config.n_layers,
        n_decoder_layers: config.n_layers,
        share_layers: config.share_layers,
        mixer: config.mixer.clone(),
        norm_position: config.norm_position,
        norm: config.norm,
        activation: config.activation,
        positions: config.positions.clone(),
        ..TransformerConfig::default()
    }
}
