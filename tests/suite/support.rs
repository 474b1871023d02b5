//! What several modules need: golden values, closed-form weights, tolerances, backends.
//!
//! The closed form is described at the top of `tests/golden/models.py`.

pub mod browser;
mod golden;
pub mod page;
mod shared;

pub use golden::{GoldenInput, LayerCase, ModelCase, golden, golden_models, golden_with_source};
pub use shared::shared_dir;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use lookback::backend::{Adapter, Backend};
use lookback::kernels::machine::InstructionSet;
use lookback::models::weights::{Weight, Weights, apply, collect, to_vec};
use lookback::training::optimizer::GradientSet;
use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use std::collections::BTreeMap;
use std::path::Path;

/// How far a forward value may be from the golden one, as a part of the tensor's largest element. PyTorch in 32 bits is
/// within 3e-6 of its own 64 bits; other orders of summation and other exponentials get some more.
pub const FORWARD_TOLERANCE: f64 = 2e-5;

/// The same for gradients, whose sums are longer.
pub const GRADIENT_TOLERANCE: f64 = 2e-5;

/// How far two ways of computing one thing in 32 bits may be apart, as a part of the largest element: a few roundings of
/// 6e-8 each, carried through a few layers.
pub const SAME_TOLERANCE: f64 = 1e-5;

/// How far a difference quotient may be from the gradient, as a part of the gradient's norm: with steps of 1e-2, the third
/// derivative leaves some 1e-4, and rounding in 32 bits as much.
pub const QUOTIENT_TOLERANCE: f64 = 2e-3;

/// The step of difference quotients.
const QUOTIENT_STEP: f32 = 1e-2;

/// The numbers of the parameter or input `path`, a function of its name.
pub fn closed_form(path: &str, len: usize, scale: f32) -> Vec<f32> {
    let sum: usize = path.bytes().enumerate().map(|(j, byte)| (j + 1) * byte as usize).sum();
    let phase = 0.01 * (sum % 997) as f64;
    let is_gamma = path.rsplit('.').next() == Some("gamma");
    let value = |i: usize| {
        let i = i as f64;
        let value = (0.3 * (phase + 1.3 * i + 0.01 * i * i).sin()) as f32 * scale;
        if is_gamma { 1.0 + value } else { value }
    };
    (0..len).map(value).collect()
}

/// [`closed_form`] as a tensor.
pub fn closed_form_tensor<const D: usize>(path: &str, shape: [usize; D], scale: f32, device: &Device) -> Tensor<D> {
    tensor(closed_form(path, shape.iter().product(), scale), shape, device)
}

/// [`closed_form`] for every parameter.
pub fn closed_form_weights(shapes: &BTreeMap<String, Vec<usize>>, scale: f32) -> Weights {
    let weight = |(path, shape): (&String, &Vec<usize>)| {
        let values = closed_form(path, shape.iter().product(), scale);
        (path.clone(), Weight { shape: shape.clone(), values })
    };
    shapes.iter().map(weight).collect()
}

/// `module` with [`closed_form`] parameters.
pub fn with_closed_form<M: Module>(module: M, scale: f32) -> M {
    let shapes = collect(&module).into_iter().map(|(path, weight)| (path, weight.shape)).collect();
    apply(module, &closed_form_weights(&shapes, scale), Path::new("closed form")).expect("the module's own shapes")
}

/// Values as a tensor.
pub fn tensor<const D: usize>(values: Vec<f32>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// The largest absolute value.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |max, value| value.abs().max(max))
}

/// Numbers that [`assert_close`] can compare.
pub trait Number: Copy {
    fn as_f64(self) -> f64;
}

impl Number for f32 {
    fn as_f64(self) -> f64 {
        self as f64
    }
}

impl Number for f64 {
    fn as_f64(self) -> f64 {
        self
    }
}

/// Fails unless every element of `found` is within `tolerance` times the largest of `expected` of its counterpart.
#[track_caller]
pub fn assert_close<F: Number, E: Number>(what: &str, found: &[F], expected: &[E], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}: the number of elements");
    let expected: Vec<f64> = expected.iter().map(|value| value.as_f64()).collect();
    let allowed = tolerance * largest(&expected);
    for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let error = (found.as_f64() - expected).abs();
        assert!(
            error <= allowed,
            "{what}: element {i} is {} instead of {expected}: {error:.2e} off, {allowed:.2e} allowed",
            found.as_f64()
        );
    }
}

