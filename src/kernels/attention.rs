//! Scaled dot-product attention in blocks, forward and backward: memory grows with the length, not with its square.
//!
//! Queries, keys and values are read from packed projections: nothing is split, turned or merged in memory. The weights are never
//! stored; the backward pass computes a block of them again from the logarithm of each row's sum.
//!
//! # Reference
//! Vaswani et al. 2017, equation 1; the blocks as in Dao et al., FlashAttention, 2022, algorithms 1 and 4 of its appendix.

use super::dropout::Dropout;
use super::functions::exp;
use super::machine::{Threads, vectorized};
use super::matrix::{Matrix, MatrixMut};
use super::memory::{Start, new_pieces, zeros};
use super::one_query::{Positions, attend_one};
use super::product::{add_product, product};
use super::vectors::{self, exponentials};
use rayon::prelude::*;
use std::sync::Arc;

/// Queries that one block holds at most.
const QUERIES: usize = 256;
/// Queries that one block holds at least and at most where the future is hidden: the later its queries end, the more keys a block computes
/// that most of them do not see, and the smaller it is, the more often keys are packed. On two cores of an AMD EPYC with AVX-512, forward
/// and backward of 256 queries take 15 % less time with blocks of 128 than with one of 256, those of 64 queries 24 % less with blocks of 32
/// (`cargo bench --bench update causal_attention`, 2026-11-24); where nothing is hidden, smaller blocks only cost.
const CAUSAL_QUERIES: [usize; 2] = [32, 128];
/// Keys that one block holds: a block of scores stays in the second cache.
const KEYS: usize = 512;

/// What an attention in several heads looks like.
#[derive(Clone, Debug)]
pub struct Heads {
    /// Heads of queries.
    pub n_heads: usize,
    /// Heads of keys and values.
    pub n_key_value_heads: usize,
    /// The width of a head.
    pub d_head: usize,
    /// For each sentence how many keys there are before its padding; all of them where this is not said.
    pub lengths: Option<Arc<[usize]>>,
    /// Whether a query sees no later key.
    pub is_causal: bool,
    /// Drops weights.
    pub dropout: Option<Dropout>,
}

/// Queries, keys and values inside packed projections.
pub struct Projections<'a> {
    /// What the attention looks like.
    pub heads: &'a Heads,
    /// `[batch, query_len, widths[0]]`: a position begins with the queries of all heads.
    pub query: &'a [f32],
    /// `[batch, key_len, widths[1]]`: from `key_start` on, a position has the keys of all heads and then the values.
    pub key_value: &'a [f32],
    /// `[1, n_heads, query_len, key_len]`: added to the scores.
    pub bias: Option<&'a [f32]>,
    /// Sentences.
    pub batch: usize,
    /// Queries of a sentence.
    pub query_len: usize,
    /// Keys of a sentence.
    pub key_len: usize,
    /// Elements of a position in `query` and in `key_value`.
    pub widths: [usize; 2],
    /// Where the keys begin in a position of `key_value`.
    pub key_start: usize,
}

/// What an attention has found.
pub struct Contexts {
    /// `[batch, query_len, n_heads d_head]`.
    pub values: Vec<f32>,
    /// The logarithm of the sum of the exponentials of each query's scores: `[batch, query_len, n_heads]`.
    pub log_sums: Vec<f32>,
}

/// A block of attention weights: one head of one sentence, some queries, some keys.
#[derive(Clone, Copy)]
struct Block {
    sentence: usize,
    head: usize,
    query: usize,
    n_queries: usize,
    key: usize,
    n_keys: usize,
}

