//! A cell over a whole sequence.

use super::{Cell, CellState, Running, unbind_steps};
use crate::layers::Pass;
use crate::layers::fused::{self, Reading};
use burn::tensor::Tensor;

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