/// The gradients of a loss with respect to the parameters of `module`, by path.
pub fn gradients_by_path<M: Module>(module: &M, grads: Gradients) -> BTreeMap<String, Vec<f32>> {
    let set = GradientSet::new(module, GradientsParams::from_grads(grads, module), true);
    collect(module).into_keys().filter_map(|path| set.get(&path).map(|values| (path, values))).collect()
}

/// A sum of `values` with coefficients that tell every element from every other.
pub fn weighted_sum<const D: usize>(output: Tensor<D>) -> Tensor<1> {
    let len = output.shape().num_elements();
    let coefficients = tensor(coefficients(len), [len], &output.device());
    (output.reshape([len]) * coefficients).sum()
}

fn coefficients(len: usize) -> Vec<f32> {
    (0..len).map(|i| (0.5 * i as f32).cos()).collect()
}

/// Compares the gradient of every parameter of `module`, which lies on flex, with a difference quotient along one direction;
/// `output` runs the module on inputs that it makes on the device.
pub fn check_quotients<M: Module, const D: usize>(what: &str, module: M, output: impl Fn(&M, &Device) -> Tensor<D>) {
    let learning = module.clone().train();
    let gradients = gradients_by_path(&learning, weighted_sum(output(&learning, &flex().autodiff())).backward());
    let weights = collect(&module);
    assert_eq!(gradients.len(), weights.len(), "{what}: parameters with a gradient");
    for (path, weight) in &weights {
        let direction = |i: usize| (1.0 + i as f32).cos();
        let value = |step: f32| {
            let mut moved = weights.clone();
            for (i, value) in moved.get_mut(path).expect("a known path").values.iter_mut().enumerate() {
                *value += step * direction(i);
            }
            let moved =
                apply(module.clone(), &moved, Path::new("a difference quotient")).expect("the module's own shapes");
            let output = to_vec(output(&moved, &flex()));
            output.iter().zip(coefficients(output.len())).map(|(o, c)| *o as f64 * c as f64).sum::<f64>()
        };
        let quotient = (value(QUOTIENT_STEP) - value(-QUOTIENT_STEP)) / (2.0 * QUOTIENT_STEP as f64);
        let gradient = &gradients[path];
        let slope: f64 = gradient.iter().enumerate().map(|(i, g)| *g as f64 * direction(i) as f64).sum();
        let norm = gradient.iter().map(|g| (*g as f64).powi(2)).sum::<f64>().sqrt();
        let allowed = QUOTIENT_TOLERANCE * norm * (weight.values.len() as f64).sqrt();
        assert!(!weight.values.is_empty() && norm > 0.0, "{what}: {path} has no gradient");
        assert!((quotient - slope).abs() <= allowed, "{what}: {path} rises by {quotient}, its gradient says {slope}");
    }
}

/// Random cases from a fixed seed, so that a rounding that no tolerance foresees fails always or never, and no file is written.
pub fn random_cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

/// The environment variable with the instructions that a test process is held to.
pub const SIMD_OF_TESTS: &str = "LOOKBACK_TEST_SIMD";

/// The backends whose tensors lie in this process's memory.
pub fn host_backends() -> Vec<Adapter> {
    if let Ok(name) = std::env::var(SIMD_OF_TESTS) {
        let set = InstructionSet::available().into_iter().find(|set| set.name() == name);
        assert!(set.expect("a set of this machine").cap());
    }
    [Backend::Flex, Backend::Ndarray].into_iter().flat_map(Backend::adapters).collect()
}

/// The device of the default CPU backend.
pub fn flex() -> Device {
    Backend::Flex.open().expect("the tests are built with flex").device
}

/// The GPU of [`wgpu`] as a device beside it: kernels of one device are compiled one after the other, and compiling is what takes the time
/// where a GPU is emulated. So tests that take long take turns between the two.
pub fn wgpu_beside() -> Option<Adapter> {
    let adapter = wgpu()?;
    #[cfg(feature = "wgpu")]
    let adapter = Adapter { device: Device::wgpu(burn::tensor::DeviceKind::DefaultDevice), ..adapter };
    Some(adapter)
}

/// A GPU, real or emulated. Without one the reason is printed and the test has nothing to do; but on CI, where one is
/// installed, its absence is a failure.
pub fn wgpu() -> Option<Adapter> {
    let reason = match Backend::Wgpu.open() {
        Ok(adapter) => return Some(adapter),
        Err(error) => error,
    };
    let is_required =
        std::env::var("CI").is_ok_and(|value| value == "true") || std::env::var_os("LOOKBACK_REQUIRE_WGPU").is_some();
    assert!(!is_required, "wgpu is needed here: {reason}");
    eprintln!("not run: {reason}; on Linux, mesa-vulkan-drivers emulates a GPU");
    None
}
