//! The formulas of an encoder-only model: those of a Transformer's encoder, and an answer read off its states.

use super::transformer::{encoder, every_layer};
use super::{Mechanism, line, n};
use crate::models::{Answers, EncoderOnlyConfig, TransformerConfig};

pub(super) fn mechanism(config: &EncoderOnlyConfig) -> Mechanism {
    let mut lines = encoder(&as_encoder(config));
    let (state, what) = match config.output {
        Answers::Tags => {
            ("h_t", "the state of the token that is answered for, a score for every tag, then the softmax")
        }
        Answers::Class => ("h_S", "the state of the end symbol, a score for every class, then the softmax"),
    };
    if let Some(last) = lines.last_mut() {
        last.meaning = "what answers are read off".into();
    }
    if config.is_causal {
        let meaning = format!("each token sees those before it alone{}", every_layer(config.n_layers));
        lines.push(line("state", "h_i = f(x_1, ..., x_i)", meaning));
    }
    let mixed = if config.has_attention_alone() { String::new() } else { format!(" of {}", config.mixer.names()) };
    let shared = if config.share_layers { ", one for every depth" } else { "" };
    let causal = if config.is_causal { ", causal," } else { "" };
    Mechanism {
        title: format!(
            "Encoder-only model{causal} with {} of {}{shared}{mixed} (Devlin 2019)",
            n(config.n_layers, "layer"),
            n(config.n_heads, "head")
        ),
        encoder: lines,
        formulas: vec![line("output", format!("p(y_t) = softmax(W_o {state} + b_o)"), what)],
        n_directions: 0,
        reads_backwards: false,
        has_attention: false,
        context_use: "An answer is read off one state; no answer sees another.".into(),
        answers: Some(config.output),
    }
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
