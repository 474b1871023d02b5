//! Adam in one pass over the parameters, with state that is keyed by path.
//!
//! burn's Adam makes a dozen temporaries of the size of each parameter, and keys its state by an identity that a safetensors
//! file does not carry: loaded naively, it starts from zero unnoticed. It also clips each tensor's norm by itself; here the
//! norm is that of all gradients together.

use super::gradient_set::Flat;
pub use super::gradient_set::GradientSet;
use crate::backend::gpu;
use crate::kernels::adam::{AdamStep, adam};
use crate::models::weights::{PathStack, Weight, Weights, replace, to_vec};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor, TensorData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[training.optimizer]`: Adam, or AdamW where `weight_decay` is not zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the mean of the gradients.
    pub beta_1: f64,
    /// Decay of the mean of their squares.
    pub beta_2: f64,
    /// Added to the root of the mean square.
    pub epsilon: f64,
    /// Part of a weight that is taken off per unit of learning rate, apart from the gradient (AdamW).
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.98, epsilon: 1e-9, weight_decay: 0.0 }
    }
}

struct Moments {
    first: Flat,
    second: Flat,
    shape: Vec<usize>,
}

/// Adam and its state.
///
/// `m = b1 m + (1 - b1) g`, `v = b2 v + (1 - b2) g^2`, `w -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)`, and
/// before that `w -= rate * decay * w`.
///
/// # Reference
/// Kingma and Ba, Adam, 2015, algorithm 1; Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2.
/// As in the papers.
pub struct Adam {
    config: AdamConfig,
    moments: BTreeMap<String, Moments>,
    updates: u64,
}

/// The numbers of one update that are the same for every parameter.
#[derive(Clone, Copy)]
struct Step {
    rate: f64,
    gradient_scale: f64,
    correction_1: f64,
    correction_2: f64,
}

impl Step {
    /// What every element is changed by, in the 32 bits that it has.
    fn numbers(&self, config: &AdamConfig) -> AdamStep {
        AdamStep {
            decays: [config.beta_1 as f32, config.beta_2 as f32],
            scale: self.gradient_scale as f32,
            rate: (self.rate / self.correction_1) as f32,
            root: (1.0 / self.correction_2) as f32,
            keep: (1.0 - self.rate * config.weight_decay) as f32,
            epsilon: config.epsilon as f32,
        }
    }
}

impl Adam {
    /// An optimizer that has seen nothing.
    pub fn new(config: AdamConfig) -> Self {
        Self { config, moments: BTreeMap::new(), updates: 0 }
    }

    /// One update: `model` moved along `gradients`, scaled by `gradient_scale`, at learning rate `rate`.
    ///
    /// Parameters without a gradient stay as they are.
    pub fn step<M: Module>(&mut self, model: M, gradients: GradientSet, gradient_scale: f64, rate: f64) -> M {
        self.updates += 1;
        let t = i32::try_from(self.updates).unwrap_or(i32::MAX);
        let step = Step {
            rate,
            gradient_scale,
            correction_1: 1.0 - self.config.beta_1.powi(t),
            correction_2: 1.0 - self.config.beta_2.powi(t),
        };
        let mut on_device = OnDevice { path: PathStack::default(), gradients, found: Vec::new() };
        model.visit(&mut on_device);
        let OnDevice { gradients, found, .. } = on_device;
        let updated = self.update_on_device(found, step);
        let mut updater = Updater { path: PathStack::default(), adam: self, gradients, updated, step };
        model.map(&mut updater)
    }

    /// The new weights of parameters whose gradients lie on a device, by path. A few go together, so that old moments and gradients are freed
    /// before there are new ones of all.
    fn update_on_device(&mut self, parameters: Vec<Parameter>, step: Step) -> BTreeMap<String, Tensor<1>> {
        const TOGETHER: usize = gpu::PARAMETERS_OF_LAUNCH;
        let mut updated = BTreeMap::new();
        let mut rest = parameters.into_iter();
        loop {
            let (mut paths, mut tensors) = (Vec::new(), Vec::new());
            for Parameter { path, shape, values, gradient } in rest.by_ref().take(TOGETHER) {
                let [first, second] = match self.moments.remove(&path) {
                    Some(Moments { first: Flat::Device(first), second: Flat::Device(second), .. }) => [first, second],
                    Some(_) => unreachable!("gradients and moments lie in the same place"),
                    None => [gradient.zeros_like(), gradient.zeros_like()],
                };
                paths.push((path, shape));
                tensors.push([values, gradient, first, second]);
            }
            if paths.is_empty() {
                return updated;
            }
            let by_burn = || tensors.iter().map(|own| in_operations(own.clone(), &self.config, step)).collect();
            let new = gpu::adam_steps(&tensors, step.numbers(&self.config)).unwrap_or_else(by_burn);
            for ((path, shape), [values, first, second]) in paths.into_iter().zip(new) {
                let moments = Moments { first: Flat::Device(first), second: Flat::Device(second), shape };
                self.moments.insert(path.clone(), moments);
                updated.insert(path, values);
            }
        }
    }

    /// The state as tensors named `PATH.first` and `PATH.second`.
    pub fn state(&self) -> Weights {
        let mut state = Weights::new();
        for (path, moments) in &self.moments {
            for (name, flat) in [("first", &moments.first), ("second", &moments.second)] {
                let weight = Weight { shape: moments.shape.clone(), values: flat.to_vec() };
                state.insert(format!("{path}.{name}"), weight);
            }
        }
        state
    }

    /// Takes up a saved state after `updates` updates.
    ///
    /// # Errors
    /// If the moments of a parameter of `model` have another shape than it, or are not finite, or are of no parameter of it.
    pub fn restore(&mut self, state: Weights, updates: u64, model: &Weights, device: &Device) -> Result<(), String> {
        for name in state.keys() {
            let path = name.strip_suffix(".first").or_else(|| name.strip_suffix(".second"));
            if !path.is_some_and(|path| model.contains_key(path)) {
                return Err(format!("has {name}, which is of no parameter of the model"));
            }
        }
        for (path, weight) in model {
            let found = ["first", "second"].map(|moment| (moment, state.get(&format!("{path}.{moment}"))));
            for (moment, found) in found {
                let Some(found) = found else { continue };
                if found.shape != weight.shape {
                    return Err(format!("has {path}.{moment} of shape {:?}, not {:?}", found.shape, weight.shape));
                }
                if found.values.iter().any(|value| !value.is_finite()) {
                    return Err(format!("has a value in {path}.{moment} that is not finite"));
                }
            }
            // A parameter that has had no gradient has no moments.
            if found[0].1.is_some() != found[1].1.is_some() {
                return Err(format!("has one of the two moments of {path} alone"));
            }
        }

        // Moments are no part of a graph, wherever they come back to.
        let device = &device.clone().without_autodiff();
        let flat = |values: Vec<f32>| Flat::new(values, device);
        let mut state = state;
        let paths: Vec<String> = state.keys().filter_map(|key| key.strip_suffix(".first").map(String::from)).collect();
        self.moments.clear();
        for path in paths {
            let first = state.remove(&format!("{path}.first"));
            let second = state.remove(&format!("{path}.second"));
            if let (Some(first), Some(second)) = (first, second) {
                let moments = Moments { shape: first.shape, first: flat(first.values), second: flat(second.values) };
                self.moments.insert(path, moments);
            }
        }
        self.updates = updates;
        Ok(())
    }

    /// Updates made so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }
}

/// A parameter whose gradient lies on a device.
struct Parameter {
    path: String,
    shape: Vec<usize>,
    values: Tensor<1>,
    gradient: Tensor<1>,
}

/// Finds those, and takes their gradients out of the set.
struct OnDevice {
    path: PathStack,
    gradients: GradientSet,
    found: Vec<Parameter>,
}

impl ModuleVisitor for OnDevice {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let path = self.path.path();
        let Some(gradient) = self.gradients.take_from_device(&path) else { return };
        let values = param.val();
        let values = if values.is_autodiff() { values.inner() } else { values };
        let shape = values.dims();
        let values = values.reshape([shape.iter().product::<usize>()]);
        self.found.push(Parameter { path, shape: shape.to_vec(), values, gradient });
    }
}

struct Updater<'a> {
    path: PathStack,
    adam: &'a mut Adam,
    gradients: GradientSet,
    /// What has been computed on a device.
    updated: BTreeMap<String, Tensor<1>>,
    step: Step,
}

impl ModuleMapper for Updater<'_> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let path = self.path.path();
        if let Some(values) = self.updated.remove(&path) {
            return replace(param, |tensor| values.reshape(tensor.dims()));
        }
        let Some(Flat::Host(gradient)) = self.gradients.take(&path) else { return param };
        let shape = param.lazy_shape().to_vec();
        let step = self.step;
        let config = &self.adam.config;
        let zeros = || Flat::Host(vec![0.0; gradient.len()]);
        let moments =
            self.adam.moments.entry(path).or_insert_with(|| Moments { first: zeros(), second: zeros(), shape });
        let Moments { first: Flat::Host(first), second: Flat::Host(second), .. } = moments else {
            unreachable!("gradients and moments lie in the same place")
        };
        replace(param, |tensor| {
            let device = tensor.device();
            let shape = tensor.dims();
            let mut values = to_vec(tensor);
            adam(&mut values, &gradient, first, second, step.numbers(config));
            Tensor::from_data(TensorData::new(values, shape), &device)
        })
    }
}

/// The same in burn's operations, for devices without a kernel of ours.
fn in_operations([values, gradient, first, second]: [Tensor<1>; 4], config: &AdamConfig, step: Step) -> [Tensor<1>; 3] {
    let g = gradient.mul_scalar(step.gradient_scale);
    let first = first.mul_scalar(config.beta_1) + g.clone().mul_scalar(1.0 - config.beta_1);
    let second = second.mul_scalar(config.beta_2) + g.square().mul_scalar(1.0 - config.beta_2);
    let root = second.clone().div_scalar(step.correction_2).sqrt().add_scalar(config.epsilon);
    let change = (first.clone() / root).mul_scalar(step.rate / step.correction_1);
    let kept = values.mul_scalar(1.0 - step.rate * config.weight_decay);
    [kept - change, first, second]
}
