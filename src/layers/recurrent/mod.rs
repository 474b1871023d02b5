//! Recurrence: cells, and how they read a sequence.
//!
//! burn-nn's `Lstm` and `Gru` make six to eight small products at each step, read the padding first when they read backwards,
//! and have one layer. Here one product computes the input side of all gates at all steps, another the recurrent side of all
//! gates at a step, and padding never enters a state.

mod cell;
mod reading;

pub use cell::{Cell, CellKind, CellState};
pub(in crate::layers) use reading::{Order, read};

use burn::tensor::Tensor;
use std::sync::Arc;

/// The steps of a sequence as separate tensors.
///
/// The gradient of a slice is as large as what was sliced, so taking the steps one by one would cost the square of the
/// length; halving again and again costs `len log len`.
///
/// # Shapes
/// - input: `[batch, len, width]`
/// - output: `len` times `[batch, width]`
pub fn unbind_steps(input: Tensor<3>) -> Vec<Tensor<2>> {
    let len = input.dims()[1];
    if len == 1 {
        return vec![input.squeeze_dim(1)];
    }
    let half = len / 2;
    let mut steps = unbind_steps(input.clone().narrow(1, 0, half));
    steps.extend(unbind_steps(input.narrow(1, half, len - half)));
    steps
}

/// Which sentences of a batch are still running at each step.
///
/// # Shapes
/// - each step: `[batch, 1]`, one where the step is a real token; `None` where all are
pub struct Running {
    lengths: Arc<[usize]>,
    steps: Vec<Option<Tensor<2>>>,
}

impl Running {
    /// For sentences of these lengths, padded to `len`.
    pub fn new(lengths: &[usize], len: usize, device: &burn::tensor::Device) -> Self {
        let step = |step: usize| {
            if lengths.iter().all(|length| *length > step) {
                return None;
            }
            let real: Vec<f32> = lengths.iter().map(|length| if *length > step { 1.0 } else { 0.0 }).collect();
            Some(Tensor::from_data(burn::tensor::TensorData::new(real, [lengths.len(), 1]), device))
        };
        Self { lengths: lengths.into(), steps: (0..len).map(step).collect() }
    }

    /// The real tokens of each sentence.
    pub fn lengths(&self) -> Arc<[usize]> {
        self.lengths.clone()
    }

    /// The column of step `step`.
    pub fn at(&self, step: usize) -> Option<&Tensor<2>> {
        self.steps[step].as_ref()
    }
}
