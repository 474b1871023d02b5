//! Attention of a recurrent decoder: for one query, forward and backward, and for all that do not wait for each other.

mod layer;

pub use layer::{Gradients, Layer};

use super::functions::{exp, tanh};
use super::machine::Threads;
use super::matrix::{Matrix, MatrixMut};
use super::memory::{Start, TASK, new_pieces};
use super::product::product;
use super::vectors::{add_weighted, exponentials, largest, max, sum, update};

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
pub(super) struct Source<'a> {
    /// `[len, d_key]`.
    pub keys: &'a [f32],
    /// `[len, d_value]`.
    pub values: &'a [f32],
    /// The network's last layer, or empty.
    pub vector: &'a [f32],
    /// [`powers`] of the keys, or empty.
    pub powers: &'a [f32],
}

/// Beyond this, `e^2q` and `e^2k` might be zero or infinite where their product is not.
const LARGEST: f32 = 40.0;

/// `e^2k` for every number of the keys that a network compares: then `tanh(q + k) = 1 - 2 / (1 + e^2q e^2k)` takes a product and a quotient
/// for every pair of a query and a key, instead of an exponential. Empty for other scores, and for keys that are too large for it.
pub(super) fn powers(score: AlignmentScore, keys: &[f32]) -> Vec<f32> {
    if score != AlignmentScore::Network {
        return Vec::new();
    }
    let (powers, large) = new_pieces(
        Start::Copy(keys),
        TASK,
        #[inline(always)]
        |_, piece| {
            let is_large = largest(piece) > LARGEST;
            raise(piece);
            is_large
        },
    );
    if large.contains(&true) { Vec::new() } else { powers }
}

/// Replaces `x` by `e^2x`.
#[inline(always)]
fn raise(values: &mut [f32]) {
    update(
        [],
        [values],
        #[inline(always)]
        |[], [x]| [exp(2.0 * x)],
    );
}

/// `e^2q` of a query, if it and its keys are small enough for that.
#[inline(always)]
fn query_powers(query: &[f32], source: &Source) -> Option<Vec<f32>> {
    if source.powers.is_empty() || largest(query) > LARGEST {
        return None;
    }
    let mut powers = query.to_vec();
    raise(&mut powers);
    Some(powers)
}

