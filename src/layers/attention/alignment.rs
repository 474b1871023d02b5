//! The alignment model of a recurrent decoder: a score and a window make weights, the weights make a context.

use super::local::{LocalWindow, WindowConfig};
use super::score::{Score, ScoreConfig};
use crate::layers::{Init, Mask, Pass};
use crate::ops::{self, Placement, StepAttention};
use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};

/// `a_t = softmax(score(s, h_i))` over the window, `c_t = sum_i a_ti h_i`.
///
/// Any [`Score`] goes with any window, and either placement uses the result:
/// [`BahdanauAttention`](super::BahdanauAttention) asks before the decoder's step,
/// [`LuongAttention`](super::LuongAttention) after it.
#[derive(Module, Debug)]
pub struct Alignment {
    score: Score,
    window: Option<LocalWindow>,
}

/// What attention needs of a source sentence, computed once.
///
/// # Shapes
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
/// - lengths: `[batch, 1, 1]`
#[derive(Clone, Debug)]
pub struct AttentionMemory {
    /// What is compared with the query.
    pub keys: Tensor<3>,
    /// What is averaged.
    pub values: Tensor<3>,
    /// Hides padding.
    pub mask: Mask,
    /// The number of real tokens of each source.
    pub lengths: Tensor<3>,
}

impl AttentionMemory {
    /// The memory of the sentences `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            keys: self.keys.clone().select(0, rows.clone()),
            values: self.values.clone().select(0, rows.clone()),
            mask: self.mask.select(rows),
            lengths: self.lengths.clone().select(0, rows.clone()),
        }
    }

    /// Leaves keys and values in the trace.
    pub fn record(&self, pass: &mut Pass) {
        pass.scoped("attention", |pass| {
            pass.record("keys", || self.keys.clone());
            pass.record("values", || self.values.clone());
        });
    }

    /// Softmax over the real positions of the source.
    ///
    /// # Shapes
    /// - scores, output: `[batch, query_len, source_len]`
    pub fn softmax(&self, scores: Tensor<3>) -> Tensor<3> {
        self.mask.softmax(scores.unsqueeze_dim(1)).squeeze_dim(1)
    }
}

impl Alignment {
    /// For decoder states of width `d_query` and encoder states of width `d_value`.
    pub fn new(score: &ScoreConfig, window: &WindowConfig, d_query: usize, d_value: usize, init: &Init) -> Self {
        Self { score: score.init(d_query, d_value, init), window: window.init(d_query, init) }
    }

    /// Does the source-side work that is the same at every step.
    ///
    /// # Shapes
    /// - values: `[batch, source_len, d_value]`
    pub fn prepare(&self, values: Tensor<3>, lengths: &[usize], pass: &Pass) -> AttentionMemory {
        let [batch, source_len, _] = values.dims();
        let device = values.device();
        let mask = Mask::padding(lengths, source_len, &device);
        let lengths: Vec<f32> = lengths.iter().map(|length| *length as f32).collect();
        let lengths = Tensor::from_data(TensorData::new(lengths, [batch, 1, 1]), &device);
        AttentionMemory { keys: self.score.keys(values.clone(), pass), values, mask, lengths }
    }

    /// This alignment inside a recurrence that is one operation, where there is one for its score and window.
    pub(super) fn in_recurrence(
        &self,
        d_query: usize,
        placement: Placement,
        memory: &AttentionMemory,
    ) -> Option<StepAttention> {
        let (score, network) = self.score.comparison(d_query).filter(|_| self.window.is_none())?;
        Some(StepAttention {
            keys: memory.keys.clone(),
            values: memory.values.clone(),
            lengths: memory.mask.lengths(),
            score,
            network,
            placement,
        })
    }

    /// The contexts as one operation, where there is one for this score and window.
    fn contexts(&self, query: &Tensor<3>, memory: &AttentionMemory, pass: &Pass) -> Option<Tensor<3>> {
        if self.window.is_some() {
            return None;
        }
        let (score, query, vector) = self.score.projected_query(query.clone(), pass)?;
        let (keys, values) = (memory.keys.clone(), memory.values.clone());
        Some(ops::contexts(score, query, keys, values, vector, &memory.mask, pass.body()))
    }

    /// The context of each query.
    ///
    /// # Shapes
    /// - query: `[batch, query_len, d_query]`; the queries of a sentence are its beams at one step, or its steps
    /// - steps: the step of each query, counted from zero, or one step for all
    /// - output: `[batch, query_len, d_value]`
    pub fn forward(&self, query: Tensor<3>, steps: &[usize], memory: &AttentionMemory, pass: &mut Pass) -> Tensor<3> {
        let at_once = self.contexts(&query, memory, pass);
        if let Some(contexts) = at_once.clone().filter(|_| !pass.is_traced()) {
            return contexts;
        }
        // A trace has the weights computed beside the contexts, so that looking does not change what is seen.
        pass.record("query", || query.clone());
        let scores = self.score.forward(query.clone(), memory.keys.clone());
        pass.record("scores", || scores.clone());
        let weights = match &self.window {
            None => memory.softmax(scores),
            Some(window) => window.weights(scores, query, steps, memory, pass),
        };
        pass.record("weights", || weights.clone());
        let context = at_once.unwrap_or_else(|| weights.matmul(memory.values.clone()));
        pass.record("context", || context.clone());
        context
    }
}
