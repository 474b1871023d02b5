//! What a Transformer costs, layer by layer, each with its own mixer.

use super::TransformerConfig;
use crate::layers::mixer::{MixerConfig, Mixers};
use crate::models::Vocabularies;
use crate::models::costs::{Costs, Widths, network_flops, steps};

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

impl Costs for TransformerConfig {
    fn forward_flops(&self, vocabularies: Vocabularies, n: usize) -> f64 {
        let (widths, d, n) = (widths(self), self.d_model as f64, n as f64);
        let network = network_flops(self.activation, self.d_model, self.d_feed_forward);
        let encoder: f64 = encoder(self).map(|own| n * (widths.flops(own, own.n_directions(), n) + network)).sum();
        // A target word sees half of the others, on average.
        let cross = widths.projections() + 4.0 * n * d;
        let decoder: f64 = decoder(self).map(|own| n * (widths.flops(own, 1, n / 2.0) + cross + network)).sum();
        encoder + decoder + 2.0 * n * d * vocabularies.target as f64
    }

    fn training_steps(&self, n: usize) -> u64 {
        encoder(self).chain(decoder(self)).map(|own| steps(own, n)).sum()
    }

    fn decoding_steps(&self, n: usize) -> u64 {
        encoder(self).map(|own| steps(own, n)).sum::<u64>() + (n * self.n_decoder_layers) as u64
    }

    fn state_elements(&self, n: u64) -> u64 {
        let widths = widths(self);
        // Keys and values of the source, for each layer that is made; shared layers have them once.
        let made = if self.share_layers { self.decoder_mixers().all().len() } else { usize::MAX };
        let n_made = self.n_decoder_layers.min(made) as u64;
        n_made * 2 * widths.d_key_value as u64 * n + decoder(self).map(|own| widths.state(own, n)).sum::<u64>()
    }

    fn exponents(&self, is_update: bool, is_fused: bool) -> [f64; 2] {
        let decoder = self.decoder_positions.as_ref().unwrap_or(&self.positions);
        let are_drawn = is_update && self.randomized_positions.is_some();
        let is_linear = is_fused && ![&self.positions, decoder].iter().any(|scheme| scheme.has_pairs(are_drawn));
        [2.0, if is_linear { 1.0 } else { 2.0 }]
    }
}
