//! What theory says of a model's cost, in closed form: operations, steps that wait for each other, bytes that are carried.
//!
//! Operations are counted as is usual: a product of an `m x k` and a `k x n` matrix is `2 m k n`; element-wise work, softmax and
//! norms are left out. A training update costs three times the forward pass: the gradient needs a product for the input and one
//! for the weight for each product of the forward pass.

mod decoder_only;
mod encoder_only;
mod mixer;
mod transformer;

use crate::layers::attention::{AttentionConfig, ScoreConfig};
use crate::layers::mixer::{Gating, MixerConfig};
use crate::layers::position::PositionConfig;
use crate::layers::recurrent::CellKind;
use crate::models::readout::ReadoutConfig;
use crate::models::rnn::OutputKind;
use crate::models::{ModelConfig, RnnConfig, Vocabularies};

/// Bytes of an element.
const ELEMENT: u64 = 4;
/// A training update in forward passes.
pub const TRAINING: f64 = 3.0;

/// Operations of the forward pass over a source and a target of `n` tokens, each target token written once: of training, and
/// of decoding with a cache.
pub fn forward_flops(model: &ModelConfig, vocabularies: Vocabularies, n: usize) -> f64 {
    match model {
        ModelConfig::Rnn(config) => rnn_flops(config, vocabularies, n as f64),
        ModelConfig::Transformer(config) => transformer::flops(config, vocabularies, n as f64),
        ModelConfig::DecoderOnly(config) => decoder_only::flops(config, vocabularies, n as f64),
        ModelConfig::EncoderOnly(config) => encoder_only::flops(config, vocabularies, n as f64),
    }
}

fn rnn_flops(config: &RnnConfig, vocabularies: Vocabularies, n: f64) -> f64 {
    let [d, d_embedding] = [config.d_hidden, config.d_embedding].map(|width| width as f64);
    let [directions, gates] = [config.n_directions(), config.cell.n_gates()].map(|n| n as f64);
    let encoded = directions * d;
    let layers = |first: f64, next: f64| -> f64 {
        (0..config.n_layers).map(|layer| 2.0 * gates * d * (if layer == 0 { first } else { next } + d)).sum()
    };
    let encoder = n * directions * encoder_flops(config, d_embedding, encoded);
    let mut step = layers(d_embedding, d);
    let mut once = 2.0 * encoded * d * config.n_layers as f64;
    match &config.attention {
        AttentionConfig::None {} => once += 2.0 * gates * d * encoded,
        AttentionConfig::Bahdanau { score, .. } => {
            step += 2.0 * gates * d * encoded + attention_flops(score, d, encoded, n);
            once += prepared_flops(score, d, encoded, n);
        }
        AttentionConfig::Luong { score, input_feeding, .. } => {
            step += 2.0 * (encoded + d) * d + attention_flops(score, d, encoded, n);
            step += if *input_feeding { 2.0 * gates * d * d } else { 0.0 };
            once += prepared_flops(score, d, encoded, n);
        }
    }
    let read = match config.readout {
        ReadoutConfig::State {} => d,
        ReadoutConfig::StateContext {} => d + encoded,
        ReadoutConfig::DeepOutput { d_maxout } => {
            step += 2.0 * 2.0 * d_maxout as f64 * (d + d_embedding + encoded);
            d_maxout as f64
        }
    };
    let vocabulary = vocabularies.target as f64;
    step += match config.output {
        OutputKind::Similarity => 2.0 * read * d_embedding + 2.0 * d_embedding * vocabulary,
        OutputKind::Projection => 2.0 * read * vocabulary,
    };
    encoder + once + n * step
}

/// One token's way through one direction of the encoder.
fn encoder_flops(config: &RnnConfig, d_embedding: f64, encoded: f64) -> f64 {
    let d = config.d_hidden as f64;
    let of_layer = |(layer, own): (usize, MixerConfig)| {
        let d_input = if layer == 0 { d_embedding } else { encoded };
        2.0 * match own.kind.cell() {
            Some(cell) => cell.n_gates() as f64 * d * (d_input + d),
            None => Gating::of(own.kind).map_or(0, Gating::n_gates) as f64 * d * d_input,
        }
    };
    config.encoder_mixers().made(config.n_layers, false).into_iter().enumerate().map(of_layer).sum()
}

/// Steps of the slowest layer of the encoder over `n` positions that wait for each other.
fn encoder_steps(config: &RnnConfig, n: usize) -> u64 {
    let mixers = config.encoder_mixers().made(config.n_layers, false);
    mixers.iter().map(|own| mixer::steps(own, n)).max().unwrap_or(0)
}

