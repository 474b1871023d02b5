//! A model's parameters by path, as plain numbers: what is saved, averaged, checked and compared.
//!
//! burn-store writes safetensors too, but of a module only. Averaging checkpoints, refusing a NaN, and saving the
//! optimizer's moments under the same names all need the numbers by path, so that they are collected here once.

use crate::error::{Error, Result};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// The length of each axis.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub values: Vec<f32>,
}

/// Parameters by path: `encoder.0.attention.query_key_value.weight`.
pub type Weights = BTreeMap<String, Weight>;

/// The path of the parameter that is being visited. Enum variants are not part of it: which variant a model has stands in
/// its config.
#[derive(Default)]
pub(crate) struct PathStack {
    parts: Vec<Option<String>>,
}

impl PathStack {
    pub(crate) fn enter(&mut self, name: &str, container: &str) {
        self.parts.push((!container.starts_with("Enum:")).then(|| name.to_string()));
    }

    pub(crate) fn exit(&mut self) {
        self.parts.pop();
    }

    pub(crate) fn path(&self) -> String {
        let parts: Vec<&str> = self.parts.iter().flatten().map(String::as_str).collect();
        parts.join(".")
    }
}

/// The parameters of a model.
pub fn collect<M: Module>(model: &M) -> Weights {
    struct Collector {
        path: PathStack,
        weights: Weights,
    }
    impl ModuleVisitor for Collector {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.exit();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = param.val();
            let shape = tensor.dims().to_vec();
            self.weights.insert(self.path.path(), Weight { shape, values: to_vec(tensor) });
        }
    }
    let mut collector = Collector { path: PathStack::default(), weights: Weights::new() };
    model.visit(&mut collector);
    collector.weights
}

/// A checksum of all parameters, names and bits.
pub(crate) fn checksum(weights: &Weights) -> u32 {
    weights.iter().fold(0, |sum, (path, weight)| {
        let sum = crc32c::crc32c_append(sum, path.as_bytes());
        weight.values.iter().fold(sum, |sum, value| crc32c::crc32c_append(sum, &value.to_bits().to_le_bytes()))
    })
}

/// The elements of a tensor as `f32`.
pub fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().expect("a float tensor can be read as f32")
}

/// The parameter with a new value: `change` sees the old one without its graph, and learning goes on where it was on.
pub(crate) fn replace<const D: usize>(
    param: Param<Tensor<D>>,
    change: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    let (id, tensor, mapper) = param.consume();
    if !tensor.is_autodiff() {
        return Param::from_mapped_value(id, change(tensor), mapper);
    }
    let learns = tensor.is_require_grad();
    let tensor = Tensor::from_inner(change(tensor.inner())).set_require_grad(learns);
    Param::from_mapped_value(id, tensor, mapper)
}

/// The model with these parameters.
///
/// # Errors
/// If a parameter is missing, has another shape, is not finite, or is not the model's; `origin` names where they come from.
pub fn apply<M: Module>(model: M, weights: &Weights, origin: &Path) -> Result<M> {
    struct Applier<'a> {
        path: PathStack,
        weights: &'a Weights,
        used: usize,
        fault: Option<String>,
    }
    impl ModuleMapper for Applier<'_> {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.exit();
        }
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let path = self.path.path();
            let shape = param.lazy_shape().to_vec();
            let fault = match self.weights.get(&path) {
                None => format!("has no parameter {path}; it belongs to another model"),
                Some(weight) if weight.shape != shape => {
                    format!("has {path} of shape {:?} where the model needs {shape:?}", weight.shape)
                }
                Some(weight) if weight.values.iter().any(|value| !value.is_finite()) => {
                    format!("has a value in {path} that is not finite")
                }
                Some(weight) => {
                    self.used += 1;
                    let values = weight.values.clone();
                    return replace(param, |tensor| {
                        Tensor::from_data(TensorData::new(values, tensor.dims()), &tensor.device())
                    });
                }
            };
            self.fault.get_or_insert(fault);
            param
        }
    }
    let mut applier = Applier { path: PathStack::default(), weights, used: 0, fault: None };
    let model = model.map(&mut applier);
    if applier.fault.is_none() && applier.used != weights.len() {
        let fault = format!("has {} parameters where the model has {}", weights.len(), applier.used);
        applier.fault = Some(fault);
    }
    match applier.fault {
        Some(fault) => Err(Error::file(origin, fault)),
        None => Ok(model),
    }
}

/// The mean of several sets of parameters of one model. It holds their sum, so that they need not be in memory together.
#[derive(Debug, Default)]
pub struct Mean {
    n: usize,
    sums: BTreeMap<String, Sum>,
}

/// The sum of one parameter over the sets.
#[derive(Debug)]
struct Sum {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Mean {
    /// How many sets were added.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Adds a set.
    ///
    /// # Panics
    /// If the set is of another model than those before it.
    pub fn add(&mut self, set: Weights) {
        assert!(self.n == 0 || set.len() == self.sums.len(), "sets of one model");
        self.n += 1;
        for (path, Weight { shape, values }) in set {
            if self.n == 1 {
                self.sums.insert(path, Sum { shape, values: values.into_iter().map(f64::from).collect() });
                continue;
            }
            let sum = self.sums.get_mut(&path).filter(|sum| sum.shape == shape).expect("sets of one model");
            sum.values.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(value));
        }
    }

