//! Scaled dot-product attention.

use super::super::Leaves;
use super::{Sizes, flat};
use burn::tensor::Tensor;
use lookback::layers::Mask;
use lookback::ops::{self, Body, HeadSizes, Projected};

fn attention(
    leaves: &mut Leaves,
    sizes: &Sizes,
    projected: Projected,
    [query_len, key_len]: [usize; 2],
    mask: Mask,
    body: Body,
) -> Vec<Tensor<1>> {
    let n_heads = sizes.n_key_value_heads * sizes.group;
    let shape = if sizes.choice.is_multiple_of(2) {
        [1, n_heads, query_len, key_len]
    } else {
        [1, n_heads, 1, query_len + key_len - 1]
    };
    let bias = sizes.has_bias.then(|| leaves.leaf("bias", shape, 3.0));
    let heads = HeadSizes { n_heads, n_key_value_heads: sizes.n_key_value_heads, d_head: sizes.d_head };
    vec![flat(ops::attention(projected, bias, heads, &mask, sizes.dropout(), body))]
}

pub(super) fn attention_packed(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let width = sizes.n_key_value_heads * (sizes.group + 2) * sizes.d_head;
    let packed = leaves.leaf("packed", [sizes.batch, sizes.len, width], 6.0);
    let mask = match (sizes.is_causal, sizes.lengths(sizes.len)) {
        (true, _) => Mask::causal(sizes.len, leaves.device),
        (_, Some(lengths)) => Mask::padding(&lengths, sizes.len, leaves.device),
        _ => Mask::none(),
    };
    attention(leaves, sizes, Projected::Packed(packed), [sizes.len; 2], mask, body)
}

pub(super) fn attention_apart(leaves: &mut Leaves, sizes: &Sizes, body: Body) -> Vec<Tensor<1>> {
    let (len, key_len) = (sizes.len, sizes.key_len);
    let d_key = sizes.n_key_value_heads * sizes.d_head;
    let query = leaves.leaf("query", [sizes.batch, len, sizes.group * d_key], 6.0);
    let key_value = leaves.leaf("key and value", [sizes.batch, key_len, 2 * d_key], 6.0);
    let mask = match sizes.lengths(key_len) {
        Some(lengths) => Mask::padding(&lengths, key_len, leaves.device),
        None => Mask::none(),
    };
    attention(leaves, sizes, Projected::Apart(query, key_value), [len, key_len], mask, body)
}
