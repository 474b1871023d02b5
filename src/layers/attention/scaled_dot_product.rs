//! Scaled dot-product attention, the one operation at the heart of the Transformer.

use crate::layers::position::ShawTables;
use crate::layers::{Mask, Pass};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Int, Tensor, module};

/// What acts on one attention beside queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct AttentionTerms<'a> {
    /// Hides keys.
    pub mask: &'a Mask,
    /// Added to the scores: `[1, n_heads, query_len, key_len]`.
    pub bias: Option<&'a Tensor<4>>,
    /// Vectors added to keys and values, and which of them for each pair.
    pub relative: Option<(&'a ShawTables, &'a Tensor<1, Int>)>,
    /// Probability of dropping a weight.
    pub dropout_rate: f64,
}

impl<'a> AttentionTerms<'a> {
    /// A mask alone.
    pub fn masked(mask: &'a Mask) -> Self {
        Self { mask, bias: None, relative: None, dropout_rate: 0.0 }
    }
}

/// `Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head) + B) V`, hidden positions left out.
///
/// In inference this is burn's attention kernel, which never stores the matrix of weights on long input. In training, where
/// weights are dropped and the kernel has no gradient of its own, it is written out, and so it is with Shaw's positions,
/// which the kernel does not know. A traced pass runs the kernel all the same and computes the weights beside it, so that
/// looking does not change what is seen.
///
/// With fewer heads of keys and values than of queries, each of them serves as many neighbouring heads of queries: those are
/// laid one below the other as the queries of one head, and nothing is repeated but the mask.
///
/// # Shapes
/// - query: `[batch, n_heads, query_len, d_head]`
/// - key, value: `[batch, n_key_value_heads, key_len, d_head]`
/// - output: `[batch, n_heads, query_len, d_head]`
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, equation 1. As in the paper; dropout on the weights as in tensor2tensor.
pub fn scaled_dot_product_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    terms: &AttentionTerms,
    pass: &mut Pass,
) -> Tensor<4> {
    pass.record("query", || query.clone());
    pass.record("keys", || key.clone());
    pass.record("values", || value.clone());
    let context = attend(query, key, value, terms, pass);
    pass.record("context", || context.clone());
    context
}

fn attend(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, terms: &AttentionTerms, pass: &mut Pass) -> Tensor<4> {
    if !pass.is_training() && !query.is_autodiff() && terms.relative.is_none() {
        if pass.is_traced() {
            weights(query.clone(), key.clone(), terms, pass);
        }
        return kernel(query, key, value, terms);
    }
    let weights = weights(query, key, terms, pass);
    let weights = pass.dropout(weights, terms.dropout_rate);
    match terms.relative {
        Some((tables, distances)) => average(weights.clone(), value) + tables.average(weights, distances),
        None => average(weights, value),
    }
}

/// The softmax of the scores, recorded with them.
fn weights(query: Tensor<4>, key: Tensor<4>, terms: &AttentionTerms, pass: &mut Pass) -> Tensor<4> {
    let scores = scores(query, key, terms);
    pass.record("scores", || scores.clone());
    let weights = terms.mask.softmax(scores);
    pass.record("weights", || weights.clone());
    weights
}

/// `Q K^T / sqrt(d_head)` with everything that is added to it but the mask: the query is scaled, since it is the smaller
/// operand.
fn scores(query: Tensor<4>, key: Tensor<4>, terms: &AttentionTerms) -> Tensor<4> {
    let [_, n_heads, _, d_head] = query.dims();
    let query = query.mul_scalar((d_head as f64).powf(-0.5));
    let relative = terms.relative.map(|(tables, distances)| tables.scores(query.clone(), distances));
    let scores = fold(query, key.dims()[1]).matmul(key.swap_dims(2, 3));
    let scores = unfold(scores, n_heads);
    [relative, terms.bias.cloned()].into_iter().flatten().fold(scores, |scores, term| scores + term)
}

/// The weighted mean of the values.
fn average(weights: Tensor<4>, value: Tensor<4>) -> Tensor<4> {
    let n_heads = weights.dims()[1];
    unfold(fold(weights, value.dims()[1]).matmul(value), n_heads)
}

fn kernel(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, terms: &AttentionTerms) -> Tensor<4> {
    let ([batch, n_heads, query_len, _], [_, n_folded, key_len, _]) = (query.dims(), key.dims());
    if n_folded == n_heads {
        let hidden = terms.mask.hidden().map(|hidden| hidden.clone().expand([batch, n_heads, query_len, key_len]));
        let options = AttentionModuleOptions { is_causal: terms.mask.is_causal(), ..Default::default() };
        return module::attention(query, key, value, hidden, terms.bias.cloned(), options);
    }
    // The kernel's causal order counts rows, of which there are now several for each position: the mask says it instead.
    let group = n_heads / n_folded;
    let hidden = terms.mask.every_hidden().map(|hidden| {
        let rows = if hidden.dims()[2] == 1 { hidden.clone() } else { hidden.clone().repeat_dim(2, group) };
        rows.expand([batch, n_folded, group * query_len, key_len])
    });
    let bias = terms.bias.map(|bias| fold(bias.clone(), n_folded));
    let context = module::attention(fold(query, n_folded), key, value, hidden, bias, Default::default());
    unfold(context, n_heads)
}

/// `[batch, n_heads, len, width]` to `[batch, n_folded, n_heads / n_folded * len, width]`.
fn fold(heads: Tensor<4>, n_folded: usize) -> Tensor<4> {
    let [batch, n_heads, len, width] = heads.dims();
    if n_folded == n_heads { heads } else { heads.reshape([batch, n_folded, n_heads / n_folded * len, width]) }
}

/// The inverse of [`fold`].
fn unfold(folded: Tensor<4>, n_heads: usize) -> Tensor<4> {
    let [batch, n_folded, len, width] = folded.dims();
    if n_folded == n_heads { folded } else { folded.reshape([batch, n_heads, len * n_folded / n_heads, width]) }
}
