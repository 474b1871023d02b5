//! Multi-head attention: several attentions side by side, each in its own projection of the same vectors.

use super::scaled_dot_product::{AttentionTerms, scaled_dot_product_attention};
use crate::layers::position::{AttentionPositions, PositionConfig, ShawTables};
use crate::layers::{Init, Mask, Pass, fused};
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

    /// What a fused attention has to know, if `pass` asks for one and `mask` is of a kind that it knows.
    fn fused_heads(&self, input: &Tensor<3>, mask: &Mask, pass: &mut Pass) -> Option<fused::Heads> {
        let lengths = mask.lengths();
        let is_known = mask.is_none() || mask.is_causal() || lengths.is_some();
        (is_known && pass.fuses(&input.device())).then(|| fused::Heads {
            n_heads: self.n_heads,
            n_key_value_heads: self.n_key_value_heads,
            d_head: self.d_head(),
            lengths,
            is_causal: mask.is_causal(),
            dropout: pass.next_dropout(self.dropout_rate),
        })
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

/// Keys and values of every head.
///
/// # Shapes
/// - key, value: `[batch, n_key_value_heads, key_len, d_head]`
#[derive(Clone, Debug)]
pub struct KeyValue {
    /// What is compared with the queries.
    pub key: Tensor<4>,
    /// What is averaged.
    pub value: Tensor<4>,
}

impl KeyValue {
    /// From `[batch, key_len, 2 n_key_value_heads d_head]`.
    fn split(packed: Tensor<3>, n_key_value_heads: usize) -> Self {
        let mut parts = packed.chunk(2, 2).into_iter();
        let mut next = || split_heads(parts.next().expect("two chunks"), n_key_value_heads);
        Self { key: next(), value: next() }
    }

    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { key: self.key.clone().select(0, rows.clone()), value: self.value.clone().select(0, rows.clone()) }
    }

    /// These keys and values followed by `next`'s.
    fn followed_by(self, next: Self) -> Self {
        Self { key: Tensor::cat(vec![self.key, next.key], 2), value: Tensor::cat(vec![self.value, next.value], 2) }
    }
}

/// Keys and values of the target so far.
// One exists for each layer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum TargetKeyValue {
    /// As tensors, which are made anew at each step.
    Heads(KeyValue),
    /// As what a fused step adds to.
    Growing(fused::GrowingCache),
}

impl TargetKeyValue {
    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match self {
            Self::Heads(heads) => Self::Heads(heads.select(rows)),
            Self::Growing(cache) => Self::Growing(cache.select(rows)),
        }
    }

    fn into_heads(self, n_key_value_heads: usize, device: &Device) -> KeyValue {
        match self {
            Self::Heads(heads) => heads,
            Self::Growing(cache) => KeyValue::split(cache.packed(device), n_key_value_heads),
        }
    }
}

/// Keys and values of the source.
// One exists for each layer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum SourceKeyValue {
    /// Every head by itself.
    Heads(KeyValue),
    /// `[batch, key_len, 2 n_key_value_heads d_head]`, as they were projected: what a fused attention reads.
    Packed(Tensor<3>),
}

