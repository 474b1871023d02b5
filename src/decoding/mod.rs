//! Decoding: from a model's probabilities to sentences.
//!
//! Everything here knows the [`Seq2Seq`] trait and no model. Sentences are decoded in batches of similar length and come
//! back in the order in which they were given; an empty source never enters a model and gives an empty target.

mod answers;
mod beam;
mod config;
mod continuation;
mod greedy;
mod likeliest;
mod masked;
mod sampling;
mod score;
mod values;

pub use answers::{Choice, answers, fixed_answer};
pub use config::{DecodingConfig, EarlyStopping, MAX_SOURCE_LEN, SamplingConfig, StopRule, length_fault};
pub use continuation::{Continuation, NextToken, line_ends};
pub use masked::score_masked;
pub use score::{score_targets, score_text, score_tokens};
pub use values::predict_series;

use crate::data::batch::{Padded, plan_by_length};
use crate::data::tokenizer::{BOS, EOS, PAD};
use crate::kernels::memory::task_rows;
use crate::kernels::vectors::{highest, log_sum_exp};
use crate::layers::{Pass, indices};
use crate::models::{Rows, Seq2Seq};
use crate::ops::{HIDDEN, PreparedWeights};
use crate::pool::each_in_pool;
use crate::ranks::{Alone, Ranks, say};
use burn::tensor::{Tensor, TensorData};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A target sentence and what the model thinks of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hypothesis {
    /// The words, without start and end symbols.
    pub tokens: Vec<u32>,
    /// The sum of the log-probabilities of its words and of its end, in nats; where the source decides how many words there are, of each
    /// word among all but the end.
    pub log_probability: f64,
    /// What hypotheses are ranked by: `log_probability` over the length penalty.
    pub score: f64,
    /// Whether the model ended it; if not, it was cut at the length cap.
    pub is_complete: bool,
}

/// How many of `found` were cut at the length cap: their best hypothesis was not ended by the model.
pub fn count_cut(found: &[Vec<Hypothesis>]) -> usize {
    found.iter().filter(|hypotheses| hypotheses.first().is_some_and(|best| !best.is_complete)).count()
}

/// Something to decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The source, without the end symbol.
    pub source: Vec<u32>,
    /// Words that the target must begin with.
    pub prefix: Vec<u32>,
    /// What random draws depend on besides the seed; without it, the place among the requests.
    pub number: Option<u64>,
}

impl Request {
    /// A source whose target may begin with anything.
    pub fn new(source: Vec<u32>) -> Self {
        Self { source, prefix: Vec::new(), number: None }
    }
}

/// One sentence of a batch that is being decoded.
#[derive(Clone, Debug)]
struct Task {
    /// The place of the sentence among the requests.
    index: usize,
    /// What random draws depend on.
    number: u64,
    prefix: Vec<u32>,
    /// Most words of the target, its end included.
    cap: usize,
    /// How many words the target has, where the source decides it.
    len: Option<usize>,
}

/// The logits of some steps, with all words but the end left out of the running where a target has its length, and the end where it
/// has not. `rows` has the length of each row's target, where the source decides it, and the row's step.
///
/// # Shapes
/// - logits: `[rows, vocab_size]`
fn at_length(logits: Tensor<2>, rows: impl Iterator<Item = (Option<usize>, usize)>) -> Tensor<2> {
    let all: Vec<_> = rows.collect();
    if all.iter().all(|(len, _)| len.is_none()) {
        return logits;
    }
    let [rows, vocab_size] = logits.dims();
    let mut bias = vec![0.0; rows * vocab_size];
    for (row, (len, step)) in bias.chunks_exact_mut(vocab_size).zip(all) {
        match len {
            Some(len) if step < len => row[EOS as usize] = HIDDEN,
            Some(_) => {
                row.fill(HIDDEN);
                row[EOS as usize] = 0.0;
            }
            None => {}
        }
    }
    let bias = Tensor::from_data(TensorData::new(bias, [rows, vocab_size]), &logits.device());
    logits + bias
}

