//! Learned positions.

use super::Places;
use crate::layers::{Init, indices};
use burn::module::Module;
use burn::nn::Embedding;
use burn::tensor::Tensor;

/// `x_pos + P_pos` with a learned table `P`.
///
/// The table ends somewhere, and a position that training never saw has a vector that was never learnt; longer input is
/// refused. Without a scheme of its own, the decoder uses the encoder's table.
///
/// # Reference
/// Gehring et al., Convolutional Sequence to Sequence Learning, 2017, section 3.1; Vaswani et al. 2017, section 3.5 and table
/// 3, row E. As in the papers.
#[derive(Module, Debug)]
pub struct LearnedPositions {
    learned: Embedding,
}

impl LearnedPositions {
    /// A table of `max_len` vectors.
    pub fn new(max_len: usize, d_model: usize, init: &Init) -> Self {
        Self { learned: init.embedding(max_len, d_model) }
    }

    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    ///
    /// # Panics
    /// If a position lies beyond the table.
    pub fn forward(&self, input: Tensor<3>, places: &Places) -> Tensor<3> {
        let positions = indices(places.iter(), &input.device());
        let table = self.learned.weight.val().select(0, positions);
        input + table.unsqueeze::<3>()
    }
}
