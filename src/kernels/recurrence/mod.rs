//! All steps of a recurrent layer, with attention between them or after them where the next step needs it.

mod backward;
mod forward;
#[cfg(test)]
mod tests;

use super::alignment::{self, AlignmentScore, Source};
use super::cell::{self, CellKind};
use super::machine::{Threads, vectorized};
use super::matrix::Matrix;
use super::memory::zeros;
use super::product::{Packed, new_product};
use super::rows::sum_of_rows;
use backward::Made;
use rayon::prelude::*;
use std::sync::Arc;

/// The most sentences that one task carries through all steps: a product of more rows is no faster for each.
const MOST_SENTENCES: usize = 16;

/// Sentences of one task: as many as let every core have some. Rows of a product do not depend on each other, so neither do the
/// numbers on how sentences are shared out.
fn sentences_of_task(batch: usize) -> usize {
    batch.div_ceil(rayon::current_num_threads()).clamp(1, MOST_SENTENCES)
}

/// Which steps a layer reads, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// From the last step to the first.
    pub is_backward: bool,
    /// Real steps of each sentence; a state stands still on the others, and its output there is zero.
    pub lengths: Option<Arc<[usize]>>,
}

impl Reading {
    /// The steps in the order of reading.
    pub fn steps(&self, len: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let is_backward = self.is_backward;
        (0..len).map(move |i| if is_backward { len - 1 - i } else { i })
    }

    /// The real steps of every sentence as numbers for a device; none where all of them have `len` steps.
    pub fn cut(&self, len: usize) -> Option<Vec<f32>> {
        let lengths = self.lengths.as_deref().filter(|lengths| lengths.iter().any(|length| *length < len))?;
        Some(lengths.iter().map(|length| *length as f32).collect())
    }

    /// The real steps of a sentence in the order of reading.
    pub fn steps_of(&self, sentence: usize, len: usize) -> impl DoubleEndedIterator<Item = usize> + use<> {
        self.steps(self.lengths.as_ref().map_or(len, |lengths| lengths[sentence].min(len)))
    }
}

/// A layer over whole sentences.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d]`, the input's part
/// - start, start_memory: `[batch, d]`
pub struct Recurrence<'a> {
    /// Which cell.
    pub kind: CellKind,
    /// Which steps it reads.
    pub reading: &'a Reading,
    /// The input's part of the gates.
    pub gates: &'a [f32],
    /// `[d, n_gates d]`.
    pub recurrent: Matrix<'a>,
    /// The states before the first step.
    pub start: &'a [f32],
    /// The memories of an LSTM before the first step, else empty.
    pub start_memory: &'a [f32],
    /// Of a GRU: `[d]`.
    pub candidate_bias: Option<&'a [f32]>,
    /// Attention that takes part in the recurrence.
    pub attention: Option<StepAttention<'a>>,
    /// Sentences.
    pub batch: usize,
    /// Steps.
    pub len: usize,
    /// The width of the state.
    pub d: usize,
}

/// Attention that takes part in the recurrence.
///
/// # Shapes
/// - keys: `[batch, source_len, d_key]`
/// - values: `[batch, source_len, d_value]`
pub struct StepAttention<'a> {
    /// How queries and keys are compared.
    pub score: AlignmentScore,
    /// Real positions of each source.
    pub lengths: Option<&'a [usize]>,
    /// What is compared with the queries.
    pub keys: &'a [f32],
    /// What is averaged.
    pub values: &'a [f32],
    /// Projects the state to a query, `[d, d_key]`, and the network's last layer, `[d_key]`.
    pub network: Option<(Matrix<'a>, &'a [f32])>,
    /// What enters the gates, before the step: the context, `[d_value, n_gates d]`. After it: the attentional vector of the step before,
    /// `[d, n_gates d]`.
    pub fed: Matrix<'a>,
    /// After the step: what makes the attentional vector of context and state, `[d_value + d, d]` and `[d]`.
    pub attentional: Option<(Matrix<'a>, &'a [f32])>,
    /// Positions of a source.
    pub source_len: usize,
    /// The width of keys.
    pub d_key: usize,
    /// The width of values.
    pub d_value: usize,
}

