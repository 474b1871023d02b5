//! Biases, Shaw's vectors and grouped heads against PyTorch.

use crate::layers::attention::mask_of;
use crate::layers::{Outputs, check_golden, golden_layers, named, no_parameters};
use crate::support::LayerCase;
use lookback::layers::Init;
use lookback::layers::attention::scaled_dot_product::{AttentionTerms, scaled_dot_product_attention};
use lookback::layers::attention::{CrossAttention, MultiHeadConfig, SelfAttention};
use lookback::layers::position::{AttentionPositions, Places, PositionConfig, Shaw, ShawTables};

#[test]
fn attention_with_a_bias_is_pytorchs() {
    for case in golden_layers("biased-attention") {
        check_golden(case, no_parameters, |_, inputs, pass| {
            let [query, key, value, bias] = ["query", "key", "value", "bias"].map(|path| inputs.get::<4>(path));
            let mask = mask_of(case, key.dims()[2], &inputs.device());
            let terms = AttentionTerms { bias: Some(&bias), ..AttentionTerms::masked(&mask) };
            Outputs::from([named("context", scaled_dot_product_attention(query, key, value, &terms, pass))])
        });
    }
}

#[test]
fn attention_with_shaws_vectors_is_the_papers() {
    for case in golden_layers("shaw-attention") {
        let max_distance = case.number("max_distance");
        let build = |init: &Init| ShawTables::new(max_distance, case.number("d_head"), init);
        check_golden(case, build, |tables, inputs, pass| {
            let [query, key, value] = ["query", "key", "value"].map(|path| inputs.get::<4>(path));
            let mask = mask_of(case, key.dims()[2], &inputs.device());
            // The queries of the golden case are the first of as many as there are keys.
            let (query_len, key_len) = (query.dims()[2], key.dims()[2]);
            let rows = Shaw::new(max_distance)
                .distances(&Places::Following { offset: 0, len: key_len }, &inputs.device())
                .narrow(0, 0, query_len * key_len);
            let terms = AttentionTerms { relative: Some((tables, &rows)), ..AttentionTerms::masked(&mask) };
            Outputs::from([named("context", scaled_dot_product_attention(query, key, value, &terms, pass))])
        });
    }
}

/// The sizes of a golden case with groups.
fn grouped(case: &LayerCase) -> MultiHeadConfig {
    let n_key_value_heads = case.number("n_key_value_heads");
    MultiHeadConfig { n_key_value_heads, ..MultiHeadConfig::new(case.number("d_model"), case.number("n_heads")) }
}

#[test]
fn grouped_self_attention_is_pytorchs() {
    for case in golden_layers("grouped-self-attention") {
        let build = |init: &Init| SelfAttention::new(&grouped(case), &PositionConfig::None {}, init);
        check_golden(case, build, |layer, inputs, pass| {
            let input = inputs.get::<3>("input");
            let mask = mask_of(case, input.dims()[1], &inputs.device());
            Outputs::from([named("output", layer.forward(input, &mask, &AttentionPositions::None, pass))])
        });
    }
}

#[test]
fn grouped_cross_attention_is_pytorchs() {
    for case in golden_layers("grouped-cross-attention") {
        let build = |init: &Init| CrossAttention::new(&grouped(case), init);
        check_golden(case, build, |layer, inputs, pass| {
            let memory = inputs.get::<3>("memory");
            let mask = mask_of(case, memory.dims()[1], &inputs.device());
            let memory = layer.prepare(memory, pass);
            Outputs::from([named("output", layer.forward(inputs.get::<3>("input"), &memory, &mask, pass))])
        });
    }
}