impl Projections<'_> {
    /// Queries that a block holds. It depends on nothing but the length, so that a sentence is computed alike in every batch.
    fn block_len(&self) -> usize {
        let [least, most] = CAUSAL_QUERIES;
        let half = (self.query_len / 2).next_power_of_two();
        if self.heads.is_causal { half.clamp(least, most) } else { QUERIES }
    }

    fn group(&self) -> usize {
        self.heads.n_heads / self.heads.n_key_value_heads
    }

    /// Queries of a head as a matrix.
    fn queries(&self, block: &Block) -> Matrix<'_> {
        let start = (block.sentence * self.query_len + block.query) * self.widths[0] + block.head * self.heads.d_head;
        Matrix::strided(&self.query[start..], block.n_queries, self.heads.d_head, self.widths[0])
    }

    fn keys_or_values(&self, block: &Block, part: usize) -> Matrix<'_> {
        let Heads { d_head, n_key_value_heads, .. } = *self.heads;
        let column = self.key_start + (part * n_key_value_heads + block.head / self.group()) * d_head;
        let start = (block.sentence * self.key_len + block.key) * self.widths[1] + column;
        Matrix::strided(&self.key_value[start..], block.n_keys, d_head, self.widths[1])
    }

    fn keys(&self, block: &Block) -> Matrix<'_> {
        self.keys_or_values(block, 0)
    }

    fn values(&self, block: &Block) -> Matrix<'_> {
        self.keys_or_values(block, 1)
    }

    /// The keys that the queries of a block may see: those beyond are hidden from all of them.
    fn n_visible(&self, sentence: usize, query_end: usize) -> usize {
        let len = self.heads.lengths.as_ref().map_or(self.key_len, |lengths| lengths[sentence].min(self.key_len));
        if self.heads.is_causal { len.min(query_end) } else { len }
    }

    /// The blocks of keys that some queries see.
    fn blocks(&self, sentence: usize, head: usize, query: usize, n_queries: usize) -> impl Iterator<Item = Block> {
        let n_visible = self.n_visible(sentence, query + n_queries);
        (0..n_visible).step_by(KEYS).map(move |key| Block {
            sentence,
            head,
            query,
            n_queries,
            key,
            n_keys: KEYS.min(n_visible - key),
        })
    }

    #[inline(always)]
    /// The scores of a block, minus infinity where the future is hidden.
    fn scores(&self, block: &Block, scores: &mut [f32]) {
        let Block { n_queries, n_keys, .. } = *block;
        let scale = (self.heads.d_head as f32).sqrt().recip();
        let out = MatrixMut::new(scores, n_queries, n_keys);
        product(out, self.queries(block), self.keys(block).transposed(), scale, Threads::One);
        if let Some(bias) = self.bias {
            for (i, row) in scores.chunks_exact_mut(n_keys).enumerate() {
                let start = (block.head * self.query_len + block.query + i) * self.key_len + block.key;
                row.iter_mut().zip(&bias[start..]).for_each(|(score, bias)| *score += bias);
            }
        }
        if self.heads.is_causal && block.key + n_keys > block.query + 1 {
            for (i, row) in scores.chunks_exact_mut(n_keys).enumerate() {
                let first_hidden = (block.query + i + 1).saturating_sub(block.key).min(n_keys);
                row[first_hidden..].fill(f32::NEG_INFINITY);
            }
        }
    }

    /// The place of a block's row in the matrix of all weights, which dropout counts by.
    fn place(&self, block: &Block, row: usize) -> usize {
        let row = (block.sentence * self.heads.n_heads + block.head) * self.query_len + block.query + row;
        row * self.key_len + block.key
    }

    #[inline(always)]
    /// Context and log-sum of one query of one head; `weights` has room for the keys that it sees.
    fn forward_query(&self, first: &Block, context: &mut [f32], weights: &mut [f32]) -> f32 {
        let Heads { d_head, n_key_value_heads, .. } = *self.heads;
        let width = self.widths[1];
        let key = self.key_start + first.head / self.group() * d_head;
        let positions = Positions {
            values: &self.key_value[first.sentence * self.key_len * width..],
            width,
            key,
            value: key + n_key_value_heads * d_head,
        };
        let bias = self.bias.map(|bias| &bias[(first.head * self.query_len + first.query) * self.key_len..]);
        attend_one(context, self.queries(first).row(0), positions, bias, weights)
    }

    #[inline(always)]
    /// Context and log-sum of some queries of one head. `context` begins at the first of them, in a row of `stride` elements.
    fn forward_rows(
        &self,
        first: Block,
        context: &mut [f32],
        stride: usize,
        log_sums: &mut [f32],
        scratch: &mut [f32],
    ) {
        let d_head = self.heads.d_head;
        let n = first.n_queries;
        let column = first.head * d_head;
        let n_visible = self.n_visible(first.sentence, first.query + n);
        if n == 1 && self.heads.dropout.is_none() && n_visible <= scratch.len() {
            // A decoder's: not worth a product of matrices.
            let context = &mut context[column..][..d_head];
            log_sums[first.head] = self.forward_query(&first, context, &mut scratch[..n_visible]);
            return;
        }
        let mut max = [f32::NEG_INFINITY; QUERIES];
        let mut sum = [0f32; QUERIES];
        for block in self.blocks(first.sentence, first.head, first.query, n) {
            let scores = &mut scratch[..n * block.n_keys];
            self.scores(&block, scores);
            for (i, row) in scores.chunks_exact_mut(block.n_keys).enumerate() {
                let highest = vectors::max(row).max(max[i]);
                if highest == f32::NEG_INFINITY {
                    // Either every key is hidden, or no score is a number, which the context must show.
                    let is_hidden = !row.iter().any(|score| score.is_nan());
                    row.fill(if is_hidden { 0.0 } else { f32::NAN });
                    sum[i] += row[0];
                    continue;
                }
                // What has been summed so far was relative to another maximum.
                let rescale = if max[i] == f32::NEG_INFINITY { 0.0 } else { exp(max[i] - highest) };
                max[i] = highest;
                sum[i] = sum[i] * rescale + exponentials(row, highest);
                if block.key > 0 && rescale != 1.0 {
                    context[i * stride + column..][..d_head].iter_mut().for_each(|value| *value *= rescale);
                }
                if let Some(dropout) = &self.heads.dropout {
                    dropout.apply(self.place(&block, i), row);
                }
            }
            let weights = Matrix::new(scores, n, block.n_keys);
            let out = MatrixMut::strided(&mut context[column..], n, d_head, stride);
            if block.key == 0 {
                product(out, weights, self.values(&block), 1.0, Threads::One);
            } else {
                add_product(out, weights, self.values(&block), 1.0, Threads::One);
            }
        }
        for i in 0..n {
            let scale = if sum[i] == 0.0 { 0.0 } else { sum[i].recip() };
            context[i * stride + column..][..d_head].iter_mut().for_each(|value| *value *= scale);
            log_sums[i * self.heads.n_heads + first.head] = max[i] + sum[i].ln();
        }
    }
}

