//! From queries, keys and values to contexts.

use super::{Block, Heads, KEYS, Projections, QUERIES};
use crate::functions::exp;
use crate::machine::{Threads, vectorized};
use crate::matrix::{Matrix, MatrixMut};
use crate::memory::zeros;
use crate::one_query::{Positions, attend_one};
use crate::product::{add_product, product};
use crate::vectors::{self, exponentials};
use rayon::prelude::*;

/// Multiplications from which on heads are shared out, where there are fewer tasks than cores. In 8 heads of 64, a sentence of 48 tokens
/// takes 108 µs on one core and 66 on two, one of 256 takes 1.75 ms and 1.00; sharing costs some 12 µs, so that one of 32, which takes 48,
/// gains a little (`cargo bench --profile release --bench update forward_alone`, two cores of an AMD EPYC with AVX-512, 2026-11-24).
const SHARED_FROM: usize = 1 << 19;

/// What an attention has found.
pub struct Contexts {
    /// `[batch, query_len, n_heads d_head]`.
    pub values: Vec<f32>,
    /// The logarithm of the sum of the exponentials of each query's scores: `[batch, query_len, n_heads]`.
    pub log_sums: Vec<f32>,
}

/// Where the contexts and log-sums of some queries of a head go: in rows of `n_heads` heads, at place `head`.
struct Rows<'a> {
    values: &'a mut [f32],
    log_sums: &'a mut [f32],
    n_heads: usize,
    head: usize,
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
        let n_queries = |query| block_len.min(self.query_len - query);
        let block =
            |sentence, head, query| Block { sentence, head, query, n_queries: n_queries(query), key: 0, n_keys: 0 };
        let n_products = self.batch * self.query_len * self.key_len * width;
        if tasks.len() < rayon::current_num_threads() && n_products >= SHARED_FROM {
            tasks.into_par_iter().for_each(|(sentence, query, context, log_sums)| {
                self.forward_shared(block(sentence, 0, query), context, log_sums);
            });
            return Contexts { values, log_sums };
        }
        tasks.into_par_iter().for_each_init(scratch, |scratch, (sentence, query, context, log_sums)| {
            for head in 0..n_heads {
                let out = Rows { values: &mut *context, log_sums: &mut *log_sums, n_heads, head };
                vectorized(
                    #[inline(always)]
                    || self.forward_rows(block(sentence, head, query), out, scratch),
                );
            }
        });
        Contexts { values, log_sums }
    }

    /// Contexts and log-sums of some queries, where there are fewer tasks than cores: heads are shared out, each into memory of its own.
    fn forward_shared(&self, first: Block, context: &mut [f32], log_sums: &mut [f32]) {
        let Heads { n_heads, d_head, .. } = *self.heads;
        let n = first.n_queries;
        let of_head = |head| {
            let mut scratch = vec![0.0; self.block_len() * KEYS.min(self.key_len)];
            let (mut values, mut log_sums) = (vec![0.0; n * d_head], vec![0.0; n]);
            let out = Rows { values: &mut values, log_sums: &mut log_sums, n_heads: 1, head: 0 };
            vectorized(
                #[inline(always)]
                || self.forward_rows(Block { head, ..first }, out, &mut scratch),
            );
            (values, log_sums)
        };
        let found: Vec<_> = (0..n_heads).into_par_iter().map(of_head).collect();
        for (head, (values, sums)) in found.into_iter().enumerate() {
            for (row, context) in values.chunks_exact(d_head).zip(context.chunks_exact_mut(n_heads * d_head)) {
                context[head * d_head..][..d_head].copy_from_slice(row);
            }
            log_sums.iter_mut().skip(head).step_by(n_heads).zip(sums).for_each(|(to, from)| *to = from);
        }
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
        let bias = self.bias.map(|bias| &bias.values[self.bias_row(first.head, first.query)..]);
        attend_one(context, self.queries(first).row(0), positions, bias, weights)
    }

    #[inline(always)]
    /// Context and log-sum of some queries of one head.
    fn forward_rows(&self, first: Block, out: Rows, scratch: &mut [f32]) {
        let Rows { values: context, log_sums, n_heads, head } = out;
        let d_head = self.heads.d_head;
        let n = first.n_queries;
        let (stride, column) = (n_heads * d_head, head * d_head);
        let n_visible = self.n_visible(first.sentence, first.query + n);
        if n == 1 && self.heads.dropout.is_none() && n_visible <= scratch.len() {
            // A decoder's: not worth a product of matrices.
            let context = &mut context[column..][..d_head];
            log_sums[head] = self.forward_query(&first, context, &mut scratch[..n_visible]);
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
            log_sums[i * n_heads + head] = max[i] + sum[i].ln();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentences of a batch, all at once and each alone.
    fn check([batch, query_len, key_len]: [usize; 3], lengths: &[usize]) {
        let (n_heads, n_key_value_heads, d_head) = (4, 2, 8);
        let widths = [n_heads * d_head, 2 * n_key_value_heads * d_head];
        let heads = Heads { n_heads, n_key_value_heads, d_head, lengths: None, is_causal: false, dropout: None };
        let numbers = |n: usize| -> Vec<f32> { (0..n).map(|i| (i * 7919 % 1009) as f32 / 504.5 - 1.0).collect() };
        let (query, key_value) = (numbers(batch * query_len * widths[0]), numbers(batch * key_len * widths[1]));
        let forward = |first: usize, batch: usize| {
            let heads = Heads { lengths: Some(lengths[first..][..batch].into()), ..heads.clone() };
            let attention = Projections {
                heads: &heads,
                query: &query[first * query_len * widths[0]..][..batch * query_len * widths[0]],
                key_value: &key_value[first * key_len * widths[1]..][..batch * key_len * widths[1]],
                bias: None,
                batch,
                query_len,
                key_len,
                widths,
                key_start: 0,
            };
            let Contexts { values, log_sums } = attention.forward();
            (values, log_sums)
        };
        assert!(query_len * key_len * widths[0] >= SHARED_FROM, "large enough to be shared out");
        rayon::ThreadPoolBuilder::new().num_threads(batch).build().unwrap().install(|| {
            let (values, log_sums) = forward(0, batch);
            for sentence in 0..batch {
                let (alone, alone_sums) = forward(sentence, 1);
                assert_eq!(alone, values[sentence * query_len * widths[0]..][..alone.len()]);
                assert_eq!(alone_sums, log_sums[sentence * query_len * n_heads..][..alone_sums.len()]);
            }
        });
    }

    #[test]
    fn a_sentence_alone_is_computed_as_among_others() {
        check([3, 192, 192], &[192, 150, 192]);
        // One query, which is not multiplied as a matrix, and one that is left over after a whole block.
        check([2, 1, 40_000], &[40_000, 33_000]);
        check([2, 257, 160], &[160, 1]);
    }
}
