//! The gradients of all parameters together.

use crate::backend::gpu::sums_of_squares;
use crate::backend::is_host;
use crate::kernels::vectors::sum_of_squares;
use crate::models::weights::{PathStack, to_vec};
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::distributed::{ReduceOperation, all_reduce};
use burn::tensor::{Device, Tensor, TensorData};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A flat tensor, on the host where that costs nothing.
// A few hundred exist, each of which stands for thousands of numbers.
#[allow(clippy::large_enum_variant)]
#[derive(Clone)]
pub(super) enum Flat {
    Host(Vec<f32>),
    Device(Tensor<1>),
}

impl Flat {
    /// `values`, for use beside tensors on `device`.
    pub(super) fn new(values: Vec<f32>, device: &Device) -> Self {
        if is_host(device) {
            return Self::Host(values);
        }
        let len = values.len();
        Self::Device(Tensor::from_data(TensorData::new(values, [len]), device))
    }

    /// Of numbers on the host, the sum of their squares.
    fn sum_of_squares(&self) -> Option<f64> {
        let Self::Host(values) = self else { return None };
        Some(sum_of_squares(values))
    }

    pub(super) fn to_vec(&self) -> Vec<f32> {
        match self {
            Self::Host(values) => values.clone(),
            Self::Device(tensor) => to_vec(tensor.clone()),
        }
    }
}

/// The gradients of a model by parameter path.
#[derive(Clone, Default)]
pub struct GradientSet {
    by_path: BTreeMap<String, Flat>,
}

