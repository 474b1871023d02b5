//! The way from the encoder's last states to the decoder's first ones.

use crate::layers::Init;
use crate::layers::recurrent::{CellKind, CellState};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `s_0 = tanh(W h + b)` for one layer, `h` the last real states of all directions; the LSTM's memory has a matrix of its own.
///
/// # Reference
/// Bahdanau et al. 2015, appendix A.2.2. **Differs from the paper:** all directions are read instead of the backward one.
#[derive(Module, Debug)]
pub(super) struct BridgeLayer {
    hidden: Linear,
    memory: Option<Linear>,
}

impl BridgeLayer {
    pub(super) fn new(kind: CellKind, d_encoded: usize, d_hidden: usize, init: &Init) -> Self {
        Self {
            hidden: init.linear(d_encoded, d_hidden, 1),
            memory: (kind == CellKind::Lstm).then(|| init.linear(d_encoded, d_hidden, 1)),
        }
    }

    /// The first state of the decoder's layer from the last states of the encoder's, one for each direction.
    pub(super) fn forward(&self, finals: &[CellState]) -> CellState {
        let hidden = Tensor::cat(finals.iter().map(|state| state.hidden.clone()).collect(), 1);
        let memory = self.memory.as_ref().map(|memory| {
            // Other recurrences than an LSTM have no memory beside what they show.
            let memories = finals.iter().map(|state| state.memory.as_ref().unwrap_or(&state.hidden).clone());
            memory.forward(Tensor::cat(memories.collect(), 1)).tanh()
        });
        CellState { hidden: self.hidden.forward(hidden).tanh(), memory }
    }
}
