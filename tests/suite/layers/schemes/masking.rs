//! What holds whatever the scheme: masks, padding, batches, steps, looking on.

use super::{Case, cases};
use crate::support::{SAME_TOLERANCE, assert_close, random_cases, tensor};
use burn::tensor::Tensor;
use lookback::layers::position::Side;
use lookback::layers::{Mask, Pass, Trace};
use lookback::models::weights::{collect, to_vec};
use proptest::prelude::*;

proptest! {
    #![proptest_config(random_cases(48))]

    #[test]
    fn weights_sum_to_one_over_what_is_seen_and_are_zero_elsewhere(case in cases()) {
        for subject in case.subjects() {
            let mask = case.mask(case.len, &subject.device);
            let weights = subject.traced(subject.input(case.batch, case.len), &mask, "weights");
            let n_heads = case.config().n_heads;
            prop_assert_eq!(&weights.shape, &[case.batch, n_heads, case.len, case.len]);
            for (row, weights) in weights.values.chunks(case.len).enumerate() {
                let (sentence, query) = (row / n_heads / case.len, row % case.len);
                let seen: Vec<bool> = (0..case.len).map(|key| case.sees(sentence, query, key)).collect();
                prop_assert!(weights.iter().zip(&seen).all(|(weight, seen)| *seen || *weight == 0.0), "{:?}", weights);
                let sum: f32 = weights.iter().sum();
                let expected = if seen.contains(&true) { 1.0 } else { 0.0 };
                prop_assert!((sum - expected).abs() < 1e-5, "{case:?}: row {row} sums to {sum}");
            }
        }
    }

    #[test]
    fn a_sentence_without_words_has_a_zero_context_and_a_zero_gradient(case in cases()) {
        let lengths = [vec![0], case.lengths.clone()].concat();
        for subject in case.subjects() {
            let bias = collect(&subject.layer)["output.bias"].values.clone();
            let device = subject.device.clone().autodiff();
            for (device, learns) in [(subject.device.clone(), false), (device, true)] {
                let subject = case.on(&device);
                let mask = Mask::padding(&lengths, case.len, &device);
                let input = subject.input(lengths.len(), case.len);
                let input = if learns { input.require_grad() } else { input };
                let output = subject.infer(input.clone(), &mask);
                let empty = to_vec(output.clone().narrow(0, 0, 1));
                for row in empty.chunks(subject.d_model) {
                    prop_assert_eq!(row, bias.as_slice(), "what is left of nothing is the bias");
                }
                if learns {
                    let grads = output.powi_scalar(2).sum().backward();
                    let grad = to_vec(input.grad(&grads).expect("a leaf has a gradient"));
                    let (empty, others) = grad.split_at(case.len * subject.d_model);
                    prop_assert!(empty.iter().all(|value| *value == 0.0), "{case:?}: {empty:?}");
                    prop_assert!(others.iter().all(|value| value.is_finite()), "{case:?}: {others:?}");
                }
            }
        }
    }

    #[test]
    fn the_width_of_the_padding_does_not_matter(case in cases(), extra in 1usize..5) {
        for subject in case.subjects() {
            let wide = subject.input(case.batch, case.len + extra);
            let narrow = wide.clone().narrow(1, 0, case.len);
            let expected = subject.infer(narrow, &case.mask(case.len, &subject.device));
            let found = subject.infer(wide, &case.mask(case.len + extra, &subject.device)).narrow(1, 0, case.len);
            assert_close(&format!("{case:?}"), &to_vec(found), &to_vec(expected), SAME_TOLERANCE);
        }
    }

    #[test]
    fn the_future_does_not_matter(case in cases(), at in 0usize..9) {
        for subject in case.subjects() {
            let at = at % case.len;
            let mask = Mask::causal(case.len, &subject.device);
            let input = subject.input(case.batch, case.len);
            let later = (0..case.len).map(|t| if t < at { 0.0 } else { 1.0 }).collect();
            let changed = input.clone() + tensor::<3>(later, [1, case.len, 1], &subject.device);
            let [found, expected] = [changed, input].map(|input| to_vec(subject.infer(input, &mask)));
            let width = case.len * subject.d_model;
            for (found, expected) in found.chunks(width).zip(expected.chunks(width)) {
                let (past, future) = found.split_at(at * subject.d_model);
                prop_assert_eq!(past, &expected[..past.len()], "{:?} from {}", case, at);
                prop_assert!(future != &expected[past.len()..]);
            }
        }
    }

    #[test]
    fn steps_with_a_cache_are_the_causal_whole(case in cases()) {
        let case = Case { side: Side::Decoder, ..case };
        for subject in case.subjects() {
            let input = subject.input(case.batch, case.len);
            let whole = subject.infer(input.clone(), &case.mask(case.len, &subject.device));
            let scores = subject.traced(input.clone(), &case.mask(case.len, &subject.device), "scores");
            let mut cache = None;
            let mut steps = Vec::new();
            for t in 0..case.len {
                let mut trace = Trace::default();
                let row = input.clone().narrow(1, t, 1);
                steps.push(subject.step(row, t, &mut cache, &mut Pass::traced(&mut trace)));
                // Row t of the scores, of the first head of the first sentence.
                let row = &scores.values[t * case.len..][..=t];
                let found = &trace.get("scores").expect("traced").values[..=t];
                assert_close(&format!("{case:?}: scores of step {t}"), found, row, 10.0 * SAME_TOLERANCE);
            }
            let whole = to_vec(whole);
            assert_close(&format!("{case:?}"), &to_vec(Tensor::cat(steps, 1)), &whole, SAME_TOLERANCE);
            let mut cache = None;
            let mut step = |t| subject.step(input.clone().narrow(1, t, 1), t, &mut cache, &mut Pass::inference().fused(true));
            let fused = (0..case.len).map(&mut step).collect();
            assert_close(&format!("{case:?}, fused"), &to_vec(Tensor::cat(fused, 1)), &whole, SAME_TOLERANCE);
        }
    }

    #[test]
    fn a_sentence_in_a_batch_is_the_same_as_alone(case in cases()) {
        for subject in case.subjects() {
            let input = subject.input(case.batch, case.len);
            let whole = to_vec(subject.infer(input.clone(), &case.mask(case.len, &subject.device)));
            for (i, length) in case.lengths.iter().enumerate() {
                let len = if case.side == Side::Encoder { *length } else { case.len };
                if len == 0 {
                    continue;
                }
                let alone = Case { batch: 1, lengths: vec![len], len, ..case.clone() };
                let input = input.clone().narrow(0, i, 1).narrow(1, 0, len);
                let found = to_vec(subject.infer(input, &alone.mask(len, &subject.device)));
                let expected = &whole[i * case.len * subject.d_model..][..found.len()];
                assert_close(&format!("{case:?}: sentence {i}"), &found, expected, SAME_TOLERANCE);
            }
        }
    }

    #[test]
    fn a_watched_pass_is_the_same_to_the_bit_and_a_learning_one_within_rounding(case in cases()) {
        for subject in case.subjects() {
            let mask = case.mask(case.len, &subject.device);
            let input = subject.input(case.batch, case.len);
            let expected = to_vec(subject.infer(input.clone(), &mask));
            let mut trace = Trace::default();
            let traced = to_vec(subject.forward(input.clone(), &mask, &mut Pass::traced(&mut trace)));
            prop_assert_eq!(&traced, &expected);
            let written_out = to_vec(subject.forward(input, &mask, &mut Pass::training(1, 1, 1)));
            assert_close(&format!("{case:?}"), &written_out, &expected, SAME_TOLERANCE);
        }
    }
}