impl GradientSet {
    /// Takes the gradients of `model` out of `grads`; `is_host` says whether its tensors lie in this process's memory.
    pub fn new<M: Module>(model: &M, grads: GradientsParams, is_host: bool) -> Self {
        struct Taker {
            path: PathStack,
            grads: GradientsParams,
            is_host: bool,
            set: GradientSet,
        }
        impl ModuleVisitor for Taker {
            fn enter_module(&mut self, name: &str, container: &str) {
                self.path.enter(name, container);
            }
            fn exit_module(&mut self, _name: &str, _container: &str) {
                self.path.exit();
            }
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let Some(grad) = self.grads.remove::<D>(param.id) else { return };
                let flat = if self.is_host {
                    Flat::Host(to_vec(grad))
                } else {
                    let len = grad.shape().num_elements();
                    Flat::Device(grad.reshape([len]))
                };
                self.set.by_path.insert(self.path.path(), flat);
            }
        }
        let mut taker = Taker { path: PathStack::default(), grads, is_host, set: Self::default() };
        model.visit(&mut taker);
        taker.set
    }

    /// Adds the gradients of another part of the same update.
    pub fn add(&mut self, other: Self) {
        for (path, theirs) in other.by_path {
            match (self.by_path.remove(&path), theirs) {
                (Some(Flat::Host(mut ours)), Flat::Host(theirs)) => {
                    ours.par_iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
                    self.by_path.insert(path, Flat::Host(ours));
                }
                (Some(Flat::Device(ours)), Flat::Device(theirs)) => {
                    self.by_path.insert(path, Flat::Device(ours + theirs));
                }
                (_, theirs) => {
                    self.by_path.insert(path, theirs);
                }
            }
        }
    }

    /// The Euclidean norm of all gradients together.
    pub fn norm(&self) -> f64 {
        let squares = self.squares_on_device().map(to_vec).unwrap_or_default();
        self.norm_with(&squares)
    }

    /// Numbers whose sum is that of the squares of all gradients that lie on a device.
    pub(super) fn squares_on_device(&self) -> Option<Tensor<1>> {
        let on_device = self.by_path.values().filter_map(|flat| match flat {
            Flat::Host(_) => None,
            Flat::Device(tensor) => Some(tensor.clone()),
        });
        let gradients: Vec<Tensor<1>> = on_device.collect();
        if gradients.is_empty() {
            return None;
        }
        let by_burn = || Tensor::cat(gradients.iter().map(|gradient| gradient.clone().square().sum()).collect(), 0);
        Some(sums_of_squares(&gradients).unwrap_or_else(by_burn))
    }

    /// The norm, when the numbers of [`Self::squares_on_device`] have been read.
    pub(super) fn norm_with(&self, squares_on_device: &[f32]) -> f64 {
        let on_host: f64 = self.by_path.values().filter_map(Flat::sum_of_squares).sum();
        (on_host + squares_on_device.iter().map(|square| f64::from(*square)).sum::<f64>()).sqrt()
    }

    /// The gradient of one parameter, for good.
    pub(super) fn take(&mut self, path: &str) -> Option<Flat> {
        self.by_path.remove(path)
    }

    /// The gradient of one parameter, for good, if it lies on a device.
    pub(super) fn take_from_device(&mut self, path: &str) -> Option<Tensor<1>> {
        let Flat::Device(gradient) = self.by_path.get(path)? else { return None };
        let gradient = gradient.clone();
        self.by_path.remove(path);
        Some(gradient)
    }

    /// All numbers in the order of `layout`, zero where a parameter has no gradient; notes in `has` which have one.
    pub(super) fn flatten(&self, layout: &Layout, has: &mut [bool]) -> Vec<f32> {
        let mut numbers = Vec::with_capacity(layout.n_numbers());
        for ((path, len), has) in layout.0.iter().zip(has) {
            match self.by_path.get(path) {
                Some(Flat::Host(own)) => numbers.extend_from_slice(own),
                Some(device) => numbers.extend(device.to_vec()),
                None => numbers.resize(numbers.len() + len, 0.0),
            }
            *has |= self.by_path.contains_key(path);
        }
        numbers
    }

    /// What [`Self::flatten`] made flat, on `device`.
    pub(super) fn from_flat(layout: &Layout, numbers: &[f32], has: &[bool], device: &Device) -> Self {
        let mut by_path = BTreeMap::new();
        let mut rest = numbers;
        for ((path, len), has) in layout.0.iter().zip(has) {
            let (own, others) = rest.split_at(*len);
            rest = others;
            if *has {
                by_path.insert(path.clone(), Flat::new(own.to_vec(), device));
            }
        }
        Self { by_path }
    }

    /// The sum of these gradients with those that the other `devices` have, by burn's all-reduce between them. All of them call it at
    /// once, `device` being that of this one.
    pub(super) fn all_reduced(mut self, layout: &Layout, device: &Device, devices: &[Device]) -> Self {
        let sums = layout.0.iter().map(|(path, len)| {
            let own = match self.take(path) {
                Some(Flat::Device(own)) => own,
                Some(Flat::Host(own)) => Tensor::from_data(TensorData::new(own, [*len]), device),
                None => Tensor::zeros([*len], device),
            };
            (path.clone(), all_reduce(own, ReduceOperation::Sum, devices.to_vec()))
        });
        // All are on their way before the first is waited for.
        let sums: Vec<_> = sums.collect();
        Self { by_path: sums.into_iter().map(|(path, sum)| (path, Flat::Device(sum.resolve()))).collect() }
    }

    /// The gradient of one parameter, flat.
    pub fn get(&self, path: &str) -> Option<Vec<f32>> {
        self.by_path.get(path).map(Flat::to_vec)
    }
}

/// The parameters of a model one after the other: the path of each, and how many numbers it has.
pub(super) struct Layout(Vec<(String, usize)>);

impl Layout {
    /// That of `model`, in the order of paths.
    pub(super) fn of<M: Module>(model: &M) -> Self {
        struct Lister {
            path: PathStack,
            found: BTreeMap<String, usize>,
        }
        impl ModuleVisitor for Lister {
            fn enter_module(&mut self, name: &str, container: &str) {
                self.path.enter(name, container);
            }
            fn exit_module(&mut self, _name: &str, _container: &str) {
                self.path.exit();
            }
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                self.found.insert(self.path.path(), param.lazy_shape().num_elements());
            }
        }
        let mut lister = Lister { path: PathStack::default(), found: BTreeMap::new() };
        model.visit(&mut lister);
        Self(lister.found.into_iter().collect())
    }

    /// How many parameters there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many numbers they have together.
    pub(super) fn n_numbers(&self) -> usize {
        self.0.iter().map(|(_, len)| len).sum()
    }
}
