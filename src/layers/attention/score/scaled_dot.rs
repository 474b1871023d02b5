//! The scaled dot product.

use super::Dot;
use burn::module::Module;
use burn::tensor::Tensor;

/// `e_ti = s_t . h_i / sqrt(d)`, `d` the width of the vectors.
///
/// If the elements of both vectors are independent with variance one, the dot product has variance `d`; divided by the root
/// of `d` it has variance one again, whatever the width, so that the softmax starts soft.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, section 3.2.1. **Differs from the paper:** here between a recurrent
/// decoder and encoder, without projections.
#[derive(Module, Debug)]
pub struct ScaledDot;

impl ScaledDot {
    /// # Shapes
    /// - query: `[batch, query_len, d]`
    /// - keys: `[batch, source_len, d]`
    /// - output: `[batch, query_len, source_len]`
    pub fn forward(&self, query: Tensor<3>, keys: Tensor<3>) -> Tensor<3> {
        let d = query.dims()[2];
        // The query is scaled, since it is the smaller operand.
        Dot.forward(query.mul_scalar((d as f64).powf(-0.5)), keys)
    }
}
