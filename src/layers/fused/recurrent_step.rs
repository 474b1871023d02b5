//! What a recurrent decoder does in one step, where its steps are not one operation ([`sequence`](super::sequence)): as in
//! decoding, and in decoders of several layers.

use super::alignment::{self, AlignmentScore, OfAlignment, Source};
use super::cell;
use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::matrix::{Matrix, MatrixMut};
use super::pieces::{sum_of_rows, task_rows, zeros};
use super::simd::vectorized;
use crate::layers::recurrent::CellKind;
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::Arc;

/// The state that follows, from the gates' input part and recurrent part. See [`Cell`](crate::layers::recurrent::Cell).
#[derive(Debug)]
struct CellStep {
    kind: CellKind,
}

/// The state after a step: hidden state and, of an LSTM, memory.
///
/// # Shapes
/// - projected, recurrent: `[rows, n_gates * d_hidden]`, the products with input and state
/// - state: the state before, each `[rows, d_hidden]`
/// - candidate_bias: `[d_hidden]`, of a GRU
pub fn cell_step(
    kind: CellKind,
    projected: Tensor<2>,
    recurrent: Tensor<2>,
    (hidden, memory): (Tensor<2>, Option<Tensor<2>>),
    candidate_bias: Option<Tensor<1>>,
) -> (Tensor<2>, Option<Tensor<2>>) {
    let d = hidden.dims()[1];
    let mut inputs = [projected, recurrent, hidden].map(Tensor::into_dispatch).to_vec();
    inputs.extend(memory.map(Tensor::into_dispatch));
    inputs.extend(candidate_bias.map(Tensor::into_dispatch));
    let state: Tensor<2> = apply(CellStep { kind }, inputs);
    match kind {
        CellKind::Lstm => (state.clone().narrow(1, 0, d), Some(state.narrow(1, d, d))),
        _ => (state, None),
    }
}

impl CellStep {
    /// Width of the state, of its memory, and of the gates.
    fn widths(&self, inputs: &[Input]) -> [usize; 3] {
        let d = inputs[2].shape[1];
        [d, if self.kind == CellKind::Lstm { d } else { 0 }, inputs[0].shape[1]]
    }
}

impl Function for CellStep {
    fn forward(&self, inputs: &[Input]) -> Output {
        let [d, d_memory, width] = self.widths(inputs);
        let n_rows = inputs[0].shape[0];
        let d_saved = cell::n_saved(self.kind) * d;
        let (mut values, mut saved) = (zeros(n_rows * (d + d_memory)), zeros(n_rows * d_saved));
        let n = task_rows(width);
        let pieces = values.par_chunks_mut(n * (d + d_memory)).zip(saved.par_chunks_mut(n * d_saved)).enumerate();
        pieces.for_each(|(task, (states, saved))| {
            vectorized(
                #[inline(always)]
                || {
                    let rows = states.chunks_exact_mut(d + d_memory).zip(saved.chunks_exact_mut(d_saved));
                    for (i, (state, saved)) in rows.enumerate() {
                        let row = task * n + i;
                        let (hidden, memory) = state.split_at_mut(d);
                        hidden.copy_from_slice(&inputs[2].values[row * d..][..d]);
                        if d_memory > 0 {
                            memory.copy_from_slice(&inputs[3].values[row * d..][..d]);
                        }
                        let bias = (self.kind == CellKind::Gru).then(|| inputs[3].values);
                        let [input, recurrent] = [0, 1].map(|part| &inputs[part].values[row * width..][..width]);
                        cell::step(self.kind, input, recurrent, bias, hidden, memory, saved);
                    }
                },
            )
        });
        Output { shape: vec![n_rows, d + d_memory], values, saved: vec![saved] }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let [d, d_memory, width] = self.widths(of.inputs);
        let n_rows = of.inputs[0].shape[0];
        let d_saved = cell::n_saved(self.kind) * d;
        let saved = &of.saved[0];
        let [mut of_input, mut of_recurrent] = [zeros(n_rows * width), zeros(n_rows * width)];
        let [mut of_hidden, mut of_memory] = [zeros(n_rows * d), zeros(n_rows * d_memory)];
        for row in 0..n_rows {
            let (hidden, memory) = of.gradient[row * (d + d_memory)..][..d + d_memory].split_at(d);
            let of_hidden = &mut of_hidden[row * d..][..d];
            let of_memory = &mut of_memory[row * d_memory..][..d_memory];
            of_hidden.copy_from_slice(hidden);
            of_memory.copy_from_slice(memory);
            vectorized(
                #[inline(always)]
                || {
                    cell::back(
                        self.kind,
                        &saved[row * d_saved..][..d_saved],
                        &of.inputs[2].values[row * d..][..d],
                        of_hidden,
                        of_memory,
                        &mut of_input[row * width..][..width],
                        &mut of_recurrent[row * width..][..width],
                    )
                },
            );
        }
        let last = match self.kind {
            CellKind::Vanilla => None,
            CellKind::Gru => Some(sum_of_rows(&of_recurrent, width)[2 * d..].to_vec()),
            CellKind::Lstm => Some(of_memory),
        };
        [of_input, of_recurrent, of_hidden].into_iter().chain(last).map(Gradient::New).collect()
    }
}

