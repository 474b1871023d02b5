//! One direction of a recurrence, whatever its state is.

use super::{LinearRecurrence, MatrixMemory, MixerKind};
use crate::layers::recurrent::{Cell, CellKind, CellState, Order, Running, read};
use crate::layers::{Init, Pass, indices};
use burn::module::Module;
use burn::tensor::{Int, Tensor};

/// A recurrence in one direction.
// A layer has one or two of them.
#[allow(clippy::large_enum_variant)]
#[derive(Module, Debug)]
pub(super) enum Core {
    Cell(Cell),
    Linear(LinearRecurrence),
    Matrix(MatrixMemory),
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

impl From<CellKind> for MixerKind {
    fn from(cell: CellKind) -> Self {
        match cell {
            CellKind::Vanilla => Self::Vanilla,
            CellKind::Gru => Self::Gru,
            CellKind::Lstm => Self::Lstm,
        }
    }
}

impl MixerKind {
    /// The cell of a classical recurrence.
    pub fn cell(self) -> Option<CellKind> {
        match self {
            Self::Vanilla => Some(CellKind::Vanilla),
            Self::Gru => Some(CellKind::Gru),
            Self::Lstm => Some(CellKind::Lstm),
            _ => None,
        }
    }
}

impl Core {
    /// The recurrence of that kind from vectors of width `d_input` to a state that is a vector of width `d_state`; none if its
    /// state is another.
    pub(super) fn vector(kind: MixerKind, d_input: usize, d_state: usize, init: &Init) -> Option<Self> {
        if let Some(kind) = kind.cell() {
            return Some(Self::Cell(Cell::new(kind, d_input, d_state, init)));
        }
        kind.gating().map(|gating| Self::Linear(LinearRecurrence::new(gating, d_input, d_state, init)))
    }

    /// What others see of every position, read from `state` on, which becomes the state after the last position that is read.
    ///
    /// # Shapes
    /// - input: `[rows, len, d_input]`
    /// - output: `[rows, len, d_state]`
    pub(super) fn read(
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
                let traced = pass.is_traced().then(|| (input.clone(), start.hidden.clone()));
                let (states, last) = if len == 1 && running.at(0).is_none() {
                    // One step of decoding: its matrices are packed once for a search.
                    let next = cell.step(cell.project(input, pass).squeeze_dim(1), &start, pass);
                    (next.hidden.clone().unsqueeze_dim(1), next)
                } else {
                    read(cell, input, start, running, order, pass)
                };
                if let Some((input, start)) = traced {
                    record_gate(cell, input, start, states.clone(), order, pass);
                }
                *state = Some(MixerState::Cell(last));
                states
            }
            Self::Linear(recurrence) => {
                let start = match state.take() {
                    Some(MixerState::Vector(start)) => start,
                    _ => Tensor::zeros([rows, recurrence.d_state()], &device),
                };
                let states = recurrence.states(input, start, order.of(running), pass);
                *state = Some(MixerState::Vector(last(&states, &running.lengths(), order)));
                recurrence.seen(states)
            }
            Self::Matrix(memory) => {
                let mut matrix = match state.take() {
                    Some(MixerState::Matrix(matrix)) => Some(matrix),
                    _ => None,
                };
                let states = memory.advance(input, order.of(running), &mut matrix, pass);
                *state = matrix.map(MixerState::Matrix);
                states
            }
        }
    }

    /// What others see of `state`, and the memory of an LSTM beside it.
    ///
    /// # Panics
    /// If the state is no vector.
    pub(super) fn shown(&self, state: Option<MixerState>) -> CellState {
        match (self, state) {
            (_, Some(MixerState::Cell(state))) => state,
            (Self::Linear(recurrence), Some(MixerState::Vector(state))) => {
                let hidden = recurrence.seen(state.unsqueeze_dim(1)).squeeze_dim(1);
                CellState { hidden, memory: None }
            }
            _ => unreachable!("a vector is read into a vector"),
        }
    }
}

/// Records, for a cell with gates, the factor by which each position multiplies what the cell has. Not as `kept`: the factor of a
/// linear recurrence sees no state, so that a product of them says what is left of a word.
///
/// # Shapes
/// - input: `[rows, len, d_input]`
/// - start: `[rows, d_state]`
/// - states: `[rows, len, d_state]`
fn record_gate(cell: &Cell, input: Tensor<3>, start: Tensor<2>, states: Tensor<3>, order: Order, pass: &mut Pass) {
    let [rows, len, d_state] = states.dims();
    let start = start.unsqueeze_dim(1);
    let before = match order {
        Order::Forward => Tensor::cat(vec![start, states], 1).narrow(1, 0, len),
        Order::Backward => Tensor::cat(vec![states, start], 1).narrow(1, 1, len),
    };
    let before = CellState { hidden: before.reshape([rows * len, d_state]), memory: None };
    let projected = cell.project(input, pass).flatten(0, 1);
    if let Some(kept) = cell.kept(projected, &before, pass) {
        pass.record("gate", || kept.reshape([rows, len, d_state]));
    }
}

/// Whole sequences read forwards and, where there is such a recurrence, backwards: what others see side by side, and the state of
/// each direction after the position that it reads last.
///
/// # Shapes
/// - input: `[rows, len, d_input]`
/// - output: `[rows, len, n_directions d_state]`
pub(super) fn read_whole(
    forward: &Core,
    backward: Option<&Core>,
    input: Tensor<3>,
    running: &Running,
    pass: &mut Pass,
) -> (Tensor<3>, Vec<Option<MixerState>>) {
    let mut read = |core: &Core, name: &str, order, input| {
        let mut state = None;
        let states = pass.scoped(name, |pass| core.read(input, &mut state, running, order, pass));
        (states, state)
    };
    let Some(backward) = backward else {
        let (states, last) = read(forward, "forward", Order::Forward, input);
        return (states, vec![last]);
    };
    let (forward, last) = read(forward, "forward", Order::Forward, input.clone());
    let (backward, first) = read(backward, "backward", Order::Backward, input);
    (Tensor::cat(vec![forward, backward], 2), vec![last, first])
}

/// The vector of the position of each row that is read last.
fn last(states: &Tensor<3>, lengths: &[usize], order: Order) -> Tensor<2> {
    let [rows, len, d] = states.dims();
    if order == Order::Backward {
        return states.clone().narrow(1, 0, 1).squeeze_dim(1);
    }
    if lengths.iter().all(|length| *length >= len) {
        return states.clone().narrow(1, len - 1, 1).squeeze_dim(1);
    }
    let places = lengths.iter().enumerate().map(|(row, length)| row * len + length.saturating_sub(1));
    let places = indices(places, &states.device());
    states.clone().reshape([rows * len, d]).select(0, places)
}
