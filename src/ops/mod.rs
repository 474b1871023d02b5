//! Operations: each with a forward and a backward pass on slices, and the same in burn's operations.
//!
//! On a CPU the arithmetic of a training update is not what takes the time: burn's elementwise operations run on one core,
//! each through memory of its own, and every reshaped or transposed operand of a product is copied. The operations here run on slices
//! where their tensors lie in this process's memory, on every core, in training, decoding and scoring. On a GPU the host's launches are what
//! takes the time: there, some of them have kernels of ours ([`backend::gpu`](crate::backend::gpu)), and the others are made of burn's
//! operations, as all are with `training.fused = false` and where a trace is wanted. Layers call them without asking which:
//! [`run`](operation::run) chooses. All forms give the same numbers, up to rounding; one test compares them for every operation.
//!
//! An operation is a struct of what is not a tensor, with named inputs and outputs ([`named`](mod@named)), and says what its backward pass
//! reads of them ([`Operation`](operation::Operation)); `bridge` makes it a node of burn's graph. The arithmetic is in
//! [`kernels`](crate::kernels).
//!
//! | operation | what it saves on slices |
//! | --- | --- |
//! | [`linear()`] | the second pass of the bias, copies of transposed operands; in decoding, the matrix as it is prepared |
//! | [`attention()`] | splitting, turning and merging heads; the matrix of weights, in both passes |
//! | [`feed_forward()`] | four passes between the products; the mask |
//! | [`embedding()`] | scaling; clearing the table's gradient on one core |
//! | [`deep_output()`] | putting its inputs side by side; all passes but one between product and dropout |
//! | [`add_dropped`], [`dropout`] | the mask; inputs that the backward pass does not read |
//! | [`cross_entropy()`] | all passes over the logits but two |
//! | [`projected_cross_entropy`] | a second copy of the logits; the logits of padding, a third of a batch of short sentences |
//! | [`recurrent_layer`], [`attentive_layer`] | a graph of some thirty operations at every step |
//! | [`linear_recurrence()`] | some thirty passes for gates and scan |
//! | [`convolution()`] | a copy, a product and a sum for each distance |
//! | [`cell_step()`], [`contexts()`] | some twenty operations in a step of decoding |
//! | [`matrix_memory()`] | cutting and turning heads, chunks, and all that the backward pass would keep of them |
//! | [`layer_norm`], [`rms_norm`], [`rotate`] | all passes but one |
//! | [`step_attention`] | copies of all keys and values at every step of decoding |

mod activation;
pub mod attention;
// burn 0.22 deprecates `ndarray`; this project promises it for as long as burn has it.
#[allow(deprecated)]
mod bridge;
mod cell_step;
mod chunks;
mod contexts;
mod convolution;
mod cross_entropy;
mod deep_output;
mod embedding;
mod feed_forward;
mod key_value_cache;
mod linear;
mod linear_recurrence;
pub mod mask;
mod matrix_memory;
pub mod named;
mod norm;
pub mod operation;
mod recurrence;
mod residual;
mod rotation;
pub mod scan;
pub mod steps;
mod weights;
mod written_memory;

pub use activation::written_activation;
pub use attention::{HeadSizes, Projected, attention};
pub use cell_step::cell_step;
pub use chunks::chunk_of;
pub use contexts::{alignment_network, contexts};
pub use convolution::convolution;
pub use cross_entropy::{RowLosses, Rows, Targets, cross_entropy, projected_cross_entropy};
pub use deep_output::deep_output;
pub use embedding::embedding;
pub use feed_forward::feed_forward;
pub use key_value_cache::{KeyValueCache, step_attention};
pub use linear::{Weight, linear};
pub use linear_recurrence::linear_recurrence;
pub use mask::HIDDEN;
pub use matrix_memory::matrix_memory;
pub use norm::{layer_norm, norm_of_sum, norm_with_sum, rms_norm};
pub use operation::Body;
pub use recurrence::{CellParameters, Placement, StepAttention, attentive_layer, recurrent_layer};
pub use residual::{add_dropped, dropout};
pub use rotation::rotate;
pub use weights::{PreparedWeight, PreparedWeights};
pub use written_memory::MemoryParameters;
