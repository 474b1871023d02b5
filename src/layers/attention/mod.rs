//! Attention: a weighted mean of what was read, with weights that depend on what is asked.
//!
//! Two families live here.
//!
//! * For recurrent decoders, one query at a time: a *score* compares the decoder state with every encoder state, a softmax
//!   turns the scores into weights, the weighted sum is the context. [`Attention`] is the enum of such mechanisms; a new one
//!   is a file beside [`bahdanau`], a variant of [`AttentionConfig`] and one of [`Attention`].
//! * For Transformers, all queries at once: [`scaled_dot_product`] and, in several heads, [`multi_head`].

pub mod bahdanau;
pub mod multi_head;
pub mod scaled_dot_product;

pub use bahdanau::BahdanauAttention;
pub use multi_head::{CrossAttention, SelfAttention};

use super::{Init, Mask, Pass};
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a mechanism for a recurrent decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttentionConfig {
    /// No attention: one fixed vector carries the whole source.
    None,
    /// Additive attention between decoder steps (Bahdanau 2015).
    Bahdanau {
        /// Width of the alignment network.
        d_attention: usize,
    },
}

/// A mechanism for a recurrent decoder.
#[derive(Module, Debug)]
pub enum Attention {
    /// Additive attention between decoder steps.
    Bahdanau(BahdanauAttention),
}

/// What attention needs of a source sentence, computed once.
///
/// # Shapes
/// - keys: `[batch, source_len, d_attention]`
/// - values: `[batch, source_len, d_value]`
#[derive(Clone, Debug)]
pub struct AttentionMemory {
    /// What is compared with the query.
    pub keys: Tensor<3>,
    /// What is averaged.
    pub values: Tensor<3>,
    /// Hides padding.
    pub mask: Mask,
}

impl AttentionMemory {
    /// Leaves keys and values in the trace.
    pub fn record(&self, pass: &mut Pass) {
        pass.scoped("attention", |pass| {
            pass.record("keys", || self.keys.clone());
            pass.record("values", || self.values.clone());
        });
    }

    /// The memory of the sentences `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            keys: self.keys.clone().select(0, rows.clone()),
            values: self.values.clone().select(0, rows.clone()),
            mask: self.mask.select(rows),
        }
    }

    /// Averages the values with weights made from `scores`.
    ///
    /// # Shapes
    /// - scores: `[batch, beams, source_len]`
    /// - output: `[batch * beams, d_value]`
    pub fn average(&self, scores: Tensor<3>, pass: &mut Pass) -> Tensor<2> {
        let [batch, beams, _] = scores.dims();
        pass.record("scores", || scores.clone());
        let weights = self.mask.softmax(scores.unsqueeze_dim(1)).squeeze_dim::<3>(1);
        pass.record("weights", || weights.clone());
        let context = weights.matmul(self.values.clone());
        let d_value = context.dims()[2];
        let context = context.reshape([batch * beams, d_value]);
        pass.record("context", || context.clone());
        context
    }
}

impl AttentionConfig {
    /// Makes the layer for decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn init(&self, d_query: usize, d_value: usize, init: &Init) -> Option<Attention> {
        match self {
            Self::None => None,
            Self::Bahdanau { d_attention } => {
                Some(Attention::Bahdanau(BahdanauAttention::new(d_query, d_value, *d_attention, init)))
            }
        }
    }
}

impl Attention {
    /// Does the source-side work that is the same at every step.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    pub fn prepare(&self, values: Tensor<3>, mask: Mask) -> AttentionMemory {
        match self {
            Self::Bahdanau(attention) => attention.prepare(values, mask),
        }
    }

    /// The context of each row of `query`; `query` has the same number of rows for every sentence of `memory`.
    ///
    /// # Shapes
    /// - query: `[batch * beams, d_query]`
    /// - output: `[batch * beams, d_value]`
    pub fn forward(&self, query: Tensor<2>, memory: &AttentionMemory, pass: &mut Pass) -> Tensor<2> {
        pass.scoped("attention", |pass| {
            pass.record("query", || query.clone());
            match self {
                Self::Bahdanau(attention) => attention.forward(query, memory, pass),
            }
        })
    }
}
