//! Recurrent cells on a GPU.

mod cell;
mod layer;
mod step;

pub use layer::recurrent_layer;
pub use step::cell_step;
