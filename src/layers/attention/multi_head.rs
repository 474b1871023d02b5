//! Multi-head attention: several attentions side by side, each in its own projection of the same vectors.

use super::scaled_dot_product::scaled_dot_product_attention;
use crate::layers::{Init, Mask, Pass};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Int, Tensor};

/// Keys and values of every head.
///
/// # Shapes
/// - key, value: `[batch, n_heads, key_len, d_head]`
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// What is compared with the queries.
    pub key: Tensor<4>,
    /// What is averaged.
    pub value: Tensor<4>,
}

impl KeyValue {
    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { key: self.key.clone().select(0, rows.clone()), value: self.value.clone().select(0, rows.clone()) }
    }

    /// These keys and values followed by `next`'s.
    fn followed_by(self, next: Self) -> Self {
        Self { key: Tensor::cat(vec![self.key, next.key], 2), value: Tensor::cat(vec![self.value, next.value], 2) }
    }
}

/// Attention of a sequence to itself: `Concat(head_1, ..., head_h) W^O` with `head_i = Attention(X W_i^Q, X W_i^K, X W_i^V)`.
///
/// burn-nn's `MultiHeadAttention` makes three products where one does, and its cache computes every position anew at each
/// step and cannot follow the beams of a search.
///
/// # Reference
/// Vaswani et al. 2017, section 3.2.2. **Differs from the paper:** the projections have biases, as in every implementation.
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// `W^Q`, `W^K` and `W^V` of all heads, packed in this order.
    query_key_value: Linear,
    output: Linear,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    dropout_rate: f64,
}

impl SelfAttention {
    /// `n_heads` heads over vectors of width `d_model`.
    ///
    /// # Panics
    /// If the heads do not divide the width.
    pub fn new(d_model: usize, n_heads: usize, dropout_rate: f64, init: &Init) -> Self {
        assert!(d_model.is_multiple_of(n_heads), "n_heads must divide d_model, got {n_heads} and {d_model}");
        Self {
            query_key_value: init.linear(d_model, 3 * d_model, 3),
            output: init.linear(d_model, d_model, 1),
            n_heads,
            dropout_rate,
        }
    }

    /// Every position attends to every position that `mask` shows.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let (query, memory) = self.project(input);
        let heads = scaled_dot_product_attention(query, memory.key, memory.value, mask, self.dropout_rate, pass);
        self.output.forward(merge_heads(heads))
    }

    /// The next position attends to itself and to those in `cache`, which grows by one.
    ///
    /// # Shapes
    /// - input, output: `[batch, 1, d_model]`
    pub fn step(&self, input: Tensor<3>, cache: &mut Option<KeyValue>, pass: &mut Pass) -> Tensor<3> {
        let (query, next) = self.project(input);
        let all = match cache.take() {
            Some(past) => past.followed_by(next),
            None => next,
        };
        *cache = Some(all.clone());
        let heads = scaled_dot_product_attention(query, all.key, all.value, &Mask::none(), self.dropout_rate, pass);
        self.output.forward(merge_heads(heads))
    }

    fn project(&self, input: Tensor<3>) -> (Tensor<4>, KeyValue) {
        let mut parts = self.query_key_value.forward(input).chunk(3, 2).into_iter();
        let mut next = || split_heads(parts.next().expect("three chunks"), self.n_heads);
        (next(), KeyValue { key: next(), value: next() })
    }
}

/// Attention of the target to the source: queries from one sequence, keys and values from another.
///
/// # Reference
/// Vaswani et al. 2017, section 3.2.3, first item.
#[derive(Module, Debug)]
pub struct CrossAttention {
    query: Linear,
    /// `W^K` and `W^V` of all heads, packed in this order.
    key_value: Linear,
    output: Linear,
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    dropout_rate: f64,
}

impl CrossAttention {
    /// `n_heads` heads over vectors of width `d_model`.
    ///
    /// # Panics
    /// If the heads do not divide the width.
    pub fn new(d_model: usize, n_heads: usize, dropout_rate: f64, init: &Init) -> Self {
        assert!(d_model.is_multiple_of(n_heads), "n_heads must divide d_model, got {n_heads} and {d_model}");
        Self {
            query: init.linear(d_model, d_model, 1),
            key_value: init.linear(d_model, 2 * d_model, 2),
            output: init.linear(d_model, d_model, 1),
            n_heads,
            dropout_rate,
        }
    }

    /// Keys and values of the source, computed once for the sentence.
    ///
    /// # Shapes
    /// - memory: `[batch, source_len, d_model]`
    pub fn prepare(&self, memory: Tensor<3>) -> KeyValue {
        let mut parts = self.key_value.forward(memory).chunk(2, 2).into_iter();
        let mut next = || split_heads(parts.next().expect("two chunks"), self.n_heads);
        KeyValue { key: next(), value: next() }
    }

    /// # Shapes
    /// - input, output: `[batch, target_len, d_model]`
    pub fn forward(&self, input: Tensor<3>, memory: &KeyValue, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let query = split_heads(self.query.forward(input), self.n_heads);
        let (key, value) = (memory.key.clone(), memory.value.clone());
        let heads = scaled_dot_product_attention(query, key, value, mask, self.dropout_rate, pass);
        self.output.forward(merge_heads(heads))
    }
}

/// `[batch, len, d_model]` to `[batch, n_heads, len, d_head]`.
fn split_heads(input: Tensor<3>, n_heads: usize) -> Tensor<4> {
    let [batch, len, d_model] = input.dims();
    input.reshape([batch, len, n_heads, d_model / n_heads]).swap_dims(1, 2)
}

/// `[batch, n_heads, len, d_head]` to `[batch, len, d_model]`.
fn merge_heads(heads: Tensor<4>) -> Tensor<3> {
    let [batch, n_heads, len, d_head] = heads.dims();
    heads.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
}
