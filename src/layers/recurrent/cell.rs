//! One step of recurrence: vanilla, GRU and LSTM cells.

use super::{CellKind, CellState};
use crate::layers::linear::{linear_layer, linear_parameter};
use crate::layers::{Init, Pass};
use crate::ops;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, activation};

/// A recurrent cell with its gates packed: one product for the input, one for the state.
///
/// - vanilla: `h' = tanh(W x + b + U h)`
/// - GRU, gates packed as (r, z, n): `r, z = sigmoid(W x + b + U h)`, `n = tanh(W_n x + b_n + r * (U_n h + b_u))`,
///   `h' = (1 - z) * n + z * h`
/// - LSTM, gates packed as (i, f, o, g): `i, f, o = sigmoid(...)`, `g = tanh(...)`, `c' = f * c + i * g`, `h' = o * tanh(c')`
///
/// # Reference
/// Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014, equations 5 to 8. **Differs from the paper:**
/// the reset gate acts after the product `U_n h` instead of before it, which makes one product of three and is what cuDNN and
/// PyTorch compute. Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000, whose bias starts at one
/// (Jozefowicz et al. 2015).
#[derive(Module, Debug)]
pub struct Cell {
    /// `W` and `b` of every gate.
    pub input: Linear,
    /// `U` of every gate: `[d_hidden, n_gates * d_hidden]`.
    pub recurrent: Param<Tensor<2>>,
    /// `b_u` of the GRU's candidate.
    pub candidate_bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    kind: CellKind,
    #[module(skip)]
    d_hidden: usize,
}

impl Cell {
    /// A cell that reads vectors of width `d_input` into a state of width `d_hidden`.
    pub fn new(kind: CellKind, d_input: usize, d_hidden: usize, init: &Init) -> Self {
        let n_gates = kind.n_gates();
        let mut input = init.linear(d_input, n_gates * d_hidden, n_gates);
        if kind == CellKind::Lstm {
            let bias: Vec<f32> = (0..4 * d_hidden).map(|i| if i / d_hidden == 1 { 1.0 } else { 0.0 }).collect();
            input.bias = Some(Param::from_data(burn::tensor::TensorData::new(bias, [4 * d_hidden]), init.device()));
        }
        Self {
            input,
            recurrent: init.uniform([d_hidden, n_gates * d_hidden], (d_hidden as f64).powf(-0.5)),
            candidate_bias: (kind == CellKind::Gru).then(|| init.constant([d_hidden], 0.0)),
            kind,
            d_hidden,
        }
    }

    /// The state before the first step: zero.
    pub fn start(&self, batch: usize, device: &Device) -> CellState {
        let zeros = || Tensor::zeros([batch, self.d_hidden], device);
        CellState { hidden: zeros(), memory: (self.kind == CellKind::Lstm).then(zeros) }
    }

    /// The input side of every gate at every step, in one product.
    ///
    /// # Shapes
    /// - input: `[batch, len, d_input]`
    /// - output: `[batch, len, n_gates * d_hidden]`
    pub fn project(&self, input: Tensor<3>, pass: &Pass) -> Tensor<3> {
        linear_layer(&self.input, input, pass)
    }

    /// What a layer over whole sentences needs of the cell beside the projected input.
    pub fn parameters(&self) -> ops::CellParameters {
        ops::CellParameters {
            kind: self.kind,
            recurrent: self.recurrent.val(),
            candidate_bias: self.candidate_bias.as_ref().map(|bias| bias.val()),
        }
    }

    /// One step from the projected input.
    ///
    /// # Shapes
    /// - projected: `[batch, n_gates * d_hidden]`
    pub fn step(&self, projected: Tensor<2>, state: &CellState, pass: &Pass) -> CellState {
        let recurrent = linear_parameter(&self.recurrent, state.hidden.clone(), pass);
        let bias = self.candidate_bias.as_ref().map(|bias| bias.val());
        ops::cell_step(self.kind, projected, recurrent, state.clone(), bias, pass.body())
    }

    /// The factor by which a step multiplies each element of what the cell has: a GRU's update gate, an LSTM's forget gate. A
    /// vanilla cell has none.
    ///
    /// # Shapes
    /// - projected: `[batch, n_gates * d_hidden]`
    /// - output: `[batch, d_hidden]`
    pub fn kept(&self, projected: Tensor<2>, state: &CellState, pass: &Pass) -> Option<Tensor<2>> {
        if self.kind == CellKind::Vanilla {
            return None;
        }
        let d = self.d_hidden;
        let recurrent = linear_parameter(&self.recurrent, state.hidden.clone(), pass);
        // It is the second of both kinds.
        Some(activation::sigmoid(projected.narrow(1, d, d) + recurrent.narrow(1, d, d)))
    }

    /// The width of the state.
    pub fn d_hidden(&self) -> usize {
        self.d_hidden
    }
}
