//! One step of a recurrent decoder's attention for one sentence, forward and backward.

use super::simd::{exponentials, max, sum, tanh, update};

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

/// Where the gradients of one sentence's attention are summed.
pub struct SourceGradients<'a> {
    /// `[len, d_key]`.
    pub keys: &'a mut [f32],
    /// `[len, d_value]`.
    pub values: &'a mut [f32],
    /// As the network's last layer.
    pub vector: &'a mut [f32],
}

/// The way back from the gradient of a context to that of its query; the source's gradients are added to.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
pub fn back(
    score: AlignmentScore,
    query: &[f32],
    source: &Source,
    weights: &[f32],
    of_context: &[f32],
    of_source: &mut SourceGradients,
    of_query: &mut [f32],
    scratch: &mut [f32],
) {
    let (d, width) = (query.len(), of_context.len());
    let len = source.keys.len() / d;
    let (weights, of_scores) = (&weights[..len], &mut scratch[..len]);
    of_query.fill(0.0);
    let values = source.values.chunks_exact(width).zip(of_source.values.chunks_exact_mut(width));
    for ((of_score, weight), (value, of_value)) in of_scores.iter_mut().zip(weights).zip(values) {
        *of_score = sum(
            [of_context, value],
            #[inline(always)]
            |[gradient, value]| gradient * value,
        );
        of_value.iter_mut().zip(of_context).for_each(|(sum, gradient)| *sum += weight * gradient);
    }
    let mean = sum(
        [weights, of_scores],
        #[inline(always)]
        |[weight, gradient]| weight * gradient,
    );
    let keys = source.keys.chunks_exact(d).zip(of_source.keys.chunks_exact_mut(d));
    for ((of_score, weight), (key, of_key)) in of_scores.iter().zip(weights).zip(keys) {
        let of_score = weight * (of_score - mean);
        match score {
            AlignmentScore::Dot { scale } => {
                let of_score = scale * of_score;
                of_key.iter_mut().zip(query).for_each(|(sum, query)| *sum += of_score * query);
                of_query.iter_mut().zip(key).for_each(|(sum, key)| *sum += of_score * key);
            }
            AlignmentScore::Network => {
                let outputs = [&mut *of_source.vector, of_key, &mut *of_query];
                update(
                    [source.vector, query, key],
                    outputs,
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
