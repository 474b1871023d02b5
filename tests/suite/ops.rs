//! Operations: on slices each is the same as in burn's operations, forward and backward, whatever the shapes, masks and dropout.

mod cases;
mod extremes;
mod memories;

use crate::support::{
    SIMD_OF_TESTS, assert_close, closed_form_tensor, flex, host_backends, random_cases, wgpu, wgpu_beside,
};
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use cases::{CASES, Sizes};
use lookback::kernels::activation::Activation;
use lookback::kernels::machine::InstructionSet;
use lookback::models::weights::to_vec;
use lookback::ops::mask::Mask;
use lookback::ops::{Body, HeadSizes, Projected, Weight};
use proptest::prelude::*;
use regex::Regex;
use std::collections::BTreeSet;

/// How far the two forms may be apart, as a part of the largest element: sums of a thousand 32-bit numbers in another order.
const TOLERANCE: f64 = 3e-5;

/// How far a GPU may be from the host: its exponentials and its sums are others.
const GPU_TOLERANCE: f64 = 2e-4;

/// The inputs of an operation whose gradients are compared.
pub struct Leaves<'a> {
    pub device: &'a Device,
    read: Vec<(String, Gradient)>,
}

type Gradient = Box<dyn Fn(&Gradients) -> Vec<f32>>;

impl Leaves<'_> {
    /// A tensor of closed-form elements up to `scale`.
    pub fn leaf<const D: usize>(&mut self, name: &str, shape: [usize; D], scale: f32) -> Tensor<D> {
        let leaf = closed_form_tensor(name, shape, scale, self.device);
        // Without a graph there are no gradients, and none are read.
        let leaf = if self.device.is_autodiff() { leaf.require_grad() } else { leaf };
        let kept = leaf.clone();
        // In burn's operations an input that the outputs do not depend on has no gradient; here it is zero.
        let zeros = vec![0.0; shape.iter().product()];
        let read = move |gradients: &Gradients| kept.grad(gradients).map_or_else(|| zeros.clone(), to_vec);
        self.read.push((name.to_owned(), Box::new(read)));
        leaf
    }
}

/// Outputs, by name, and the gradients of a weighted sum of them.
fn measure(run: cases::Run, sizes: &Sizes, body: Body, device: &Device) -> Vec<(String, Vec<f32>)> {
    let mut leaves = Leaves { device, read: Vec::new() };
    let outputs = run(&mut leaves, sizes, body);
    let mut found: Vec<(String, Vec<f32>)> = Vec::new();
    let mut loss = Tensor::<1>::zeros([1], device);
    for (i, output) in outputs.into_iter().enumerate() {
        let coefficients = closed_form_tensor(&format!("coefficients {i}"), output.dims(), 1.0, device);
        loss = loss + (output.clone() * coefficients).sum();
        found.push((format!("output {i}"), to_vec(output)));
    }
    let gradients = loss.backward();
    for (name, read) in leaves.read {
        found.push((format!("gradient of {name}"), read(&gradients)));
    }
    found
}

/// Compares tensors that have been measured together. A gradient that is zero but for rounding, as that of a key's bias, has no scale of
/// its own: it is measured by a hundredth of the largest element of all.
fn compare(what: &str, found: &[(String, Vec<f32>)], expected: &[(String, Vec<f32>)], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().flat_map(|(_, values)| values).fold(0f32, |most, value| value.abs().max(most));
    let with_scale = |values: &[f32]| [values, &[1e-2 * largest]].concat();
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        assert_close(&format!("{name} of {what}"), &with_scale(found), &with_scale(expected), tolerance);
    }
}

