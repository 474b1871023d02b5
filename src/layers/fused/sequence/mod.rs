//! All steps of a recurrent layer as one operation, with attention between them or after them where the next step needs it.

mod backward;
mod forward;

use super::alignment::{AlignmentScore, Source};
use super::cell;
use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::matrix::Matrix;
use super::packed::Packed;
use super::pieces::{Threads, sum_of_rows, zeros};
use super::product::new_product;
use super::simd::vectorized;
use crate::layers::recurrent::{CellKind, CellState};
use backward::Made;
use burn::backend::DispatchTensor;
use burn::tensor::Tensor;
use rayon::prelude::*;
use std::sync::Arc;

/// Sentences that one task carries through all steps. Rows of a product do not depend on each other, so neither do the
/// numbers on how sentences are shared out.
const SENTENCES: usize = 16;

/// The parameters of a cell beside those that make the input's part of the gates.
#[derive(Debug)]
pub struct CellParameters {
    /// Which cell.
    pub kind: CellKind,
    /// `[d_hidden, n_gates d_hidden]`.
    pub recurrent: Tensor<2>,
    /// Of the GRU's candidate: `[d_hidden]`.
    pub candidate_bias: Option<Tensor<1>>,
}

/// Where a step's attention stands.
// One exists at a time.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
pub enum Placement {
    /// Before the step, asked by the last state; `context_input` makes the context's part of the gates: `[d_value, n_gates
    /// d_hidden]`.
    Before {
        /// Makes the context's part of the gates.
        context_input: Tensor<2>,
    },
    /// After the step, asked by the new state. The attentional vector `tanh(W [c; s] + b)` enters the next step's gates.
    After {
        /// `W`: `[d_value + d_hidden, d_hidden]`.
        attentional: Tensor<2>,
        /// `b`: `[d_hidden]`.
        attentional_bias: Tensor<1>,
        /// Makes the attentional vector's part of the gates: `[d_hidden, n_gates d_hidden]`.
        feeding: Tensor<2>,
    },
}

/// Attention that takes part in the recurrence.
#[derive(Debug)]
pub struct StepAttention {
    /// `[batch, source_len, d_key]`.
    pub keys: Tensor<3>,
    /// `[batch, source_len, d_value]`.
    pub values: Tensor<3>,
    /// Real positions of each source.
    pub lengths: Option<Arc<[usize]>>,
    /// How they are compared.
    pub score: AlignmentScore,
    /// Projects the state to a query, `[d_hidden, d_key]`, and the network's last layer, `[d_key, 1]`.
    pub network: Option<(Tensor<2>, Tensor<2>)>,
    /// Where it stands.
    pub placement: Placement,
}

/// Which steps a layer reads, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// From the last step to the first.
    pub is_backward: bool,
    /// Real steps of each sentence; a state stands still on the others, and its output there is zero.
    pub lengths: Option<Arc<[usize]>>,
}

/// The states of a layer at every step, and its last state.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_hidden]`, the input's part
/// - output: `[batch, len, d_hidden]`
pub fn recurrent_layer(
    gates: Tensor<3>,
    start: &CellState,
    parameters: CellParameters,
    reading: Reading,
) -> (Tensor<3>, CellState) {
    let [batch, len, _] = gates.dims();
    let d = start.hidden.dims()[1];
    let kind = parameters.kind;
    let (mut function, inputs) = Sequence::new(gates, start, parameters, reading);
    function.keeps_last = true;
    let states: Tensor<3> = apply(function, inputs);
    let last = |i: usize| states.clone().narrow(1, len + i, 1).reshape([batch, d]);
    let memory = (kind == CellKind::Lstm).then(|| last(1));
    (states.clone().narrow(1, 0, len), CellState { hidden: last(0), memory })
}

