//! What a recurrent encoder-decoder costs.

use super::{ContextUse, OutputKind, RnnConfig};
use crate::layers::attention::{AttentionConfig, ScoreConfig};
use crate::layers::mixer::{Gating, MixerConfig};
use crate::layers::recurrent::CellKind;
use crate::models::Vocabularies;
use crate::models::costs::{Costs, steps};
use crate::models::readout::ReadoutConfig;

impl Costs for RnnConfig {
    fn forward_flops(&self, vocabularies: Vocabularies, n: usize) -> f64 {
        let n = n as f64;
        let [d, d_embedding] = [self.d_hidden, self.d_embedding].map(|width| width as f64);
        let [directions, gates] = [self.n_directions(), self.cell.n_gates()].map(|n| n as f64);
        let encoded = directions * d;
        let encoder = n * directions * encoder_flops(self, d_embedding, encoded);
        let of_layer = |layer| 2.0 * gates * d * (if layer == 0 { d_embedding } else { d } + d);
        let mut step: f64 = (0..self.n_layers).map(of_layer).sum();
        let mut once = 2.0 * encoded * d * self.n_layers as f64;
        match &self.attention {
            AttentionConfig::None {} => {
                let enters = self.context == ContextUse::EveryStep;
                once += if enters { 2.0 * gates * d * encoded } else { 0.0 };
            }
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
        let read = match self.readout {
            ReadoutConfig::State {} => d,
            ReadoutConfig::StateContext {} => d + encoded,
            ReadoutConfig::DeepOutput { d_maxout } => {
                step += 2.0 * 2.0 * d_maxout as f64 * (d + d_embedding + encoded);
                d_maxout as f64
            }
        };
        let vocabulary = vocabularies.target as f64;
        step += match self.output {
            OutputKind::Similarity => 2.0 * read * d_embedding + 2.0 * d_embedding * vocabulary,
            OutputKind::Projection => 2.0 * read * vocabulary,
        };
        encoder + once + n * step
    }

    /// Layers overlap: the second can start when the first is one position ahead.
    fn training_steps(&self, n: usize) -> u64 {
        encoder_steps(self, n) + (n + 2 * (self.n_layers - 1)) as u64
    }

    fn decoding_steps(&self, n: usize) -> u64 {
        encoder_steps(self, n) + (n * self.n_layers) as u64
    }

    fn state_elements(&self, n: u64) -> u64 {
        let d = self.d_hidden as u64;
        let directions = self.n_directions() as u64;
        let states = if self.cell == CellKind::Lstm { 2 } else { 1 };
        let state = self.n_layers as u64 * d * states;
        let source = match self.attention.alignment() {
            None => directions * d,
            Some((ScoreConfig::Additive { d_attention } | ScoreConfig::Concat { d_attention }, _)) => {
                n * (directions * d + *d_attention as u64)
            }
            Some((ScoreConfig::General {}, _)) => n * (directions * d + d),
            Some(_) => n * directions * d,
        };
        state + source
    }

    fn exponents(&self, is_update: bool, _is_fused: bool) -> [f64; 2] {
        match self.attention == (AttentionConfig::None {}) {
            true => [1.0, if is_update { 1.0 } else { 0.0 }],
            false => [2.0, if is_update { 2.0 } else { 1.0 }],
        }
    }
}

/// One token's way through one direction of the encoder.
fn encoder_flops(config: &RnnConfig, d_embedding: f64, encoded: f64) -> f64 {
    let d = config.d_hidden as f64;
    let of_layer = |(layer, own): (usize, MixerConfig)| {
        let d_input = if layer == 0 { d_embedding } else { encoded };
        2.0 * match own.kind.cell() {
            Some(cell) => cell.n_gates() as f64 * d * (d_input + d),
            None => own.kind.gating().map_or(0, Gating::n_gates) as f64 * d * d_input,
        }
    };
    config.encoder_mixers().made(config.n_layers, false).into_iter().enumerate().map(of_layer).sum()
}

/// Steps of the slowest layer of the encoder over `n` positions that wait for each other.
fn encoder_steps(config: &RnnConfig, n: usize) -> u64 {
    let mixers = config.encoder_mixers().made(config.n_layers, false);
    mixers.iter().map(|own| steps(own, n)).max().unwrap_or(0)
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
