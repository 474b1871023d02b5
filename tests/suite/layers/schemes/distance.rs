//! What each scheme does to order and distance.

use super::{Case, cases_of, relative, schemes};
use crate::layers::turned;
use crate::support::{SAME_TOLERANCE, assert_close, closed_form_tensor, flex, host_backends, random_cases, tensor};
use burn::tensor::{Int, Tensor, TensorData};
use lookback::layers::position::{AttentionPositions, Places, PositionConfig, Rotary, Side};
use lookback::layers::{Init, Mask};
use lookback::models::weights::{Weight, Weights, apply, to_vec};
use lookback::ops::attention::by_pair;
use proptest::prelude::*;
use std::path::Path;

/// The words of every sentence in another order.
fn permuted(input: Tensor<3>, order: &[usize]) -> Tensor<3> {
    let order: Vec<i32> = order.iter().map(|row| *row as i32).collect();
    let device = input.device();
    input.select(1, Tensor::<1, Int>::from_data(TensorData::new(order.clone(), [order.len()]), &device))
}

proptest! {
    #![proptest_config(random_cases(48))]

    #[test]
    fn scores_of_relative_schemes_depend_on_the_distance_alone(case in cases_of(relative())) {
        for subject in case.subjects() {
            // The same word everywhere: what is left to tell scores apart is where their words stand.
            let word = subject.input(case.batch, 1).repeat_dim(1, case.len);
            let scores = subject.traced(word, &case.mask(case.len, &subject.device), "scores").values;
            let largest = scores.iter().fold(0f32, |max, score| max.max(score.abs()));
            for head in scores.chunks(case.len * case.len) {
                for (i, score) in head.iter().enumerate() {
                    let (query, key) = (i / case.len, i % case.len);
                    if query > 0 && key > 0 {
                        let neighbour = head[(query - 1) * case.len + key - 1];
                        prop_assert!((score - neighbour).abs() <= 2e-5 * largest, "{case:?}: {score}, {neighbour}");
                    }
                }
            }
        }
    }

    #[test]
    fn without_positions_permuted_words_have_permuted_weights_and_annotations(
        case in cases_of(vec![PositionConfig::None {}]),
        order in Just((0..9usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let case = Case { side: Side::Encoder, lengths: vec![case.len; case.batch], ..case };
        let order: Vec<usize> = order.into_iter().filter(|row| *row < case.len).collect();
        for subject in case.subjects() {
            let mask = case.mask(case.len, &subject.device);
            let input = subject.input(case.batch, case.len);
            let expected = permuted(subject.infer(input.clone(), &mask), &order);
            let found = subject.infer(permuted(input.clone(), &order), &mask);
            assert_close(&format!("{case:?}"), &to_vec(found), &to_vec(expected), SAME_TOLERANCE);
            let before = subject.traced(input.clone(), &mask, "weights").values;
            let after = subject.traced(permuted(input, &order), &mask, "weights").values;
            let square = case.len * case.len;
            let len = case.len;
            let row = |q: usize| order.iter().map(move |k| q * len + k);
            let pairs: Vec<usize> = order.iter().flat_map(|q| row(*q)).collect();
            let expected: Vec<f32> =
                before.chunks(square).flat_map(|head| pairs.iter().map(|pair| head[*pair])).collect();
            assert_close(&format!("{case:?}: weights"), &after, &expected, SAME_TOLERANCE);
        }
    }
}

#[test]
fn with_any_other_scheme_the_order_of_words_matters() {
    for scheme in schemes().into_iter().filter(|scheme| *scheme != PositionConfig::None {}) {
        let case = Case {
            scheme,
            side: Side::Encoder,
            batch: 1,
            n_key_value_heads: 2,
            group: 1,
            d_head: 4,
            len: 3,
            lengths: vec![3],
        };
        let subject = case.on(&flex());
        let (mask, input) = (Mask::none(), subject.input(1, 3));
        let expected = to_vec(permuted(subject.infer(input.clone(), &mask), &[2, 0, 1]));
        let found = to_vec(subject.infer(permuted(input, &[2, 0, 1]), &mask));
        let gap = found.iter().zip(expected).fold(0f32, |max, (a, b)| max.max((a - b).abs()));
        assert!(gap > 0.01, "{:?}: order changes nothing: {gap}", case.scheme);
    }
}

#[test]
fn rotated_products_depend_on_the_distance_however_far_into_the_sequence() {
    let rotary = Rotary::new(14, 10_000.0);
    for adapter in host_backends() {
        let [query, key] = ["query", "key"].map(|path| closed_form_tensor(path, [2, 3, 5, 14], 4.0, &adapter.device));
        let scores = |offset: usize| {
            let rotation = rotary.rotation(&Places::Following { offset, len: 5 }, &adapter.device);
            to_vec(turned(&rotation, query.clone()).matmul(turned(&rotation, key.clone()).swap_dims(2, 3)))
        };
        for offset in [1, 1_000, 100_000] {
            assert_close(&format!("offset {offset}"), &scores(offset), &scores(0), SAME_TOLERANCE);
        }
    }
}

#[test]
fn a_bias_can_be_followed_on_paper() {
    let device = flex();
    // Two heads: slopes 2^-4 and 2^-8. A query at 2 looks at keys 0, 1, 2; a query at 0 looks ahead too in an encoder.
    let alibi = PositionConfig::Alibi {}.init(4, 2, Side::Encoder, &Init::new(1, &device));
    let AttentionPositions::Bias(bias) = alibi.in_attention(0, 3, &device) else { panic!("a bias") };
    let slope = |m: f32| [0.0, -m, -2.0 * m, -m, 0.0, -m, -2.0 * m, -m, 0.0];
    assert_eq!(bias.dims(), [1, 2, 1, 5], "a number for each distance");
    assert_eq!(to_vec(by_pair(bias, [3, 3])), [slope(0.0625), slope(0.00390625)].concat());
    let AttentionPositions::Bias(bias) = alibi.in_attention(2, 1, &device) else { panic!("a bias") };
    assert_eq!(bias.dims(), [1, 2, 1, 3]);
    assert_eq!(to_vec(bias)[..3], [-0.125, -0.0625, 0.0]);

    // One head, four buckets. In an encoder: 0 and before, further before, (never), after; in a decoder: 0, 1, 2, further.
    for (side, rows) in [(Side::Encoder, [0, 3, 3, 1, 0, 3, 1, 1, 0]), (Side::Decoder, [0, 0, 0, 1, 0, 0, 2, 1, 0])] {
        let scheme = PositionConfig::T5 { n_buckets: 4, max_distance: 3 };
        let t5 = scheme.init(4, 1, side, &Init::new(1, &device));
        let table = Weights::from([("table".into(), Weight { shape: vec![4, 1], values: vec![0.5, 1.5, 2.5, 3.5] })]);
        let t5 = apply(t5, &table, Path::new("by hand")).expect("a table of four");
        let AttentionPositions::Bias(bias) = t5.in_attention(0, 3, &device) else { panic!("a bias") };
        assert_eq!(to_vec(by_pair(bias, [3, 3])), rows.map(|row| 0.5 + row as f32), "{side:?}");
    }

    // A quarter turn of the only pair: (1, 0) at position 1 becomes (0, 1) when a radian is a quarter turn, and the pair of
    // position 0 stays.
    let rotary = Rotary::new(2, 10_000.0);
    let rotation = rotary.rotation(&Places::Following { offset: 0, len: 2 }, &device);
    let turned = turned(&rotation, tensor(vec![1.0, 0.0, 1.0, 0.0], [1, 1, 2, 2], &device));
    assert_close("turned", &to_vec(turned), &[1.0, 0.0, 1f64.cos(), 1f64.sin()], SAME_TOLERANCE);
}
