//! Layers that compute in one pass over memory what the others spell out in burn's operations.
//!
//! On a CPU the arithmetic of a training update is not what takes the time: burn's elementwise operations run on one core,
//! each through memory of its own, and every reshaped or transposed operand of a product is copied. The operations here are
//! functions on slices, each with its own backward pass, that take part in burn's graph through one door (`function.rs`).
//! They run where tensors lie in this process's memory, on every core, in training, decoding and scoring; elsewhere, and with
//! `training.fused = false`, a layer does the same in burn's operations. Both give the same numbers, up to rounding: that is
//! what the tests compare.
//!
//! | operation | what it saves |
//! | --- | --- |
//! | [`linear`] | the second pass of the bias, copies of transposed operands |
//! | [`attention`] | splitting, turning and merging heads; the matrix of weights, in both passes |
//! | [`feed_forward`] | four passes between the products; the mask |
//! | [`embedding`] | scaling; clearing the table's gradient on one core |
//! | [`deep_output`] | putting its inputs side by side; all passes but one between product and dropout |
//! | [`add_dropped`], [`dropout`] | the mask |
//! | [`cross_entropy`] | all passes over the logits but two |
//! | [`projected_cross_entropy`] | a second copy of the logits; the logits of padding, a third of a batch of short sentences |
//! | [`recurrent_layer`], [`attentive_layer`] | a graph of some thirty operations at every step |
//! | [`linear_recurrence`] | some thirty passes for gates and scan |
//! | [`cell_step`], [`contexts`] | some twenty operations in a step of decoding |
//! | [`inverse`] | cutting and joining halves at every level |
//! | [`layer_norm`], [`rotate`] | all passes but one |
//! | [`step_attention`] | copies of all keys and values at every step of decoding |
//! | [`Int8Weights`] | three of four bytes of each weight, in decoding |

mod activation;
mod alignment;
mod attention;
mod cache;
mod cell;
mod cross_entropy;
mod deep_output;
mod embedding;
mod feed_forward;
mod int8;
mod integer;
mod matrix;
mod one_query;
mod one_row;
mod packed;
mod panel;
mod pieces;
// burn 0.22 deprecates `ndarray`; this project promises it for as long as burn has it.
#[allow(deprecated)]
mod function;
mod linear;
mod linear_recurrence;
mod product;
mod quads;
mod recurrent_step;
mod residual;
mod rotation;
mod sequence;
mod simd;
mod triangle;

pub use alignment::AlignmentScore;
pub use attention::{Heads, Projected, attention};
pub use cache::{GrowingCache, step_attention};
pub use cross_entropy::{RowLoss, cross_entropy, projected_cross_entropy};
pub use deep_output::deep_output;
pub use embedding::embedding;
pub use feed_forward::feed_forward;
pub use int8::{Int8Matrix, Int8Weights};
pub use linear::{linear, linear_layer, linear_parameter, similarity};
pub use linear_recurrence::linear_recurrence;
pub use packed::PackedWeights;
pub(crate) use packed::Slot;
pub(crate) use pieces::task_rows;
pub use recurrent_step::{cell_step, contexts};
pub use residual::{add_dropped, dropout, layer_norm};
pub use rotation::rotate;
pub use sequence::{CellParameters, Placement, Reading, StepAttention, attentive_layer, recurrent_layer};
pub use simd::Dropout;
pub(crate) use simd::{highest, log_sum_exp, vectorized};
pub use triangle::inverse;
