//! Passes: dropout and tracing.

use crate::support::{flex, host_backends, tensor};
use burn::tensor::Tensor;
use lookback::layers::{Pass, Trace};
use lookback::models::weights::to_vec;

const N: usize = 100_000;

fn ones() -> Tensor<2> {
    Tensor::ones([100, N / 100], &flex())
}

fn dropped(pass: &mut Pass, rate: f64) -> Vec<f32> {
    to_vec(pass.dropout(ones(), rate))
}

#[test]
fn dropout_drops_at_its_rate_and_scales_what_it_keeps() {
    for rate in [0.1, 0.5, 0.9] {
        let values = dropped(&mut Pass::training(7, 3, 0), rate);
        let n_dropped = values.iter().filter(|value| **value == 0.0).count() as f64;
        // Five standard deviations: by chance once in two million seeds.
        let allowed = 5.0 * (N as f64 * rate * (1.0 - rate)).sqrt();
        assert!((n_dropped - N as f64 * rate).abs() < allowed, "{n_dropped} of {N} at rate {rate}");
        let kept = (1.0 / (1.0 - rate)) as f32;
        assert!(values.iter().all(|value| *value == 0.0 || *value == kept), "kept units are not {kept} at rate {rate}");
    }
}

#[test]
fn dropout_is_a_function_of_seed_update_part_and_place() {
    let first = dropped(&mut Pass::training(7, 3, 1), 0.5);
    assert_eq!(first, dropped(&mut Pass::training(7, 3, 1), 0.5), "the same place");
    let mut pass = Pass::training(7, 3, 1);
    dropped(&mut pass, 0.5);
    let others = [
        ("the next layer", dropped(&mut pass, 0.5)),
        ("another seed", dropped(&mut Pass::training(8, 3, 1), 0.5)),
        ("another update", dropped(&mut Pass::training(7, 4, 1), 0.5)),
        ("another part", dropped(&mut Pass::training(7, 3, 2), 0.5)),
        ("update and part exchanged", dropped(&mut Pass::training(7, 1, 3), 0.5)),
    ];
    for (what, other) in others {
        let n_equal = first.iter().zip(&other).filter(|(a, b)| a == b).count() as f64;
        // Independent masks agree in half of their elements, within five standard deviations.
        assert!((n_equal - N as f64 / 2.0).abs() < 5.0 * (N as f64).sqrt() / 2.0, "{what}: {n_equal} of {N} agree");
    }
}

#[test]
fn neighbours_are_dropped_independently() {
    let values = dropped(&mut Pass::training(7, 3, 0), 0.5);
    let n_equal = values.windows(2).filter(|pair| pair[0] == pair[1]).count() as f64;
    assert!((n_equal - N as f64 / 2.0).abs() < 5.0 * (N as f64).sqrt() / 2.0, "{n_equal} of {N} neighbours agree");
}

#[test]
fn dropout_is_the_same_on_every_backend() {
    let expected = dropped(&mut Pass::training(7, 3, 0), 0.3);
    for adapter in host_backends() {
        let input: Tensor<2> = Tensor::ones([100, N / 100], &adapter.device);
        assert_eq!(to_vec(Pass::training(7, 3, 0).dropout(input, 0.3)), expected, "{}", adapter.backend);
    }
}

#[test]
fn nothing_is_dropped_in_inference_or_at_rate_zero() {
    assert!(dropped(&mut Pass::inference(), 0.5).iter().all(|value| *value == 1.0));
    assert!(dropped(&mut Pass::training(7, 3, 0), 0.0).iter().all(|value| *value == 1.0));
    assert!(!Pass::inference().is_training() && Pass::training(1, 1, 1).is_training());
}

#[test]
fn what_is_dropped_has_no_gradient() {
    let input = Tensor::<2>::ones([10, 10], &flex().autodiff()).require_grad();
    let output = Pass::training(7, 3, 0).dropout(input.clone(), 0.5);
    let grads = output.clone().sum().backward();
    let output = to_vec(output);
    assert!(output.contains(&0.0) && output.contains(&2.0));
    assert_eq!(to_vec(input.grad(&grads).expect("a leaf has a gradient")), output);
}

#[test]
fn a_trace_has_names_by_scope_shapes_and_values_in_order() {
    let mut trace = Trace::default();
    let mut pass = Pass::traced(&mut trace);
    let value = |x: f32| move || tensor(vec![x, 2.0, 3.0], [1, 3], &flex());
    pass.scoped("decoder.0", |pass| {
        pass.scoped("self_attention", |pass| pass.record("weights", value(1.0)));
        pass.record("output", value(4.0));
    });
    pass.record("output", value(5.0));
    pass.scoped("decoder.0", |pass| pass.record("output", value(6.0)));
    let names: Vec<&str> = trace.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["decoder.0.self_attention.weights", "decoder.0.output", "output", "decoder.0.output"]);
    let last = trace.get("decoder.0.output").expect("it was recorded");
    assert_eq!((last.shape.as_slice(), last.values.as_slice()), ([1, 3].as_slice(), [6.0, 2.0, 3.0].as_slice()));
    assert!(trace.get("output.0").is_none());
}

#[test]
fn nothing_is_computed_for_a_trace_that_nobody_wants() {
    Pass::inference().record::<1>("weights", || panic!("computed for nobody"));
    Pass::training(1, 1, 1).record::<1>("weights", || panic!("computed for nobody"));
}
