//! Going on with a text, token by token.

use super::sampling::pick;
use super::{LogProbabilities, SamplingConfig};
use crate::data::batch::Padded;
use crate::data::{EOS, Tokenizer};
use crate::layers::{Pass, indices};
use crate::models::{Autoregressive, Seq2Seq};
use crate::ops::PreparedWeights;
use crate::pool::in_pool;
use crate::random::{Purpose, Stream};
use std::sync::Arc;

/// A token that follows a text.
#[derive(Clone, Debug, PartialEq)]
pub struct NextToken {
    /// Which.
    pub id: u32,
    /// The logarithm of its probability by the model, before temperature, top-k and top-p, in nats.
    pub log_probability: f64,
    /// The likeliest tokens with their logarithms, best first: as many as were asked for.
    pub likeliest: Vec<(u32, f64)>,
}

/// What a language model writes after a prompt: an iterator that never ends.
///
/// The prompt is read at once, and every token once. Where the model can look back `context` tokens only and as many have been
/// read, it reads the last half of them again as if the text began there, and goes on.
pub struct Continuation<'a, M: Autoregressive> {
    model: &'a M,
    context: Option<usize>,
    sampling: Option<SamplingConfig>,
    stream: Stream,
    weights: Arc<PreparedWeights>,
    /// The text from the last beginning on.
    text: Vec<u32>,
    memory: M::Memory,
    /// What has been read: all of `text` but its last token.
    state: Option<M::State>,
    n_written: u64,
    n_likeliest: usize,
}

impl<'a, M: Seq2Seq> Continuation<'a, M> {
    /// After `prompt`, drawn with `sampling` by numbers of `seed`, or the likeliest token each time. Of a prompt longer than
    /// `context` tokens the end is read.
    ///
    /// # Panics
    /// If the prompt has no token, or `context` is less than two.
    pub fn new(
        model: &'a M,
        prompt: &[u32],
        context: Option<usize>,
        sampling: Option<&SamplingConfig>,
        seed: u64,
    ) -> Self {
        let nothing = Padded::new(&[Vec::new()], 0, &model.device());
        let memory = model.encode(&nothing, &mut Pass::inference().fused(true));
        Self::with_memory(model, memory, prompt, context, sampling, seed)
    }
}

impl<'a, M: Autoregressive> Continuation<'a, M> {
    /// As [`Self::new`], of a model that goes on from `memory`, which is that of one sentence; `()` where there is none.
    ///
    /// # Panics
    /// As [`Self::new`].
    pub fn with_memory(
        model: &'a M,
        memory: M::Memory,
        prompt: &[u32],
        context: Option<usize>,
        sampling: Option<&SamplingConfig>,
        seed: u64,
    ) -> Self {
        assert!(!prompt.is_empty(), "something follows something");
        assert!(context.is_none_or(|context| context >= 2), "a context holds a token and the one after it");
        let text = context.map_or(prompt, |context| &prompt[prompt.len().saturating_sub(context)..]).to_vec();
        let state = read(model, &memory, &text);
        Self {
            model,
            context,
            sampling: sampling.cloned(),
            stream: Stream::new(seed, Purpose::Sampling, &[]),
            weights: model.prepared().unwrap_or_default(),
            text,
            memory,
            state: Some(state),
            n_written: 0,
            n_likeliest: 0,
        }
    }

    /// The same, which tells the `n` likeliest tokens beside each that it writes.
    pub fn telling(self, n: usize) -> Self {
        Self { n_likeliest: n, ..self }
    }

    /// The tokens up to the end of a line, at most `max_tokens`, and no more than there is room for with all of the text in sight.
    pub fn line(self, tokenizer: &Tokenizer, max_tokens: usize) -> Vec<u32> {
        let room = self.context.map_or(usize::MAX, |context| (context + 1).saturating_sub(self.text.len()));
        let mut line = Vec::new();
        for next in self.take(max_tokens.min(room)) {
            line.push(next.id);
            if line_ends(next.id, tokenizer) > 0 {
                break;
            }
        }
        line
    }
}

/// How many lines a token of a text ends: one that holds bytes may end several.
pub fn line_ends(id: u32, tokenizer: &Tokenizer) -> usize {
    if id == EOS {
        return 1;
    }
    if tokenizer.has_lines() { tokenizer.decode(&[id]).matches('\n').count() } else { 0 }
}

/// The state after all of `text` but its last token.
fn read<M: Autoregressive>(model: &M, memory: &M::Memory, text: &[u32]) -> M::State {
    let device = model.device();
    in_pool(&device, || {
        let state = model.start(memory, 1);
        let (_, read) = text.split_last().expect("a text has a token");
        if read.is_empty() {
            return state;
        }
        let tokens = indices(read.iter().map(|id| *id as usize), &device).unsqueeze_dim(0);
        model.prefill(tokens, state, memory, 0, &mut Pass::inference().fused(true)).1
    })
}

impl<M: Autoregressive> Iterator for Continuation<'_, M> {
    type Item = NextToken;

    fn next(&mut self) -> Option<NextToken> {
        if let Some(context) = self.context.filter(|context| self.text.len() > *context) {
            self.text.drain(..self.text.len() - context / 2);
            self.state = Some(read(self.model, &self.memory, &self.text));
        }
        let device = self.model.device();
        let state = self.state.take().expect("a state is put back after each step");
        let last = *self.text.last().expect("a text has a token");
        let (probabilities, state) = in_pool(&device, || {
            let mut pass = Pass::step_of(&self.weights);
            let (logits, state) = self.model.step(indices([last as usize], &device), state, &self.memory, &mut pass);
            (LogProbabilities::new(logits), state)
        });
        self.state = Some(state);
        let id = match &self.sampling {
            Some(sampling) => pick(&probabilities, 0, sampling, self.stream.unit(self.n_written)),
            None => probabilities.likeliest(1)[0][0].0,
        };
        self.n_written += 1;
        self.text.push(id);
        let mut likeliest = Vec::new();
        if self.n_likeliest > 0 {
            let found = probabilities.likeliest(self.n_likeliest).swap_remove(0);
            likeliest.extend(found.into_iter().map(|(id, log_probability)| (id, log_probability as f64)));
        }
        Some(NextToken { id, log_probability: probabilities.of(0, id) as f64, likeliest })
    }
}
