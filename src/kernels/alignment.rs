//! One step of a recurrent decoder's attention for one sentence, forward and backward.

use super::functions::tanh;
use super::machine::Threads;
use super::matrix::{Matrix, MatrixMut};
use super::product::product;
use super::vectors::{exponentials, max, sum, update};

/// How queries and keys are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AlignmentScore {
    /// `scale * q . k`.
    Dot {
        /// What the product is multiplied by.
        scale: f32,
    },
    /// `v . tanh(q + k)`.
    Network,
}

/// What is attended to in one sentence: as many keys and values as it has real positions.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// `[len, d_key]`.
    pub keys: &'a [f32],
    /// `[len, d_value]`.
    pub values: &'a [f32],
    /// The network's last layer, or empty.
    pub vector: &'a [f32],
}

impl<'a> Source<'a> {
    /// That of a sentence, of all sentences' keys and values.
    ///
    /// # Shapes
    /// - keys: `[batch, source_len, d_key]`
    /// - values: `[batch, source_len, d_value]`
    /// - lengths: `batch` real positions; all, if there are none
    pub fn of_sentence(
        sentence: usize,
        [keys, values, vector]: [&'a [f32]; 3],
        [source_len, d_key, d_value]: [usize; 3],
        lengths: Option<&[usize]>,
    ) -> Self {
        let len = lengths.map_or(source_len, |lengths| lengths[sentence].min(source_len));
        Self {
            keys: &keys[sentence * source_len * d_key..][..len * d_key],
            values: &values[sentence * source_len * d_value..][..len * d_value],
            vector,
        }
    }
}

/// Weights and context of one query.
#[inline(always)]
pub fn attend(score: AlignmentScore, query: &[f32], source: &Source, weights: &mut [f32], context: &mut [f32]) {
    let d = query.len();
    context.fill(0.0);
    let len = source.keys.len() / d;
    let (weights, padding) = weights.split_at_mut(len);
    padding.fill(0.0);
    for (weight, key) in weights.iter_mut().zip(source.keys.chunks_exact(d)) {
        *weight = match score {
            AlignmentScore::Dot { scale } => {
                scale
                    * sum(
                        [query, key],
                        #[inline(always)]
                        |[q, k]| q * k,
                    )
            }
            AlignmentScore::Network => sum(
                [source.vector, query, key],
                #[inline(always)]
                |[v, q, k]| v * tanh(q + k),
            ),
        };
    }
    let highest = max(weights);
    let scale = exponentials(weights, highest).recip();
    let width = context.len();
    for (weight, value) in weights.iter_mut().zip(source.values.chunks_exact(width)) {
        *weight *= scale;
        context.iter_mut().zip(value).for_each(|(context, value)| *context += *weight * value);
    }
}

/// What the way back through one query leaves for its sentence.
pub struct OfAlignment<'a> {
    /// The gradients of the scores, zero where the source is padding. A product over all steps makes of them, and of the queries,
    /// the gradients of the keys, unless those are behind a network.
    pub scores: &'a mut [f32],
    /// `[len, d_key]`, added to: the gradients of keys behind a network.
    pub keys: &'a mut [f32],
    /// Added to: that of the network's last layer.
    pub vector: &'a mut [f32],
}

/// The way back from the gradient of a context to that of its query. The gradients of the values are a product over all steps,
/// of weights and gradients of contexts.
#[inline(always)]
pub fn back(
    score: AlignmentScore,
    query: &[f32],
    source: &Source,
    weights: &[f32],
    of_context: &[f32],
    of: OfAlignment,
    of_query: &mut [f32],
) {
    let (d, width) = (query.len(), of_context.len());
    let len = source.keys.len() / d;
    let (of_scores, padding) = of.scores.split_at_mut(len);
    padding.fill(0.0);
    of_query.fill(0.0);
    for (of_score, value) in of_scores.iter_mut().zip(source.values.chunks_exact(width)) {
        *of_score = sum(
            [of_context, value],
            #[inline(always)]
            |[gradient, value]| gradient * value,
        );
    }
    let mean = sum(
        [&weights[..len], of_scores],
        #[inline(always)]
        |[weight, gradient]| weight * gradient,
    );
    of_scores.iter_mut().zip(weights).for_each(|(gradient, weight)| *gradient = weight * (*gradient - mean));
    let keys = source.keys.chunks_exact(d);
    match score {
        AlignmentScore::Dot { scale } => {
            for (of_score, key) in of_scores.iter_mut().zip(keys) {
                *of_score *= scale;
                of_query.iter_mut().zip(key).for_each(|(sum, key)| *sum += *of_score * key);
            }
        }
        AlignmentScore::Network => {
            for ((of_score, key), of_key) in of_scores.iter().zip(keys).zip(of.keys.chunks_exact_mut(d)) {
                update(
                    [source.vector, query, key],
                    [&mut *of.vector, of_key, &mut *of_query],
                    #[inline(always)]
                    |[v, q, k], [of_vector, of_key, of_query]| {
                        let unit = tanh(q + k);
                        let of_sum = of_score * v * (1.0 - unit * unit);
                        [of_vector + of_score * unit, of_key + of_sum, of_query + of_sum]
                    },
                );
            }
        }
    }
}

/// The gradients of a sentence's keys and values, as far as they are products over all its queries: sums that grew with every query
/// would be read and written as often.
///
/// # Shapes
/// - queries, weights: a row for each query
/// - of_contexts, of_scores: as many rows
/// - of_keys: `[source_len, d_key]`, left as they are if they are behind a network
/// - of_values: `[source_len, d_value]`
pub fn back_to_source(
    score: AlignmentScore,
    [queries, weights]: [Matrix; 2],
    [of_contexts, of_scores]: [Matrix; 2],
    of_keys: MatrixMut,
    of_values: MatrixMut,
) {
    product(of_values, weights.transposed(), of_contexts, 1.0, Threads::One);
    if let AlignmentScore::Dot { .. } = score {
        product(of_keys, of_scores.transposed(), queries, 1.0, Threads::One);
    }
}
