//! Word vectors: which words a model holds to be alike.

use crate::data::Tokenizer;
use crate::data::tokenizer::SPECIALS;
use crate::models::weights::{Weight, collect};
use burn::module::Module;
use schemars::JsonSchema;
use serde::Serialize;

/// A table of word vectors.
pub struct WordVectors {
    width: usize,
    values: Vec<f32>,
}

/// A word and how alike it is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Neighbour {
    /// The token as people see it.
    pub token: String,
    /// The cosine of the two vectors.
    pub cosine: f64,
}

impl WordVectors {
    /// The vectors of the source words; of the target's, if both sides share one table.
    pub fn of_source<M: Module>(model: &M) -> Option<Self> {
        let mut weights = collect(model);
        let table = weights.remove("source_embedding.weight").or_else(|| weights.remove("target_embedding.weight"))?;
        Some(Self::new(table))
    }

    /// A table of shape `[vocab_size, width]`.
    pub fn new(table: Weight) -> Self {
        Self { width: table.shape[1], values: table.values }
    }

    /// The vector of a word; of several tokens, their mean.
    pub fn of(&self, tokens: &[u32]) -> Vec<f32> {
        let mut mean = vec![0.0; self.width];
        for token in tokens {
            let row = &self.values[*token as usize * self.width..][..self.width];
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / tokens.len() as f32);
        }
        mean
    }

    /// The `n` words most alike to `tokens`, these themselves and special symbols left out.
    pub fn neighbours(&self, tokens: &[u32], n: usize, tokenizer: &Tokenizer) -> Vec<Neighbour> {
        let vector = self.of(tokens);
        let others = (SPECIALS.len() as u32..tokenizer.vocab_size() as u32).filter(|id| !tokens.contains(id));
        let mut found: Vec<(f64, u32)> = others.map(|id| (cosine(&vector, &self.of(&[id])), id)).collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let named = |(cosine, id): &(f64, u32)| Neighbour { token: tokenizer.label(*id), cosine: *cosine };
        found.iter().take(n).map(named).collect()
    }
}

/// The cosine of the angle between two vectors; 0 if one of them is zero.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms == 0.0 { 0.0 } else { dot(a, b) / norms }
}