/// What `model` makes of the words that the targets of a batch begin with, which are as many in each: a row for each sentence.
/// `append` gets the sentence, the position, the word and its log-probability.
fn read_prefixes<M: Seq2Seq>(
    model: &M,
    memory: &M::Memory,
    tasks: &[Task],
    weights: &Arc<PreparedWeights>,
    mut append: impl FnMut(usize, usize, u32, f32),
) -> M::State {
    let state = model.start(memory, 1);
    let len = tasks[0].prefix.len();
    if len == 0 {
        return state;
    }
    let read = tasks.iter().flat_map(|task| std::iter::once(&BOS).chain(&task.prefix[..len - 1]));
    let tokens = indices(read.map(|id| *id as usize), &model.device()).reshape([tasks.len(), len]);
    let mut pass = Pass::step_of(weights);
    let (logits, state) = model.prefill(tokens, state, memory, len, &mut pass);
    let logits: Tensor<2> = logits.expect("all of them are wanted").flatten(0, 1);
    // What is given beyond the length of an answer is not what an answer has.
    let within = |task: &Task, i: usize| task.len.filter(|most| i < *most);
    let rows = tasks.iter().flat_map(|task| (0..len).map(move |i| (within(task, i), i)));
    let probabilities = LogProbabilities::new(at_length(logits, rows));
    for (row, task) in tasks.iter().enumerate() {
        for (i, word) in task.prefix.iter().enumerate() {
            append(row, i, *word, probabilities.of(row * len + i, *word));
        }
    }
    state
}

/// Decodes every request; the hypotheses of each are sorted, best first, at most `config.n_best` of them.
///
/// `seed` is that of sampling. `progress` is called with the number of finished sentences.
pub fn decode<M: Seq2Seq>(
    model: &M,
    requests: &[Request],
    config: &DecodingConfig,
    seed: u64,
    progress: impl FnMut(usize),
) -> Vec<Vec<Hypothesis>> {
    decode_among(model, requests, config, seed, &Alone, progress)
}

/// As [`decode`], with the batches shared out among `ranks`, all of which get all hypotheses. The batches are those of one process:
/// what a sentence becomes can depend on those beside it, in the last bits, and so must not depend on the number of ranks.
pub fn decode_among<M: Seq2Seq>(
    model: &M,
    requests: &[Request],
    config: &DecodingConfig,
    seed: u64,
    ranks: &dyn Ranks,
    mut progress: impl FnMut(usize),
) -> Vec<Vec<Hypothesis>> {
    let mut results: Vec<Vec<Hypothesis>> = vec![Vec::new(); requests.len()];
    let mut real = Vec::new();
    for (i, request) in requests.iter().enumerate() {
        if request.source.is_empty() {
            results[i] = vec![Hypothesis { tokens: Vec::new(), log_probability: 0.0, score: 0.0, is_complete: true }];
        } else {
            real.push(i);
        }
    }
    let mut n_finished = requests.len() - real.len();
    let device = model.device();
    let limit = model.limits().target.map(|limit| limit.len);
    let weights = model.prepared().unwrap_or_default();
    // Given words are read at once, so that targets of one batch begin with as many; each is then as it would be alone.
    let mut by_prefix: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for i in real {
        by_prefix.entry(requests[i].prefix.len()).or_default().push(i);
    }
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for same in by_prefix.into_values() {
        let lengths: Vec<(usize, usize)> = same.iter().map(|i| (requests[*i].source.len(), 0)).collect();
        for batch in plan_by_length(&lengths, config.batch_tokens) {
            let sentences = batch.chunks((config.batch_sentences / config.beam_size).max(1));
            parts.extend(sentences.map(|part| part.iter().map(|i| same[*i]).collect()));
        }
    }
    // The longest first, so that no thread is left with them when the others have ended.
    parts.reverse();
    let own: Vec<&Vec<usize>> = parts.iter().skip(ranks.rank()).step_by(ranks.size()).collect();
    let decode_part = |indices: &&Vec<usize>| {
        let source = Padded::sources(indices.iter().map(|i| &requests[*i].source), &device);
        let tasks: Vec<Task> = indices
            .iter()
            .map(|i| {
                let Request { source, prefix, number } = &requests[*i];
                let len = model.answer_len(source.len());
                let cap = len.map_or_else(|| config.cap(source.len(), limit), |len| len + 1).max(prefix.len() + 1);
                Task { index: *i, number: number.unwrap_or(*i as u64), prefix: prefix.clone(), cap, len }
            })
            .collect();
        let memory = model.encode(&source, &mut Pass::inference().fused(true));
        match &config.sampling {
            Some(sampling) => sampling::sample(model, memory, tasks, &weights, config, sampling, seed),
            None if config.beam_size == 1 => greedy::greedy(model, memory, tasks, &weights, config),
            None => beam::beam(model, memory, tasks, &weights, config),
        }
    };
    let mut decoded: Vec<(usize, Vec<Hypothesis>)> = Vec::new();
    each_in_pool(&device, &own, decode_part, |found| {
        n_finished += found.len();
        decoded.extend(found);
        progress(n_finished);
    });
    for (index, hypotheses) in say(ranks, decoded).into_iter().flatten() {
        results[index] = hypotheses;
    }
    results
}

