//! From the gradients of contexts to those of queries, keys and values.

use super::{Heads, KEYS, Projections, QUERIES};
use crate::functions::exp;
use crate::machine::{Threads, vectorized};
use crate::matrix::{Matrix, MatrixMut};
use crate::memory::{Start, new_pieces, zeros};
use crate::product::{add_product, product};
use crate::vectors;
use rayon::prelude::*;

impl Projections<'_> {
    /// The gradients of queries, keys, values and, if `needs_bias`, of the bias.
    pub fn backward(&self, incoming: &Incoming, needs_bias: bool) -> Gradients {
        let Heads { n_key_value_heads, d_head, .. } = *self.heads;
        let group = self.group();
        // The gradients of a head lie apart from the others' while they are summed, sentence after sentence.
        let (query_len, key_len) = (self.query_len * d_head, self.key_len * d_head);
        let mut of_query = zeros(self.batch * group * n_key_value_heads * query_len);
        let mut of_key = zeros(self.batch * n_key_value_heads * key_len);
        let mut of_value = zeros(self.batch * n_key_value_heads * key_len);
        let mut of_bias = vec![0.0; if needs_bias { self.bias.map_or(0, |bias| bias.values.len()) } else { 0 }];
        // The bias is one for all sentences: then a task has a head of all of them, otherwise of one.
        let n_sentences = if needs_bias { self.batch } else { 1 };
        let bias_len = (of_bias.len() / n_key_value_heads).max(1);
        let mut bias_parts: Vec<&mut [f32]> = of_bias.chunks_mut(bias_len).collect();
        bias_parts.resize_with(self.batch * n_key_value_heads / n_sentences, Default::default);
        of_query
            .par_chunks_mut(n_sentences * group * query_len)
            .zip(of_key.par_chunks_mut(n_sentences * key_len).zip(of_value.par_chunks_mut(n_sentences * key_len)))
            .zip(bias_parts)
            .enumerate()
            .for_each_init(
                || Scratch::new(self.block_len() * KEYS.min(self.key_len)),
                |scratch, (task, ((of_query, (of_key, of_value)), of_bias))| {
                    let key_value_head = task * n_sentences / self.batch;
                    let first = task * n_sentences % self.batch;
                    for i in 0..n_sentences {
                        let mut out = HeadGradients {
                            query: &mut of_query[i * group * query_len..][..group * query_len],
                            key: &mut of_key[i * key_len..][..key_len],
                            value: &mut of_value[i * key_len..][..key_len],
                            bias: of_bias,
                        };
                        for member in 0..group {
                            let head = key_value_head * group + member;
                            vectorized(
                                #[inline(always)]
                                || self.backward_head([first + i, head, member], incoming, &mut out, scratch),
                            );
                        }
                    }
                },
            );
        Gradients {
            query: of_query,
            key: of_key,
            value: of_value,
            bias: of_bias,
            n_key_value_heads,
            group,
            sizes: [self.batch, self.query_len, self.key_len, d_head],
        }
    }
}

/// The gradients of an attention, those of each head apart from the others'.
pub struct Gradients {
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    /// In the form of the bias, or empty.
    pub bias: Vec<f32>,
    n_key_value_heads: usize,
    /// Heads of queries that a head of keys serves.
    group: usize,
    /// `batch`, `query_len`, `key_len`, `d_head`.
    sizes: [usize; 4],
}

impl Gradients {
    /// Those of the queries: `[batch, query_len, n_heads d_head]`.
    pub fn query(&self) -> Vec<f32> {
        self.merged(self.sizes[1], &[(&self.query, self.group)])
    }

    /// Those of keys and values side by side: `[batch, key_len, 2 n_key_value_heads d_head]`.
    pub fn key_value(&self) -> Vec<f32> {
        self.merged(self.sizes[2], &[(&self.key, 1), (&self.value, 1)])
    }

    /// Those of queries, keys and values side by side: `[batch, len, (n_heads + 2 n_key_value_heads) d_head]`.
    pub fn packed(&self) -> Vec<f32> {
        self.merged(self.sizes[1], &[(&self.query, self.group), (&self.key, 1), (&self.value, 1)])
    }

    fn merged(&self, len: usize, parts: &[(&[f32], usize)]) -> Vec<f32> {
        let [batch, _, _, d_head] = self.sizes;
        merge_heads(parts, self.n_key_value_heads, [batch, len, d_head])
    }
}

/// Heads side by side, position after position, from parts in which each head lies alone: `[n_heads, batch, n_members, len,
/// d_head]`.
fn merge_heads(parts: &[(&[f32], usize)], n_heads: usize, [batch, len, d_head]: [usize; 3]) -> Vec<f32> {
    const ROWS: usize = 16;
    let width = parts.iter().map(|(_, n_members)| n_heads * n_members * d_head).sum();
    let merge = |start: usize, rows: &mut [f32]| {
        for (row, out) in rows.chunks_exact_mut(width).enumerate() {
            let (sentence, position) = ((start / width + row) / len, (start / width + row) % len);
            let mut pieces = out.chunks_exact_mut(d_head);
            for (values, n_members) in parts {
                for head in 0..n_heads * n_members {
                    let (head, member) = (head / n_members, head % n_members);
                    let start = (((head * batch + sentence) * n_members + member) * len + position) * d_head;
                    pieces.next().expect("a row has every head").copy_from_slice(&values[start..start + d_head]);
                }
            }
        }
    };
    new_pieces(Start::Zeros(batch * len * width), ROWS * width, merge).0
}

