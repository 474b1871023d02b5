//! What an encoder-only model costs, which answers for every token as soon as it has read the source.

use super::EncoderOnlyConfig;
use crate::layers::mixer::MixerConfig;
use crate::models::Vocabularies;
use crate::models::costs::{Costs, Widths, network_flops, steps};

fn layers(config: &EncoderOnlyConfig) -> impl Iterator<Item = &MixerConfig> {
    (0..config.n_layers).map(|layer| config.mixer.of_layer(layer))
}

impl Costs for EncoderOnlyConfig {
    /// Of the source alone: answers are read off it.
    fn forward_flops(&self, vocabularies: Vocabularies, n: usize) -> f64 {
        let widths = Widths::new(self.d_model, self.n_heads, self.n_key_value_heads());
        let network = network_flops(self.activation, self.d_model, self.d_feed_forward);
        let (n_answers, n) = (self.answer_len(n) as f64, n as f64);
        // A token sees all others, or half of them on average.
        let seen = if self.is_causal { n / 2.0 } else { n };
        let directions = |own: &MixerConfig| if self.is_causal { 1 } else { own.n_directions() };
        let stack: f64 = layers(self).map(|own| n * (widths.flops(own, directions(own), seen) + network)).sum();
        let d_model = self.d_model as f64;
        let transform = if self.transforms_output { d_model } else { 0.0 };
        stack + 2.0 * n_answers * d_model * (vocabularies.target as f64 + transform)
    }

    fn training_steps(&self, n: usize) -> u64 {
        layers(self).map(|own| steps(own, n)).sum()
    }

    /// The source is read once; its answers do not wait for each other.
    fn decoding_steps(&self, n: usize) -> u64 {
        self.training_steps(n)
    }

    /// What each answer is read off.
    fn state_elements(&self, n: u64) -> u64 {
        (self.answer_len(n as usize) as u64 + 1) * self.d_model as u64
    }

    /// Without attention nothing is looked at twice.
    fn exponents(&self, is_update: bool, is_fused: bool) -> [f64; 2] {
        if !layers(self).any(MixerConfig::is_attention) {
            return [1.0, 1.0];
        }
        let has_pairs = self.positions.has_pairs(is_update && self.randomized_positions.is_some());
        [2.0, if is_fused && !has_pairs { 1.0 } else { 2.0 }]
    }
}
