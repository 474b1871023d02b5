//! The same of a Transformer, layer by layer, each with its own mixer.

use super::mixer::{Widths, network_flops, steps};
use crate::layers::mixer::{MixerConfig, Mixers};
use crate::models::{TransformerConfig, Vocabularies};

/// The mixers of a side's layers.
fn layers(mixers: &Mixers, n_layers: usize) -> impl Iterator<Item = &MixerConfig> {
    (0..n_layers).map(|layer| mixers.of_layer(layer))
}

fn encoder(config: &TransformerConfig) -> impl Iterator<Item = &MixerConfig> {
    layers(config.encoder_mixers(), config.n_encoder_layers)
}

fn decoder(config: &TransformerConfig) -> impl Iterator<Item = &MixerConfig> {
    layers(config.decoder_mixers(), config.n_decoder_layers)
}

/// What the mixers stand in.
fn widths(config: &TransformerConfig) -> Widths {
    Widths::new(config.d_model, config.n_heads, config.n_key_value_heads())
}

/// Operations of the forward pass over `n` tokens on each side.
pub(super) fn flops(config: &TransformerConfig, vocabularies: Vocabularies, n: f64) -> f64 {
    let (widths, d) = (widths(config), config.d_model as f64);
    let network = network_flops(config.activation, config.d_model, config.d_feed_forward);
    let encoder: f64 = encoder(config).map(|own| n * (widths.flops(own, own.n_directions(), n) + network)).sum();
    // A target word sees half of the others, on average.
    let cross = widths.projections() + 4.0 * n * d;
    let decoder: f64 = decoder(config).map(|own| n * (widths.flops(own, 1, n / 2.0) + cross + network)).sum();
    encoder + decoder + 2.0 * n * d * vocabularies.target as f64
}

pub(super) fn training_steps(config: &TransformerConfig, n: usize) -> u64 {
    encoder(config).chain(decoder(config)).map(|own| steps(own, n)).sum()
}

pub(super) fn decoding_steps(config: &TransformerConfig, n: usize) -> u64 {
    encoder(config).map(|own| steps(own, n)).sum::<u64>() + (n * config.n_decoder_layers) as u64
}

/// Numbers that decoding carries after `n` tokens on each side.
pub(super) fn state_elements(config: &TransformerConfig, n: u64) -> u64 {
    let widths = widths(config);
    // Keys and values of the source, for each layer that is made; shared layers have them once.
    let made = if config.share_layers { config.decoder_mixers().all().len() } else { usize::MAX };
    let n_made = config.n_decoder_layers.min(made) as u64;
    n_made * 2 * widths.d_key_value as u64 * n + decoder(config).map(|own| widths.state(own, n)).sum::<u64>()
}
