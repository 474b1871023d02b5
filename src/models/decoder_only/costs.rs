//! What a decoder-only model costs, which reads source and target as one sequence.

use super::DecoderOnlyConfig;
use crate::layers::mixer::MixerConfig;
use crate::models::Vocabularies;
use crate::models::costs::{Costs, Widths, network_flops, steps};

fn layers(config: &DecoderOnlyConfig) -> impl Iterator<Item = &MixerConfig> {
    (0..config.n_layers).map(|layer| config.mixer.of_layer(layer))
}

fn widths(config: &DecoderOnlyConfig) -> Widths {
    Widths::new(config.d_model, config.n_heads, config.n_key_value_heads())
}

impl Costs for DecoderOnlyConfig {
    fn forward_flops(&self, vocabularies: Vocabularies, n: usize) -> f64 {
        let (widths, n) = (widths(self), n as f64);
        let network = network_flops(self.activation, self.d_model, self.d_feed_forward);
        // Of twice `n` words each sees half, on average.
        let stack: f64 = layers(self).map(|own| 2.0 * n * (widths.flops(own, 1, n) + network)).sum();
        stack + 2.0 * n * self.d_model as f64 * vocabularies.target as f64
    }

    fn training_steps(&self, n: usize) -> u64 {
        layers(self).map(|own| steps(own, 2 * n)).sum()
    }

    fn decoding_steps(&self, n: usize) -> u64 {
        layers(self).map(|own| steps(own, n)).sum::<u64>() + (n * self.n_layers) as u64
    }

    fn state_elements(&self, n: u64) -> u64 {
        layers(self).map(|own| widths(self).state(own, 2 * n)).sum()
    }

    /// Without attention nothing is looked at twice.
    fn exponents(&self, is_update: bool, is_fused: bool) -> [f64; 2] {
        if !layers(self).any(MixerConfig::is_attention) {
            return [1.0, if is_update { 1.0 } else { 0.0 }];
        }
        let has_pairs = self.positions.has_pairs(is_update && self.randomized_positions.is_some());
        [2.0, if is_fused && !has_pairs && !self.sees_whole_source { 1.0 } else { 2.0 }]
    }
}
