//! Positions.

use super::{Outputs, check_golden, golden_layers, named, no_parameters, turned};
use crate::support::{assert_close, flex, host_backends, tensor};
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lookback::layers::position::alibi::slopes;
use lookback::layers::position::t5::Buckets;
use lookback::layers::position::{AttentionPositions, Places, Position, PositionConfig, Rotary, Side, sinusoids};
use lookback::layers::{Init, Pass};
use lookback::models::weights::{collect, to_vec};
use lookback::ops::attention::by_pair;
use lookback::random::{Purpose, Stream};

/// Both sides compute in 64 bits; what is left is the rounding to 32 bits of numbers up to one.
const TOLERANCE: f64 = 1e-7;

#[test]
fn sinusoids_are_those_of_the_paper() {
    for case in golden_layers("sinusoids") {
        let found = sinusoids(case.number("offset"), case.number("len"), case.number("d_model"));
        assert_close(&case.name, &found, &case.outputs[0].values, TOLERANCE);
    }
}

#[test]
fn rotations_are_llamas() {
    for case in golden_layers("rotary") {
        let base: f64 = case.choice("base");
        check_golden(case, no_parameters, |_, inputs, _| {
            let input = inputs.get::<4>("input");
            let [_, _, len, d_head] = input.dims();
            let rotation = Rotary::new(d_head, base)
                .rotation(&Places::Following { offset: case.number("offset"), len }, &inputs.device());
            Outputs::from([named("output", turned(&rotation, input))])
        });
    }
}

#[test]
fn slopes_are_blooms() {
    for case in golden_layers("alibi-slopes") {
        assert_close(&case.name, &slopes(case.number("n_heads")), &case.outputs[0].values, TOLERANCE);
    }
}

#[test]
fn buckets_are_t5s() {
    for case in golden_layers("t5-buckets") {
        let side = if case.config["side"] == "encoder" { Side::Encoder } else { Side::Decoder };
        let (n_buckets, max_distance) = (case.number("n_buckets"), case.number("max_distance"));
        let buckets = Buckets { n_buckets, max_distance, side };
        let first: i64 = case.choice("first");
        for (distance, expected) in (first..).zip(&case.outputs[0].values) {
            assert_eq!(buckets.bucket(distance) as f64, *expected, "{}: distance {distance}", case.name);
        }
    }
}

