//! Fewer heads of keys and values than of queries.

use super::{Subject, cases};
use crate::support::{SAME_TOLERANCE, assert_close, flex, random_cases};
use lookback::layers::Init;
use lookback::layers::attention::{MultiHeadConfig, SelfAttention};
use lookback::models::weights::{Weight, Weights, apply, collect, to_vec};
use proptest::prelude::*;
use std::path::Path;

proptest! {
    #![proptest_config(random_cases(48))]

    #[test]
    fn groups_of_heads_are_plain_heads_with_repeated_keys_and_values(case in cases()) {
        let device = flex();
        let subject = case.on(&device);
        let config = case.config();
        let plain = SelfAttention::new(&MultiHeadConfig::new(config.d_model, config.n_heads), &case.scheme, &Init::new(1, &device));
        let mut weights: Weights = collect(&subject.layer);
        for name in ["query_key_value.weight", "query_key_value.bias"] {
            let weight = weights.get_mut(name).expect("a packed projection");
            *weight = ungrouped(weight, &config);
        }
        let layer = apply(plain, &weights, Path::new("repeated")).expect("the shapes of plain heads");
        let plain = Subject { layer, position: subject.position.clone(), device: device.clone(), ..subject };
        let subject = case.on(&device);
        let mask = case.mask(case.len, &device);
        let input = subject.input(case.batch, case.len);
        let [found, expected] = [&subject, &plain].map(|subject| to_vec(subject.infer(input.clone(), &mask)));
        assert_close(&format!("{case:?}"), &found, &expected, SAME_TOLERANCE);
    }
}

/// A packed projection whose columns of keys and values are repeated for every head of queries that they serve.
fn ungrouped(packed: &Weight, config: &MultiHeadConfig) -> Weight {
    let (d_head, d_model) = (config.d_head(), config.d_model);
    let (d_key, group) = (config.n_key_value_heads * d_head, config.n_heads / config.n_key_value_heads);
    let row = |row: &[f32]| -> Vec<f32> {
        let (query, others) = row.split_at(d_model);
        let repeated = others.chunks(d_key).flat_map(|part| part.chunks(d_head).flat_map(|head| head.repeat(group)));
        query.iter().copied().chain(repeated).collect()
    };
    let values = packed.values.chunks(d_model + 2 * d_key).flat_map(row).collect();
    let shape = packed.shape[..packed.shape.len() - 1].iter().copied().chain([3 * d_model]).collect();
    Weight { shape, values }
}

#[test]
fn as_many_heads_of_keys_as_of_queries_are_the_plain_projection_with_the_same_initial_numbers() {
    let init = || Init::new(3, &flex());
    let [packed, linear] = [init().packed_linear(10, &[10, 10, 10]), init().linear(10, 30, 3)].map(|l| collect(&l));
    assert_eq!(packed, linear);
    // A narrower part has the bound of its own width.
    let packed = collect(&init().packed_linear(10, &[10, 2, 2]))["weight"].values.clone();
    let largest = |columns: std::ops::Range<usize>| {
        let values = packed.chunks(14).flat_map(|row| &row[columns.clone()]);
        values.fold(0f32, |max, value| max.max(value.abs())) as f64
    };
    let bounds = [(6.0f64 / 20.0).sqrt(), (6.0f64 / 12.0).sqrt()];
    assert!(largest(0..10) <= bounds[0] && largest(10..14) <= bounds[1] && largest(10..14) > bounds[0]);
}
