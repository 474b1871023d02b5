//! The dot product: no parameters, and the fastest.

use burn::module::Module;
use burn::tensor::Tensor;

/// `e_ti = s_t . h_i`.
///
/// The widths of decoder and encoder states must be equal, and training must bring the two into one space, since nothing
/// stands between them. Long vectors give large scores and hard weights: [`ScaledDot`](super::ScaledDot) is the remedy.
///
/// # Reference
/// Luong, Pham and Manning, Effective Approaches to Attention-based Neural Machine Translation, 2015, section 3.1. As in the
/// paper.
///
/// # Example
/// Small enough to follow on paper: the second encoder state answers the decoder state best, by far.
///
/// ```
/// use burn::tensor::{Device, Tensor, activation::softmax};
/// use lookback::layers::attention::score::Dot;
///
/// let device = Device::flex();
/// let state = Tensor::<3>::from_data([[[10.0, 5.0, 10.0]]], &device);
/// let encoder = Tensor::<3>::from_data([[[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 5.0, 1.0]]], &device);
///
/// let scores = Dot.forward(state, encoder.clone());
/// assert_eq!(scores.to_data().to_vec::<f32>().unwrap(), [15.0, 60.0, 15.0, 35.0]);
///
/// let weights = softmax(scores, 2);
/// let rounded: Vec<f32> = weights.to_data().iter::<f32>().map(f32::round).collect();
/// assert_eq!(rounded, [0.0, 1.0, 0.0, 0.0]);
///
/// let context: Vec<f32> = weights.matmul(encoder).to_data().iter::<f32>().map(f32::round).collect();
/// assert_eq!(context, [5.0, 0.0, 1.0]);
/// ```
#[derive(Module, Debug)]
pub struct Dot;

impl Dot {
    /// # Shapes
    /// - query: `[batch, query_len, d]`
    /// - keys: `[batch, source_len, d]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        query.matmul(keys.swap_dims(1, 2))
    }
}
