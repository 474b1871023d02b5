//! No positions.

use burn::module::Module;

/// Nothing.
///
/// An encoder without positions sees a bag of words: whatever the order of its input, each word gets the same annotation. A
/// decoder still sees order, since the causal mask lets each position count its predecessors.
///
/// # Reference
/// Vaswani et al. 2017, section 3.5, says why positions are needed; Haviv et al., Transformer Language Models without
/// Positional Encodings Still Learn Positional Information, 2022, why decoders may do without.
#[derive(Module, Debug)]
pub struct NoPositions;
