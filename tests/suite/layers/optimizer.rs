//! Adam, against the algorithm of Kingma and Ba written out in 64 bits.

use crate::support::{SAME_TOLERANCE, assert_close, closed_form, flex, host_backends, tensor, wgpu, with_closed_form};
use burn::module::Module;
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use lookback::layers::Init;
use lookback::models::weights::{Weights, collect};
use lookback::training::optimizer::{Adam, AdamConfig, GradientSet};

const CONFIG: AdamConfig = AdamConfig { beta_1: 0.8, beta_2: 0.95, epsilon: 1e-4, weight_decay: 0.0 };
const RATE: f64 = 0.01;

fn model(device: &Device) -> Linear {
    with_closed_form(Init::new(1, device).linear(3, 5, 1), 1.0).train()
}

/// Where parameters and their moments lie: both on the host, both on a device in burn's operations, and on a GPU, if there is one.
fn places() -> Vec<(Device, bool)> {
    let gpu = wgpu().map(|adapter| (adapter.device, false));
    [(flex(), true), (flex(), false)].into_iter().chain(gpu).collect()
}

/// What the gradient of update `t` is, by path.
fn gradient(path: &str, len: usize, t: u64) -> Vec<f32> {
    closed_form(&format!("{path} at {t}"), len, 1.0)
}

/// Gradients as they come out of a backward pass: those of the sum of every parameter times its gradient.
fn gradients(model: &Linear, t: u64, is_host: bool) -> GradientSet {
    let device = model.weight.val().device();
    let times = |path: &str, parameter: Tensor<1>| {
        let len = parameter.dims()[0];
        (parameter * tensor(gradient(path, len, t), [len], &device)).sum()
    };
    let bias = model.bias.as_ref().expect("a bias").val();
    let loss = times("weight", model.weight.val().reshape([15])) + times("bias", bias);
    GradientSet::new(model, GradientsParams::from_grads(loss.backward(), model), is_host)
}

fn after(config: &AdamConfig, n_updates: u64, (device, is_host): &(Device, bool)) -> (Linear, Adam) {
    let mut adam = Adam::new(config.clone());
    let mut model = model(device);
    for t in 1..=n_updates {
        let gradients = gradients(&model, t, *is_host);
        model = adam.step(model, gradients, 0.5, RATE * t as f64);
    }
    (model, adam)
}

/// Algorithm 1 of Kingma and Ba with the decay of Loshchilov and Hutter, gradients halved and rates rising as in [`after`].
fn by_the_paper(config: &AdamConfig, path: &str, start: &[f32], n_updates: u64) -> Vec<f64> {
    let mut values: Vec<f64> = start.iter().map(|value| *value as f64).collect();
    let (mut m, mut v) = (vec![0.0; values.len()], vec![0.0; values.len()]);
    for t in 1..=n_updates {
        let rate = RATE * t as f64;
        for (i, g) in gradient(path, values.len(), t).into_iter().enumerate() {
            let g = 0.5 * g as f64;
            m[i] = config.beta_1 * m[i] + (1.0 - config.beta_1) * g;
            v[i] = config.beta_2 * v[i] + (1.0 - config.beta_2) * g * g;
            let first = m[i] / (1.0 - config.beta_1.powi(t as i32));
            let second = v[i] / (1.0 - config.beta_2.powi(t as i32));
            values[i] -= rate * config.weight_decay * values[i];
            values[i] -= rate * first / (second.sqrt() + config.epsilon);
        }
    }
    values
}

#[test]
fn updates_are_those_of_the_paper_on_the_host_and_on_a_device() {
    for config in [CONFIG, AdamConfig { weight_decay: 0.3, ..CONFIG }, AdamConfig::default()] {
        for place in places() {
            let (found, adam) = after(&config, 7, &place);
            assert_eq!(adam.updates(), 7);
            for (path, start) in collect(&model(&flex())) {
                let expected = by_the_paper(&config, &path, &start.values, 7);
                let what = format!("{path}, {place:?}, {config:?}");
                assert_close(&what, &collect(&found)[&path].values, &expected, SAME_TOLERANCE);
            }
        }
    }
}

#[test]
fn the_first_update_moves_every_weight_by_the_rate_against_its_gradient() {
    // m / (1 - b1) = g and v / (1 - b2) = g^2, so the step is the rate times the sign of g.
    let config = AdamConfig { epsilon: 0.0, ..CONFIG };
    let (moved, _) = after(&config, 1, &(flex(), true));
    for (path, start) in collect(&model(&flex())) {
        let gradient = gradient(&path, start.values.len(), 1);
        for (i, value) in collect(&moved)[&path].values.iter().enumerate() {
            let step = *value as f64 - start.values[i] as f64;
            let expected = -RATE * (gradient[i] as f64).signum();
            assert!((step - expected).abs() < 1e-7, "{path} {i} moved by {step} instead of {expected}");
        }
    }
}

