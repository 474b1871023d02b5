//! Sequences step by step.

use burn::tensor::{Device, Int, Tensor, TensorData};
use std::cell::OnceCell;
use std::sync::Arc;

/// What a cell carries from step to step.
///
/// # Shapes
/// - hidden, memory: `[batch, d_hidden]`
#[derive(Clone, Debug)]
pub struct CellState {
    /// `h`, what others see.
    pub hidden: Tensor<2>,
    /// `c`, the LSTM's own memory.
    pub memory: Option<Tensor<2>>,
}

impl CellState {
    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            hidden: self.hidden.clone().select(0, rows.clone()),
            memory: self.memory.clone().map(|memory| memory.select(0, rows.clone())),
        }
    }

    /// This state where `running` is one, `previous` where it is zero.
    pub fn where_running(self, running: Option<&Tensor<2>>, previous: &Self) -> Self {
        let Some(running) = running else { return self };
        // Exact on both sides: a sentence comes out of a padded batch as it does alone.
        let stopped = running.clone().neg().add_scalar(1.0);
        let mix = |new: Tensor<2>, old: Tensor<2>| new * running.clone() + old * stopped.clone();
        Self {
            hidden: mix(self.hidden, previous.hidden.clone()),
            memory: self.memory.zip(previous.memory.clone()).map(|(new, old)| mix(new, old)),
        }
    }
}

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
    if len == 0 {
        return Vec::new();
    }
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
    device: Device,
    // Made when they are asked for: fused operations read the lengths alone.
    steps: Vec<OnceCell<Option<Tensor<2>>>>,
}

impl Running {
    /// For sentences of these lengths, padded to `len`.
    pub fn new(lengths: &[usize], len: usize, device: &Device) -> Self {
        Self { lengths: lengths.into(), device: device.clone(), steps: vec![OnceCell::new(); len] }
    }

    /// The real tokens of each sentence.
    pub fn lengths(&self) -> Arc<[usize]> {
        self.lengths.clone()
    }

    /// The column of step `step`.
    pub fn at(&self, step: usize) -> Option<&Tensor<2>> {
        self.steps[step].get_or_init(|| self.column(step)).as_ref()
    }

    fn column(&self, step: usize) -> Option<Tensor<2>> {
        let is_running = |length: &usize| *length > step;
        if self.lengths.iter().all(is_running) {
            return None;
        }
        let real: Vec<f32> = self.lengths.iter().map(|length| f32::from(is_running(length))).collect();
        Some(Tensor::from_data(TensorData::new(real, [self.lengths.len(), 1]), &self.device))
    }
}