proptest! {
    #![proptest_config(random_cases(48))]

    #[test]
    fn every_operation_on_slices_is_the_same_in_burns_operations(sizes in cases::sizes()) {
        for adapter in host_backends() {
            let device = adapter.device.clone().autodiff();
            for (name, run) in CASES {
                let [found, expected] = [Body::Fused, Body::Written].map(|body| measure(*run, &sizes, body, &device));
                let what = format!("{name}, {sizes:?} on {}", adapter.backend);
                compare(&what, &found, &expected, TOLERANCE);
                // Without a graph, what the backward pass would need may be left out; what is answered has the same bits.
                let answers = run(&mut Leaves { device: &adapter.device, read: Vec::new() }, &sizes, Body::Fused);
                for (answer, (_, found)) in answers.into_iter().zip(&found) {
                    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                    assert_eq!(bits(&to_vec(answer)), bits(found), "{what}, without a graph");
                }
            }
        }
    }
}

/// Sizes that fix the kernels which a GPU has to compile.
#[test]
fn every_operation_on_a_gpu_is_the_same_on_the_host() {
    let Some(adapter) = wgpu() else { return };
    let (host, device) = (flex().autodiff(), adapter.device.clone().autodiff());
    for (name, run) in CASES {
        let sizes = Sizes::small();
        let expected = measure(*run, &sizes, Body::Fused, &host);
        compare(name, &measure(*run, &sizes, Body::Fused, &device), &expected, GPU_TOLERANCE);
    }
}

/// Those that have kernels of their own there, at more sizes.
#[test]
fn kernels_of_a_gpu_compute_what_the_host_computes() {
    let Some(adapter) = wgpu_beside() else { return };
    let (host, device) = (flex().autodiff(), adapter.device.clone().autodiff());
    const WITH_KERNELS: [&str; 22] = [
        "Linear",
        "FeedForward",
        "Drop",
        "AddDropped",
        "LayerNorm",
        "RmsNorm",
        "LayerNorm of sum",
        "LayerNorm with sum",
        "RmsNorm with sum",
        "Rotate",
        "Attention packed",
        "Attention apart",
        "CrossEntropy",
        "ProjectedCrossEntropy",
        "DeepOutput",
        "CellStep",
        "Contexts",
        "Layer alone",
        "Layer with attention",
        "Recurrence",
        "MatrixMemory",
        "Convolution",
    ];
    let cases: Vec<_> = CASES.iter().filter(|(name, _)| WITH_KERNELS.contains(name)).collect();
    assert_eq!(cases.len(), WITH_KERNELS.len());
    for sizes in Sizes::of_kernels() {
        for (name, run) in &cases {
            let expected = measure(*run, &sizes, Body::Fused, &host);
            let what = format!("{name}, {sizes:?}");
            compare(&what, &measure(*run, &sizes, Body::Fused, &device), &expected, GPU_TOLERANCE);
        }
    }
}

/// Without a graph, the one query of a step has a kernel of its own, which reads queries and keys where they lie.
#[test]
fn one_query_on_a_gpu_is_attended_as_on_the_host() {
    let Some(adapter) = wgpu() else { return };
    // The last has more keys than that kernel holds.
    let sizes = [(3, [1, 4], [2, 2, 5]), (2, [70, 96], [4, 2, 72]), (1, [2100, 2100], [2, 1, 4])];
    // Chosen rows are those of the sentences that go on; their lengths are not known here then.
    let uses = [(false, false), (true, false), (false, true), (true, true)];
    for ((rows, [len, room], [n_heads, n_key_value_heads, d_head]), (is_biased, is_chosen)) in
        sizes.into_iter().flat_map(|sizes| uses.map(|of| (sizes, of)))
    {
        let [found, expected] = [&adapter.device, &flex()].map(|device| {
            let sizes = HeadSizes { n_heads, n_key_value_heads, d_head };
            let [d_query, d_key] = sizes.widths();
            let packed = closed_form_tensor::<3>("packed", [rows, 1, d_query + 2 * d_key], 2.0, device);
            let kept = closed_form_tensor::<3>("kept", [rows, room, 2 * d_key], 2.0, device);
            let lengths: Vec<usize> = (0..rows).map(|row| len.saturating_sub(row).max(1)).collect();
            let mut mask = Mask::padding(&lengths, len, device);
            if is_chosen {
                let turned: Vec<i32> = (0..rows as i32).rev().collect();
                mask = mask.select(&Tensor::from_data(TensorData::new(turned, [rows]), device));
            }
            let projected = Projected::Apart(packed.narrow(2, 0, d_query), kept.narrow(1, 0, len));
            let bias = is_biased.then(|| closed_form_tensor::<4>("bias", [1, n_heads, 1, len], 2.0, device));
            to_vec(lookback::ops::attention(projected, bias, sizes, &mask, None, Body::Fused))
        });
        let what = format!("{rows} rows of {len} keys, with a bias: {is_biased}, chosen: {is_chosen}");
        assert_close(&what, &found, &expected, GPU_TOLERANCE);
    }
}

