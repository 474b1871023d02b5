//! The position-wise feed-forward network.

use super::{Outputs, check_golden, golden_layers, named};
use crate::support::{SAME_TOLERANCE, assert_close, flex, tensor};
use burn::module::Module;
use lookback::layers::feed_forward::{Activation, FeedForward};
use lookback::layers::{Init, Pass};
use lookback::models::weights::{Weight, Weights, apply, to_vec};
use std::path::Path;

#[test]
fn feed_forward_networks_are_pytorchs() {
    for case in golden_layers("feed-forward") {
        let (d_model, d_inner) = (case.number("d_model"), case.number("d_feed_forward"));
        let build = |init: &Init| FeedForward::new(d_model, d_inner, case.choice("activation"), 0.0, init);
        check_golden(case, build, |layer, inputs, pass| {
            Outputs::from([named("output", layer.forward(inputs.get::<3>("input"), pass))])
        });
    }
}

/// A network from one number to one, through `inner`, with an outer weight of 10 and a bias of 1.
fn network(activation: Activation, inner: &[f32]) -> FeedForward {
    let layer = FeedForward::new(1, 1, activation, 0.0, &Init::new(1, &flex()));
    let n = inner.len();
    let weight = |shape: &[usize], values: &[f32]| Weight { shape: shape.to_vec(), values: values.to_vec() };
    let weights = Weights::from([
        ("inner.weight".to_string(), weight(&[1, n], inner)),
        ("inner.bias".to_string(), weight(&[n], &vec![0.0; n])),
        ("outer.weight".to_string(), weight(&[1, 1], &[10.0])),
        ("outer.bias".to_string(), weight(&[1], &[1.0])),
    ]);
    apply(layer, &weights, Path::new("by hand")).expect("the shapes of a network of width one")
}

#[test]
fn activations_can_be_derived_by_hand() {
    let input = tensor(vec![1.0, -1.0], [1, 2, 1], &flex());
    let cases: [(Activation, &[f32], [f64; 2]); 5] = [
        (Activation::Relu, &[2.0], [2.0, 0.0]),
        // x Phi(x) at 1 and -1, Phi(1) = 0.841344746.
        (Activation::Gelu, &[1.0], [0.841_344_746, -0.158_655_254]),
        // x (1 + tanh(0.7978846 (x + 0.044715 x^3))) / 2.
        (Activation::GeluTanh, &[1.0], [0.841_191_991, -0.158_808_009]),
        // 1 / (1 + e^-1) and -1 / (1 + e).
        (Activation::Silu, &[1.0], [0.731_058_579, -0.268_941_421]),
        // silu(x) * 3x at 1 and -1: 3 / (1 + e^-1) and 3 / (1 + e).
        (Activation::Swiglu, &[1.0, 3.0], [2.193_175_736, 0.806_824_264]),
    ];
    for (activation, inner, active) in cases {
        let output = network(activation, inner).forward(input.clone(), &mut Pass::inference());
        let expected = active.map(|value| 10.0 * value + 1.0);
        assert_close(&format!("{activation:?}"), &to_vec(output), &expected, SAME_TOLERANCE);
    }
}

#[test]
fn dropout_follows_the_activation() {
    // One inner unit: what is dropped leaves the outer bias alone, what is kept counts twice.
    let layer = FeedForward::new(1, 1, Activation::Relu, 0.5, &Init::new(1, &flex()));
    let weights = lookback::models::weights::collect(&network(Activation::Relu, &[2.0]));
    let layer = apply(layer, &weights, Path::new("by hand")).expect("the same shapes");
    let output = to_vec(layer.forward(tensor(vec![1.0; 50], [1, 50, 1], &flex()), &mut Pass::training(1, 2, 3)));
    assert!(output.iter().all(|value| [1.0, 41.0].contains(value)), "{output:?}");
    assert!(output.contains(&1.0) && output.contains(&41.0), "50 draws on one side: one in 10^14");
    assert_eq!(layer.num_params(), 4);
}
