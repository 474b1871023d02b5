//! Layers: each against PyTorch forward and backward, and against values derived by hand.

pub mod alignment;
mod attention;
mod feed_forward;
mod fused;
mod loss;
mod mask;
mod mixer;
mod optimizer;
mod pass;
mod position;
mod recurrent;
mod schedule;
mod schemes;
mod values;

use crate::support::{
    FORWARD_TOLERANCE, GRADIENT_TOLERANCE, LayerCase, SAME_TOLERANCE, assert_close, closed_form, closed_form_weights,
    flex, golden, gradients_by_path, host_backends, tensor,
};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use lookback::layers::norm::{EPSILON, NormKind};
use lookback::layers::position::Rotation;
use lookback::layers::{Init, Pass, Trace};
use lookback::models::weights::{apply, to_vec};
use std::collections::BTreeMap;
use std::path::Path;

/// The layers of the golden files and the number of cases that each has.
const GOLDEN_LAYERS: [(&str, usize); 19] = [
    ("scaled-dot-product", 4),
    ("self-attention", 2),
    ("cross-attention", 1),
    ("bahdanau", 3),
    ("alignment", 21),
    ("feed-forward", 3),
    ("cell", 3),
    ("recurrent-encoder", 6),
    ("layer-norm", 1),
    ("sinusoids", 2),
    ("rotary", 3),
    ("alibi-slopes", 8),
    ("t5-buckets", 8),
    ("rms-norm", 1),
    ("biased-attention", 1),
    ("shaw-attention", 2),
    ("grouped-self-attention", 6),
    ("grouped-cross-attention", 1),
    ("values", 5),
];

/// Of the loss there are two more, which `loss` checks.
const GOLDEN_LOSSES: usize = 2;

#[test]
fn every_golden_layer_has_a_test() {
    let known = GOLDEN_LAYERS.iter().map(|(_, n)| n).sum::<usize>() + GOLDEN_LOSSES;
    assert_eq!(golden().layers.len(), known, "cases of the golden files");
}

/// The golden cases of a layer.
fn golden_layers(layer: &str) -> Vec<&'static LayerCase> {
    let cases: Vec<_> = golden().layers.iter().filter(|case| case.layer == layer).collect();
    let known = GOLDEN_LAYERS.iter().find(|(name, _)| *name == layer).expect("a layer of the table").1;
    assert_eq!(cases.len(), known, "cases of {layer}");
    cases
}

/// The inputs of a golden case, as leaves of the graph.
struct Inputs {
    leaves: BTreeMap<String, (Tensor<1>, Vec<usize>)>,
}

impl Inputs {
    fn new(case: &LayerCase, device: &Device) -> Self {
        let leaf = |(path, input): (&String, &crate::support::GoldenInput)| {
            let len = input.shape.iter().product();
            let leaf = tensor(closed_form(path, len, input.scale), [len], device);
            let leaf = if device.is_autodiff() { leaf.require_grad() } else { leaf };
            (path.clone(), (leaf, input.shape.clone()))
        };
        Self { leaves: case.inputs.iter().map(leaf).collect() }
    }

    fn get<const D: usize>(&self, path: &str) -> Tensor<D> {
        let (leaf, shape) = &self.leaves[path];
        let shape: [usize; D] = shape.clone().try_into().expect("an input of this rank");
        leaf.clone().reshape(shape)
    }

    fn device(&self) -> Device {
        self.leaves.values().next().expect("a layer has inputs").0.device()
    }
}

/// The outputs of a layer by name, flat.
type Outputs = BTreeMap<String, Tensor<1>>;

fn flat<const D: usize>(tensor: Tensor<D>) -> Tensor<1> {
    let len = tensor.shape().num_elements();
    tensor.reshape([len])
}

fn named<const D: usize>(name: &str, tensor: Tensor<D>) -> (String, Tensor<1>) {
    (name.to_string(), flat(tensor))
}

/// A module without parameters.
fn no_parameters(_: &Init) -> Vec<Linear> {
    Vec::new()
}

