//! Kernels of ours for GPUs. Each takes tensors of 32-bit floats on a device that compiles it, and says none for others: burn's operations
//! do the same then.

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
mod absent;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod kernels;

#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
pub use absent::{
    adam_steps, add_dropped, alignment_network, attention, cell_step, convolution, cross_entropy, dropout, layer_norm,
    likeliest, linear, linear_recurrence, matrix_memory, norm_of_sum, norm_with_sum, one_query, product,
    rectified_linear, rectify, recurrent_layer, rms_norm, rotate, softmax, sums_of_squares, takes,
};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub use kernels::{
    adam_steps, add_dropped, alignment_network, attention, cell_step, convolution, cross_entropy, dropout, layer_norm,
    likeliest, linear, linear_recurrence, matrix_memory, norm_of_sum, norm_with_sum, one_query, product,
    rectified_linear, rectify, recurrent_layer, rms_norm, rotate, softmax, sums_of_squares, takes,
};

use crate::kernels::dropout::Dropout;
use burn::tensor::Tensor;

/// Parameters that Adam updates in one launch, where a kernel may name as many buffers.
pub const PARAMETERS_OF_LAUNCH: usize = 4;

/// What is done to scores beside the softmax.
#[derive(Clone, Copy, Debug)]
pub struct Softening {
    /// What scores are multiplied by first.
    pub scale: f32,
    /// What happens to the weights.
    pub dropout: Option<Dropout>,
}

/// The heads of attention.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Heads of queries; those of keys and of values are the rest, half and half.
    pub n_heads: usize,
    /// The width of a head.
    pub d_head: usize,
}

/// The tensors of a memory.
///
/// # Shapes
/// - packed: `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates
/// - rates: `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`
/// - decay: `[n_heads]`; norm: `[d_head]`; state: `[rows, n_heads, d_head, d_value]`
#[derive(Debug)]
pub struct Remembered<'a> {
    /// Of every position.
    pub packed: &'a Tensor<3>,
    /// What becomes of the memory there.
    pub rates: Option<&'a Tensor<3>>,
    /// The logarithm of how fast each head fades.
    pub decay: Option<&'a Tensor<1>>,
    /// The scale of the norm.
    pub norm: Option<&'a Tensor<1>>,
    /// The memory before the first position; zeros if there is none.
    pub state: Option<&'a Tensor<4>>,
}

/// The tensors of a recurrent layer.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d]`, the input's part
/// - recurrent: `[d, n_gates d]`
/// - start, start_memory: `[batch, d]`; the second of an LSTM
/// - candidate_bias: `[d]`, of a GRU
#[derive(Debug)]
pub struct Recurrent<'a> {
    /// The input's part of the gates.
    pub gates: &'a Tensor<3>,
    /// Makes the state's part.
    pub recurrent: &'a Tensor<2>,
    /// The states before the first step.
    pub start: &'a Tensor<2>,
    /// The memories of an LSTM before the first step.
    pub start_memory: Option<&'a Tensor<2>>,
    /// Of a GRU.
    pub candidate_bias: Option<&'a Tensor<1>>,
}

/// What a recurrent layer makes.
///
/// # Shapes
/// - states: `[batch, len, d]`
/// - last, last_memory: `[batch, d]`
#[derive(Debug)]
pub struct Unrolled {
    /// The states at every step, zero on padding.
    pub states: Tensor<3>,
    /// The last real states.
    pub last: Tensor<2>,
    /// The last real memories of an LSTM.
    pub last_memory: Option<Tensor<2>>,
}
