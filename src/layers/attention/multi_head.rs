//! Multi-head attention: several attentions side by side, each in its own projection of the same vectors.

use super::scaled_dot_product::{AttentionTerms, scaled_dot_product_attention};
use crate::layers::linear::linear_layer;
use crate::layers::position::{AttentionPositions, PositionConfig, ShawTables};
use crate::layers::{Init, Mask, Pass};
use crate::ops::attention::{Split, merge_heads};
use crate::ops::{self, HeadSizes, KeyValueCache, Projected};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Int, Tensor};

/// The sizes of an attention in several heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiHeadConfig {
    /// Width of the vectors.
    pub d_model: usize,
    /// Heads of queries; they divide the width.
    pub n_heads: usize,
    /// Heads of keys and values; they divide the heads of queries. With fewer, each serves a group of neighbouring heads of
    /// queries (grouped-query attention, Ainslie et al. 2023), with one all of them (multi-query attention, Shazeer 2019):
    /// the cache of a decoder shrinks by as much.
    pub n_key_value_heads: usize,
    /// Probability of dropping an attention weight.
    pub dropout_rate: f64,
}

impl MultiHeadConfig {
    /// As many heads of keys and values as of queries, no dropout.
    pub fn new(d_model: usize, n_heads: usize) -> Self {
        Self { d_model, n_heads, n_key_value_heads: n_heads, dropout_rate: 0.0 }
    }

    /// Self-attention without positions, with weights drawn as burn's own layers draw theirs.
    ///
    /// # Panics
    /// As [`SelfAttention::new`].
    pub fn init(&self, device: &Device) -> SelfAttention {
        SelfAttention::new(self, &PositionConfig::None {}, &Init::random(device))
    }

    /// Attention to another sequence, in the same way.
    ///
    /// # Panics
    /// As [`CrossAttention::new`].
    pub fn init_cross(&self, device: &Device) -> CrossAttention {
        CrossAttention::new(self, &Init::random(device))
    }

    /// The width of a head.
    pub fn d_head(&self) -> usize {
        self.d_model / self.n_heads
    }

    /// The width of all keys, and that of all values.
    fn d_key_value(&self) -> usize {
        self.n_key_value_heads * self.d_head()
    }

    fn sizes(&self) -> HeadSizes {
        HeadSizes { n_heads: self.n_heads, n_key_value_heads: self.n_key_value_heads, d_head: self.d_head() }
    }

    fn check(&self) {
        let Self { d_model, n_heads, n_key_value_heads, .. } = self;
        assert!(d_model.is_multiple_of(*n_heads), "n_heads must divide d_model, got {n_heads} and {d_model}");
        assert!(
            n_heads.is_multiple_of(*n_key_value_heads),
            "n_key_value_heads must divide n_heads, got {n_key_value_heads} and {n_heads}"
        );
    }
}

/// Keys and values of the source, as they were projected.
///
/// # Shapes
/// - packed: `[batch, key_len, 2 n_key_value_heads d_head]`
#[derive(Clone, Debug)]
pub struct SourceKeyValue(Tensor<3>);

impl SourceKeyValue {
    /// The number of sentences.
    pub fn batch(&self) -> usize {
        self.0.dims()[0]
    }

    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self(self.0.clone().select(0, rows.clone()))
    }
}

/// Attention of a sequence to itself: `Concat(head_1, ..., head_h) W^O` with `head_i = Attention(X W_i^Q, X W_i^K, X W_i^V)`.
///
/// burn-nn's `MultiHeadAttention` makes three products where one does, and its cache computes every position anew at each
/// step and cannot follow the beams of a search.
///
/// # Reference
/// Vaswani et al. 2017, section 3.2.2; Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
/// Checkpoints, 2023, section 2.2, for fewer heads of keys and values. **Differs from the papers:** the projections have
/// biases, as those of PyTorch.
#[derive(Module, Debug)]
pub struct SelfAttention {
    /// `W^Q`, `W^K` and `W^V` of all heads, packed in this order.
    query_key_value: Linear,
    output: Linear,
    relative: Option<ShawTables>,
    #[module(skip)]
    config: MultiHeadConfig,
}

impl SelfAttention {
    /// Attention with the given sizes and, where the scheme has some in every layer, tables of positions.
    ///
    /// # Panics
    /// If the heads do not divide the width, or the heads of keys and values those of queries.
    pub fn new(config: &MultiHeadConfig, positions: &PositionConfig, init: &Init) -> Self {
        config.check();
        let (d_model, d_key_value) = (config.d_model, config.d_key_value());
        Self {
            query_key_value: init.packed_linear(d_model, &[d_model, d_key_value, d_key_value]),
            output: init.linear(d_model, d_model, 1),
            relative: positions.init_layer(config.d_head(), init),
            config: *config,
        }
    }