/// What a layer makes.
pub struct States {
    /// The state, or the attentional vector, at every step: `[batch, len, d]`, zero on padding.
    pub states: Vec<f32>,
    /// The contexts: `[batch, len, d_value]`, or empty.
    pub contexts: Vec<f32>,
    /// The last real state: `[batch, d]`.
    pub last: Vec<f32>,
    /// The last real memory of an LSTM: `[batch, d]`, or empty.
    pub last_memory: Vec<f32>,
}

/// What the backward pass needs of every step beside them.
pub struct Kept {
    /// The state before: `[batch, len, d]`.
    previous: Vec<f32>,
    /// What the cell keeps.
    cells: Vec<f32>,
    /// Attention weights: `[batch, len, source_len]`.
    weights: Vec<f32>,
    /// `[batch, len, d_key]`.
    queries: Vec<f32>,
    /// Where attention stands after the step, context, state and the vector of the step before, side by side.
    fed: Vec<f32>,
}

/// What the backward pass starts from.
pub struct Incoming<'a> {
    /// The gradients of the states.
    pub states: &'a [f32],
    /// The gradients of the contexts, or empty.
    pub contexts: &'a [f32],
    /// The gradient of the last state.
    pub last: &'a [f32],
    /// The gradient of the last memory, or empty.
    pub last_memory: &'a [f32],
    /// The states that the forward pass has made.
    pub made_states: &'a [f32],
    /// The contexts that it has made, or empty.
    pub made_contexts: &'a [f32],
}

/// The gradients of all inputs; empty or none for those that are not there.
#[derive(Default)]
pub struct Gradients {
    /// Of the input's part of the gates.
    pub gates: Vec<f32>,
    /// Of the recurrent matrix.
    pub recurrent: Vec<f32>,
    /// Of the states before the first step.
    pub start: Vec<f32>,
    /// Of the memories before the first step.
    pub start_memory: Vec<f32>,
    /// Of the GRU's bias.
    pub candidate_bias: Vec<f32>,
    /// Of the keys.
    pub keys: Vec<f32>,
    /// Of the values.
    pub values: Vec<f32>,
    /// Of the query's projection.
    pub query: Vec<f32>,
    /// Of the network's last layer.
    pub vector: Vec<f32>,
    /// Of what feeds the gates.
    pub fed: Vec<f32>,
    /// Of what makes the attentional vector.
    pub attentional: Vec<f32>,
    /// Of its bias.
    pub attentional_bias: Vec<f32>,
}

/// What every step reads and no step changes: the matrices that it multiplies with, in panels.
struct Matrices {
    recurrent: Packed,
    query: Option<Packed>,
    fed: Option<Packed>,
    attentional: Option<Packed>,
    /// [`powers`](alignment::powers) of all sentences' keys.
    powers: Vec<f32>,
}

impl Matrices {
    /// Those of the forward pass.
    fn new(layer: &Recurrence) -> Self {
        Self::turned_by(layer, |matrix| matrix)
    }

    /// Those of the backward pass: the same the other way round.
    fn transposed(layer: &Recurrence) -> Self {
        Self::turned_by(layer, |matrix| matrix.transposed())
    }

    fn turned_by(layer: &Recurrence, turn: impl for<'a> Fn(Matrix<'a>) -> Matrix<'a>) -> Self {
        let packed = |matrix: Matrix| Packed::new(turn(matrix));
        let attention = layer.attention.as_ref();
        Self {
            recurrent: packed(layer.recurrent),
            query: attention.and_then(|attention| attention.network).map(|(matrix, _)| packed(matrix)),
            fed: attention.map(|attention| packed(attention.fed)),
            attentional: attention.and_then(|attention| attention.attentional).map(|(matrix, _)| packed(matrix)),
            powers: attention.map(|attention| alignment::powers(attention.score, attention.keys)).unwrap_or_default(),
        }
    }
}

