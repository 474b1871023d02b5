//! A stack of recurrent layers that reads a whole sequence, in one direction or both.

use super::{Cell, CellKind, CellState, Running, unbind_steps};
use crate::layers::fused::{self, Reading};
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::tensor::Tensor;

/// One layer of [`RecurrentEncoder`].
#[derive(Module, Debug)]
struct EncoderLayer {
    forward: Cell,
    backward: Option<Cell>,
}

/// The sizes of a [`RecurrentEncoder`].
#[derive(Clone, Copy, Debug)]
pub struct EncoderShape {
    /// The cell of every layer and direction.
    pub kind: CellKind,
    /// Width of the input.
    pub d_input: usize,
    /// Width of the state in each layer and direction.
    pub d_hidden: usize,
    /// Layers.
    pub n_layers: usize,
    /// 1 or 2.
    pub n_directions: usize,
    /// Whether layers from the second on add what they have read to what they say.
    pub residual: bool,
    /// Probability of dropping an element between layers.
    pub dropout_rate: f64,
}

/// What the encoder has read.
///
/// # Shapes
/// - states: `[batch, source_len, d_output]`, zero on padding
/// - every final state: `[batch, d_hidden]`
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The states ("annotations") of the top layer, both directions side by side.
    pub states: Tensor<3>,
    /// For each layer the last real state of each direction's cell, forward first, without what a residual connection adds.
    pub finals: Vec<Vec<CellState>>,
}

/// `h_i = cell(x_i, h_(i-1))`, `h_0 = 0`, in `n_layers` layers, each over the states of the one below.
///
/// # Reference
/// Cho et al. 2014, section 2.1; Sutskever et al. 2014 for depth; Wu et al. 2016, section 3.1, for residual connections,
/// which here skip the dropout and leave the state that a cell carries on as it is; Schuster and Paliwal 1997 for two
/// directions, joined as in Bahdanau 2015, section 3.2.
#[derive(Module, Debug)]
pub struct RecurrentEncoder {
    layers: Vec<EncoderLayer>,
    #[module(skip)]
    residual: bool,
    #[module(skip)]
    dropout_rate: f64,
}

impl RecurrentEncoder {
    /// An encoder of that shape.
    pub fn new(shape: EncoderShape, init: &Init) -> Self {
        let EncoderShape { kind, d_input, d_hidden, n_layers, n_directions, residual, dropout_rate } = shape;
        let layers = (0..n_layers)
            .map(|layer| {
                let d_input = if layer == 0 { d_input } else { n_directions * d_hidden };
                EncoderLayer {
                    forward: Cell::new(kind, d_input, d_hidden, init),
                    backward: (n_directions == 2).then(|| Cell::new(kind, d_input, d_hidden, init)),
                }
            })
            .collect();
        Self { layers, residual, dropout_rate }
    }

    /// Reads `input`; a sentence's state stands still on its padding.
    ///
    /// # Shapes
    /// - input: `[batch, source_len, d_input]`
    pub fn forward(&self, input: Tensor<3>, lengths: &[usize], pass: &mut Pass) -> Encoded {
        let device = input.device();
        let running = Running::new(lengths, input.dims()[1], &device);
        let start = |cell: &Cell| cell.start(lengths.len(), &device);
        let mut finals = Vec::new();
        let mut states = input;
        for (i, layer) in self.layers.iter().enumerate() {
            let below = (self.residual && i > 0).then(|| states.clone());
            if i > 0 {
                states = pass.dropout(states, self.dropout_rate);
            }
            let (forward, forward_final) =
                read(&layer.forward, states.clone(), start(&layer.forward), &running, Order::Forward, pass);
            let mut layer_finals = vec![forward_final];
            states = match &layer.backward {
                None => forward,
                Some(cell) => {
                    let (backward, backward_final) = read(cell, states, start(cell), &running, Order::Backward, pass);
                    layer_finals.push(backward_final);
                    Tensor::cat(vec![forward, backward], 2)
                }
            };
            if let Some(below) = below {
                states = states + below;
            }
            finals.push(layer_finals);
            pass.record(&format!("encoder.{i}.states"), || states.clone());
        }
        Encoded { states, finals }
    }
}

/// The order in which a layer reads.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::layers) enum Order {
    Forward,
    Backward,
}

/// All states of one direction from `state` on, in source order, and the last real one.
pub(in crate::layers) fn read(
    cell: &Cell,
    input: Tensor<3>,
    mut state: CellState,
    running: &Running,
    order: Order,
    pass: &Pass,
) -> (Tensor<3>, CellState) {
    let len = input.dims()[1];
    let is_fused = pass.fuses(&input.device());
    let projected = cell.project(input, pass);
    if is_fused {
        let reading = Reading { is_backward: order == Order::Backward, lengths: Some(running.lengths()) };
        return fused::recurrent_layer(projected, &state, cell.parameters(), reading);
    }
    let projected = unbind_steps(projected);
    let mut outputs: Vec<Option<Tensor<2>>> = vec![None; len];
    for i in 0..len {
        let step = if order == Order::Forward { i } else { len - 1 - i };
        let real = running.at(step);
        let next = cell.step(projected[step].clone(), &state, pass);
        // What others see of a padded step is zero; what the cell carries on is its last real state.
        outputs[step] = Some(match real {
            Some(real) => next.hidden.clone() * real.clone(),
            None => next.hidden.clone(),
        });
        state = next.where_running(real, &state);
    }
    let outputs = outputs.into_iter().map(|output| output.expect("every step was read")).collect();
    (Tensor::stack(outputs, 1), state)
}