#[test]
fn decay_alone_shrinks_weights_by_rate_times_decay() {
    let config = AdamConfig { weight_decay: 0.3, ..CONFIG };
    let start = collect(&model(&flex()));
    let mut adam = Adam::new(config);
    let moved = adam.step(model(&flex()), gradients(&model(&flex()), 1, true), 0.0, 0.1);
    for (path, weight) in collect(&moved) {
        let expected: Vec<f64> = start[&path].values.iter().map(|value| 0.97 * *value as f64).collect();
        assert_close(&path, &weight.values, &expected, SAME_TOLERANCE);
    }
}

#[test]
fn a_restored_optimizer_goes_on_as_if_it_had_never_stopped() {
    for place in places() {
        let (device, is_host) = place.clone();
        let is_gpu = device != flex();
        let (mut expected, mut adam) = after(&CONFIG, 3, &place);
        let mut resumed = expected.clone();
        let state = adam.state();
        let names: Vec<_> = state.keys().map(String::as_str).collect();
        assert_eq!(names, ["bias.first", "bias.second", "weight.first", "weight.second"]);
        assert_eq!(state["weight.second"].shape, [3, 5]);
        let mut restored = Adam::new(CONFIG);
        // As after a rollback, where training has the device of its graph.
        restored.restore(state, adam.updates(), &collect(&resumed), &device.autodiff()).unwrap();
        for t in 4..=6 {
            let ours = gradients(&expected, t, is_host);
            expected = adam.step(expected, ours, 0.5, RATE);
            // Flex lies in this process's memory, so that a state restored there is one of the host.
            let theirs = gradients(&resumed, t, !is_gpu);
            resumed = restored.step(resumed, theirs, 0.5, RATE);
        }
        assert_eq!(restored.updates(), 6);
        for (path, weight) in collect(&expected) {
            let found = &collect(&resumed)[&path].values;
            if is_host || is_gpu {
                assert_eq!(*found, weight.values, "{path}");
            } else {
                assert_close(&path, found, &weight.values, SAME_TOLERANCE);
            }
        }
    }
}

#[test]
fn the_norm_is_that_of_all_gradients_together() {
    let squares = |path, len| gradient(path, len, 1).iter().map(|g| (*g as f64).powi(2)).sum::<f64>();
    let expected = (squares("weight", 15) + squares("bias", 5)).sqrt();
    for is_host in [true, false] {
        assert_close("norm", &[gradients(&model(&flex()), 1, is_host).norm()], &[expected], SAME_TOLERANCE);
    }
}

#[test]
fn gradients_of_parts_add_up() {
    for is_host in [true, false] {
        let mut sum = GradientSet::default();
        sum.add(gradients(&model(&flex()), 1, is_host));
        sum.add(gradients(&model(&flex()), 2, is_host));
        let expected: Vec<f32> =
            gradient("bias", 5, 1).iter().zip(gradient("bias", 5, 2)).map(|(a, b)| a + b).collect();
        assert_eq!(sum.get("bias").expect("a bias"), expected);
        assert!(sum.get("scale").is_none());
    }
}

#[test]
fn a_parameter_without_a_gradient_stays_as_it_is() {
    let mut model = model(&flex());
    let start: Weights = collect(&model);
    let weight = model.weight.val();
    let grads = GradientsParams::from_grads(weight.sum().backward(), &model);
    let gradients = GradientSet::new(&model, grads, true);
    assert!(gradients.get("bias").is_none());
    let mut adam = Adam::new(AdamConfig { weight_decay: 0.3, ..CONFIG });
    model = adam.step(model, gradients, 1.0, 0.1);
    assert_eq!(collect(&model)["bias"], start["bias"]);
    assert_ne!(collect(&model)["weight"], start["weight"]);
    assert!(!adam.state().contains_key("bias.first"));
}

#[test]
fn a_model_still_learns_after_an_update() {
    for adapter in host_backends() {
        let init = Init::new(1, &adapter.device);
        let mut layer = init.linear(3, 5, 1).train();
        for t in 1..=2u64 {
            let input = Tensor::<2>::ones([2, 3], &adapter.device.clone().autodiff());
            let grads = GradientsParams::from_grads(layer.forward(input).sum().backward(), &layer);
            let set = GradientSet::new(&layer, grads, true);
            assert_eq!(set.get("bias").expect("a gradient at every update"), [2.0; 5], "update {t}");
            layer = Adam::new(CONFIG).step(layer, set, 1.0, 0.1);
        }
    }
}