/// Scores and weighted sum of one step over `n` positions.
fn attention_flops(score: &ScoreConfig, d: f64, encoded: f64, n: f64) -> f64 {
    let scores = match score {
        ScoreConfig::Additive { d_attention } | ScoreConfig::Concat { d_attention } => {
            let width = *d_attention as f64;
            2.0 * d * width + 2.0 * n * width
        }
        ScoreConfig::Location { .. } => 2.0 * d * n,
        _ => 2.0 * n * d,
    };
    scores + 2.0 * n * encoded
}

/// What is computed once for the source.
fn prepared_flops(score: &ScoreConfig, d: f64, encoded: f64, n: f64) -> f64 {
    match score {
        ScoreConfig::Additive { d_attention } | ScoreConfig::Concat { d_attention } => {
            2.0 * n * encoded * *d_attention as f64
        }
        ScoreConfig::General {} => 2.0 * n * encoded * d,
        _ => 0.0,
    }
}

/// Steps that have to wait for each other in the forward pass of training over `n` tokens on each side: layers where all
/// positions are computed at once, positions where they are not.
pub fn training_steps(model: &ModelConfig, n: usize) -> u64 {
    match model {
        // Layers overlap: the second can start when the first is one position ahead.
        ModelConfig::Rnn(config) => encoder_steps(config, n) + (n + 2 * (config.n_layers - 1)) as u64,
        ModelConfig::Transformer(config) => transformer::training_steps(config, n),
        ModelConfig::DecoderOnly(config) => decoder_only::training_steps(config, n),
        ModelConfig::EncoderOnly(config) => encoder_only::training_steps(config, n),
    }
}

/// The same of greedy decoding of `n` tokens.
pub fn decoding_steps(model: &ModelConfig, n: usize) -> u64 {
    match model {
        ModelConfig::Rnn(config) => encoder_steps(config, n) + (n * config.n_layers) as u64,
        ModelConfig::Transformer(config) => transformer::decoding_steps(config, n),
        ModelConfig::DecoderOnly(config) => decoder_only::decoding_steps(config, n),
        ModelConfig::EncoderOnly(config) => encoder_only::decoding_steps(config, n),
    }
}

/// Bytes that decoding carries from step to step after `n` tokens on each side, what it keeps of the source included.
pub fn state_bytes(model: &ModelConfig, n: usize) -> u64 {
    let n = n as u64;
    let elements = match model {
        ModelConfig::Rnn(config) => {
            let d = config.d_hidden as u64;
            let directions = config.n_directions() as u64;
            let states = if config.cell == CellKind::Lstm { 2 } else { 1 };
            let state = config.n_layers as u64 * d * states;
            let source = match config.attention.alignment() {
                None => directions * d,
                Some((ScoreConfig::Additive { d_attention } | ScoreConfig::Concat { d_attention }, _)) => {
                    n * (directions * d + *d_attention as u64)
                }
                Some((ScoreConfig::General {}, _)) => n * (directions * d + d),
                Some(_) => n * directions * d,
            };
            state + source
        }
        ModelConfig::Transformer(config) => transformer::state_elements(config, n),
        ModelConfig::DecoderOnly(config) => decoder_only::state_elements(config, n),
        ModelConfig::EncoderOnly(config) => encoder_only::state_elements(config, n),
    };
    ELEMENT * elements
}

/// The exponents of seconds and of memory for long sentences, of an update or of decoding.
///
/// A recurrence takes a step for each word and keeps its states for the gradient: linear. Every word looks at every other in
/// attention: quadratic time, and quadratic memory where all weights are kept; decoding keeps one row of them. A fused
/// Transformer (`is_fused`) never has more than a block of its weights.
pub fn exponents(model: &ModelConfig, is_update: bool, is_fused: bool) -> [f64; 2] {
    match model {
        ModelConfig::Rnn(config) if config.attention == (AttentionConfig::None {}) => {
            [1.0, if is_update { 1.0 } else { 0.0 }]
        }
        ModelConfig::Rnn(_) => [2.0, if is_update { 2.0 } else { 1.0 }],
        ModelConfig::DecoderOnly(config) => decoder_only::exponents(config, is_update, is_fused),
        ModelConfig::EncoderOnly(config) => encoder_only::exponents(config, is_update, is_fused),
        ModelConfig::Transformer(config) => {
            let has_tables = |positions: &PositionConfig| matches!(positions, PositionConfig::Shaw { .. });
            let decoder = config.decoder_positions.as_ref().unwrap_or(&config.positions);
            let is_linear = is_fused && !has_tables(&config.positions) && !has_tables(decoder);
            [2.0, if is_linear { 1.0 } else { 2.0 }]
        }
    }
}