impl Recurrence<'_> {
    fn n_gates(&self) -> usize {
        self.kind.n_gates()
    }

    fn d_value(&self) -> usize {
        self.attention.as_ref().map_or(0, |attention| attention.d_value)
    }

    /// Whether attention stands after the step.
    fn attends_late(&self) -> bool {
        self.attention.as_ref().is_some_and(|attention| attention.attentional.is_some())
    }

    fn is_running(&self, sentence: usize, step: usize) -> bool {
        self.reading.lengths.as_ref().is_none_or(|lengths| step < lengths[sentence])
    }

    /// The widths of what is kept of every step: state before, cell, weights, query, vector that was fed.
    fn kept_widths(&self) -> [usize; 5] {
        let (source_len, d_key, d_fed) = match &self.attention {
            Some(attention) => {
                let d_fed = if attention.attentional.is_some() { attention.d_value + 2 * self.d } else { 0 };
                (attention.source_len, attention.d_key, d_fed)
            }
            None => (0, 0, 0),
        };
        [self.d, cell::n_saved(self.kind) * self.d, source_len, d_key, d_fed]
    }

    /// All steps forwards, and what [`backward`](Recurrence::backward) needs.
    pub fn forward(&self) -> (States, Kept) {
        self.run(self.len)
    }

    /// The same where there will be no backward pass: each step takes the place of the one before.
    pub fn answer(&self) -> States {
        self.run(1).0
    }

    /// All steps forwards, with room for what is kept of `n_kept` steps of a sentence: of all, or of one.
    fn run(&self, n_kept: usize) -> (States, Kept) {
        let Self { batch, len, d, .. } = *self;
        let d_memory = if self.start_memory.is_empty() { 0 } else { d };
        let made = [len * d, len * self.d_value(), d, d_memory];
        let kept = self.kept_widths().map(|width| n_kept * width);
        let mut out = made.map(|len| zeros(batch * len));
        let mut saved = kept.map(|len| zeros(batch * len));
        let matrices = Matrices::new(self);
        let n = sentences_of_task(batch);
        let tasks = split(out.each_mut(), made, n).into_par_iter().zip(split(saved.each_mut(), kept, n));
        tasks.enumerate().for_each(|(task, (out, kept))| {
            vectorized(
                #[inline(always)]
                || self.forward_task(&matrices, task * n, out, kept, n_kept),
            );
        });
        let [states, contexts, last, last_memory] = out;
        let [previous, cells, weights, queries, fed] = saved;
        (States { states, contexts, last, last_memory }, Kept { previous, cells, weights, queries, fed })
    }

    /// All steps back.
    pub fn backward(&self, kept: &Kept, incoming: &Incoming) -> Gradients {
        let Self { batch, len, d, .. } = *self;
        let width = self.n_gates() * d;
        let [_, _, source_len, d_key, fed_width] = self.kept_widths();
        let d_value = self.d_value();
        let if_any = |is_there: bool, len: usize| if is_there { len } else { 0 };
        let has_memory = !self.start_memory.is_empty();
        let is_network = self.attention.as_ref().is_some_and(|attention| attention.network.is_some());
        let lens = [
            len * width,
            if_any(self.kind == CellKind::Gru, len * width),
            d,
            if_any(has_memory, d),
            len * d_key,
            source_len * d_key,
            source_len * d_value,
            if_any(is_network, d_key),
            len * d_value,
            len * source_len,
            if_any(fed_width > 0, len * d),
        ];
        let mut made = lens.map(|len| zeros(batch * len));
        let matrices = Matrices::transposed(self);
        let n_sentences = sentences_of_task(batch);
        split(made.each_mut(), lens, n_sentences).into_par_iter().enumerate().for_each(|(task, pieces)| {
            let [gates, recurrent, start, start_memory, queries, keys, values, vector, contexts, scores, attentional] =
                pieces;
            let mut made = Made {
                gates,
                recurrent,
                start,
                start_memory,
                queries,
                keys,
                values,
                vector,
                contexts,
                scores,
                attentional,
            };
            vectorized(
                #[inline(always)]
                || self.backward_task(kept, incoming, &matrices, task * n_sentences, &mut made),
            );
        });
        let [gates, recurrent, start, start_memory, queries, keys, values, vector, _, _, attentional] = made;

        // The gradients of the matrices are one product each, over all sentences and steps; side by side, so that no core waits
        // at the end of each.
        let n = batch * len;
        let fed = &kept.fed;
        let previous = Matrix::new(&kept.previous, n, d).transposed();
        let of_gates = Matrix::new(&gates, n, width);
        let of_recurrent = Matrix::new(if recurrent.is_empty() { &gates } else { &recurrent }, n, width);
        let mut found = Gradients { start, start_memory, keys, values, ..Gradients::default() };
        let mut jobs: Vec<Job> = vec![product_job(&mut found.recurrent, previous, of_recurrent)];
        if self.kind == CellKind::Gru {
            jobs.push(job(&mut found.candidate_bias, || sum_of_rows(&recurrent, width)[2 * d..].to_vec()));
        }
        if let Some(attention) = &self.attention {
            let states =
                if fed_width > 0 { Matrix::strided(&fed[d_value..], n, d, fed_width).transposed() } else { previous };
            if is_network {
                jobs.push(product_job(&mut found.query, states, Matrix::new(&queries, n, d_key)));
                jobs.push(job(&mut found.vector, || sum_of_rows(&vector, d_key)));
            }
            if attention.attentional.is_some() {
                let both = Matrix::strided(fed, n, d_value + d, fed_width).transposed();
                jobs.push(product_job(&mut found.attentional, both, Matrix::new(&attentional, n, d)));
                jobs.push(job(&mut found.attentional_bias, || sum_of_rows(&attentional, d)));
                let vectors = Matrix::strided(&fed[d_value + d..], n, d, fed_width).transposed();
                jobs.push(product_job(&mut found.fed, vectors, of_gates));
            } else {
                let contexts = Matrix::new(incoming.made_contexts, n, d_value).transposed();
                jobs.push(product_job(&mut found.fed, contexts, of_gates));
            }
        }
        jobs.into_par_iter().for_each(|job| job());
        Gradients { gates, ..found }
    }
}