/// Log-probabilities on the host, one row for each hypothesis.
struct LogProbabilities {
    /// Log-probabilities but for a number that is the same for all words of a row.
    logits: Vec<f32>,
    /// That number.
    log_sums: Vec<f32>,
    vocab_size: usize,
}

/// Padding and the start symbol, which never follow, stand before all other words.
const FIRST_WORD: usize = BOS as usize + 1;
const _: () = assert!(PAD < BOS);

impl LogProbabilities {
    /// # Shapes
    /// - logits: `[rows, vocab_size]`
    fn new(logits: Tensor<2>) -> Self {
        let vocab_size = logits.dims()[1];
        let logits = crate::models::weights::to_vec(logits);
        let rows = logits.par_chunks(vocab_size).with_min_len(task_rows(vocab_size));
        let log_sums = rows.map(log_sum_exp).collect();
        Self { logits, log_sums, vocab_size }
    }

    /// That of a word.
    fn of(&self, row: usize, word: u32) -> f32 {
        self.logits[row * self.vocab_size + word as usize] - self.log_sums[row]
    }

    /// The words that may follow, with their log-probabilities.
    fn candidates(&self, row: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        (FIRST_WORD as u32..self.vocab_size as u32).map(move |word| (word, self.of(row, word)))
    }

    /// For every row the `n` likeliest words that may follow, best first; of equals those with the lowest ids.
    fn likeliest(&self, n: usize) -> Vec<Vec<(u32, f32)>> {
        let rows = self.logits.par_chunks(self.vocab_size).zip(&self.log_sums);
        let best_of = |(row, log_sum): (&[f32], &f32)| {
            let best = highest(&row[FIRST_WORD..], n).into_iter();
            best.map(|(place, logit)| ((FIRST_WORD + place) as u32, logit - log_sum)).collect()
        };
        rows.with_min_len(task_rows(self.vocab_size)).map(best_of).collect()
    }
}

/// The sentences of a batch that are still being decoded, with one hypothesis each.
struct Open<'a, M: Seq2Seq> {
    weights: &'a Arc<PreparedWeights>,
    tasks: Vec<Task>,
    memory: M::Memory,
    state: Option<M::State>,
    hypotheses: Vec<Hypothesis>,
    previous: Vec<u32>,
}

impl<'a, M: Seq2Seq> Open<'a, M> {
    /// With what the targets begin with read; besides, how many words that is.
    fn new(
        model: &M,
        memory: M::Memory,
        tasks: Vec<Task>,
        weights: &'a Arc<PreparedWeights>,
        config: &DecodingConfig,
    ) -> (Self, usize) {
        let mut hypotheses = vec![Hypothesis::default(); tasks.len()];
        let state = read_prefixes(model, &memory, &tasks, weights, |row, step, word, log_probability| {
            hypotheses[row].append(word, log_probability, step, config);
        });
        let previous = tasks.iter().map(|task| task.prefix.last().copied().unwrap_or(BOS)).collect();
        let len = tasks[0].prefix.len();
        (Self { weights, state: Some(state), hypotheses, previous, memory, tasks }, len)
    }

    /// The logits after step `step` for every open sentence: `[rows, vocab_size]`.
    fn step(&mut self, model: &M, step: usize) -> Tensor<2> {
        let previous = indices(self.previous.iter().map(|id| *id as usize), &model.device());
        let state = self.state.take().expect("a state is put back after each step");
        let mut pass = Pass::step_of(self.weights);
        let (logits, state) = model.step(previous, state, &self.memory, &mut pass);
        self.state = Some(state);
        at_length(logits, self.tasks.iter().map(|task| (task.len, step)))
    }

    /// Takes the finished sentences out; rows are compacted, so that their work is not done in vain.
    fn close(&mut self, finished: &[bool], model: &M, results: &mut Vec<(usize, Hypothesis)>) {
        if !finished.contains(&true) {
            return;
        }
        let kept: Vec<usize> = (0..finished.len()).filter(|row| !finished[*row]).collect();
        for row in (0..finished.len()).filter(|row| finished[*row]) {
            results.push((self.tasks[row].index, self.hypotheses[row].clone()));
        }
        self.tasks = kept.iter().map(|row| self.tasks[*row].clone()).collect();
        self.hypotheses = kept.iter().map(|row| self.hypotheses[*row].clone()).collect();
        self.previous = kept.iter().map(|row| self.previous[*row]).collect();
        if kept.is_empty() {
            return;
        }
        let rows = indices(kept, &model.device());
        self.memory = self.memory.select(&rows);
        self.state = self.state.take().map(|state| state.select(&rows));
    }
}