/// The states, or the attentional vectors, of a decoder at every step, and the contexts.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_hidden]`, the words' part
/// - output: `[batch, len, d_hidden]` and `[batch, len, d_value]`
pub fn attentive_layer(
    gates: Tensor<3>,
    start: &CellState,
    parameters: CellParameters,
    attention: StepAttention,
) -> (Tensor<3>, Tensor<3>) {
    let d = start.hidden.dims()[1];
    let d_value = attention.values.dims()[2];
    let (mut function, mut inputs) = Sequence::new(gates, start, parameters, Reading::default());
    function.attention = Some(AttentionKind {
        score: attention.score,
        is_before: matches!(attention.placement, Placement::Before { .. }),
        lengths: attention.lengths,
    });
    inputs.extend([attention.keys.into_dispatch(), attention.values.into_dispatch()]);
    if let Some((query, vector)) = attention.network {
        inputs.extend([query.into_dispatch(), vector.into_dispatch()]);
    }
    match attention.placement {
        Placement::Before { context_input } => inputs.push(context_input.into_dispatch()),
        Placement::After { attentional, attentional_bias, feeding } => {
            inputs.extend([attentional.into_dispatch(), attentional_bias.into_dispatch(), feeding.into_dispatch()]);
        }
    }
    let output: Tensor<3> = apply(function, inputs);
    (output.clone().narrow(2, 0, d), output.narrow(2, d, d_value))
}

#[derive(Debug)]
struct AttentionKind {
    score: AlignmentScore,
    is_before: bool,
    lengths: Option<Arc<[usize]>>,
}

#[derive(Debug)]
struct Sequence {
    kind: CellKind,
    reading: Reading,
    /// Whether the last state follows the states of all steps.
    keeps_last: bool,
    attention: Option<AttentionKind>,
}

/// The inputs by name.
struct Parts<'a> {
    gates: &'a [f32],
    recurrent: Matrix<'a>,
    start: &'a [f32],
    start_memory: &'a [f32],
    candidate_bias: Option<&'a [f32]>,
    attention: Option<AttentionParts<'a>>,
    batch: usize,
    len: usize,
    d: usize,
    n_gates: usize,
}

struct AttentionParts<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    network: Option<(Matrix<'a>, &'a [f32])>,
    /// Before: the context's matrix. After: that of the attentional vector into the gates.
    fed: Matrix<'a>,
    attentional: Option<(Matrix<'a>, &'a [f32])>,
    source_len: usize,
    d_key: usize,
    d_value: usize,
}

/// The matrices that every step multiplies with, in panels.
struct Matrices {
    recurrent: Packed,
    query: Option<Packed>,
    fed: Option<Packed>,
    attentional: Option<Packed>,
}

impl Matrices {
    /// Those of the forward pass.
    fn new(parts: &Parts) -> Self {
        Self::turned_by(parts, |matrix| matrix)
    }

    /// Those of the backward pass: the same the other way round.
    fn transposed(parts: &Parts) -> Self {
        Self::turned_by(parts, |matrix| matrix.transposed())
    }

    fn turned_by(parts: &Parts, turn: impl for<'a> Fn(Matrix<'a>) -> Matrix<'a>) -> Self {
        let packed = |matrix: Matrix| Packed::new(turn(matrix));
        let attention = parts.attention.as_ref();
        Self {
            recurrent: packed(parts.recurrent),
            query: attention.and_then(|attention| attention.network).map(|(matrix, _)| packed(matrix)),
            fed: attention.map(|attention| packed(attention.fed)),
            attentional: attention.and_then(|attention| attention.attentional).map(|(matrix, _)| packed(matrix)),
        }
    }
}

fn matrix<'a>(input: &Input<'a>) -> Matrix<'a> {
    Matrix::new(input.values, input.shape[0], input.shape[1])
}

impl Sequence {
    fn new(
        gates: Tensor<3>,
        start: &CellState,
        parameters: CellParameters,
        reading: Reading,
    ) -> (Self, Vec<DispatchTensor>) {
        let CellParameters { kind, recurrent, candidate_bias } = parameters;
        let mut inputs = vec![gates.into_dispatch(), recurrent.into_dispatch(), start.hidden.clone().into_dispatch()];
        inputs.extend(start.memory.clone().map(Tensor::into_dispatch));
        inputs.extend(candidate_bias.map(Tensor::into_dispatch));
        (Self { kind, reading, keeps_last: false, attention: None }, inputs)
    }

