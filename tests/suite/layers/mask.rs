//! Masks: true means hidden.

use crate::support::{flex, host_backends, random_cases, tensor};
use burn::tensor::{Int, Tensor};
use lookback::layers::Mask;
use lookback::layers::mask::HIDDEN;
use lookback::models::weights::to_vec;
use proptest::prelude::*;

fn hidden(mask: &Mask) -> Vec<bool> {
    mask.hidden().expect("something is hidden").clone().into_data().iter::<bool>().collect()
}

#[test]
fn padding_hides_what_lies_beyond_each_length() {
    for adapter in host_backends() {
        let mask = Mask::padding(&[2, 0, 3], 3, &adapter.device);
        assert_eq!(hidden(&mask), [false, false, true, true, true, true, false, false, false]);
        assert!(!mask.is_causal());
    }
}

#[test]
fn nothing_is_hidden_where_nothing_is_padded() {
    let device = flex();
    assert!(Mask::padding(&[3, 3], 3, &device).hidden().is_none());
    assert!(Mask::none().hidden().is_none());
}

#[test]
fn the_causal_mask_hides_the_future_alone() {
    let mask = Mask::causal(3, &flex());
    assert!(mask.is_causal() && mask.hidden().is_none(), "the kernel is told the order, not the matrix");
    let scores = to_vec(mask.apply(Tensor::zeros([2, 1, 3, 3], &flex())));
    let row = [0.0, HIDDEN, HIDDEN, 0.0, 0.0, HIDDEN, 0.0, 0.0, 0.0];
    assert_eq!(scores, [row, row].concat());
    let weights = to_vec(mask.softmax(Tensor::zeros([1, 1, 3, 3], &flex())));
    let third = 1.0 / 3.0;
    let expected = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, third, third, third];
    crate::support::assert_close("weights", &weights, &expected, crate::support::SAME_TOLERANCE);
}

#[test]
fn a_row_without_anything_to_see_becomes_zero_and_not_uniform() {
    for adapter in host_backends() {
        let mask = Mask::padding(&[0, 1], 2, &adapter.device);
        let scores = tensor(vec![5.0, -5.0, 5.0, -5.0], [2, 1, 1, 2], &adapter.device);
        assert_eq!(to_vec(mask.softmax(scores)), [0.0, 0.0, 1.0, 0.0]);
    }
}

#[test]
fn selecting_rows_reorders_repeats_and_drops_their_masks() {
    let device = flex();
    let rows = Tensor::<1, Int>::from_data([2, 0, 0], &device);
    let mask = Mask::padding(&[1, 3, 0], 3, &device).select(&rows);
    assert_eq!(hidden(&mask), [true, true, true, false, true, true, false, true, true]);
    let weights = to_vec(mask.softmax(Tensor::zeros([3, 1, 1, 3], &device)));
    assert_eq!(weights, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    assert!(Mask::causal(3, &device).select(&rows).is_causal());
}

proptest! {
    #![proptest_config(random_cases(64))]
    #[test]
    fn weights_are_those_of_the_sentence_without_its_padding(
        lengths in prop::collection::vec(0usize..=5, 1..4),
        scores in prop::collection::vec(-30f32..30.0, 15),
    ) {
        let n = lengths.len();
        let scores = &scores[..5 * n];
        let mask = Mask::padding(&lengths, 5, &flex());
        let weights = to_vec(mask.softmax(tensor(scores.to_vec(), [n, 1, 1, 5], &flex())));
        for (row, len) in lengths.iter().enumerate() {
            let shown = &scores[5 * row..5 * row + len];
            let total: f64 = shown.iter().map(|score| (*score as f64).exp()).sum();
            for i in 0..5 {
                let expected = if i < *len { (shown[i] as f64).exp() / total } else { 0.0 };
                // Beyond the length exactly zero; else within a few roundings of numbers up to one.
                let allowed = if i < *len { 1e-6 } else { 0.0 };
                prop_assert!((weights[5 * row + i] as f64 - expected).abs() <= allowed);
            }
        }
    }
}