    /// The mean; no parameters if no set was added.
    pub fn finish(self) -> Weights {
        let n = self.n as f64;
        let mean = |Sum { shape, values }: Sum| Weight {
            shape,
            values: values.into_iter().map(|sum| (sum / n) as f32).collect(),
        };
        self.sums.into_iter().map(|(path, sum)| (path, mean(sum))).collect()
    }
}

/// What the scales of a matrix in 8 bits are called, after the path of the matrix.
const SCALES: &str = ".scales";

/// Weights as the bytes of a safetensors file, with a few words about them. Matrices that have `scales` are written in 8 bits,
/// with their scales beside them.
pub fn to_safetensors(
    weights: &Weights,
    scales: &BTreeMap<String, Weight>,
    metadata: HashMap<String, String>,
) -> Result<Vec<u8>> {
    let floats = |weight: &Weight| -> Vec<u8> { weight.values.iter().flat_map(|value| value.to_le_bytes()).collect() };
    let mut tensors: Vec<(String, Dtype, &[usize], Vec<u8>)> = Vec::new();
    for (path, weight) in weights {
        let Some(scales) = scales.get(path) else {
            tensors.push((path.clone(), Dtype::F32, &weight.shape, floats(weight)));
            continue;
        };
        let scale_of = scale_of(&weight.shape, scales);
        let bytes =
            weight.values.iter().enumerate().map(|(i, value)| (value / scale_of(i)).round() as i8 as u8).collect();
        tensors.push((path.clone(), Dtype::I8, &weight.shape, bytes));
        tensors.push((format!("{path}{SCALES}"), Dtype::F32, &scales.shape, floats(scales)));
    }
    let views = tensors.iter().map(|(path, dtype, shape, bytes)| {
        let view = TensorView::new(*dtype, shape.to_vec(), bytes).expect("the bytes match the shape");
        (path.as_str(), view)
    });
    safetensors::serialize(views, Some(metadata))
        .map_err(|error| Error::message(format!("cannot write weights: {error}")))
}

/// The factor of the element at each place of a matrix.
fn scale_of<'a>(shape: &[usize], scales: &'a Weight) -> impl Fn(usize) -> f32 + 'a {
    let n_columns = shape.last().copied().unwrap_or(1);
    let by_row = scales.shape.last() == Some(&1) && scales.shape.first() != Some(&1);
    move |i| scales.values[if by_row { i / n_columns } else { i % n_columns }]
}

/// Weights from the bytes of a safetensors file; matrices in 8 bits are multiplied out.
///
/// # Errors
/// If `bytes`, read from `origin`, are no safetensors file of 32-bit floats and of matrices in 8 bits with their scales.
pub fn from_safetensors(bytes: &[u8], origin: &Path) -> Result<Weights> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| Error::file(origin, format!("is not a whole safetensors file: {error}")))?;
    let floats = |view: &TensorView| -> Weight {
        let values = floats(view.data(), view.dtype()).expect("the kind was looked at");
        Weight { shape: view.shape().to_vec(), values }
    };
    let mut weights = Weights::new();
    for (path, view) in file.tensors() {
        match view.dtype() {
            Dtype::F32 if path.strip_suffix(SCALES).is_some_and(|of| file.tensor(of).is_ok()) => {}
            Dtype::F32 | Dtype::F64 | Dtype::F16 | Dtype::BF16 => {
                weights.insert(path, floats(&view));
            }
            Dtype::I8 => {
                let shape = view.shape().to_vec();
                let fits = |scales: &Weight| match (&shape[..], &scales.shape[..]) {
                    ([rows, columns], [r, c]) => (*r, *c) == (1, *columns) || (*r, *c) == (*rows, 1),
                    _ => false,
                };
                let scales = file.tensor(&format!("{path}{SCALES}")).ok().filter(|view| view.dtype() == Dtype::F32);
                let scales = scales.map(|view| floats(&view)).filter(fits).ok_or_else(|| {
                    Error::file(origin, format!("has {path} in 8 bits without scales that fit its shape {shape:?}"))
                })?;
                let scale_of = scale_of(&shape, &scales);
                let values = view.data().iter().enumerate().map(|(i, byte)| scale_of(i) * f32::from(*byte as i8));
                weights.insert(path, Weight { values: values.collect(), shape });
            }
            other => {
                let message = format!("has {path} as {other:?}; only F64, F32, F16, BF16 and I8 are read");
                return Err(Error::file(origin, message));
            }
        }
    }
    Ok(weights)
}

/// Numbers of a kind, little end first, as 32-bit floats; of whole numbers nothing.
pub(crate) fn floats(bytes: &[u8], kind: Dtype) -> Option<Vec<f32>> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Option<Vec<f32>> {
        Some(bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect())
    }
    match kind {
        Dtype::F32 => each(bytes, f32::from_le_bytes),
        Dtype::F64 => each(bytes, |bytes| f64::from_le_bytes(bytes) as f32),
        Dtype::F16 => each(bytes, |bytes| half::f16::from_le_bytes(bytes).to_f32()),
        Dtype::BF16 => each(bytes, |bytes| half::bf16::from_le_bytes(bytes).to_f32()),
        _ => None,
    }
}

/// Whether the bytes of a safetensors file hold matrices in 8 bits.
pub fn is_int8(bytes: &[u8]) -> bool {
    SafeTensors::deserialize(bytes).is_ok_and(|file| file.tensors().iter().any(|(_, view)| view.dtype() == Dtype::I8))
}