/// One of the gradients that do not depend on each other.
type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

fn job<'a>(out: &'a mut Vec<f32>, make: impl FnOnce() -> Vec<f32> + Send + 'a) -> Job<'a> {
    Box::new(move || *out = make())
}

fn product_job<'a>(out: &'a mut Vec<f32>, a: Matrix<'a>, b: Matrix<'a>) -> Job<'a> {
    job(out, move || new_product(a, b, Threads::All))
}

impl StepAttention<'_> {
    /// What is attended to in a sentence; `powers` are those of all keys.
    fn source<'a>(&'a self, sentence: usize, powers: &'a [f32]) -> Source<'a> {
        let vector = self.network.as_ref().map_or(&[][..], |(_, vector)| vector);
        let sizes = [self.source_len, self.d_key, self.d_value];
        Source::of_sentence(sentence, [self.keys, self.values, vector, powers], sizes, self.lengths)
    }
}

/// The part of `n_sentences` in each of several buffers, `lens` long for one sentence.
fn split<const N: usize>(buffers: [&mut Vec<f32>; N], lens: [usize; N], n_sentences: usize) -> Vec<[&mut [f32]; N]> {
    let n = buffers.iter().zip(lens).map(|(buffer, len)| buffer.len().checked_div(len).unwrap_or(0)).max();
    let n_tasks = n.unwrap_or(0).div_ceil(n_sentences);
    let mut pieces: Vec<_> =
        buffers.into_iter().zip(lens).map(|(buffer, len)| buffer.chunks_mut((len * n_sentences).max(1))).collect();
    (0..n_tasks)
        .map(|_| {
            let mut pieces = pieces.iter_mut();
            std::array::from_fn(|_| pieces.next().and_then(Iterator::next).unwrap_or_default())
        })
        .collect()
}

/// Row `row` of rows that are `width` long.
#[inline(always)]
fn row(values: &[f32], row: usize, width: usize) -> &[f32] {
    &values[row * width..][..width]
}

#[inline(always)]
fn row_mut(values: &mut [f32], row: usize, width: usize) -> &mut [f32] {
    &mut values[row * width..][..width]
}

#[inline(always)]
fn add(sum: &mut [f32], values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}