/// Attention over the source for queries that do not wait for each other.
#[derive(Debug)]
struct Contexts {
    score: AlignmentScore,
    lengths: Option<Arc<[usize]>>,
}

/// The context of every query. See [`Alignment`](crate::layers::attention::alignment::Alignment).
///
/// # Shapes
/// - query: `[batch, query_len, d_key]`
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
/// - vector: `[d_key, 1]`, the last layer of a score that is a network
/// - lengths: `batch` real positions; all, if there are none
/// - output: `[batch, query_len, d_value]`
pub fn contexts(
    score: AlignmentScore,
    query: Tensor<3>,
    keys: Tensor<3>,
    values: Tensor<3>,
    vector: Option<Tensor<2>>,
    lengths: Option<Arc<[usize]>>,
) -> Tensor<3> {
    let mut inputs = [query, keys, values].map(Tensor::into_dispatch).to_vec();
    inputs.extend(vector.map(Tensor::into_dispatch));
    apply(Contexts { score, lengths }, inputs)
}

/// The sizes of [`Contexts`].
struct Sizes {
    batch: usize,
    query_len: usize,
    source_len: usize,
    d_key: usize,
    d_value: usize,
}

impl Sizes {
    fn new(inputs: &[Input]) -> Self {
        let ([batch, query_len, d_key], [_, source_len, d_value]) = (axes(&inputs[0]), axes(&inputs[2]));
        Self { batch, query_len, source_len, d_key, d_value }
    }
}

/// The `n` rows of a sentence, of all sentences' rows.
fn matrix_of(values: &[f32], sentence: usize, n: usize, width: usize) -> Matrix<'_> {
    Matrix::new(&values[sentence * n * width..][..n * width], n, width)
}

fn axes(input: &Input) -> [usize; 3] {
    input.shape.try_into().expect("three axes")
}

impl Contexts {
    fn source<'a>(&self, inputs: &[Input<'a>], sizes: &Sizes, sentence: usize) -> Source<'a> {
        let Sizes { source_len, d_key, d_value, .. } = *sizes;
        let vector = inputs.get(3).map_or(&[][..], |vector| vector.values);
        let parts = [inputs[1].values, inputs[2].values, vector];
        Source::of_sentence(sentence, parts, [source_len, d_key, d_value], self.lengths.as_deref())
    }
}

impl Function for Contexts {
    fn forward(&self, inputs: &[Input]) -> Output {
        let sizes = Sizes::new(inputs);
        let Sizes { batch, query_len, source_len, d_key, d_value } = sizes;
        let (mut values, mut saved) = (zeros(batch * query_len * d_value), zeros(batch * query_len * source_len));
        values.par_chunks_mut(d_value).zip(saved.par_chunks_mut(source_len)).enumerate().for_each(
            |(row, (context, weights))| {
                let query = &inputs[0].values[row * d_key..][..d_key];
                vectorized(
                    #[inline(always)]
                    || {
                        alignment::attend(
                            self.score,
                            query,
                            &self.source(inputs, &sizes, row / query_len),
                            weights,
                            context,
                        )
                    },
                )
            },
        );
        Output { shape: vec![batch, query_len, d_value], values, saved: vec![saved] }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let sizes = Sizes::new(of.inputs);
        let Sizes { batch, query_len, source_len, d_key, d_value } = sizes;
        let [mut of_query, mut of_keys, mut of_values, mut of_vector] =
            [query_len * d_key, source_len * d_key, source_len * d_value, d_key].map(|len| zeros(batch * len));
        let pieces = of_query
            .par_chunks_mut(query_len * d_key)
            .zip(of_keys.par_chunks_mut(source_len * d_key))
            .zip(of_values.par_chunks_mut(source_len * d_value))
            .zip(of_vector.par_chunks_mut(d_key));
        pieces.enumerate().for_each(|(sentence, (((of_queries, of_keys), of_values), of_vector))| {
            let queries = matrix_of(of.inputs[0].values, sentence, query_len, d_key);
            let weights = matrix_of(&of.saved[0], sentence, query_len, source_len);
            let of_contexts = matrix_of(of.gradient, sentence, query_len, d_value);
            let mut of_scores = vec![0.0; query_len * source_len];
            let source = self.source(of.inputs, &sizes, sentence);
            vectorized(
                #[inline(always)]
                || {
                    for i in 0..query_len {
                        alignment::back(
                            self.score,
                            queries.row(i),
                            &source,
                            weights.row(i),
                            of_contexts.row(i),
                            OfAlignment {
                                scores: &mut of_scores[i * source_len..][..source_len],
                                keys: of_keys,
                                vector: of_vector,
                            },
                            &mut of_queries[i * d_key..][..d_key],
                        );
                    }
                },
            );
            alignment::back_to_source(
                self.score,
                [queries, weights],
                [of_contexts, Matrix::new(&of_scores, query_len, source_len)],
                MatrixMut::new(of_keys, source_len, d_key),
                MatrixMut::new(of_values, source_len, d_value),
            );
        });
        let of_vector = of.inputs.get(3).map(|_| sum_of_rows(&of_vector, d_key));
        [of_query, of_keys, of_values].into_iter().chain(of_vector).map(Gradient::New).collect()
    }
}
