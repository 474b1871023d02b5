//! Attention of a recurrent decoder over its source, for queries that do not wait for each other.

use super::linear::product_on_gpu;
use super::mask::Mask;
use super::named::{Arrays, Flags, Gradient, Gradients, Output, Tensors, View, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use crate::backend::gpu::{self, Softening};
use crate::kernels::alignment::{self, AlignmentScore, OfAlignment, Source};
use crate::kernels::machine::vectorized;
use crate::kernels::matrix::{Matrix, MatrixMut};
use crate::kernels::memory::{sum_of_rows, zeros};
use burn::tensor::Tensor;
use rayon::prelude::*;

named! {
    /// What `Contexts` takes.
    ContextsInputs {
        /// `[batch, query_len, d_key]`.
        query: one 3,
        /// `[batch, source_len, d_key]`.
        keys: one 3,
        /// `[batch, source_len, d_value]`.
        values: one 3,
        /// The last layer of a score that is a network: `[d_key, 1]`.
        vector: maybe 2,
    }
}

/// Attention over the source for queries that do not wait for each other.
#[derive(Debug)]
struct Contexts {
    score: AlignmentScore,
    mask: Mask,
}

/// The context of every query. See [`Alignment`](crate::layers::attention::alignment::Alignment).
///
/// # Shapes
/// - query: `[batch, query_len, d_key]`
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
/// - vector: `[d_key, 1]`, the last layer of a score that is a network
/// - mask: which positions of each source are real
/// - output: `[batch, query_len, d_value]`
///
/// # Reference
/// Bahdanau 2015, A.1.2, and Luong 2015, equations 7 and 8.
pub fn contexts(
    score: AlignmentScore,
    query: Tensor<3>,
    keys: Tensor<3>,
    values: Tensor<3>,
    vector: Option<Tensor<2>>,
    mask: &Mask,
    body: Body,
) -> Tensor<3> {
    run(Contexts { score, mask: mask.clone() }, ContextsInputs { query, keys, values, vector }, body).output
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
    fn new(inputs: &ContextsInputs<Views>) -> Self {
        let ([batch, query_len, d_key], [_, source_len, d_value]) = (inputs.query.shape, inputs.values.shape);
        Self { batch, query_len, source_len, d_key, d_value }
    }
}

/// The `n` rows of a sentence, of all sentences' rows.
fn matrix_of(values: &[f32], sentence: usize, n: usize, width: usize) -> Matrix<'_> {
    Matrix::new(&values[sentence * n * width..][..n * width], n, width)
}

impl Contexts {
    /// What makes the comparison of a key with many queries cheap; with one query, making it would cost as much as it saves.
    fn powers(&self, inputs: &ContextsInputs<Views>) -> Vec<f32> {
        if inputs.query.shape[1] == 1 { Vec::new() } else { alignment::powers(self.score, inputs.keys.values) }
    }

    /// What is attended to in a sentence; `powers` are those of all keys.
    fn source<'a, 'v: 'a>(
        &self,
        inputs: &ContextsInputs<Views<'v>>,
        powers: &'a [f32],
        sizes: &Sizes,
        sentence: usize,
    ) -> Source<'a> {
        let Sizes { source_len, d_key, d_value, .. } = *sizes;
        let vector = inputs.vector.map_or(&[][..], |vector: View<'v, 2>| vector.values);
        let parts = [inputs.keys.values, inputs.values.values, vector, powers];
        Source::of_sentence(sentence, parts, [source_len, d_key, d_value], self.mask.lengths().as_deref())
    }
}

impl Operation for Contexts {
    type Inputs = ContextsInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    /// The weights: `[batch, query_len, source_len]`.
    type Kept = Vec<f32>;

    fn keeps(&self) -> Keeps<Self> {
        Keeps {
            inputs: ContextsInputs { query: true, keys: true, values: true, vector: Some(true) },
            outputs: Output::<3, Flags>::none(),
        }
    }

    fn forward(&self, inputs: ContextsInputs<Views>) -> (Output<3, Arrays>, Vec<f32>) {
        let sizes = Sizes::new(&inputs);
        let Sizes { batch, query_len, source_len, d_key, d_value } = sizes;
        let (mut values, mut weights) = (zeros(batch * query_len * d_value), zeros(batch * query_len * source_len));
        let powers = self.powers(&inputs);
        values.par_chunks_mut(d_value).zip(weights.par_chunks_mut(source_len)).enumerate().for_each(
            |(row, (context, weights))| {
                let query = &inputs.query.values[row * d_key..][..d_key];
                let source = self.source(&inputs, &powers, &sizes, row / query_len);
                vectorized(
                    #[inline(always)]
                    || alignment::attend(self.score, query, &source, weights, context),
                )
            },
        );
        (Output::new([batch, query_len, d_value], values), weights)
    }

