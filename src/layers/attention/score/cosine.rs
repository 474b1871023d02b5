//! The cosine score: direction counts, length does not.

use super::Dot;
use crate::layers::Init;
use burn::module::{Module, Param};
use burn::tensor::Tensor;

/// The length below which a vector counts as zero, so that zero has a direction of zero instead of NaN.
const SHORTEST: f64 = 1e-8;

/// Where the sharpness starts: scores lie between -10 and 10, so that a weight may be `e^20` times another.
const INITIAL_SHARPNESS: f64 = 10.0;

/// `e_ti = exp(g) cos(s_t, h_i)`, with the learned `g` the logarithm of the inverse temperature.
///
/// A cosine lies between -1 and 1, and a softmax over such scores can hardly prefer one position in ten: hence the learned
/// factor. It is kept as a logarithm so that it stays positive.
///
/// # Reference
/// Graves, Wayne and Danihelka, Neural Turing Machines, 2014, equations 5 and 6. **Differs from the paper:** one factor for
/// the model instead of one for each step, starting at 10.
#[derive(Module, Debug)]
pub struct Cosine {
    /// `g`.
    log_sharpness: Param<Tensor<1>>,
}

impl Cosine {
    /// A score between states of equal width.
    pub fn new(init: &Init) -> Self {
        Self { log_sharpness: init.constant([1], INITIAL_SHARPNESS.ln()) }
    }

    /// `h_i / |h_i|`.
    ///
    /// # Shapes
    /// - values, output: `[batch, source_len, d]`
    pub fn keys(&self, values: Tensor<3>) -> Tensor<3> {
        normalized(values)
    }

    /// # Shapes
    /// - query: `[batch, query_len, d]`
    /// - keys: `[batch, source_len, d]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        Dot.forward(normalized(query) * self.log_sharpness.val().exp().unsqueeze(), keys)
    }
}

/// Every vector divided by its length.
fn normalized(vectors: Tensor<3>) -> Tensor<3> {
    // The bound stands under the root: its gradient at zero is then zero and not infinite.
    let squares = (vectors.clone() * vectors.clone()).sum_dim(2).clamp_min(SHORTEST * SHORTEST);
    vectors / squares.sqrt()
}
