//! Arithmetic on slices, on all cores, in the widest instructions of the machine. Nothing here knows a tensor.
//!
//! | module | what it computes |
//! | --- | --- |
//! | [`machine`] | nothing: which instructions and cores are in use |
//! | [`memory`] | new vectors, each piece written first by the core that goes on to use it |
//! | [`matrix`] | nothing: matrices inside slices, with strides |
//! | [`functions`], [`vectors`] | functions of one number; sums, maxima and updates of vectors |
//! | [`random`] | randomness as a function of counters |
//! | [`dropout`] | decisions of dropout, from counters |
//! | [`product`] | products of matrices: by `gemm`, for one row, in panels, in 8 bits |
//! | [`attention`], [`one_query`] | scaled dot-product attention in blocks, and for one query |
//! | [`alignment`], [`cell`] | one step of a recurrent decoder's attention, and of a recurrent cell |
//! | [`recurrence`] | all steps of a recurrent layer, with attention between them |
//! | [`matrix_memory`] | all steps of a memory that is a matrix: linear attention, the delta rule, both gated |
//! | [`activation`] | activations of feed-forward networks |

pub mod activation;
pub mod alignment;
pub mod attention;
pub mod cell;
pub mod dropout;
pub mod functions;
pub mod machine;
pub mod matrix;
pub mod matrix_memory;
pub mod memory;
pub mod one_query;
pub mod product;
pub mod random;
pub mod recurrence;
pub mod vectors;