    fn backward(&self, of: Backward<Self>) -> ContextsInputs<Gradients> {
        let sizes = Sizes::new(&of.inputs);
        let Sizes { batch, query_len, source_len, d_key, d_value } = sizes;
        let gradient = of.gradients.output.values;
        let [mut of_query, mut of_keys, mut of_values, mut of_vector] =
            [query_len * d_key, source_len * d_key, source_len * d_value, d_key].map(|len| zeros(batch * len));
        let powers = self.powers(&of.inputs);
        let pieces = of_query
            .par_chunks_mut(query_len * d_key)
            .zip(of_keys.par_chunks_mut(source_len * d_key))
            .zip(of_values.par_chunks_mut(source_len * d_value))
            .zip(of_vector.par_chunks_mut(d_key));
        pieces.enumerate().for_each(|(sentence, (((of_queries, of_keys), of_values), of_vector))| {
            let queries = matrix_of(of.inputs.query.values, sentence, query_len, d_key);
            let weights = matrix_of(&of.kept, sentence, query_len, source_len);
            let of_contexts = matrix_of(gradient, sentence, query_len, d_value);
            let mut of_scores = vec![0.0; query_len * source_len];
            let source = self.source(&of.inputs, &powers, &sizes, sentence);
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
        ContextsInputs {
            query: Gradient::New(of_query),
            keys: Gradient::New(of_keys),
            values: Gradient::New(of_values),
            vector: of.needed.vector.map(|_| Gradient::New(sum_of_rows(&of_vector, d_key))),
        }
    }

    fn written(&self, inputs: ContextsInputs<Tensors>) -> Output<3, Tensors> {
        let ContextsInputs { query, keys, values, vector } = inputs;
        let source = WrittenSource { keys, values, vector, mask: self.mask.clone() };
        Output { output: source.contexts(self.score, query, Body::Written) }
    }

    fn on_gpu(&self, inputs: &ContextsInputs<Tensors>) -> Option<Output<3, Tensors>> {
        let ContextsInputs { query, keys, values, vector } = inputs;
        let (keys, values, vector) = (keys.clone(), values.clone(), vector.clone());
        let source = WrittenSource { keys, values, vector, mask: self.mask.clone() };
        Some(Output { output: source.contexts(self.score, query.clone(), Body::Fused) })
    }
}

/// What is attended to, elsewhere than on slices.
pub(super) struct WrittenSource {
    keys: Tensor<3>,
    values: Tensor<3>,
    vector: Option<Tensor<2>>,
    mask: Mask,
}

impl WrittenSource {
    pub(super) fn new(
        keys: Tensor<3>,
        values: Tensor<3>,
        vector: Option<Tensor<2>>,
        lengths: Option<&[usize]>,
    ) -> Self {
        let [_, source_len, _] = keys.dims();
        let mask = lengths.map_or_else(Mask::none, |lengths| Mask::padding(lengths, source_len, &keys.device()));
        Self { keys, values, vector, mask }
    }

    /// The context of every query: `[batch, query_len, d_key]` to `[batch, query_len, d_value]`. If `body` allows it, by kernels of ours for
    /// a GPU.
    pub(super) fn contexts(&self, score: AlignmentScore, query: Tensor<3>, body: Body) -> Tensor<3> {
        let (scores, scale) = match score {
            AlignmentScore::Dot { scale } => (product_on_gpu(query, self.keys.clone().swap_dims(1, 2), body), scale),
            AlignmentScore::Network => {
                let vector = self.vector.clone().expect("a network has a last layer");
                let by_kernel = match body {
                    Body::Fused => gpu::alignment_network(&query, &self.keys, &vector),
                    Body::Written => None,
                };
                (by_kernel.unwrap_or_else(|| alignment_network(query, self.keys.clone(), vector)), 1.0)
            }
        };
        let scores: Tensor<4> = scores.unsqueeze_dim(1);
        let by_kernel = match body {
            Body::Fused if !self.mask.has_empty_rows() => {
                gpu::softmax(&scores, self.mask.bias(), Softening { scale, dropout: None })
            }
            _ => None,
        };
        let weights = by_kernel.unwrap_or_else(|| {
            let is_scaled = matches!(score, AlignmentScore::Dot { .. });
            self.mask.softmax(if is_scaled { scores.mul_scalar(scale) } else { scores })
        });
        product_on_gpu(weights.squeeze_dim::<3>(1), self.values.clone(), body)
    }
}

/// `v^T tanh(q + k)` for every pair of a projected query and a projected key.
///
/// # Shapes
/// - query: `[batch, query_len, d_attention]`
/// - keys: `[batch, source_len, d_attention]`
/// - vector: `[d_attention, 1]`
/// - output: `[batch, query_len, source_len]`
pub fn alignment_network(query: Tensor<3>, keys: Tensor<3>, vector: Tensor<2>) -> Tensor<3> {
    let [batch, query_len, d_attention] = query.dims();
    let source_len = keys.dims()[1];
    let sums = keys.unsqueeze_dim::<4>(1) + query.unsqueeze_dim::<4>(2);
    let scores = sums.tanh().reshape([batch * query_len * source_len, d_attention]).matmul(vector);
    scores.reshape([batch, query_len, source_len])
}
