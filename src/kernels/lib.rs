//! Arithmetic on slices, on all cores, in the widest instructions of the machine. Nothing here knows a tensor.
//!
//! | module | what it computes |
//! | --- | --- |
//! | [`machine`] | nothing: which instructions and cores are in use |
//! | [`memory`] | new vectors, each piece written first by the core that goes on to use it |
//! | [`matrix`] | nothing: matrices inside slices, with strides |
//! | `functions`, [`vectors`], [`rows`] | functions of one number; sums, maxima and updates of vectors; sums of rows |
//! | [`random`] | randomness as a function of counters |
//! | [`dropout`] | decisions of dropout, from counters |
//! | [`product`] | products of matrices: by `gemm`, for one row, in panels, in 8 bits |
//! | [`attention`], [`one_query`] | scaled dot-product attention in blocks, and for one query |
//! | [`alignment`], [`cell`] | attention of a recurrent decoder, and a step of a recurrent cell |
//! | [`recurrence`] | all steps of a recurrent layer, with attention between them |
//! | [`matrix_memory`] | all steps of a memory that is a matrix: linear attention, the delta rule, both gated |
//! | [`linear_recurrence`], [`convolution`] | all steps of a recurrence without products, and what stands before it |
//! | [`activation`], [`maxout`] | activations of feed-forward networks, and of a recurrent decoder's output |
//! | [`embedding`], [`rotation`], [`norm`] | what stands around layers |
//! | [`cross_entropy`], [`adam`] | the loss with its gradient, and what is done with gradients |
//!
//! What is called from elsewhere is neither generic nor inlined: each loop is compiled here, once, together with all that it calls, and not
//! again with every caller, at the caller's level of optimization and in one of its many units.

pub mod activation;
pub mod adam;
pub mod alignment;
pub mod attention;
pub mod cell;
pub mod convolution;
pub mod cross_entropy;
pub mod dropout;
pub mod embedding;
mod functions;
pub mod linear_recurrence;
pub mod machine;
pub mod matrix;
pub mod matrix_memory;
pub mod maxout;
pub mod memory;
pub mod norm;
pub mod one_query;
pub mod product;
pub mod random;
pub mod recurrence;
pub mod rotation;
pub mod rows;
pub mod vectors;