impl<'a> Source<'a> {
    /// That of a sentence, of all sentences' keys and values.
    ///
    /// # Shapes
    /// - keys, powers: `[batch, source_len, d_key]`
    /// - values: `[batch, source_len, d_value]`
    /// - lengths: `batch` real positions; all, if there are none
    pub(super) fn of_sentence(
        sentence: usize,
        [keys, values, vector, powers]: [&'a [f32]; 4],
        [source_len, d_key, d_value]: [usize; 3],
        lengths: Option<&[usize]>,
    ) -> Self {
        let len = lengths.map_or(source_len, |lengths| lengths[sentence].min(source_len));
        let of_keys = sentence * source_len * d_key..sentence * source_len * d_key + len * d_key;
        Self {
            keys: &keys[of_keys.clone()],
            values: &values[sentence * source_len * d_value..][..len * d_value],
            vector,
            powers: if powers.is_empty() { powers } else { &powers[of_keys] },
        }
    }
}

/// Weights and context of one query.
#[inline(always)]
pub(super) fn attend(score: AlignmentScore, query: &[f32], source: &Source, weights: &mut [f32], context: &mut [f32]) {
    let d = query.len();
    context.fill(0.0);
    let len = source.keys.len() / d;
    let (weights, padding) = weights.split_at_mut(len);
    padding.fill(0.0);
    let of_query = query_powers(query, source);
    for (i, weight) in weights.iter_mut().enumerate() {
        let of_key = i * d..(i + 1) * d;
        *weight = match (score, &of_query) {
            (AlignmentScore::Dot { scale }, _) => {
                scale
                    * sum(
                        [query, &source.keys[of_key]],
                        #[inline(always)]
                        |[q, k]| q * k,
                    )
            }
            (AlignmentScore::Network, Some(of_query)) => sum(
                [source.vector, of_query, &source.powers[of_key]],
                #[inline(always)]
                |[v, q, k]| v * (1.0 - 2.0 / (1.0 + q * k)),
            ),
            (AlignmentScore::Network, None) => sum(
                [source.vector, query, &source.keys[of_key]],
                #[inline(always)]
                |[v, q, k]| v * tanh(q + k),
            ),
        };
    }
    let highest = max(weights);
    let scale = exponentials(weights, highest).recip();
    update(
        [],
        [&mut *weights],
        #[inline(always)]
        |[], [weight]| [weight * scale],
    );
    let width = context.len();
    add_weighted(
        context,
        weights,
        #[inline(always)]
        |i| &source.values[i * width..][..width],
    );
}

/// What the way back through one query leaves for its sentence.
pub(super) struct OfAlignment<'a> {
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
pub(super) fn back(
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
    for (i, of_score) in of_scores.iter_mut().enumerate() {
        *of_score = sum(
            [of_context, &source.values[i * width..][..width]],
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
    match score {
        AlignmentScore::Dot { scale } => {
            update(
                [],
                [&mut *of_scores],
                #[inline(always)]
                |[], [of_score]| [of_score * scale],
            );
            add_weighted(
                of_query,
                of_scores,
                #[inline(always)]
                |i| &source.keys[i * d..][..d],
            );
        }
        AlignmentScore::Network => {
            let powers = query_powers(query, source);
            for (i, of_score) in of_scores.iter().enumerate() {
                let at = i * d..(i + 1) * d;
                let outputs = [&mut *of.vector, &mut of.keys[at.clone()], &mut *of_query];
                match &powers {
                    Some(powers) => update(
                        [source.vector, powers, &source.powers[at]],
                        outputs,
                        #[inline(always)]
                        |[v, q, k], [of_vector, of_key, of_query]| {
                            let part = 1.0 / (1.0 + q * k);
                            let of_sum = of_score * v * (4.0 * part * (1.0 - part));
                            [of_vector + of_score * (1.0 - 2.0 * part), of_key + of_sum, of_query + of_sum]
                        },
                    ),
                    None => update(
                        [source.vector, query, &source.keys[at]],
                        outputs,
                        #[inline(always)]
                        |[v, q, k], [of_vector, of_key, of_query]| {
                            let unit = tanh(q + k);
                            let of_sum = of_score * v * (1.0 - unit * unit);
                            [of_vector + of_score * unit, of_key + of_sum, of_query + of_sum]
                        },
                    ),
                }
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
pub(super) fn back_to_source(
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

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 3;
    const D: usize = 21;

    fn numbers(n: usize, scale: f32, seed: u64) -> Vec<f32> {
        let numbers = super::super::random::Stream::new(seed, super::super::random::Purpose::Initialization, &[]);
        (0..n as u64).map(|i| scale * numbers.normal(i) as f32).collect()
    }

    /// Weights, context, and the gradients of query, keys and vector.
    fn both_ways(query: &[f32], keys: &[f32], powers: &[f32]) -> Vec<f32> {
        let (vector, values, of_context) = (numbers(D, 0.3, 3), numbers(LEN * 2, 1.0, 4), numbers(2, 1.0, 5));
        let source = Source { keys, values: &values, vector: &vector, powers };
        let (mut weights, mut context) = (vec![0.0; LEN], vec![0.0; 2]);
        attend(AlignmentScore::Network, query, &source, &mut weights, &mut context);
        let (mut scores, mut of_keys) = (vec![0.0; LEN], vec![0.0; LEN * D]);
        let (mut of_vector, mut of_query) = (vec![0.0; D], vec![0.0; D]);
        let of = OfAlignment { scores: &mut scores, keys: &mut of_keys, vector: &mut of_vector };
        back(AlignmentScore::Network, query, &source, &weights, &of_context, of, &mut of_query);
        [weights, context, of_query, of_keys, of_vector].concat()
    }

    #[test]
    fn powers_of_keys_and_queries_give_what_tanh_gives() {
        for scale in [0.1, 1.0, 5.0, 10.0] {
            let (query, keys) = (numbers(D, scale, 1), numbers(LEN * D, scale, 2));
            let powers = powers(AlignmentScore::Network, &keys);
            assert_eq!(powers.len(), keys.len());
            let (found, expected) = (both_ways(&query, &keys, &powers), both_ways(&query, &keys, &[]));
            let far = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 2e-6, "{far} at {scale}");
            assert!(far > 0.0, "both ways were the same");
        }
    }

    #[test]
    fn numbers_that_are_too_large_for_powers_are_compared_without_them() {
        let (mut query, mut keys) = (numbers(D, 1.0, 1), numbers(LEN * D, 1.0, 2));
        let of_small = powers(AlignmentScore::Network, &keys);
        // The sums are small although both are large.
        (query[4], keys[4], keys[D + 4], keys[2 * D + 4]) = (60.0, -59.5, -60.0, -60.2);
        assert!(powers(AlignmentScore::Network, &keys).is_empty());
        assert_eq!(both_ways(&query, &keys, &of_small), both_ways(&query, &keys, &[]), "the query alone is too large");
        assert!(powers(AlignmentScore::Dot { scale: 1.0 }, &[1.0]).is_empty());
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let (query, mut keys) = (numbers(D, 1.0, 1), numbers(LEN * D, 1.0, 2));
        keys[D] = f32::NAN;
        let powers = powers(AlignmentScore::Network, &keys);
        assert!(!powers.is_empty() && both_ways(&query, &keys, &powers)[0].is_nan());
    }
}