impl SourceKeyValue {
    /// The number of sentences.
    pub fn batch(&self) -> usize {
        match self {
            Self::Heads(heads) => heads.key.dims()[0],
            Self::Packed(packed) => packed.dims()[0],
        }
    }

    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match self {
            Self::Heads(heads) => Self::Heads(heads.select(rows)),
            Self::Packed(packed) => Self::Packed(packed.clone().select(0, rows.clone())),
        }
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
/// biases, as in every implementation of the first.
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
        if let Some(heads) = self.fused_heads(&input, mask, positions, pass) {
            return self.forward_fused(input, heads, positions, pass);
        }
        let (query, memory) = self.project(input, positions, pass);
        self.attend(query, memory, mask, positions, pass)
    }

    /// What a fused attention has to know, if this one can be fused.
    fn fused_heads(
        &self,
        input: &Tensor<3>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Option<fused::Heads> {
        let has_tables = matches!(positions, AttentionPositions::Distances(_));
        if has_tables { None } else { self.config.fused_heads(input, mask, pass) }
    }

    fn forward_fused(
        &self,
        input: Tensor<3>,
        heads: fused::Heads,
        positions: &AttentionPositions,
        pass: &Pass,
    ) -> Tensor<3> {
        let (packed, bias) = self.packed(input, &heads, positions, pass);
        fused::linear_layer(&self.output, fused::attention(fused::Projected::Packed(packed), bias, heads), pass)
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
    ) -> (Tensor<3>, TargetKeyValue) {
        if !input.is_autodiff()
            && let Some(heads) = self.fused_heads(&input, mask, positions, pass)
            && heads.dropout.is_none()
        {
            let (packed, bias) = self.packed(input, &heads, positions, pass);
            let kept = packed.clone().narrow(2, self.config.d_model, 2 * self.config.d_key_value());
            let cache = fused::GrowingCache::from_packed(kept, starts.as_deref());
            let context = fused::attention(fused::Projected::Packed(packed), bias, heads);
            return (fused::linear_layer(&self.output, context, pass), TargetKeyValue::Growing(cache));
        }
        let grows = pass.fuses(&input.device())
            && !input.is_autodiff()
            && !matches!(positions, AttentionPositions::Distances(_));
        let (query, memory) = self.project(input, positions, pass);
        let cache = if grows {
            let packed = Tensor::cat(vec![merge_heads(memory.key.clone()), merge_heads(memory.value.clone())], 2);
            TargetKeyValue::Growing(fused::GrowingCache::from_packed(packed, starts.as_deref()))
        } else {
            TargetKeyValue::Heads(memory.clone())
        };
        (self.attend(query, memory, mask, positions, pass), cache)
    }

    /// The next position attends to itself and to those in `cache`, which grows by one. `mask` hides columns of the cache in
    /// which a row has not begun.
    ///
    /// # Shapes
    /// - input, output: `[batch, 1, d_model]`
    pub fn step(
        &self,
        input: Tensor<3>,
        cache: &mut Option<TargetKeyValue>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        if !input.is_autodiff()
            && !matches!(cache, Some(TargetKeyValue::Heads(_)))
            && let Some(heads) = self.fused_heads(&input, &Mask::none(), positions, pass)
            && heads.dropout.is_none()
        {
            return self.step_fused(input, cache, &heads, positions, pass);
        }
        let device = input.device();
        let (query, next) = self.project(input, positions, pass);
        let all = match cache.take() {
            Some(past) => past.into_heads(self.config.n_key_value_heads, &device).followed_by(next),
            None => next,
        };
        *cache = Some(TargetKeyValue::Heads(all.clone()));
        self.attend(query, all, mask, positions, pass)
    }

    fn step_fused(
        &self,
        input: Tensor<3>,
        cache: &mut Option<TargetKeyValue>,
        heads: &fused::Heads,
        positions: &AttentionPositions,
        pass: &Pass,
    ) -> Tensor<3> {
        let (packed, bias) = self.packed(input, heads, positions, pass);
        let mut growing = match cache.take() {
            Some(TargetKeyValue::Growing(growing)) => Some(growing),
            _ => None,
        };
        let context = fused::step_attention(packed, &mut growing, bias, heads);
        *cache = growing.map(TargetKeyValue::Growing);
        fused::linear_layer(&self.output, context, pass)
    }

    /// Queries, keys and values of all heads side by side, turned where positions turn them, and what is added to the scores.
    fn packed(
        &self,
        input: Tensor<3>,
        heads: &fused::Heads,
        positions: &AttentionPositions,
        pass: &Pass,
    ) -> (Tensor<3>, Option<Tensor<4>>) {
        let packed = fused::linear_layer(&self.query_key_value, input, pass);
        match positions {
            AttentionPositions::Rotation(rotation) => {
                (rotation.apply_packed(packed, heads.n_heads + heads.n_key_value_heads), None)
            }
            AttentionPositions::Bias(bias) => (packed, Some(bias.clone())),
            AttentionPositions::None | AttentionPositions::Distances(_) => (packed, None),
        }
    }

    fn project(&self, input: Tensor<3>, positions: &AttentionPositions, pass: &Pass) -> (Tensor<4>, KeyValue) {
        let d_key_value = self.config.d_key_value();
        let packed = fused::linear_layer(&self.query_key_value, input, pass);
        let parts = packed.split_with_sizes(vec![self.config.d_model, d_key_value, d_key_value], 2);
        let [query, key, value] = parts.try_into().expect("three parts");
        let query = split_heads(query, self.config.n_heads);
        let [key, value] = [key, value].map(|part| split_heads(part, self.config.n_key_value_heads));
        match positions {
            AttentionPositions::Rotation(rotation) => {
                (rotation.apply(query), KeyValue { key: rotation.apply(key), value })
            }
            _ => (query, KeyValue { key, value }),
        }
    }

    fn attend(
        &self,
        query: Tensor<4>,
        memory: KeyValue,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let mut terms = AttentionTerms { dropout_rate: self.config.dropout_rate, ..AttentionTerms::masked(mask) };
        match positions {
            AttentionPositions::Bias(bias) => terms.bias = Some(bias),
            AttentionPositions::Distances(distances) => {
                let tables = self.relative.as_ref().expect("a model has one scheme a side");
                terms.relative = Some((tables, distances));
            }
            AttentionPositions::Rotation(_) | AttentionPositions::None => {}
        }
        let heads = scaled_dot_product_attention(query, memory.key, memory.value, &terms, pass);
        fused::linear_layer(&self.output, merge_heads(heads), pass)
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
        let is_fused = pass.fuses(&memory.device());
        let packed = fused::linear_layer(&self.key_value, memory, pass);
        if is_fused { SourceKeyValue::Packed(packed) } else { SourceKeyValue::Heads(self.split(packed)) }
    }

    fn split(&self, packed: Tensor<3>) -> KeyValue {
        KeyValue::split(packed, self.config.n_key_value_heads)
    }

    /// # Shapes
    /// - input, output: `[batch, target_len, d_model]`
    pub fn forward(&self, input: Tensor<3>, memory: &SourceKeyValue, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let query = fused::linear_layer(&self.query, input, pass);
        let memory = match memory {
            SourceKeyValue::Heads(heads) => heads.clone(),
            SourceKeyValue::Packed(packed) => match self.config.fused_heads(&query, mask, pass) {
                Some(heads) => {
                    let context = fused::attention(fused::Projected::Apart(query, packed.clone()), None, heads);
                    return fused::linear_layer(&self.output, context, pass);
                }
                None => self.split(packed.clone()),
            },
        };
        let query = split_heads(query, self.config.n_heads);
        let terms = AttentionTerms { dropout_rate: self.config.dropout_rate, ..AttentionTerms::masked(mask) };
        let heads = scaled_dot_product_attention(query, memory.key, memory.value, &terms, pass);
        fused::linear_layer(&self.output, merge_heads(heads), pass)
    }
}

/// `[batch, len, n_heads * d_head]` to `[batch, n_heads, len, d_head]`.
fn split_heads(input: Tensor<3>, n_heads: usize) -> Tensor<4> {
    let [batch, len, width] = input.dims();
    input.reshape([batch, len, n_heads, width / n_heads]).swap_dims(1, 2)
}

/// `[batch, n_heads, len, d_head]` to `[batch, len, n_heads * d_head]`.
fn merge_heads(heads: Tensor<4>) -> Tensor<3> {
    let [batch, n_heads, len, d_head] = heads.dims();
    heads.swap_dims(1, 2).reshape([batch, len, n_heads * d_head])
}
