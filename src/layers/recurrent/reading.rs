//! A cell over a whole sequence.

use super::{Cell, CellState, Running};
use crate::kernels::recurrence::Reading;
use crate::layers::Pass;
use crate::ops;
use burn::tensor::Tensor;

/// The order in which a layer reads.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::layers) enum Order {
    Forward,
    Backward,
}

impl Order {
    /// The steps of sentences in this order.
    pub fn of(self, running: &Running) -> Reading {
        Reading { is_backward: self == Self::Backward, lengths: Some(running.lengths()) }
    }
}

/// All states of one direction from `state` on, in source order, and the last real one.
pub(in crate::layers) fn read(
    cell: &Cell,
    input: Tensor<3>,
    state: CellState,
    running: &Running,
    order: Order,
    pass: &Pass,
) -> (Tensor<3>, CellState) {
    let projected = cell.project(input, pass);
    ops::recurrent_layer(projected, state, cell.parameters(), order.of(running), pass.body())
}
