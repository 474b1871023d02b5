//! Recurrence: cells, and how they read a sequence.
//!
//! burn-nn's `Lstm` and `Gru` make six to eight small products at each step, read the padding first when they read backwards,
//! and have one layer. Here one product computes the input side of all gates at all steps, another the recurrent side of all
//! gates at a step, and padding never enters a state.

mod cell;
mod reading;

pub use crate::kernels::cell::CellKind;
pub use crate::ops::steps::{CellState, Running, unbind_steps};
pub use cell::Cell;
pub(in crate::layers) use reading::{Order, read};
