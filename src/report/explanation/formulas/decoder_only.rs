//! The formulas of a decoder-only model: those of a Transformer's decoder, in which one attention sees source and target.

use super::transformer::{every_layer, feed_forward, input, mixers, output, self_attention};
use super::{Formula, Mechanism, Part, line, n, of_heads};
use crate::layers::mixer::Mixers;
use crate::models::{DecoderOnlyConfig, TransformerConfig};

pub(super) fn mechanism(config: &DecoderOnlyConfig) -> Mechanism {
    let layers = as_decoder(config);
    let mut formulas = vec![input(&config.positions, scale(config), "t")];
    if !config.reads_source {
        formulas[0].meaning += "; the beginning has S tokens, and step t reads token S + t - 1 of the text";
    }
    for (own, which) in mixers(&config.mixer, config.n_layers) {
        match own.is_attention() {
            true if config.reads_source => formulas.extend(attention(&layers, &which)),
            true => formulas.extend(of_text(&layers, &which)),
            false => formulas.extend(super::mixers::recurrence(&layers, own, &which)),
        }
    }
    let (text, meaning) = feed_forward(&layers, "u_t", "x_t");
    formulas.push(line("state", text, meaning));
    formulas.push(output(&layers));
    let mixed = if config.has_attention_alone() { String::new() } else { format!(" of {}", config.mixer.names()) };
    let shared = if config.share_layers { ", one for every depth" } else { "" };
    let (kind, paper) = match config.reads_source {
        true => ("Decoder-only model", "Radford 2018"),
        false => ("Language model", "decoder-only, Radford 2019"),
    };
    Mechanism {
        title: format!(
            "{kind} with {}{}{shared}{mixed} ({paper})",
            n(config.n_layers, "layer"),
            of_heads(&config.mixer, config.n_layers, config.n_heads)
        ),
        encoder: source(config),
        formulas,
        n_directions: 0,
        reads_backwards: false,
        has_attention: config.has_attention(),
        context_use: match config.reads_source {
            true => "Every layer's state after the last word of the source is all that the target sees of it.".into(),
            false => String::new(),
        },
        is_text: !config.reads_source,
        answers: None,
    }
}

/// The layers as those of a decoder that attends to nothing else.
fn as_decoder(config: &DecoderOnlyConfig) -> TransformerConfig {
    TransformerConfig {
        d_model: config.d_model,
        d_feed_forward: config.d_feed_forward,
        n_heads: config.n_heads,
        n_key_value_heads: config.n_key_value_heads,
        n_decoder_layers: config.n_layers,
        share_layers: config.share_layers,
        mixer: Mixers::clone(&config.mixer),
        norm_position: config.norm_position,
        norm: config.norm,
        activation: config.activation,
        positions: config.positions.clone(),
        tied_embeddings: config.tied_embeddings,
        output_bias: config.output_bias,
        scales_embeddings: config.scales_embeddings,
        ..TransformerConfig::default()
    }
}

/// What the vectors of words are multiplied by the root of.
fn scale(config: &DecoderOnlyConfig) -> Option<usize> {
    config.scales_embeddings.then_some(config.d_model)
}

/// One attention over a text without a source.
fn of_text(layers: &TransformerConfig, which: &str) -> Vec<Formula> {
    let whole = |text: &str| {
        text.replace("target position up to t", "position of the text so far")
            .replace("the target positions up to t", "the positions of the text so far")
            .replace("each target position i up to t", "each position i of the text so far")
    };
    let lines = self_attention(layers, which).into_iter();
    lines.map(|line| Formula { meaning: whole(&line.meaning), ..line }).collect()
}

/// One attention over both: its lines stand for the part that looks at the source, too.
fn attention(layers: &TransformerConfig, which: &str) -> Vec<Formula> {
    let both = |text: &str| {
        text.replace("target position up to t", "position of source and target up to t")
            .replace("target positions up to t", "positions of source and target up to t")
            .replace("each target position i up to t", "each position i of source and target up to t")
    };
    let own: Vec<Formula> = self_attention(layers, which)
        .into_iter()
        .map(|line| Formula { meaning: both(&line.meaning), ..line })
        .collect();
    let to_source = own.iter().filter(|line| line.makes != "residual").map(|line| Formula {
        meaning: format!("{}; here its part over the source", line.meaning),
        part: Part::CrossAttention,
        ..line.clone()
    });
    to_source.chain(own.iter().cloned()).collect()
}

/// How the source is read.
fn source(config: &DecoderOnlyConfig) -> Vec<Formula> {
    let seen = if config.sees_whole_source { "all words of the source" } else { "the words before it" };
    let layers = every_layer(config.n_layers);
    let meaning = match config.reads_source {
        true => format!("the layers of the target read the source first; each word sees {seen}{layers}"),
        false => format!("the layers read the beginning at once; each word sees {seen}{layers}"),
    };
    vec![
        input(&config.positions, scale(config), "i"),
        line("state", "x_i^n = layer(x_1^(n-1), ..., x_i^(n-1))", meaning),
    ]
}
