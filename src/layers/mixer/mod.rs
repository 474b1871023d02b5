//! Mixers: what lets the positions of one sequence exchange something.
//!
//! In a Transformer layer it is a choice, for each side and each layer. Self-attention looks back at everything; a recurrence
//! carries a state of fixed size, so that a step of decoding costs the same after ten words and after ten thousand.
//!
//! | mixer | state | all positions at once | from |
//! | --- | --- | --- | --- |
//! | [`SelfAttention`](super::attention::multi_head::SelfAttention) | keys and values of all words | yes | Vaswani 2017 |
//! | [`Cell`]: vanilla, GRU, LSTM | a vector | no | Elman 1990, Cho 2014, Hochreiter 1997 |
//! | [`LinearRecurrence`]: minGRU, minLSTM, SSRU, RG-LRU | a vector | yes | Feng 2024, Kim 2019, De 2024 |
//! | [`MatrixMemory`]: linear, gated linear, delta, gated delta | a matrix for each head | in chunks | Katharopoulos 2020, Yang 2023 to 2025 |
//!
//! [`ShortConvolution`] may stand before any of them.

mod chunks;
mod config;
mod convolution;
mod linear_recurrence;
mod matrix_memory;

pub use chunks::CHUNK;
pub use config::{MixerConfig, MixerKind, Mixers, SideConfig};
pub use convolution::ShortConvolution;
pub use linear_recurrence::{Gating, LinearRecurrence, RG_LRU_FLOOR, RG_LRU_SPEED};
pub use matrix_memory::{GLA_TEMPERATURE, MatrixMemory, Rule};

use super::fused::{self, Reading};
use super::recurrent::{Cell, CellKind, CellState, Order, Running, read};
use super::{Init, Pass, indices};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// The sizes of the layer that a mixer stands in.
#[derive(Clone, Copy, Debug)]
pub struct MixerShape {
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// Heads of a memory that is a matrix.
    pub n_heads: usize,
    /// 1 or 2.
    pub n_directions: usize,
}

/// One direction of a recurrence.
// A layer has one or two of them.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
enum Core {
    Cell(Cell),
    Linear(LinearRecurrence),
    Matrix(MatrixMemory),
}

/// A mixer with a state of fixed size, in one direction or both.
///
/// Where the state is wider than the vectors between layers, where two directions meet, and for memories that are matrices, a
/// linear layer leads back to their width.
#[derive(Module, Debug)]
pub struct RecurrentMixer {
    forward: Core,
    backward: Option<Core>,
    output: Option<Linear>,
}

/// What a recurrence carries from position to position.
// One exists for each layer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum MixerState {
    /// Of a cell.
    Cell(CellState),
    /// Of a linear recurrence: `[rows, d_state]`.
    Vector(Tensor<2>),
    /// Of a matrix memory: `[rows, n_heads, d_key, d_value]`.
    Matrix(Tensor<4>),
}

impl MixerState {
    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match self {
            Self::Cell(state) => Self::Cell(state.select(rows)),
            Self::Vector(state) => Self::Vector(state.clone().select(0, rows.clone())),
            Self::Matrix(state) => Self::Matrix(state.clone().select(0, rows.clone())),
        }
    }
}

impl MixerKind {
    /// The cell of a classical recurrence.
    fn cell(self) -> Option<CellKind> {
        match self {
            Self::Vanilla => Some(CellKind::Vanilla),
            Self::Gru => Some(CellKind::Gru),
            Self::Lstm => Some(CellKind::Lstm),
            _ => None,
        }
    }
}

impl RecurrentMixer {
    /// The recurrence of a config; none if that is attention.
    pub fn new(config: &MixerConfig, shape: MixerShape, init: &Init) -> Option<Self> {
        let MixerShape { d_model, n_heads, n_directions } = shape;
        let d_state = d_model * config.expansion();
        let core = || {
            Some(if let Some(kind) = config.kind.cell() {
                Core::Cell(Cell::new(kind, d_model, d_state, init))
            } else if let Some(gating) = Gating::of(config.kind) {
                Core::Linear(LinearRecurrence::new(gating, d_model, d_state, init))
            } else {
                let turns = config.negative_eigenvalues.unwrap_or(false);
                Core::Matrix(MatrixMemory::new(Rule::of(config.kind)?, d_model, n_heads, turns, init))
            })
        };
        let forward = core()?;
        let backward = if n_directions == 2 { core() } else { None };
        let width = n_directions * d_state;
        let has_output = width != d_model || matches!(forward, Core::Matrix(_));
        Some(Self { forward, backward, output: has_output.then(|| init.linear(width, d_model, 1)) })
    }

