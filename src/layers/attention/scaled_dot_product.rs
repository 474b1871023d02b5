//! Scaled dot-product attention, the one operation at the heart of the Transformer.

use crate::layers::position::ShawTables;
use crate::layers::{Mask, Pass};
use crate::ops::attention::{average, kernel, scores};
use burn::tensor::{Int, Tensor};

/// What acts on one attention beside queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct AttentionTerms<'a> {
    /// Hides keys.
    pub mask: &'a Mask,
    /// Added to the scores, in either form that [`attention`](crate::ops::attention()) takes.
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
/// This is the form that has the matrix of weights, which a trace records and Shaw's positions need; everything else calls
/// [`ops::attention`](crate::ops::attention()). In inference without Shaw's positions the context is that of burn's kernel, and the
/// weights are computed beside it, so that looking does not change what is seen.
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
        return kernel(query, key, value, terms.mask, terms.bias.cloned());
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
    let scale = (query.dims()[3] as f64).powf(-0.5);
    let mut all = scores(query.clone(), key, terms.bias.cloned());
    if let Some((tables, distances)) = terms.relative {
        all = all + tables.scores(query.mul_scalar(scale), distances);
    }
    pass.record("scores", || all.clone());
    let weights = terms.mask.softmax(all);
    pass.record("weights", || weights.clone());
    weights
}
