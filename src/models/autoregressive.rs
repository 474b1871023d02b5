//! The seam: what writes token by token, and what reads a source before.

use crate::data::batch::Padded;
use crate::layers::Pass;
use crate::layers::attention::AttentionMemory;
use crate::ops::PreparedWeights;
use burn::tensor::{Device, Int, Tensor};
use std::sync::Arc;

/// Something with one row per hypothesis or sentence; nothing has as many as are asked for.
pub trait Rows: Sized {
    /// The rows `rows`, in that order: reorders, repeats and drops.
    fn select(&self, rows: &Tensor<1, Int>) -> Self;
}

impl Rows for () {
    fn select(&self, _rows: &Tensor<1, Int>) -> Self {}
}

/// The first axis is that of the rows.
impl<const D: usize> Rows for Tensor<D> {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        self.clone().select(0, rows.clone())
    }
}

impl Rows for AttentionMemory {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        self.select(rows)
    }
}

/// A model that writes token by token: what a search, a sampler and a language model need.
///
/// Hypotheses are rows. Every sentence of a memory has the same number of them, one after the other, so that row `r` belongs
/// to sentence `r / n_beams`: the beams of a sentence share its memory, which is never repeated. A model that reads nothing but
/// what it writes has `()` for its memory.
pub trait Autoregressive: Sync {
    /// What it goes on from: what an encoder has made of the sources.
    type Memory: Rows + Send + Sync;
    /// What it carries from step to step.
    type State: Rows + Send;

    /// The state before the first target token, with `n_beams` rows for each sentence.
    fn start(&self, memory: &Self::Memory, n_beams: usize) -> Self::State;

    /// One step: the logits of the token that follows `previous`.
    ///
    /// # Shapes
    /// - previous: `[rows]`
    /// - logits: `[rows, vocab_size]`
    fn step(
        &self,
        previous: Tensor<1, Int>,
        state: Self::State,
        memory: &Self::Memory,
        pass: &mut Pass,
    ) -> (Tensor<2>, Self::State);

    /// Many steps whose tokens are known, at once where the model can. The logits are those after the last `n_scored` tokens;
    /// nothing if none are wanted.
    ///
    /// # Shapes
    /// - tokens: `[rows, len]`
    /// - logits: `[rows, n_scored, vocab_size]`
    fn prefill(
        &self,
        tokens: Tensor<2, Int>,
        state: Self::State,
        memory: &Self::Memory,
        n_scored: usize,
        pass: &mut Pass,
    ) -> (Option<Tensor<3>>, Self::State) {
        prefill_by_steps(self, tokens, state, memory, n_scored, pass)
    }

    /// The longest source and target that the model can take.
    fn limits(&self) -> LengthLimits {
        LengthLimits::default()
    }

    /// The matrices of its steps in the form that is read fastest, where the model keeps them; a search makes its own for a model that
    /// does not.
    fn prepared(&self) -> Option<Arc<PreparedWeights>> {
        None
    }

    /// How many words the answer to a source of so many tokens has, of a model that does not learn where an answer ends.
    fn fixed_len(&self, _source_len: usize) -> Option<usize> {
        None
    }

    /// How many words every answer to a source of so many tokens has, of a model whose answers have a length that the source decides;
    /// the end of an answer is none of them.
    fn answer_len(&self, source_len: usize) -> Option<usize> {
        self.fixed_len(source_len)
    }

    /// Where the model's parameters are.
    fn device(&self) -> Device;
}

/// A model that reads a source, and writes a target for it.
pub trait Seq2Seq: Autoregressive {
    /// Reads the sources.
    fn encode(&self, source: &Padded, pass: &mut Pass) -> Self::Memory;

    /// Whether a token of the source sees itself and those before it alone.
    fn has_causal_encoder(&self) -> bool {
        false
    }

    /// The logits of every target position when the decoder is given the true target (teacher forcing).
    ///
    /// # Shapes
    /// - logits: `[batch, target_len, vocab_size]`
    fn forward(&self, source: &Padded, target_input: &Padded, pass: &mut Pass) -> Tensor<3>;
}

/// [`Autoregressive::prefill`] for every model: a step for each token.
pub(crate) fn prefill_by_steps<M: Autoregressive + ?Sized>(
    model: &M,
    tokens: Tensor<2, Int>,
    mut state: M::State,
    memory: &M::Memory,
    n_scored: usize,
    pass: &mut Pass,
) -> (Option<Tensor<3>>, M::State) {
    let [_, len] = tokens.dims();
    let mut scored = Vec::new();
    for i in 0..len {
        let previous = tokens.clone().narrow(1, i, 1).squeeze_dim(1);
        let (logits, next) = model.step(previous, state, memory, pass);
        state = next;
        if i + n_scored >= len {
            scored.push(logits.unsqueeze_dim(1));
        }
    }
    ((!scored.is_empty()).then(|| Tensor::cat(scored, 1)), state)
}

/// How long a sequence may be, and which key of the config says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthLimit {
    /// The most tokens, end symbol included.
    pub len: usize,
    /// The key that sets it.
    pub key: &'static str,
}

/// The limits of both sides; nothing where any length will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LengthLimits {
    /// Of the source.
    pub source: Option<LengthLimit>,
    /// Of the target.
    pub target: Option<LengthLimit>,
}
