//! Scaled dot-product attention, the one operation at the heart of the Transformer.

use crate::layers::{Mask, Pass};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Tensor, module};

/// `Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V`, hidden positions left out.
///
/// In inference this is burn's attention kernel, which never stores the matrix of weights on long input. In training, where
/// weights are dropped and the kernel has no gradient of its own, it is written out. A traced pass runs the kernel all the
/// same and computes the weights beside it, so that looking does not change what is seen.
///
/// # Shapes
/// - query: `[batch, n_heads, query_len, d_head]`
/// - key, value: `[batch, n_heads, key_len, d_head]`
/// - output: `[batch, n_heads, query_len, d_head]`
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, equation 1. As in the paper; dropout on the weights as in tensor2tensor.
pub fn scaled_dot_product_attention(
    query: Tensor<4>,
    key: Tensor<4>,
    value: Tensor<4>,
    mask: &Mask,
    dropout_rate: f64,
    pass: &mut Pass,
) -> Tensor<4> {
    if !pass.is_training() && !query.is_autodiff() {
        if pass.is_traced() {
            pass.record("query", || query.clone());
            pass.record("keys", || key.clone());
            pass.record("values", || value.clone());
            let scores = scores(query.clone(), key.clone());
            pass.record("scores", || scores.clone());
            pass.record("weights", || mask.softmax(scores));
        }
        let context = kernel(query, key, value, mask);
        pass.record("context", || context.clone());
        return context;
    }
    let weights = mask.softmax(scores(query, key));
    pass.dropout(weights, dropout_rate).matmul(value)
}

/// `Q K^T / sqrt(d_head)`: the query is scaled, since it is the smaller operand.
fn scores(query: Tensor<4>, key: Tensor<4>) -> Tensor<4> {
    let d_head = query.dims()[3];
    query.mul_scalar((d_head as f64).powf(-0.5)).matmul(key.swap_dims(2, 3))
}

fn kernel(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, mask: &Mask) -> Tensor<4> {
    let [batch, n_heads, query_len, _] = query.dims();
    let key_len = key.dims()[2];
    let hidden = mask.hidden().map(|hidden| hidden.clone().expand([batch, n_heads, query_len, key_len]));
    let options = AttentionModuleOptions { is_causal: mask.is_causal(), ..Default::default() };
    module::attention(query, key, value, hidden, None, options)
}
