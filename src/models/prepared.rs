//! A model whose matrices are prepared for decoding: in panels, or in 8 bits.

use super::weights::{PathStack, Weight, replace, to_vec};
use super::{Autoregressive, LengthLimits, Memory, Model, Seq2Seq, State};
use crate::data::batch::Padded;
use crate::error::{Error, Result};
use crate::kernels::product::Int8Matrix;
use crate::layers::Pass;
use crate::ops::PreparedWeights;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A model for decoding, with the matrices that it multiplies with at every step: each is brought into the form that is read fastest
/// once, and kept for as long as the model is.
///
/// With [`PreparedModel::int8`], the weights of linear layers and of the output are rounded to 8 bits, and what they are multiplied
/// with too. Recurrent cells over whole sentences keep all their bits; so do source embeddings, norms and biases. The model has the
/// rounded weights as floats too, for what is made of burn's operations.
#[derive(Debug)]
pub struct PreparedModel {
    model: Model,
    weights: Arc<PreparedWeights>,
    /// Of a model in 8 bits.
    scales: Option<BTreeMap<String, Weight>>,
}

impl PreparedModel {
    /// A model with all its bits.
    pub fn new(model: Model) -> Self {
        Self { model, weights: Arc::default(), scales: None }
    }

    /// Rounds the weights of `model`.
    ///
    /// # Errors
    /// If the model is not in this process's memory.
    pub fn int8(model: Model) -> Result<Self> {
        if !crate::backend::is_host(&model.device()) {
            let message = "weights in 8 bits need a model on the CPU: take --backend flex or ndarray";
            return Err(Error::message(message));
        }
        let mut rounder = Rounder {
            path: PathStack::default(),
            containers: Vec::new(),
            tied_table: model.tied_table(),
            weights: PreparedWeights::default(),
            scales: BTreeMap::new(),
        };
        let model = model.map(&mut rounder);
        Ok(Self { model, weights: Arc::new(rounder.weights), scales: Some(rounder.scales) })
    }

    /// The factor of each output of each matrix that is rounded, by the path of the matrix, in a shape that fits beside it:
    /// `[1, n_outputs]`, or `[n_outputs, 1]` where outputs are rows. Nothing if none is.
    pub fn scales(&self) -> Option<&BTreeMap<String, Weight>> {
        self.scales.as_ref()
    }

    /// The model as floats, rounded if it is in 8 bits.
    pub fn floats(&self) -> &Model {
        &self.model
    }

    /// Whether its matrices are in 8 bits.
    pub fn is_int8(&self) -> bool {
        self.scales.is_some()
    }

    /// Lets a pass over whole sentences multiply in 8 bits, if the model does. Panels are for a few rows at a time.
    fn prepare_whole(&self, pass: &mut Pass) {
        if self.is_int8() {
            pass.use_prepared(&self.weights);
        }
    }
}

/// Rounds what is multiplied at every step.
struct Rounder {
    path: PathStack,
    containers: Vec<String>,
    tied_table: Option<&'static str>,
    weights: PreparedWeights,
    scales: BTreeMap<String, Weight>,
}

impl ModuleMapper for Rounder {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.enter(name, container);
        self.containers.push(container.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.exit();
        self.containers.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let is_linear = self.containers.last().is_some_and(|container| container == "Struct:Linear");
        let is_output = self.tied_table == Some(self.path.path().as_str());
        let shape = param.val().dims().to_vec();
        let [n_rows, n_columns] = shape[..] else { return param };
        if !is_linear && !is_output {
            return param;
        }
        let (id, path) = (param.id, self.path.path());
        replace(param, |tensor| {
            let device = tensor.device();
            let matrix = Int8Matrix::round(&to_vec(tensor), [n_rows, n_columns], is_output);
            let n = matrix.scales().len();
            let shape_of_scales = if is_output { vec![n, 1] } else { vec![1, n] };
            self.scales.insert(path, Weight { shape: shape_of_scales, values: matrix.scales().to_vec() });
            let rounded = TensorData::new(matrix.to_floats(is_output), shape);
            self.weights.insert(id, matrix);
            Tensor::from_data(rounded, &device)
        })
    }
}

impl Autoregressive for PreparedModel {
    type Memory = Memory;
    type State = State;

    fn start(&self, memory: &Memory, n_beams: usize) -> State {
        self.model.start(memory, n_beams)
    }

    fn step(&self, previous: Tensor<1, Int>, state: State, memory: &Memory, pass: &mut Pass) -> (Tensor<2>, State) {
        pass.use_prepared(&self.weights);
        self.model.step(previous, state, memory, pass)
    }

    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        state: State,
        memory: &Memory,
        n_scored: usize,
        pass: &mut Pass,
    ) -> (Option<Tensor<3>>, State) {
        pass.use_prepared(&self.weights);
        self.model.prefill(tokens, state, memory, n_scored, pass)
    }

    fn prepared(&self) -> Option<Arc<PreparedWeights>> {
        Some(self.weights.clone())
    }

    fn fixed_len(&self, source_len: usize) -> Option<usize> {
        self.model.fixed_len(source_len)
    }

    fn answer_len(&self, source_len: usize) -> Option<usize> {
        self.model.answer_len(source_len)
    }

    fn limits(&self) -> LengthLimits {
        self.model.limits()
    }

    fn device(&self) -> Device {
        self.model.device()
    }
}

impl Seq2Seq for PreparedModel {
    fn encode(&self, source: &Padded, pass: &mut Pass) -> Memory {
        self.prepare_whole(pass);
        self.model.encode(source, pass)
    }

    fn has_causal_encoder(&self) -> bool {
        self.model.has_causal_encoder()
    }

    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3> {
        self.prepare_whole(pass);
        self.model.forward(source, target_input, pass)
    }
}
