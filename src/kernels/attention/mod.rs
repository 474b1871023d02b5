//! Scaled dot-product attention in blocks, forward and backward: memory grows with the length, not with its square.
//!
//! Queries, keys and values are read from packed projections: nothing is split, turned or merged in memory. The weights are never
//! stored; the backward pass computes a block of them again from the logarithm of each row's sum.
//!
//! # Reference
//! Vaswani et al. 2017, equation 1; the blocks as in Dao et al., FlashAttention, 2022, algorithms 1 and 4 of its appendix.

mod backward;
mod forward;

pub use backward::{Gradients, Incoming};
pub use forward::Contexts;

use super::dropout::Dropout;
use super::machine::Threads;
use super::matrix::{Matrix, MatrixMut};
use super::product::product;
use std::sync::Arc;

/// Queries that one block holds at most.
const QUERIES: usize = 256;
/// Queries that one block holds at least and at most where the future is hidden: the later its queries end, the more keys a block computes
/// that most of them do not see, and the smaller it is, the more often keys are packed. On two cores of an AMD EPYC with AVX-512, forward
/// and backward of 256 queries take 15 % less time with blocks of 128 than with one of 256, those of 64 queries 24 % less with blocks of 32
/// (`cargo bench --bench update causal`, 2026-11-24); where nothing is hidden, smaller blocks only cost.
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
    /// Added to the scores.
    pub bias: Option<Bias<'a>>,
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

/// What is added to the scores, the same for every sentence.
#[derive(Clone, Copy)]
pub struct Bias<'a> {
    /// `[n_heads, query_len + key_len - 1]`, from the last query's distance to the first key on, or `[n_heads, query_len, key_len]`.
    pub values: &'a [f32],
    /// Whether there is one for each distance, or for each pair.
    pub is_by_distance: bool,
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

    /// Where in the bias, or in its gradient, the number of a query and the first key stands.
    fn bias_row(&self, head: usize, query: usize) -> usize {
        if self.bias.is_some_and(|bias| bias.is_by_distance) {
            return head * (self.query_len + self.key_len - 1) + self.query_len - 1 - query;
        }
        (head * self.query_len + query) * self.key_len
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
                let start = self.bias_row(block.head, block.query + i) + block.key;
                row.iter_mut().zip(&bias.values[start..]).for_each(|(score, bias)| *score += bias);
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
}
