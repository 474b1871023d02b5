//! Vectors of words and states, and what can be said of them: norm, neighbours, change.

use crate::data::tokenizer::{SPECIALS, Tokenizer};
use crate::models::weights::Weight;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

/// A word of the vocabulary near another.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Neighbour {
    /// The token.
    pub token: String,
    /// The cosine of the angle between the two vectors.
    pub cosine: f32,
}

/// The vector of a token.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct WordVector {
    /// The token.
    pub token: String,
    /// Its id.
    pub id: u32,
    /// Its row of the word table.
    pub vector: Vec<f32>,
    /// The length of that vector.
    pub norm: f32,
    /// What enters the model: scaled and with its position, where the model does that.
    pub embedded: Vec<f32>,
    /// The words whose vectors point most nearly the same way.
    pub neighbours: Vec<Neighbour>,
}

/// What a state is like beside another one.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Change {
    /// The other one.
    pub from: String,
    /// The cosine of the angle between them; none if one of them is zero.
    pub cosine: Option<f32>,
    /// The length of their difference.
    pub distance: f32,
}

/// The state of an encoder at one token.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct State {
    /// The token.
    pub token: String,
    /// The state.
    pub vector: Vec<f32>,
    /// Its length.
    pub norm: f32,
    /// The factor by which a recurrence multiplies what it has, as a mean over its elements: one number for each direction of
    /// reading. Empty where there is no such factor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<f32>,
    /// How it differs from the state before, for each direction of reading; in a Transformer from the layer below.
    pub changes: Vec<Change>,
}

/// The states of one layer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct StateLayer {
    /// The layer.
    pub layer: usize,
    /// One state for each token.
    pub states: Vec<State>,
}

/// The length of a vector.
pub(super) fn norm(vector: &[f32]) -> f32 {
    vector.iter().map(|value| (*value as f64).powi(2)).sum::<f64>().sqrt() as f32
}

/// The cosine of the angle between two vectors; none if one of them is zero.
pub(super) fn cosine(a: &[f32], b: &[f32]) -> Option<f32> {
    let product: f64 = a.iter().zip(b).map(|(a, b)| *a as f64 * *b as f64).sum();
    let norms = norm(a) as f64 * norm(b) as f64;
    (norms > 0.0).then(|| (product / norms) as f32)
}

/// What `vector` is like beside `other`.
pub(super) fn change(from: &str, other: &[f32], vector: &[f32]) -> Change {
    let difference: Vec<f32> = vector.iter().zip(other).map(|(a, b)| a - b).collect();
    Change { from: from.to_owned(), cosine: cosine(vector, other), distance: norm(&difference) }
}

/// The rows of a table for `ids`, with their nearest `n_neighbours` words.
pub(super) fn word_vectors(table: &Weight, tokenizer: &Tokenizer, ids: &[u32], n_neighbours: usize) -> Vec<WordVector> {
    let width = table.shape[1];
    let row = |id: usize| &table.values[id * width..][..width];
    let norms: Vec<f32> = table.values.par_chunks(width).map(norm).collect();
    let of = |id: &u32| {
        let vector = row(*id as usize);
        let cosine_to = |other: usize| {
            let product: f32 = vector.iter().zip(row(other)).map(|(a, b)| a * b).sum();
            product / (norms[*id as usize] * norms[other]).max(f32::MIN_POSITIVE)
        };
        // The special tokens stand for no word.
        let others = (SPECIALS.len()..norms.len().min(tokenizer.vocab_size())).filter(|other| *other != *id as usize);
        let mut cosines: Vec<(f32, usize)> = others.map(|other| (cosine_to(other), other)).collect();
        cosines.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let nearest = cosines.into_iter().take(n_neighbours);
        WordVector {
            token: tokenizer.label(*id),
            id: *id,
            vector: vector.to_vec(),
            norm: norms[*id as usize],
            embedded: Vec::new(),
            neighbours: nearest
                .map(|(cosine, other)| Neighbour { token: tokenizer.label(other as u32), cosine })
                .collect(),
        }
    };
    ids.par_iter().map(of).collect()
}