/// What the backward pass starts from.
pub struct Incoming<'a> {
    /// The gradient of the contexts.
    pub gradient: &'a [f32],
    /// The contexts.
    pub output: &'a [f32],
    /// The logarithms that the forward pass has found.
    pub log_sums: &'a [f32],
}

/// The gradients of one head of keys and values in one sentence, and of the queries that it serves.
struct HeadGradients<'a> {
    query: &'a mut [f32],
    key: &'a mut [f32],
    value: &'a mut [f32],
    /// That of `group` heads in the form of the bias, or empty.
    bias: &'a mut [f32],
}

struct Scratch {
    weights: Vec<f32>,
    gradients: Vec<f32>,
}

impl Scratch {
    /// Room for a block of weights.
    fn new(len: usize) -> Self {
        let block = || vec![0.0; len];
        Self { weights: block(), gradients: block() }
    }
}

impl Projections<'_> {
    #[inline(always)]
    fn backward_head(
        &self,
        [sentence, head, member]: [usize; 3],
        incoming: &Incoming,
        out: &mut HeadGradients,
        scratch: &mut Scratch,
    ) {
        let d_head = self.heads.d_head;
        let width = self.heads.n_heads * d_head;
        let scale = (d_head as f32).sqrt().recip();
        for query in (0..self.query_len).step_by(self.block_len()) {
            let n = self.block_len().min(self.query_len - query);
            let start = (sentence * self.query_len + query) * width + head * d_head;
            let gradient = Matrix::strided(&incoming.gradient[start..], n, d_head, width);
            // sum_j P_ij dP_ij, which is the product of a context and its gradient.
            let mut along = [0f32; QUERIES];
            for (i, along) in along[..n].iter_mut().enumerate() {
                let at = start + i * width;
                let (gradient, context) = (&incoming.gradient[at..][..d_head], &incoming.output[at..][..d_head]);
                *along = vectors::sum(
                    [gradient, context],
                    #[inline(always)]
                    |[gradient, context]| gradient * context,
                );
            }
            for block in self.blocks(sentence, head, query, n) {
                let len = n * block.n_keys;
                let (weights, gradients) = (&mut scratch.weights[..len], &mut scratch.gradients[..len]);
                self.scores(&block, weights);
                let scores_out = MatrixMut::new(gradients, n, block.n_keys);
                product(scores_out, gradient, self.values(&block).transposed(), 1.0, Threads::One);
                let rows = weights.chunks_exact_mut(block.n_keys).zip(gradients.chunks_exact_mut(block.n_keys));
                for (i, (weights, gradients)) in rows.enumerate() {
                    let log_sum =
                        incoming.log_sums[(sentence * self.query_len + query + i) * self.heads.n_heads + head];
                    if log_sum == f32::NEG_INFINITY {
                        weights.fill(0.0);
                        gradients.fill(0.0);
                        continue;
                    }
                    let along = along[i];
                    match &self.heads.dropout {
                        None => vectors::update(
                            [],
                            [weights, gradients],
                            #[inline(always)]
                            |[], [score, gradient]| {
                                let weight = exp(score - log_sum);
                                [weight, weight * (gradient - along)]
                            },
                        ),
                        Some(dropout) => dropout.each(
                            self.place(&block, i),
                            weights,
                            #[inline(always)]
                            |j, weight, factor| {
                                let p = exp(*weight - log_sum);
                                gradients[j] = p * (factor * gradients[j] - along);
                                *weight = p * factor;
                            },
                        ),
                    }
                }
                let keys = block.key * d_head..(block.key + block.n_keys) * d_head;
                let weights = Matrix::new(weights, n, block.n_keys);
                let of_scores = Matrix::new(gradients, n, block.n_keys);
                let of_value = MatrixMut::new(&mut out.value[keys.clone()], block.n_keys, d_head);
                add_product(of_value, weights.transposed(), gradient, 1.0, Threads::One);
                let of_key = MatrixMut::new(&mut out.key[keys], block.n_keys, d_head);
                add_product(of_key, of_scores.transposed(), self.queries(&block), scale, Threads::One);
                let of_query = &mut out.query[(member * self.query_len + query) * d_head..][..n * d_head];
                add_product(MatrixMut::new(of_query, n, d_head), of_scores, self.keys(&block), scale, Threads::One);
                if !out.bias.is_empty() {
                    for (i, row) in gradients.chunks_exact(block.n_keys).enumerate() {
                        let start = self.bias_row(member, query + i) + block.key;
                        let of_bias = &mut out.bias[start..start + block.n_keys];
                        of_bias.iter_mut().zip(row).for_each(|(sum, gradient)| *sum += gradient);
                    }
                }
            }
        }
    }
}
