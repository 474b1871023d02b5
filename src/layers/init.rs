//! Initial weights, each a function of the seed and of its place in the order of construction.
//!
//! burn's own initializers draw from the device's generator, whose numbers differ between backends and depend on what else
//! the process draws. Weights made here are the same on every backend, so that a run can be repeated elsewhere.

use super::norm::LayerNorm;
use crate::random::{Purpose, Stream};
use burn::module::{Param, ParamId};
use burn::nn::{Embedding, LayerNormConfig, Linear, RmsNorm, RmsNormConfig};
use burn::tensor::{Device, Distribution, Tensor, TensorData};
use std::cell::Cell;

/// Makes the parameters of a model on one device.
pub struct Init {
    device: Device,
    /// Nothing is drawn where this is not given.
    seed: Option<u64>,
    made: Cell<u64>,
}

/// A seed from the generator of a device.
pub(super) fn random_seed(device: &Device) -> u64 {
    // Two numbers of 24 bits are what floats of 32 bits hold.
    let drawn = Tensor::<1>::random([2], Distribution::Uniform(0.0, f64::from(1u32 << 24)), device);
    drawn.into_data().iter::<f32>().fold(0, |seed, part| seed << 24 | part as u64)
}

impl Init {
    /// An initializer for a model on `device`.
    pub fn new(seed: u64, device: &Device) -> Self {
        Self { device: device.clone(), seed: Some(seed), made: Cell::new(0) }
    }

    /// An initializer whose seed is drawn from the device, as burn's own layers draw their weights: after `device.seed(n)` they are the
    /// same again.
    pub fn random(device: &Device) -> Self {
        Self::new(random_seed(device), device)
    }

    /// All zeros, for a model whose weights are about to be read from somewhere.
    pub fn blank(device: &Device) -> Self {
        Self { device: device.clone(), seed: None, made: Cell::new(0) }
    }

    fn parameter<const D: usize>(&self, shape: [usize; D], value: impl Fn(&Stream, u64) -> f64) -> Param<Tensor<D>> {
        let n = shape.iter().product::<usize>();
        let Some(seed) = self.seed else {
            // Made when it is used, so that what is only counted, or does not fit the file, takes no memory.
            let zeros = move |device: &Device, learns: bool| {
                let zeros = Tensor::zeros(shape, device);
                if learns { zeros.require_grad() } else { zeros }
            };
            return Param::uninitialized(ParamId::new(), zeros, self.device.clone(), true, shape.into());
        };
        let stream = Stream::new(seed, Purpose::Initialization, &[self.made.get()]);
        self.made.set(self.made.get() + 1);
        let values: Vec<f32> = (0..n as u64).map(|i| value(&stream, i) as f32).collect();
        Param::from_data(TensorData::new(values, shape), &self.device)
    }

    /// Uniform in `[-bound, bound]`.
    pub fn uniform<const D: usize>(&self, shape: [usize; D], bound: f64) -> Param<Tensor<D>> {
        self.parameter(shape, |stream, i| bound * (2.0 * stream.unit(i) - 1.0))
    }

    /// Normal with mean zero.
    pub fn normal<const D: usize>(&self, shape: [usize; D], deviation: f64) -> Param<Tensor<D>> {
        self.parameter(shape, |stream, i| deviation * stream.normal(i))
    }

    /// Every element `value`.
    pub fn constant<const D: usize>(&self, shape: [usize; D], value: f64) -> Param<Tensor<D>> {
        self.parameter(shape, |_, _| value)
    }

    /// A linear layer with Xavier-uniform weights (Glorot and Bengio 2010) and a zero bias.
    ///
    /// `n_packed` matrices that share one input lie side by side in the output axis; each is scaled as if it stood alone.
    pub fn linear(&self, d_input: usize, d_output: usize, n_packed: usize) -> Linear {
        let bound = (6.0 / (d_input + d_output / n_packed) as f64).sqrt();
        Linear { weight: self.uniform([d_input, d_output], bound), bias: Some(self.constant([d_output], 0.0)) }
    }

    /// As [`Init::linear`], with matrices of different widths side by side.
    pub fn packed_linear(&self, d_input: usize, widths: &[usize]) -> Linear {
        let d_output = widths.iter().sum();
        // Where each matrix ends, and its bound: one for each column would take memory where nothing is drawn.
        let mut end = 0;
        let bounds: Vec<(usize, f64)> = widths
            .iter()
            .map(|width| {
                end += width;
                (end, (6.0 / (d_input + width) as f64).sqrt())
            })
            .collect();
        let bound_of = |column: usize| bounds.iter().find(|(end, _)| column < *end).expect("a column of a matrix").1;
        let weight = self
            .parameter([d_input, d_output], |stream, i| bound_of(i as usize % d_output) * (2.0 * stream.unit(i) - 1.0));
        Linear { weight, bias: Some(self.constant([d_output], 0.0)) }
    }

    /// As [`Init::linear`], without a bias.
    pub fn linear_without_bias(&self, d_input: usize, d_output: usize, n_packed: usize) -> Linear {
        Linear { bias: None, ..self.linear(d_input, d_output, n_packed) }
    }

    /// A lookup table with normal entries of deviation `d_embedding^-0.5`.
    pub fn embedding(&self, n: usize, d_embedding: usize) -> Embedding {
        Embedding { weight: self.normal([n, d_embedding], (d_embedding as f64).powf(-0.5)) }
    }

    /// A layer normalization: scale one, shift zero.
    pub fn layer_norm(&self, d_model: usize, epsilon: f64) -> LayerNorm {
        let made = LayerNormConfig::new(d_model).init(&self.device);
        LayerNorm { gamma: made.gamma, beta: made.beta.expect("burn-nn's has a shift by default"), epsilon }
    }

    /// A root-mean-square normalization: scale one.
    pub fn rms_norm(&self, d_model: usize, epsilon: f64) -> RmsNorm {
        RmsNormConfig::new(d_model).with_epsilon(epsilon).init(&self.device)
    }

    /// The device of the parameters.
    pub fn device(&self) -> &Device {
        &self.device
    }
}