/// Without a graph, a sum is normalized as it is made, and a product is rectified before it is written, in one part and in several.
#[test]
fn what_has_no_graph_is_done_at_once_on_a_gpu_as_apart_on_the_host() {
    let Some(adapter) = wgpu() else { return };
    for [rows, width, inner] in [[3, 6, 5], [2, 200, 90], [1, 1100, 70]] {
        let [found, expected] = [&adapter.device, &flex()].map(|device| {
            let tensor = |name: &str| closed_form_tensor::<3>(name, [rows, 2, width], 2.0, device);
            let matrix = |name: &str, shape| Weight::plain(closed_form_tensor::<2>(name, shape, 1.0, device));
            let vector = |name: &str, width| closed_form_tensor::<1>(name, [width], 1.0, device);
            let norm = |beta: Option<Tensor<1>>| {
                let both = [tensor("around"), tensor("through")];
                lookback::ops::norm_of_sum(both, None, vector("gamma", width), beta, 1e-5, Body::Fused)
            };
            let with_sum = |beta: Option<Tensor<1>>| {
                let both = [tensor("around"), tensor("through")];
                let outputs = lookback::ops::norm_with_sum(both, None, vector("gamma", width), beta, 1e-5, Body::Fused);
                Tensor::cat(outputs.to_vec(), 0)
            };
            let layers = [
                (matrix("inner", [width, inner]), vector("inner bias", inner)),
                (matrix("outer", [inner, width]), vector("outer bias", width)),
            ];
            let units = lookback::ops::feed_forward(tensor("input"), layers, Activation::Relu, None, Body::Fused);
            let beta = || Some(vector("beta", width));
            [norm(beta()), norm(None), with_sum(beta()), with_sum(None), units].map(to_vec)
        });
        let names = ["layer", "rms", "layer and sum", "rms and sum", "units"];
        for (what, (found, expected)) in names.iter().zip(found.iter().zip(&expected)) {
            assert_close(&format!("{what} of {rows} x {width}"), found, expected, GPU_TOLERANCE);
        }
    }
}

/// The likeliest words, best first, and of equals those with the lowest numbers, in rows that are shorter and longer than a cube has units.
#[test]
fn the_likeliest_words_are_found_on_a_gpu_in_the_order_of_the_host() {
    let Some(adapter) = wgpu() else { return };
    for ([rows, n_words], first, n) in [([1, 9], 3, 6), ([3, 700], 2, 5), ([2, 3000], 4, 1)] {
        // Steps of a quarter, so that many words are equally likely.
        let row = |row: usize| (0..n_words).map(move |word| ((word * 7919 + row * 13) % 23) as f32 / 4.0);
        let logits: Vec<f32> = (0..rows).flat_map(row).collect();
        let tensor = Tensor::from_data(TensorData::new(logits.clone(), [rows, n_words]), &adapter.device);
        let found = to_vec(lookback::backend::gpu::likeliest(&tensor, first, n).expect("there is a kernel"));
        for (logits, found) in logits.chunks(n_words).zip(found.chunks(2 * n)) {
            let log_sum = logits.iter().map(|logit| f64::from(*logit).exp()).sum::<f64>().ln();
            let mut words: Vec<usize> = (first..n_words).collect();
            words.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
            let of_found: Vec<usize> = found.chunks(2).map(|pair| pair[1] as usize).collect();
            assert_eq!(of_found, words[..n], "{n} of {n_words}");
            for pair in found.chunks(2) {
                let expected = f64::from(logits[pair[1] as usize]) - log_sum;
                assert!((f64::from(pair[0]) - expected).abs() < 1e-4, "{} and {expected}", pair[0]);
            }
        }
        // What is not a number is one of the words all the same, and has no probability.
        let lost = Tensor::<2>::full([rows, n_words], f32::NAN, &adapter.device);
        let found = to_vec(lookback::backend::gpu::likeliest(&lost, first, n).expect("there is a kernel"));
        assert!(found.chunks(2).all(|pair| pair[0].is_nan() && (pair[1] as usize) < n_words), "{found:?}");
    }
}

