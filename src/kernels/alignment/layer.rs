//! Attention of queries that do not wait for each other, of all sentences at once.

use super::{AlignmentScore, OfAlignment, Source, attend, back, back_to_source, powers};
use crate::machine::vectorized;
use crate::matrix::{Matrix, MatrixMut};
use crate::memory::zeros;
use crate::rows::sum_of_rows;
use rayon::prelude::*;

/// A layer over whole sentences.
///
/// # Shapes
/// - queries: `[batch, query_len, d_key]`
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
/// - vector: `[d_key]`, the last layer of a score that is a network, else empty
/// - lengths: `batch` real positions; all, if there are none
pub struct Layer<'a> {
    /// How queries and keys are compared.
    pub score: AlignmentScore,
    /// What is compared with the keys.
    pub queries: &'a [f32],
    /// What is compared with the queries.
    pub keys: &'a [f32],
    /// What is averaged.
    pub values: &'a [f32],
    /// The network's last layer.
    pub vector: &'a [f32],
    /// Real positions of each source.
    pub lengths: Option<&'a [usize]>,
    /// Sentences.
    pub batch: usize,
    /// Queries of a sentence.
    pub query_len: usize,
    /// Positions of a source.
    pub source_len: usize,
}

/// The gradients of all inputs; empty for a vector that is not there.
pub struct Gradients {
    /// Of the queries.
    pub queries: Vec<f32>,
    /// Of the keys.
    pub keys: Vec<f32>,
    /// Of the values.
    pub values: Vec<f32>,
    /// Of the network's last layer.
    pub vector: Vec<f32>,
}

impl<'a> Layer<'a> {
    /// The widths of keys and of values.
    fn widths(&self) -> [usize; 2] {
        let n = self.batch * self.source_len;
        [self.keys.len() / n, self.values.len() / n]
    }

    /// What makes the comparison of a key with many queries cheap; with one query, making it would cost as much as it saves.
    fn powers(&self) -> Vec<f32> {
        if self.query_len == 1 { Vec::new() } else { powers(self.score, self.keys) }
    }

    /// What is attended to in a sentence; `powers` are those of all keys.
    fn source<'p>(&self, powers: &'p [f32], sentence: usize) -> Source<'p>
    where
        'a: 'p,
    {
        let [d_key, d_value] = self.widths();
        let parts = [self.keys, self.values, self.vector, powers];
        Source::of_sentence(sentence, parts, [self.source_len, d_key, d_value], self.lengths)
    }

    /// The contexts, `[batch, query_len, d_value]`, and the weights, `[batch, query_len, source_len]`.
    pub fn forward(&self) -> [Vec<f32>; 2] {
        let [d_key, d_value] = self.widths();
        let n_queries = self.batch * self.query_len;
        let (mut contexts, mut weights) = (zeros(n_queries * d_value), zeros(n_queries * self.source_len));
        let powers = self.powers();
        contexts.par_chunks_mut(d_value).zip(weights.par_chunks_mut(self.source_len)).enumerate().for_each(
            |(row, (context, weights))| {
                let query = &self.queries[row * d_key..][..d_key];
                let source = self.source(&powers, row / self.query_len);
                vectorized(
                    #[inline(always)]
                    || attend(self.score, query, &source, weights, context),
                )
            },
        );
        [contexts, weights]
    }

    /// The gradients, from the weights that [`Self::forward`] made and the gradient of the contexts.
    pub fn backward(&self, weights: &[f32], of_contexts: &[f32]) -> Gradients {
        let &Self { score, batch, query_len, source_len, .. } = self;
        let [d_key, d_value] = self.widths();
        let [mut of_queries, mut of_keys, mut of_values, mut of_vector] =
            [query_len * d_key, source_len * d_key, source_len * d_value, self.vector.len()]
                .map(|len| zeros(batch * len));
        let powers = self.powers();
        let mut of_vectors: Vec<&mut [f32]> = of_vector.chunks_mut(d_key).collect();
        of_vectors.resize_with(batch, Default::default);
        let pieces = of_queries
            .par_chunks_mut(query_len * d_key)
            .zip(of_keys.par_chunks_mut(source_len * d_key))
            .zip(of_values.par_chunks_mut(source_len * d_value))
            .zip(of_vectors);
        pieces.enumerate().for_each(|(sentence, (((of_queries, of_keys), of_values), of_vector))| {
            let queries = matrix_of(self.queries, sentence, query_len, d_key);
            let weights = matrix_of(weights, sentence, query_len, source_len);
            let of_contexts = matrix_of(of_contexts, sentence, query_len, d_value);
            let mut of_scores = vec![0.0; query_len * source_len];
            let source = self.source(&powers, sentence);
            vectorized(
                #[inline(always)]
                || {
                    for i in 0..query_len {
                        let scores = &mut of_scores[i * source_len..][..source_len];
                        back(
                            score,
                            queries.row(i),
                            &source,
                            weights.row(i),
                            of_contexts.row(i),
                            OfAlignment { scores, keys: of_keys, vector: of_vector },
                            &mut of_queries[i * d_key..][..d_key],
                        );
                    }
                },
            );
            back_to_source(
                score,
                [queries, weights],
                [of_contexts, Matrix::new(&of_scores, query_len, source_len)],
                MatrixMut::new(of_keys, source_len, d_key),
                MatrixMut::new(of_values, source_len, d_value),
            );
        });
        let vector = if self.vector.is_empty() { Vec::new() } else { sum_of_rows(&of_vector, d_key) };
        Gradients { queries: of_queries, keys: of_keys, values: of_values, vector }
    }
}

/// The `n` rows of a sentence, of all sentences' rows.
fn matrix_of(values: &[f32], sentence: usize, n: usize, width: usize) -> Matrix<'_> {
    Matrix::new(&values[sentence * n * width..][..n * width], n, width)
}