#[test]
fn the_first_position_is_a_row_of_zeros_and_ones() {
    assert_eq!(sinusoids(0, 1, 6), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn positions_are_added_and_an_offset_goes_on_where_the_last_step_ended() {
    for adapter in host_backends() {
        let init = Init::new(1, &adapter.device);
        for config in [PositionConfig::Sinusoidal {}, PositionConfig::Learned { max_len: 11 }] {
            let layer = config.init(6, 1, Side::Encoder, &init);
            let table = match collect(&layer).get("learned.weight") {
                Some(weight) => weight.values.clone(),
                None => sinusoids(0, 11, 6),
            };
            let input = Tensor::zeros([2, 7, 6], &adapter.device);
            let whole = to_vec(layer.embed(input, 0));
            assert_eq!(whole[..42], table[..42], "{config:?}");
            assert_eq!(whole[42..], table[..42], "{config:?}: every sentence begins at zero");
            let later = to_vec(layer.embed(tensor(vec![2.0; 24], [1, 4, 6], &adapter.device), 7));
            let expected: Vec<f32> = table[42..66].iter().map(|value| value + 2.0).collect();
            assert_eq!(later, expected, "{config:?}");
        }
    }
}

#[test]
fn only_a_learned_table_has_parameters_and_an_end() {
    let init = Init::new(1, &flex());
    let learned = PositionConfig::Learned { max_len: 11 };
    assert_eq!((learned.init(6, 1, Side::Encoder, &init).num_params(), learned.max_len()), (66, Some(11)));
    assert_eq!(
        (
            PositionConfig::Sinusoidal {}.init(6, 1, Side::Encoder, &init).num_params(),
            PositionConfig::Sinusoidal {}.max_len()
        ),
        (0, None)
    );
}

/// What a scheme does with zeros at some positions: to embeddings, and in attention.
fn at(layer: &Position, places: &Places, device: &Device) -> (Vec<f32>, Vec<f32>) {
    let embedded = layer.embed_at(Tensor::zeros([1, places.len(), 8], device), places);
    let seen = match layer.in_attention_at(places, device) {
        AttentionPositions::None => Vec::new(),
        AttentionPositions::Bias(bias) => to_vec(by_pair(bias, [places.len(), places.key_len()])),
        AttentionPositions::Distances(rows) => to_vec(rows.float()),
        AttentionPositions::Rotation(rotation) => {
            to_vec(turned(&rotation, Tensor::ones([1, 1, places.len(), 4], device)))
        }
    };
    (to_vec(embedded), seen)
}

#[test]
fn drawn_positions_are_rows_and_pairs_of_the_whole_range() {
    let (range, drawn) = (12, vec![1, 4, 5, 11]);
    for adapter in host_backends() {
        let (init, device) = (Init::new(1, &adapter.device), &adapter.device);
        for config in [
            PositionConfig::Sinusoidal {},
            PositionConfig::Learned { max_len: range },
            PositionConfig::Rotary { base: 100.0 },
            PositionConfig::Alibi {},
            PositionConfig::T5 { n_buckets: 8, max_distance: 6 },
            PositionConfig::Shaw { max_distance: 5 },
        ] {
            let layer = config.init(8, 2, Side::Encoder, &init);
            let whole = Places::Following { offset: 0, len: range };
            let (embedded, seen) = at(&layer, &whole, device);
            assert_eq!(
                at(&layer, &Places::Drawn((0..range).collect()), device),
                (embedded.clone(), seen.clone()),
                "{config:?}"
            );
            let found = at(&layer, &Places::Drawn(drawn.clone()), device);
            let rows = |values: &[f32], width: usize| -> Vec<f32> {
                drawn.iter().flat_map(|i| values[i * width..][..width].to_vec()).collect()
            };
            assert_eq!(found.0, rows(&embedded, 8), "{config:?}");
            let expected: Vec<f32> = match config {
                PositionConfig::Rotary { .. } => rows(&seen, 4),
                _ => {
                    let pairs = |head: &[f32]| {
                        drawn
                            .iter()
                            .flat_map(|i| drawn.iter().map(|j| head[i * range + j]).collect::<Vec<_>>())
                            .collect::<Vec<_>>()
                    };
                    seen.chunks(range * range).flat_map(pairs).collect()
                }
            };
            assert_eq!(found.1, expected, "{config:?}");
        }
    }
}

#[test]
fn positions_are_drawn_in_training_alone_anew_for_every_part_and_stack() {
    let training = |update, part, stack| Pass::training(3, update, part).places(Some(50), 7, stack);
    let Places::Drawn(first) = training(1, 0, 0) else { panic!("drawn") };
    assert_eq!(first.len(), 7);
    assert!(first.windows(2).all(|pair| pair[0] < pair[1]) && first[6] < 50, "{first:?}");
    assert_eq!(training(1, 0, 0), Places::Drawn(first.clone()), "the same when a run goes on");
    for other in [training(2, 0, 0), training(1, 1, 0), training(1, 0, 1)] {
        assert_ne!(other, Places::Drawn(first.clone()));
    }
    let following = Places::Following { offset: 0, len: 7 };
    assert_eq!(Pass::inference().places(Some(50), 7, 0), following);
    assert_eq!(Pass::training(3, 1, 0).places(None, 7, 0), following);
    assert_eq!(Pass::training(3, 1, 0).places(Some(6), 7, 0), following, "longer than the range");
    assert_eq!(Pass::training(3, 1, 0).places(Some(7), 7, 0), Places::Drawn((0..7).collect()));
}

#[test]
fn every_sample_is_as_likely_as_any_other() {
    let mut counts = std::collections::BTreeMap::new();
    for i in 0..10_000 {
        *counts.entry(Stream::new(1, Purpose::Positions, &[i]).sample(5, 2)).or_insert(0) += 1;
    }
    // 1000 of each, with a deviation of 30.
    assert_eq!(counts.len(), 10);
    assert!(counts.values().all(|n| (880..1120).contains(n)), "{counts:?}");
}
