//! The location score: the decoder's state alone says where to look.

use crate::layers::Init;
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;

/// `e_t = W s_t`, one row of `W` for each source position.
///
/// It sees no content, so it can learn where a word stands but not what it is; and it has as many positions as it was made
/// with, so longer sources are refused.
///
/// # Reference
/// Luong et al. 2015, equation 8 (`a_t = softmax(W_a s_t)`): of a short sentence only the first rows are used. **Differs from the
/// paper:** longer sources are refused; the paper ignores the words near their end.
#[derive(Module, Debug)]
pub struct Location {
    /// `W`, transposed: `[d_query, max_source_len]`.
    position: Linear,
}

impl Location {
    /// A score for sources of up to `max_source_len` tokens.
    pub fn new(d_query: usize, max_source_len: usize, init: &Init) -> Self {
        Self { position: init.linear_without_bias(d_query, max_source_len, 1) }
    }

    /// # Shapes
    /// - query: `[batch, query_len, d_query]`
    /// - keys: `[batch, source_len, any]`, whose length alone counts
    /// - output: `[batch, query_len, source_len]`
    ///
    /// # Panics
    /// If the source is longer than the score was made for; callers check lengths first.
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        let source_len = keys.dims()[1];
        self.position.forward(query).narrow(2, 0, source_len)
    }
}