    /// Every position of whole sequences; those with `lengths` end in padding.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, lengths: Option<&[usize]>, pass: &mut Pass) -> Tensor<3> {
        let [batch, len, _] = input.dims();
        let lengths = lengths.map_or_else(|| vec![len; batch], <[usize]>::to_vec);
        let forward = pass.scoped("forward", |pass| {
            self.forward.read(
                input.clone(),
                &mut None,
                &Running::new(&lengths, len, &input.device()),
                Order::Forward,
                pass,
            )
        });
        let both = match &self.backward {
            None => forward,
            Some(core) => {
                let running = Running::new(&lengths, len, &input.device());
                let backward =
                    pass.scoped("backward", |pass| core.read(input, &mut None, &running, Order::Backward, pass));
                Tensor::cat(vec![forward, backward], 2)
            }
        };
        self.out(both, pass)
    }

    /// The positions that follow `state`, which becomes the state after them; of rows with `lengths`, after the last real one.
    ///
    /// # Shapes
    /// - input, output: `[rows, len, d_model]`
    ///
    /// # Panics
    /// If the mixer reads in two directions.
    pub fn advance(
        &self,
        input: Tensor<3>,
        lengths: Option<&[usize]>,
        state: &mut Option<MixerState>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        assert!(self.backward.is_none(), "what reads from the end cannot go on from a state");
        let [rows, len, _] = input.dims();
        let lengths = lengths.map_or_else(|| vec![len; rows], <[usize]>::to_vec);
        let running = Running::new(&lengths, len, &input.device());
        let states = pass.scoped("forward", |pass| self.forward.read(input, state, &running, Order::Forward, pass));
        self.out(states, pass)
    }

    fn out(&self, states: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        pass.record("states", || states.clone());
        match &self.output {
            Some(output) => fused::linear_layer(output, states, pass),
            None => states,
        }
    }
}

impl Core {
    fn read(
        &self,
        input: Tensor<3>,
        state: &mut Option<MixerState>,
        running: &Running,
        order: Order,
        pass: &mut Pass,
    ) -> Tensor<3> {
        let [rows, len, _] = input.dims();
        let device = input.device();
        match self {
            Self::Cell(cell) => {
                let start = match state.take() {
                    Some(MixerState::Cell(start)) => start,
                    _ => cell.start(rows, &device),
                };
                if len == 1 && running.at(0).is_none() {
                    // One step of decoding: its matrices are packed once for a search.
                    let next = cell.step(cell.project(input, pass).squeeze_dim(1), &start, pass);
                    let seen = next.hidden.clone().unsqueeze_dim(1);
                    *state = Some(MixerState::Cell(next));
                    return seen;
                }
                let (states, last) = read(cell, input, start, running, order, pass);
                *state = Some(MixerState::Cell(last));
                states
            }
            Self::Linear(recurrence) => {
                let start = match state.take() {
                    Some(MixerState::Vector(start)) => start,
                    _ => Tensor::zeros([rows, recurrence.d_state()], &device),
                };
                let reading = Reading { is_backward: order == Order::Backward, lengths: Some(running.lengths()) };
                let states = recurrence.states(input, start, reading, pass);
                *state = Some(MixerState::Vector(last(&states, &running.lengths())));
                recurrence.seen(states)
            }
            Self::Matrix(memory) => {
                let mut matrix = match state.take() {
                    Some(MixerState::Matrix(matrix)) => Some(matrix),
                    _ => None,
                };
                let turn = |x: Tensor<3>| if order == Order::Backward { x.flip([1]) } else { x };
                let real = real(&running.lengths(), len, &device).map(turn);
                let states = memory.advance(turn(input), real.as_ref(), &mut matrix, pass);
                *state = matrix.map(MixerState::Matrix);
                turn(states)
            }
        }
    }
}

/// The vector of the last real position of each row.
fn last(states: &Tensor<3>, lengths: &[usize]) -> Tensor<2> {
    let [rows, len, d] = states.dims();
    if lengths.iter().all(|length| *length >= len) {
        return states.clone().narrow(1, len - 1, 1).squeeze_dim(1);
    }
    let places = lengths.iter().enumerate().map(|(row, length)| row * len + length.saturating_sub(1));
    let places = indices(places, &states.device());
    states.clone().reshape([rows * len, d]).select(0, places)
}

/// One for every real position of sentences padded to `len`, zero for padding: `[rows, len, 1]`; nothing where there is none.
fn real(lengths: &[usize], len: usize, device: &Device) -> Option<Tensor<3>> {
    lengths.iter().any(|length| *length < len).then(|| {
        let of_sentence = |length: &usize| {
            let length = *length;
            (0..len).map(move |position| if position < length { 1f32 } else { 0.0 })
        };
        let real: Vec<f32> = lengths.iter().flat_map(of_sentence).collect();
        Tensor::from_data(TensorData::new(real, [lengths.len(), len, 1]), device)
    })
}

/// `log(sigmoid(x))`. burn's own loses the digits of what is near 0, which is how slow a memory fades.
fn log_sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.clone().clamp_max(0.0) - x.abs().neg().exp().log1p()
}