/// Sums over more rows than an axis of the grid takes, and of rows of one element.
#[test]
fn kernels_of_a_gpu_take_many_rows() {
    let Some(adapter) = wgpu_beside() else { return };
    for shape in [[70_000, 3], [5, 1]] {
        let [found, expected] = [&adapter.device, &flex()].map(|device| {
            let device = device.clone().autodiff();
            let leaf = |name, shape| closed_form_tensor::<1>(name, [shape], 2.0, &device).require_grad();
            let input = closed_form_tensor::<2>("input", shape, 2.0, &device).require_grad();
            let (gamma, beta) = (leaf("gamma", shape[1]), leaf("beta", shape[1]));
            // Of rows of one element, the variance is zero.
            let output = lookback::ops::layer_norm(input.clone(), gamma.clone(), beta.clone(), 0.5, Body::Fused);
            let coefficients = closed_form_tensor::<2>("coefficients", shape, 1.0, &device);
            let gradients = (output.clone() * coefficients).sum().backward();
            let of = |leaf: &Tensor<1>| to_vec(leaf.grad(&gradients).unwrap());
            [to_vec(output), to_vec(input.grad(&gradients).unwrap()), of(&gamma), of(&beta)]
        });
        for (what, (found, expected)) in ["output", "input", "gamma", "beta"].iter().zip(found.iter().zip(&expected)) {
            assert_close(&format!("{what} of {shape:?}"), found, expected, GPU_TOLERANCE);
        }
    }
}

/// An operation without a case here would go untested.
#[test]
fn every_operation_has_a_case() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops");
    let definition = Regex::new(r"(?m)^impl(?:<[^>]*>)? Operation for (\w+)").unwrap();
    let mut defined = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        defined.extend(definition.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    let tested: BTreeSet<String> =
        CASES.iter().map(|(name, _)| name.split(' ').next().expect("a name").to_owned()).collect();
    assert_eq!(defined, tested);
}

/// A set holds for a whole process: each has one of its own, in which operations and models are compared again.
#[test]
fn with_fewer_instructions() {
    if std::env::var_os(SIMD_OF_TESTS).is_some() {
        return;
    }
    for set in InstructionSet::available().into_iter().filter(|set| *set != InstructionSet::best()) {
        let mut tests = std::process::Command::new(std::env::current_exe().unwrap());
        let wanted = ["ops::every_operation_on_slices", "models::golden::", "models::int8::"];
        tests.args(wanted);
        let output = tests.env(SIMD_OF_TESTS, set.name()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let have_run = wanted.iter().all(|name| said.contains(&format!("test {name}")));
        assert!(output.status.success() && have_run, "{}: {said}", set.name());
    }
}

/// What this machine is held to is the best that it has, unless it is told otherwise.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_best_instructions_of_the_machine_are_taken() {
    let has_v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let has_v3 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let expected = match (has_v4, has_v3) {
        (true, _) => InstructionSet::V4,
        (_, true) => InstructionSet::V3,
        _ => InstructionSet::Scalar,
    };
    assert_eq!(InstructionSet::best(), expected);
    if std::env::var_os(SIMD_OF_TESTS).is_none() {
        assert_eq!(InstructionSet::in_use(), expected);
    }
}