    fn parts<'a>(&self, inputs: &[Input<'a>]) -> Parts<'a> {
        let mut inputs = inputs.iter();
        let mut next = || inputs.next().expect("the inputs of the constructor");
        let (gates, recurrent, start) = (next(), next(), next());
        let start_memory: &[f32] = if self.kind == CellKind::Lstm { next().values } else { &[] };
        let candidate_bias = (self.kind == CellKind::Gru).then(|| next().values);
        let attention = self.attention.as_ref().map(|kind| {
            let (keys, values) = (next(), next());
            let network = (kind.score == AlignmentScore::Network).then(|| (matrix(next()), next().values));
            let attentional = (!kind.is_before).then(|| (matrix(next()), next().values));
            AttentionParts {
                keys: keys.values,
                values: values.values,
                network,
                attentional,
                fed: matrix(next()),
                source_len: keys.shape[1],
                d_key: keys.shape[2],
                d_value: values.shape[2],
            }
        });
        Parts {
            gates: gates.values,
            recurrent: matrix(recurrent),
            start: start.values,
            start_memory,
            candidate_bias,
            attention,
            batch: gates.shape[0],
            len: gates.shape[1],
            d: start.shape[1],
            n_gates: gates.shape[2] / start.shape[1],
        }
    }

    fn is_running(&self, sentence: usize, step: usize) -> bool {
        self.reading.lengths.as_ref().is_none_or(|lengths| step < lengths[sentence])
    }

    /// The steps in the order of reading.
    fn steps(&self, len: usize) -> impl DoubleEndedIterator<Item = usize> {
        let is_backward = self.reading.is_backward;
        (0..len).map(move |i| if is_backward { len - 1 - i } else { i })
    }
}

impl Parts<'_> {
    /// Elements of a sentence in the output, those of its last state included.
    fn output_len(&self, keeps_last: bool) -> usize {
        let width = self.d + self.attention.as_ref().map_or(0, |attention| attention.d_value);
        let n_last = if keeps_last { 1 + !self.start_memory.is_empty() as usize } else { 0 };
        (self.len + n_last) * width
    }

    /// The widths of what is kept of every step: state before, cell, weights, query, vector that was fed.
    fn saved_widths(&self, kind: CellKind) -> [usize; 5] {
        let (source_len, d_key, d_fed) = match &self.attention {
            Some(attention) => {
                let d_fed = if attention.attentional.is_some() { attention.d_value + 2 * self.d } else { 0 };
                (attention.source_len, attention.d_key, d_fed)
            }
            None => (0, 0, 0),
        };
        [self.d, cell::n_saved(kind) * self.d, source_len, d_key, d_fed]
    }
}

impl AttentionParts<'_> {
    /// What is attended to in a sentence.
    fn source(&self, sentence: usize, lengths: &Option<Arc<[usize]>>) -> Source<'_> {
        let vector = self.network.as_ref().map_or(&[][..], |(_, vector)| vector);
        let sizes = [self.source_len, self.d_key, self.d_value];
        Source::of_sentence(sentence, [self.keys, self.values, vector], sizes, lengths.as_deref())
    }
}

