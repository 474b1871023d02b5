//! Positions.

use super::{Outputs, check_golden, golden_layers, named, no_parameters};
use crate::support::{assert_close, flex, host_backends, tensor};
use burn::module::Module;
use burn::tensor::Tensor;
use lookback::layers::Init;
use lookback::layers::position::alibi::slopes;
use lookback::layers::position::t5::Buckets;
use lookback::layers::position::{PositionConfig, Rotary, Side, sinusoids};
use lookback::models::weights::{collect, to_vec};

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
            let rotation = Rotary::new(d_head, base).rotation(case.number("offset"), len, &inputs.device());
            Outputs::from([named("output", rotation.apply(input))])
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
