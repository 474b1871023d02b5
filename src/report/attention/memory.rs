//! What a recurrence keeps: how much of each token's input is still in its state.
//!
//! For `h_t = a_t * h_(t-1) + b_t` with an `a_t` that sees no state, the state is a sum over what was written,
//! `h_t = sum_(j <= t) (prod_(k = j+1..t) a_k) * b_j`, so that the share of `b_j` that is left at `t` is that product, element by
//! element of the state. A map has its mean over the elements of a layer's state, or of a head's.
//!
//! This is a share of what was written, not a weight of attention: a row does not sum to one, the diagonal is one, and a large
//! share of a small `b_j` is little. It says what can still be known of a token in this layer, not what is made of it.
//!
//! It is exact for minGRU, minLSTM, SSRU and RG-LRU, and for gated linear attention, whose `S_t = diag(a_t) S_(t-1) + k_t v_t^T`
//! keeps the rows of a matrix. It is left out where no such factor is there: the gates of vanilla, GRU and LSTM cells see the
//! state, so that another token also changes what is kept later; the delta rules take from a memory what stands in the way of
//! a key, which is no factor of what one token wrote; linear attention forgets nothing, so that every share is one.

use super::{AttentionMap, Part, Place, SentenceMaps};
use crate::layers::TraceEntry;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The mean over the elements of a state of `prod_(k = j+1..t) a_k`, for every `t` (rows) and `j <= t` (columns); zero after.
///
/// # Shapes
/// - kept: `[len, width]`, row-major: `a_t`
/// - output: `[len, len]`, row-major
///
/// # Panics
/// If the values are no whole number of rows.
pub fn shares(kept: &[f32], len: usize) -> Vec<f32> {
    let width = kept.len() / len.max(1);
    assert_eq!(width * len, kept.len(), "a factor for each element at each position");
    let mut shares = vec![0.0; len * len];
    let columns: Vec<Vec<f32>> = (0..len)
        .into_par_iter()
        .map(|j| {
            let mut left = vec![1.0f64; width];
            let mut column = vec![1.0f32];
            for a in kept.chunks(width.max(1)).skip(j + 1) {
                left.iter_mut().zip(a).for_each(|(left, a)| *left *= f64::from(*a));
                column.push((left.iter().sum::<f64>() / width as f64) as f32);
            }
            column
        })
        .collect();
    for (j, column) in columns.into_iter().enumerate() {
        for (later, share) in column.into_iter().enumerate() {
            shares[(j + later) * len + j] = share;
        }
    }
    shares
}

/// The maps of every recurrence in a trace of one sentence, or none where there is no factor to multiply.
///
/// Factors are named `(encoder|decoder).LAYER.recurrence.(forward|backward).kept`; beside those of the delta rules stands what
/// they replace.
pub(super) fn maps(entries: &[TraceEntry]) -> Vec<AttentionMap> {
    entries.iter().filter_map(|entry| of_layer(entry, entries)).flatten().collect()
}

fn of_layer(entry: &TraceEntry, entries: &[TraceEntry]) -> Option<Vec<AttentionMap>> {
    let place = entry.name.strip_suffix(".kept")?;
    if entries.iter().any(|other| other.name.strip_suffix(".replaced") == Some(place)) {
        return None;
    }
    let [side, layer, "recurrence", direction] = place.split('.').collect::<Vec<_>>()[..] else { return None };
    let layer = layer.parse::<usize>().ok()? + 1;
    let is_backward = direction == "backward";
    let part = match (side, is_backward) {
        ("encoder", false) => Part::EncoderMemory,
        ("encoder", true) => Part::EncoderMemoryBackward,
        _ => Part::Memory,
    };
    // A vector has `[1, len, width]`, the rows of matrices `[1, heads, len, width]`.
    let has_heads = entry.shape.len() == 4;
    let [.., len, width] = entry.shape[..] else { return None };
    let map = |(head, kept): (usize, &[f32])| {
        let mut rows: Vec<&[f32]> = kept.chunks(width.max(1)).collect();
        // From the end, in the order of reading.
        if is_backward {
            rows.reverse();
        }
        let mut weights = shares(&rows.concat(), len);
        if is_backward {
            // Both axes turned round.
            weights.reverse();
        }
        AttentionMap {
            part,
            layer: Some(layer),
            head: has_heads.then_some(head + 1),
            n_rows: len,
            n_columns: len,
            weights,
            is_causal: false,
        }
    };
    Some(entry.values.chunks((len * width).max(1)).enumerate().map(map).collect())
}