impl Projections<'_> {
    /// The context of every query.
    pub fn forward(&self) -> Contexts {
        let Heads { n_heads, d_head, .. } = *self.heads;
        let width = n_heads * d_head;
        let block_len = self.block_len();
        let mut values = zeros(self.batch * self.query_len * width);
        let mut log_sums = vec![0.0; self.batch * self.query_len * n_heads];
        // A task has some queries of one sentence, in all heads: their contexts lie side by side.
        let tasks: Vec<(usize, usize, &mut [f32], &mut [f32])> = values
            .chunks_mut(self.query_len * width)
            .zip(log_sums.chunks_mut(self.query_len * n_heads))
            .enumerate()
            .flat_map(|(sentence, (context, log_sums))| {
                let rows = context.chunks_mut(block_len * width).zip(log_sums.chunks_mut(block_len * n_heads));
                rows.enumerate().map(move |(i, (context, log_sums))| (sentence, i * block_len, context, log_sums))
            })
            .collect();
        let scratch = || vec![0.0; block_len * KEYS.min(self.key_len)];
        tasks.into_par_iter().for_each_init(scratch, |scratch, (sentence, query, context, log_sums)| {
            let n_queries = block_len.min(self.query_len - query);
            for head in 0..n_heads {
                let first = Block { sentence, head, query, n_queries, key: 0, n_keys: 0 };
                vectorized(
                    #[inline(always)]
                    || self.forward_rows(first, context, width, log_sums, scratch),
                );
            }
        });
        Contexts { values, log_sums }
    }

    /// The gradients of queries, keys, values and, if `needs_bias`, of the bias.
    pub fn backward(&self, incoming: &Incoming, needs_bias: bool) -> Gradients {
        let Heads { n_key_value_heads, d_head, .. } = *self.heads;
        let group = self.group();
        // The gradients of a head lie apart from the others' while they are summed, sentence after sentence.
        let (query_len, key_len) = (self.query_len * d_head, self.key_len * d_head);
        let mut of_query = zeros(self.batch * group * n_key_value_heads * query_len);
        let mut of_key = zeros(self.batch * n_key_value_heads * key_len);
        let mut of_value = zeros(self.batch * n_key_value_heads * key_len);
        let mut of_bias = vec![0.0; if needs_bias { self.bias.map_or(0, <[f32]>::len) } else { 0 }];
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
    /// `[1, n_heads, query_len, key_len]`, or empty.
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
    /// `[group, query_len, key_len]`, or empty.
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
                        None => {
                            for (weight, gradient) in weights.iter_mut().zip(gradients.iter_mut()) {
                                *weight = exp(*weight - log_sum);
                                *gradient = *weight * (*gradient - along);
                            }
                        }
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
                        let start = (member * self.query_len + query + i) * self.key_len + block.key;
                        let of_bias = &mut out.bias[start..start + block.n_keys];
                        of_bias.iter_mut().zip(row).for_each(|(sum, gradient)| *sum += gradient);
                    }
                }
            }
        }
    }
}
