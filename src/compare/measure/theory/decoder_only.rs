//! The same of a decoder-only model, which reads source and target as one sequence.

use super::mixer::{Widths, network_flops, steps};
use crate::layers::mixer::MixerConfig;
use crate::layers::position::PositionConfig;
use crate::models::{DecoderOnlyConfig, Vocabularies};

fn layers(config: &DecoderOnlyConfig) -> impl Iterator<Item = &MixerConfig> {
    (0..config.n_layers).map(|layer| config.mixer.of_layer(layer))
}

fn widths(config: &DecoderOnlyConfig) -> Widths {
    Widths::new(config.d_model, config.n_heads, config.n_key_value_heads())
}

/// Operations of the forward pass over `n` tokens on each side.
pub(super) fn flops(config: &DecoderOnlyConfig, vocabularies: Vocabularies, n: f64) -> f64 {
    let widths = widths(config);
    let network = network_flops(config.activation, config.d_model, config.d_feed_forward);
    // Of twice `n` words each sees half, on average.
    let stack: f64 = layers(config).map(|own| 2.0 * n * (widths.flops(own, 1, n) + network)).sum();
    stack + 2.0 * n * config.d_model as f64 * vocabularies.target as f64
}

pub(super) fn training_steps(config: &DecoderOnlyConfig, n: usize) -> u64 {
    layers(config).map(|own| steps(own, 2 * n)).sum()
}

pub(super) fn decoding_steps(config: &DecoderOnlyConfig, n: usize) -> u64 {
    layers(config).map(|own| steps(own, n)).sum::<u64>() + (n * config.n_layers) as u64
}

/// Numbers that decoding carries after `n` tokens on each side.
pub(super) fn state_elements(config: &DecoderOnlyConfig, n: u64) -> u64 {
    layers(config).map(|own| widths(config).state(own, 2 * n)).sum()
}

/// See [`super::exponents`]: without attention nothing is looked at twice.
pub(super) fn exponents(config: &DecoderOnlyConfig, is_update: bool, is_fused: bool) -> [f64; 2] {
    if !layers(config).any(MixerConfig::is_attention) {
        return [1.0, if is_update { 1.0 } else { 0.0 }];
    }
    let has_tables = matches!(config.positions, PositionConfig::Shaw { .. });
    [2.0, if is_fused && !has_tables && !config.sees_whole_source { 1.0 } else { 2.0 }]
}