/// How old a token is for which a mean share is given, in tokens.
pub const AGES: [usize; 4] = [1, 4, 16, 64];

/// One layer's or head's memory over all sentences.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySummary {
    /// Of which sequence, in which direction.
    pub part: Part,
    /// The layer, counted from 1.
    pub layer: Option<usize>,
    /// The head, counted from 1; none where the state is one vector.
    pub head: Option<usize>,
    /// The mean over all positions of the sum of a row: to how many whole tokens what the state holds adds up.
    pub tokens: f64,
    /// The mean share that is left of a token's input after 1, 4, 16 and 64 further tokens; none where no text is so long.
    pub left: [Option<f64>; 4],
}

impl MemorySummary {
    /// The numbers of one map.
    pub fn of(map: &AttentionMap) -> Self {
        let mut sums = PlaceSums::default();
        sums.add(map);
        sums.finish((map.part, map.layer, map.head))
    }
}

/// What the means of one layer's or head's memory are made of.
#[derive(Clone, Debug, Default)]
struct PlaceSums {
    n_rows: usize,
    total: f64,
    /// For each age the sum of what is left, and of how many tokens.
    left: [(f64, usize); AGES.len()],
}

impl PlaceSums {
    fn add(&mut self, map: &AttentionMap) {
        self.n_rows += map.n_rows;
        map.weights.iter().for_each(|share| self.total += f64::from(*share));
        for ((sum, n), age) in self.left.iter_mut().zip(AGES) {
            for share in left_after(map, age) {
                *sum += share;
                *n += 1;
            }
        }
    }

    fn finish(&self, (part, layer, head): Place) -> MemorySummary {
        let left = self.left.map(|(sum, n)| (n > 0).then(|| sum / n as f64));
        MemorySummary { part, layer, head, tokens: self.total / self.n_rows.max(1) as f64, left }
    }
}

/// The numbers of every memory, of one sentence after the other: maps need not be kept for them.
#[derive(Clone, Debug, Default)]
pub struct MemorySums(BTreeMap<Place, PlaceSums>);

impl MemorySums {
    /// Adds those of a sentence.
    pub fn add(&mut self, sentence: &SentenceMaps) {
        for map in sentence.maps.iter().filter(|map| map.part.is_memory()) {
            self.0.entry((map.part, map.layer, map.head)).or_default().add(map);
        }
    }

    /// The means over all sentences.
    pub fn finish(self) -> Vec<MemorySummary> {
        self.0.into_iter().map(|(place, sums)| sums.finish(place)).collect()
    }
}

/// The shares of all tokens that are `age` tokens old.
fn left_after(map: &AttentionMap, age: usize) -> impl Iterator<Item = f64> + '_ {
    let pairs = (0..map.n_rows.saturating_sub(age)).map(move |i| match map.part {
        Part::EncoderMemoryBackward => (i, i + age),
        _ => (i + age, i),
    });
    pairs.map(|(row, column)| f64::from(map.row(row)[column]))
}

/// Every layer's and head's memory, over all sentences.
pub fn summarize(sentences: &[SentenceMaps]) -> Vec<MemorySummary> {
    let mut sums = MemorySums::default();
    sentences.iter().for_each(|sentence| sums.add(sentence));
    sums.finish()
}
