//! The same of an encoder-only model, which answers for every token as soon as it has read the source.

use super::mixer::{Widths, network_flops, steps};
use crate::layers::mixer::MixerConfig;
use crate::layers::position::PositionConfig;
use crate::models::{EncoderOnlyConfig, Vocabularies};

fn layers(config: &EncoderOnlyConfig) -> impl Iterator<Item = &MixerConfig> {
    (0..config.n_layers).map(|layer| config.mixer.of_layer(layer))
}

/// Operations of the forward pass over `n` tokens.
pub(super) fn flops(config: &EncoderOnlyConfig, vocabularies: Vocabularies, n: f64) -> f64 {
    let widths = Widths::new(config.d_model, config.n_heads, config.n_key_value_heads());
    let network = network_flops(config.activation, config.d_model, config.d_feed_forward);
    // A token sees all others, or half of them on average.
    let seen = if config.is_causal { n / 2.0 } else { n };
    let directions = |own: &MixerConfig| if config.is_causal { 1 } else { own.n_directions() };
    let stack: f64 = layers(config).map(|own| n * (widths.flops(own, directions(own), seen) + network)).sum();
    let d_model = config.d_model as f64;
    let transform = if config.transforms_output { d_model } else { 0.0 };
    stack + 2.0 * config.answer_len(n as usize) as f64 * d_model * (vocabularies.target as f64 + transform)
}

pub(super) fn training_steps(config: &EncoderOnlyConfig, n: usize) -> u64 {
    layers(config).map(|own| steps(own, n)).sum()
}

/// The source is read once; its answers do not wait for each other.
pub(super) fn decoding_steps(config: &EncoderOnlyConfig, n: usize) -> u64 {
    training_steps(config, n)
}

/// Numbers that are kept of `n` tokens: what each answer is read off.
pub(super) fn state_elements(config: &EncoderOnlyConfig, n: u64) -> u64 {
    (config.answer_len(n as usize) as u64 + 1) * config.d_model as u64
}

/// See [`super::exponents`]; without attention nothing is looked at twice.
pub(super) fn exponents(config: &EncoderOnlyConfig, _is_update: bool, is_fused: bool) -> [f64; 2] {
    if !layers(config).any(MixerConfig::is_attention) {
        return [1.0, 1.0];
    }
    let has_tables = matches!(config.positions, PositionConfig::Shaw { .. });
    [2.0, if is_fused && !has_tables { 1.0 } else { 2.0 }]
}