    /// Every position attends to every position that `mask` shows.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, mask: &Mask, positions: &AttentionPositions, pass: &mut Pass) -> Tensor<3> {
        let packed = self.packed(input, positions, pass);
        self.attend(Projected::Packed(packed), mask, positions, pass)
    }

    /// Every position attends to every position that `mask` shows, and what later ones will look at is kept. `starts` says in
    /// which column each row begins; without it, in the first.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn prefill(
        &self,
        input: Tensor<3>,
        starts: Option<Vec<usize>>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> (Tensor<3>, KeyValueCache) {
        let packed = self.packed(input, positions, pass);
        let [d_query, d_key] = self.config.sizes().widths();
        let kept = packed.clone().narrow(2, d_query, 2 * d_key);
        let cache = KeyValueCache::new(kept, starts.as_deref(), pass.body());
        (self.attend(Projected::Packed(packed), mask, positions, pass), cache)
    }

    /// The next position attends to itself and to those in `cache`, which grows by one. `mask` hides columns of the cache in
    /// which a row has not begun.
    ///
    /// # Shapes
    /// - input, output: `[batch, 1, d_model]`
    pub fn step(
        &self,
        input: Tensor<3>,
        cache: &mut Option<KeyValueCache>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let packed = self.packed(input, positions, pass);
        let sizes = self.config.sizes();
        if self.needs_weights(positions, pass) {
            let [d_query, d_key] = sizes.widths();
            let query = packed.clone().narrow(2, 0, d_query);
            let all = KeyValueCache::followed_by(cache, packed.narrow(2, d_query, 2 * d_key));
            return self.attend(Projected::Apart(query, all), mask, positions, pass);
        }
        let dropout = pass.next_dropout(self.config.dropout_rate);
        let context = ops::step_attention(packed, cache, positions.bias(), sizes, mask, dropout, pass.body());
        linear_layer(&self.output, context, pass)
    }

    /// Queries, keys and values of all heads side by side, turned where positions turn them.
    fn packed(&self, input: Tensor<3>, positions: &AttentionPositions, pass: &Pass) -> Tensor<3> {
        let packed = linear_layer(&self.query_key_value, input, pass);
        match positions {
            AttentionPositions::Rotation(rotation) => {
                rotation.apply(packed, self.config.n_heads + self.config.n_key_value_heads, pass)
            }
            AttentionPositions::None | AttentionPositions::Bias(_) | AttentionPositions::Distances(_) => packed,
        }
    }

    /// Whether the matrix of weights has to be there: Shaw's tables are multiplied with it, and a trace records it.
    fn needs_weights(&self, positions: &AttentionPositions, pass: &Pass) -> bool {
        matches!(positions, AttentionPositions::Distances(_)) || pass.is_traced()
    }

    fn attend(&self, projected: Projected, mask: &Mask, positions: &AttentionPositions, pass: &mut Pass) -> Tensor<3> {
        let sizes = self.config.sizes();
        let context = if self.needs_weights(positions, pass) {
            let bias = positions.bias();
            let relative = match positions {
                AttentionPositions::Distances(distances) => {
                    Some((self.relative.as_ref().expect("a model has one scheme a side"), distances))
                }
                _ => None,
            };
            let dropout_rate = self.config.dropout_rate;
            let terms = AttentionTerms { mask, bias: bias.as_ref(), relative, dropout_rate };
            let Split { query, key, value } = sizes.split(projected);
            merge_heads(scaled_dot_product_attention(query, key, value, &terms, pass))
        } else {
            let dropout = pass.next_dropout(self.config.dropout_rate);
            ops::attention(projected, positions.bias(), sizes, mask, dropout, pass.body())
        };
        linear_layer(&self.output, context, pass)
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
    config: MultiHeadConfig,
}

impl CrossAttention {
    /// Attention with the given sizes.
    ///
    /// # Panics
    /// If the heads do not divide the width, or the heads of keys and values those of queries.
    pub fn new(config: &MultiHeadConfig, init: &Init) -> Self {
        config.check();
        Self {
            query: init.linear(config.d_model, config.d_model, 1),
            key_value: init.linear(config.d_model, 2 * config.d_key_value(), 2),
            output: init.linear(config.d_model, config.d_model, 1),
            config: *config,
        }
    }

    /// Keys and values of the source, computed once for the sentence.
    ///
    /// # Shapes
    /// - memory: `[batch, source_len, d_model]`
    pub fn prepare(&self, memory: Tensor<3>, pass: &Pass) -> SourceKeyValue {
        SourceKeyValue(linear_layer(&self.key_value, memory, pass))
    }

    /// # Shapes
    /// - input, output: `[batch, target_len, d_model]`
    pub fn forward(&self, input: Tensor<3>, memory: &SourceKeyValue, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let query = linear_layer(&self.query, input, pass);
        let projected = Projected::Apart(query, memory.0.clone());
        let sizes = self.config.sizes();
        let dropout_rate = self.config.dropout_rate;
        let context = if pass.is_traced() {
            let Split { query, key, value } = sizes.split(projected);
            let terms = AttentionTerms { dropout_rate, ..AttentionTerms::masked(mask) };
            merge_heads(scaled_dot_product_attention(query, key, value, &terms, pass))
        } else {
            let dropout = pass.next_dropout(dropout_rate);
            ops::attention(projected, None, sizes, mask, dropout, pass.body())
        };
        linear_layer(&self.output, context, pass)
    }
}