/// Compares a golden case with what a layer computes on every host backend: in inference, traced, and learning, fused and not.
fn check_golden<M: Module>(
    case: &LayerCase,
    build: impl Fn(&Init) -> M,
    run: impl Fn(&M, &Inputs, &mut Pass) -> Outputs,
) {
    for adapter in host_backends() {
        let what = format!("{} on {}", case.name, adapter.backend);
        let weights = closed_form_weights(&case.parameters, 1.0);
        let module = apply(build(&Init::new(1, &adapter.device)), &weights, Path::new(&case.name))
            .unwrap_or_else(|error| panic!("{error}"));

        let inputs = Inputs::new(case, &adapter.device);
        check_outputs(&what, case, run(&module, &inputs, &mut Pass::inference()));
        let mut trace = Trace::default();
        check_outputs(&format!("{what}, traced"), case, run(&module, &inputs, &mut Pass::traced(&mut trace)));
        for expected in &case.traced {
            let entry = trace.get(&expected.name).unwrap_or_else(|| panic!("{what}: {} is not traced", expected.name));
            assert_eq!(entry.shape, expected.shape, "{what}: the shape of {}", expected.name);
            let name = format!("{what}: traced {}", expected.name);
            assert_close(&name, &entry.values, &expected.values, FORWARD_TOLERANCE);
        }

        let module = module.train();
        for is_fused in [false, true] {
            let what = format!("{what}, learning, {}", if is_fused { "fused" } else { "written out" });
            let inputs = Inputs::new(case, &adapter.device.clone().autodiff());
            let outputs = run(&module, &inputs, &mut Pass::inference().fused(is_fused));
            let loss = golden_loss(case, &outputs);
            check_outputs(&what, case, outputs);
            let grads = loss.backward();
            let mut found: BTreeMap<String, Vec<f32>> = BTreeMap::new();
            for (path, (leaf, _)) in &inputs.leaves {
                found.insert(
                    path.clone(),
                    to_vec(leaf.grad(&grads).unwrap_or_else(|| panic!("{what}: {path} has no gradient"))),
                );
            }
            found.extend(gradients_by_path(&module, grads));
            for (path, expected) in &case.gradients {
                let found = found.get(path).unwrap_or_else(|| panic!("{what}: {path} has no gradient"));
                assert_close(&format!("{what}: gradient of {path}"), found, expected, GRADIENT_TOLERANCE);
            }
        }
    }
}

/// The sum over outputs k and elements i of `output_k[i] * 0.1 * cos(0.5 * i + 0.3 * k)`.
fn golden_loss(case: &LayerCase, outputs: &Outputs) -> Tensor<1> {
    let terms = case.outputs.iter().enumerate().map(|(k, golden)| {
        let output = outputs[&golden.name].clone();
        let len = output.dims()[0];
        let coefficients = (0..len).map(|i| 0.1 * (0.5 * i as f64 + 0.3 * k as f64).cos() as f32).collect();
        (output.clone() * tensor(coefficients, [len], &output.device())).sum()
    });
    terms.reduce(|a, b| a + b).expect("a case has outputs")
}

fn check_outputs(what: &str, case: &LayerCase, outputs: Outputs) {
    assert_eq!(outputs.len(), case.outputs.len(), "{what}: the number of outputs");
    for expected in &case.outputs {
        let found = to_vec(outputs[&expected.name].clone());
        assert_close(&format!("{what}: {}", expected.name), &found, &expected.values, FORWARD_TOLERANCE);
    }
}

#[test]
fn both_normalizations_are_pytorchs() {
    for (layer, kind) in [("layer-norm", NormKind::Layer), ("rms-norm", NormKind::Rms)] {
        for case in golden_layers(layer) {
            let build = |init: &Init| kind.init(case.number("d_model"), EPSILON, init);
            check_golden(case, build, |norm, inputs, pass| {
                Outputs::from([named("output", norm.forward(inputs.get::<3>("input"), pass))])
            });
        }
    }
}

#[test]
fn normalizations_can_be_derived_by_hand() {
    // (1, 7): mean 4, deviation 3, root mean square 5.
    let input = tensor(vec![1.0, 7.0], [1, 2], &flex());
    for (kind, expected) in [(NormKind::Layer, [-1.0, 1.0]), (NormKind::Rms, [0.2, 1.4])] {
        let found = to_vec(kind.init(2, EPSILON, &Init::new(1, &flex())).forward(input.clone(), &Pass::inference()));
        assert_close(&format!("{kind:?}"), &found, &expected, SAME_TOLERANCE);
    }
}

/// Heads turned by their positions: `[batch, n_heads, len, d_head]`.
fn turned(rotation: &Rotation, heads: Tensor<4>) -> Tensor<4> {
    let [batch, n_heads, len, d_head] = heads.dims();
    let packed = heads.swap_dims(1, 2).reshape([batch, len, n_heads * d_head]);
    rotation.apply(packed, n_heads, &Pass::inference()).reshape([batch, len, n_heads, d_head]).swap_dims(1, 2)
}