/// Some sentences' part of each of several buffers, `lens` long for one sentence.
fn split<const N: usize>(buffers: [&mut Vec<f32>; N], lens: [usize; N]) -> Vec<[&mut [f32]; N]> {
    let n = buffers.iter().zip(lens).map(|(buffer, len)| buffer.len().checked_div(len).unwrap_or(0)).max();
    let n_tasks = n.unwrap_or(0).div_ceil(SENTENCES);
    let mut pieces: Vec<_> =
        buffers.into_iter().zip(lens).map(|(buffer, len)| buffer.chunks_mut((len * SENTENCES).max(1))).collect();
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

impl Function for Sequence {
    fn forward(&self, inputs: &[Input]) -> Output {
        let parts = self.parts(inputs);
        let out_len = parts.output_len(self.keeps_last);
        let mut values = zeros(parts.batch * out_len);
        let widths = parts.saved_widths(self.kind).map(|width| parts.len * width);
        let mut saved = widths.map(|len| zeros(parts.batch * len));
        let [a, b, c, d, e] = saved.each_mut();
        let tasks =
            split([&mut values, a, b, c, d, e], [out_len, widths[0], widths[1], widths[2], widths[3], widths[4]]);
        let matrices = Matrices::new(&parts);
        tasks.into_par_iter().enumerate().for_each(|(task, [out, a, b, c, d, e])| {
            vectorized(
                #[inline(always)]
                || self.forward_task(&parts, &matrices, task * SENTENCES, out, [a, b, c, d, e]),
            );
        });
        let width = parts.d + parts.attention.as_ref().map_or(0, |attention| attention.d_value);
        Output { shape: vec![parts.batch, out_len / width, width], values, saved: saved.into() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        let parts = self.parts(of.inputs);
        let Parts { batch, len, d, n_gates, .. } = parts;
        let width = n_gates * d;
        let [_, _, source_len, d_key, fed_width] = parts.saved_widths(self.kind);
        let d_value = parts.attention.as_ref().map_or(0, |attention| attention.d_value);
        let if_any = |is_there: bool, len: usize| if is_there { len } else { 0 };
        let has_memory = !parts.start_memory.is_empty();
        let is_network = parts.attention.as_ref().is_some_and(|attention| attention.network.is_some());
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
        let matrices = Matrices::transposed(&parts);
        split(made.each_mut(), lens).into_par_iter().enumerate().for_each(|(task, pieces)| {
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
                || self.backward_task(&parts, &of, &matrices, task * SENTENCES, &mut made),
            );
        });
        let [gates, recurrent, start, start_memory, queries, keys, values, vector, _, _, attentional] = made;

        // The gradients of the matrices are one product each, over all sentences and steps; side by side, so that no core waits
        // at the end of each.
        let n = batch * len;
        let [previous, _, _, _, fed] = &of.saved[..] else { unreachable!("five buffers") };
        let previous = Matrix::new(previous, n, d).transposed();
        let of_gates = Matrix::new(&gates, n, width);
        let of_recurrent = Matrix::new(if recurrent.is_empty() { &gates } else { &recurrent }, n, width);
        let mut jobs: Vec<Job> = vec![product_job(previous, of_recurrent), Box::new(|| start)];
        if has_memory {
            jobs.push(Box::new(|| start_memory));
        }
        if self.kind == CellKind::Gru {
            jobs.push(Box::new(|| sum_of_rows(&recurrent, width)[2 * d..].to_vec()));
        }
        if let Some(attention) = &parts.attention {
            jobs.push(Box::new(|| keys));
            jobs.push(Box::new(|| values));
            let states =
                if fed_width > 0 { Matrix::strided(&fed[d_value..], n, d, fed_width).transposed() } else { previous };
            if is_network {
                jobs.push(product_job(states, Matrix::new(&queries, n, d_key)));
                jobs.push(Box::new(|| sum_of_rows(&vector, d_key)));
            }
            if attention.attentional.is_some() {
                let both = Matrix::strided(fed, n, d_value + d, fed_width).transposed();
                jobs.push(product_job(both, Matrix::new(&attentional, n, d)));
                jobs.push(Box::new(|| sum_of_rows(&attentional, d)));
                let vectors = Matrix::strided(&fed[d_value + d..], n, d, fed_width).transposed();
                jobs.push(product_job(vectors, of_gates));
            } else {
                let contexts = Matrix::strided(&of.output[d..], n, d_value, d + d_value).transposed();
                jobs.push(product_job(contexts, of_gates));
            }
        }
        let gradients: Vec<Vec<f32>> = jobs.into_par_iter().map(|job| job()).collect();
        std::iter::once(gates).chain(gradients).map(Gradient::New).collect()
    }
}

/// One of the gradients that do not depend on each other.
type Job<'a> = Box<dyn FnOnce() -> Vec<f32> + Send + 'a>;

fn product_job<'a>(a: Matrix<'a>, b: Matrix<'a>) -> Job<'a> {
    Box::new(move || new_product(a, b, Threads::All))
}
