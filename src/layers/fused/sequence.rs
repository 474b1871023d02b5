//! All steps of a recurrent layer as one operation, with attention between them or after them where the next step needs it.

use super::alignment::{self, AlignmentScore, Source, SourceGradients};
use super::cell;
use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::product::{Matrix, MatrixMut, Threads, add_product, new_product, product};
use super::simd::{sum_of_rows, tanh, vectorized};
use crate::layers::recurrent::{CellKind, CellState};
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
        let len = lengths.as_ref().map_or(self.source_len, |lengths| lengths[sentence].min(self.source_len));
        Source {
            keys: &self.keys[sentence * self.source_len * self.d_key..][..len * self.d_key],
            values: &self.values[sentence * self.source_len * self.d_value..][..len * self.d_value],
            vector: self.network.as_ref().map_or(&[], |(_, vector)| vector),
        }
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

/// The matrix the other way round, in memory of its own: products with few rows do not have to gather it at every step.
fn transposed(matrix: Matrix) -> Vec<f32> {
    matrix.transposed().to_vec()
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

/// The context of every sentence's query at one step.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
fn attend(
    kind: &AttentionKind,
    attention: &AttentionParts,
    [first, step, len]: [usize; 3],
    hidden: &[f32],
    query: &mut [f32],
    contexts: &mut [f32],
    weights: &mut [f32],
    queries: &mut [f32],
) {
    let AttentionParts { source_len, d_key, d_value, .. } = *attention;
    let n = contexts.len() / d_value;
    match &attention.network {
        Some((matrix, _)) => {
            let hidden = Matrix::new(hidden, n, hidden.len() / n);
            product(MatrixMut::new(query, n, d_key), hidden, *matrix, 1.0, Threads::One);
        }
        None => query.copy_from_slice(hidden),
    }
    for i in 0..n {
        let query = row(query, i, d_key);
        row_mut(queries, i * len + step, d_key).copy_from_slice(query);
        let source = attention.source(first + i, &kind.lengths);
        let weights = row_mut(weights, i * len + step, source_len);
        alignment::attend(kind.score, query, &source, weights, row_mut(contexts, i, d_value));
    }
}

impl Sequence {
    #[inline(always)]
    fn forward_task(&self, parts: &Parts, first: usize, out: &mut [f32], saved: [&mut [f32]; 5]) {
        let Parts { len, d, n_gates, .. } = *parts;
        let out_len = parts.output_len(self.keeps_last);
        let [d_saved, fed_width] = [parts.saved_widths(self.kind)[1], parts.saved_widths(self.kind)[4]];
        let [previous, cells, weights, queries, fed] = saved;
        let n = out.len() / out_len;
        let width = n_gates * d;
        let mut hidden = parts.start[first * d..][..n * d].to_vec();
        let mut memory = match parts.start_memory {
            [] => Vec::new(),
            memory => memory[first * d..][..n * d].to_vec(),
        };
        let (mut gates, mut recurrent) = (vec![0.0; n * width], vec![0.0; n * width]);
        let attention = self.attention.as_ref().zip(parts.attention.as_ref());
        let [d_key, d_value] = attention.map_or([0, 0], |(_, attention)| [attention.d_key, attention.d_value]);
        let (mut query, mut contexts, mut vectors) = (vec![0.0; n * d_key], vec![0.0; n * d_value], vec![0.0; n * d]);
        for step in self.steps(len) {
            for i in 0..n {
                let from = row(parts.gates, (first + i) * len + step, width);
                row_mut(&mut gates, i, width).copy_from_slice(from);
            }
            if let Some((kind, attention)) = attention {
                let fed = if kind.is_before {
                    let place = [first, step, len];
                    attend(kind, attention, place, &hidden, &mut query, &mut contexts, weights, queries);
                    Matrix::new(&contexts, n, d_value)
                } else {
                    Matrix::new(&vectors, n, d)
                };
                add_product(MatrixMut::new(&mut gates, n, width), fed, attention.fed, 1.0, Threads::One);
            }
            let before = Matrix::new(&hidden, n, d);
            product(MatrixMut::new(&mut recurrent, n, width), before, parts.recurrent, 1.0, Threads::One);
            for i in 0..n {
                if !self.is_running(first + i, step) {
                    continue;
                }
                row_mut(previous, i * len + step, d).copy_from_slice(row(&hidden, i, d));
                cell::step(
                    self.kind,
                    row(&gates, i, width),
                    row(&recurrent, i, width),
                    parts.candidate_bias,
                    row_mut(&mut hidden, i, d),
                    if memory.is_empty() { &mut [] } else { row_mut(&mut memory, i, d) },
                    row_mut(cells, i * len + step, d_saved),
                );
            }
            if let Some((kind, attention)) = attention
                && let Some((matrix, bias)) = attention.attentional
            {
                let place = [first, step, len];
                attend(kind, attention, place, &hidden, &mut query, &mut contexts, weights, queries);
                for i in 0..n {
                    let saved = row_mut(fed, i * len + step, fed_width);
                    saved[..d_value].copy_from_slice(row(&contexts, i, d_value));
                    saved[d_value..d_value + d].copy_from_slice(row(&hidden, i, d));
                    saved[d_value + d..].copy_from_slice(row(&vectors, i, d));
                }
                let both = Matrix::strided(&fed[step * fed_width..], n, d_value + d, len * fed_width);
                product(MatrixMut::new(&mut vectors, n, d), both, matrix, 1.0, Threads::One);
                for vector in vectors.chunks_exact_mut(d) {
                    vector.iter_mut().zip(bias).for_each(|(value, bias)| *value = tanh(*value + bias));
                }
            }
            let is_after = attention.is_some_and(|(kind, _)| !kind.is_before);
            for i in 0..n {
                if self.is_running(first + i, step) {
                    let out = &mut out[i * out_len + step * (d + d_value)..][..d + d_value];
                    out[..d].copy_from_slice(row(if is_after { &vectors } else { &hidden }, i, d));
                    out[d..].copy_from_slice(row(&contexts, i, d_value));
                }
            }
        }
        if self.keeps_last {
            for (i, out) in out.chunks_exact_mut(out_len).enumerate() {
                out[len * d..][..d].copy_from_slice(row(&hidden, i, d));
                if !memory.is_empty() {
                    out[(len + 1) * d..].copy_from_slice(row(&memory, i, d));
                }
            }
        }
    }
}

/// What the backward pass makes, sentence by sentence.
struct Made<'a> {
    gates: &'a mut [f32],
    /// Of the GRU, whose parts have different gradients; empty for the others.
    recurrent: &'a mut [f32],
    start: &'a mut [f32],
    start_memory: &'a mut [f32],
    queries: &'a mut [f32],
    keys: &'a mut [f32],
    values: &'a mut [f32],
    vector: &'a mut [f32],
    /// Before the hyperbolic tangent of the attentional vector.
    attentional: &'a mut [f32],
}

/// Matrices the other way round.
struct Back {
    recurrent: Vec<f32>,
    query: Vec<f32>,
    fed: Vec<f32>,
    attentional: Vec<f32>,
}

impl Back {
    fn new(parts: &Parts) -> Self {
        let attention = parts.attention.as_ref();
        Self {
            recurrent: transposed(parts.recurrent),
            query: attention.and_then(|a| a.network.as_ref()).map_or(Vec::new(), |(matrix, _)| transposed(*matrix)),
            fed: attention.map_or(Vec::new(), |attention| transposed(attention.fed)),
            attentional: attention.and_then(|a| a.attentional).map_or(Vec::new(), |(matrix, _)| transposed(matrix)),
        }
    }
}

impl Sequence {
    /// The way back through one step's attention: from the gradients of contexts to those of the states that asked, which are
    /// added to. It stands after that of the cell if attention is before the cell, and the other way round.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    fn attend_back(
        &self,
        parts: &Parts,
        of: &Backprop,
        back: &Back,
        [first, step]: [usize; 2],
        made: &mut Made,
        contexts: &mut [f32],
        hidden: &mut [f32],
        scratch: &mut [f32],
    ) {
        let Some((kind, attention)) = self.attention.as_ref().zip(parts.attention.as_ref()) else { return };
        let AttentionParts { source_len, d_key, d_value, .. } = *attention;
        let Parts { len, d, .. } = *parts;
        let n = contexts.len() / d_value;
        let (query, scratch) = scratch.split_at_mut(n * d_key);
        let [_, _, weights, queries, _] = &of.saved[..] else { unreachable!("five buffers") };
        for i in 0..n {
            let saved = (first + i) * len + step;
            let of_context = row_mut(contexts, i, d_value);
            add(of_context, &row(of.gradient, saved, d + d_value)[d..]);
            let source = attention.source(first + i, &kind.lengths);
            let mut of_source = SourceGradients {
                keys: row_mut(made.keys, i, source_len * d_key),
                values: row_mut(made.values, i, source_len * d_value),
                vector: if made.vector.is_empty() { &mut [] } else { row_mut(made.vector, i, d_key) },
            };
            alignment::back(
                kind.score,
                row(queries, saved, d_key),
                &source,
                row(weights, saved, source_len),
                of_context,
                &mut of_source,
                row_mut(query, i, d_key),
                scratch,
            );
            row_mut(made.queries, i * len + step, d_key).copy_from_slice(row(query, i, d_key));
        }
        if attention.network.is_some() {
            let matrix = Matrix::new(&back.query, d_key, d);
            add_product(MatrixMut::new(hidden, n, d), Matrix::new(query, n, d_key), matrix, 1.0, Threads::One);
        } else {
            add(hidden, query);
        }
    }

    #[inline(always)]
    fn backward_task(&self, parts: &Parts, of: &Backprop, back: &Back, first: usize, made: &mut Made) {
        let Parts { len, d, n_gates, .. } = *parts;
        let out_len = parts.output_len(self.keeps_last);
        let [_, d_saved, source_len, d_key, _] = parts.saved_widths(self.kind);
        let width = n_gates * d;
        let n = made.start.len() / d;
        let [previous, cells, ..] = &of.saved[..] else { unreachable!("five buffers") };
        let attention = self.attention.as_ref().zip(parts.attention.as_ref());
        let d_value = attention.map_or(0, |(_, attention)| attention.d_value);
        let has_memory = !parts.start_memory.is_empty();
        let (mut gates, mut recurrent) = (vec![0.0; n * width], vec![0.0; n * width]);
        let mut contexts = vec![0.0; n * d_value];
        let (mut vectors, mut both) = (vec![0.0; n * d], vec![0.0; n * (d_value + d)]);
        let mut hidden = vec![0.0; n * d];
        let mut memory = vec![0.0; if has_memory { n * d } else { 0 }];
        let mut scratch = vec![0.0; n * d_key + source_len];
        if self.keeps_last {
            for i in 0..n {
                let last = &of.gradient[(first + i) * out_len + len * d..];
                row_mut(&mut hidden, i, d).copy_from_slice(&last[..d]);
                if has_memory {
                    row_mut(&mut memory, i, d).copy_from_slice(&last[d..2 * d]);
                }
            }
        }
        for step in self.steps(len).rev() {
            let place = |i: usize| (first + i) * out_len + step * (d + d_value);
            let gradient = |i: usize| &of.gradient[place(i)..][..d + d_value];
            let is_after = attention.is_some_and(|(kind, _)| !kind.is_before);
            if is_after {
                for i in 0..n {
                    let vector = &of.output[place(i)..][..d];
                    let of_vector = row_mut(&mut vectors, i, d);
                    for j in 0..d {
                        of_vector[j] = (of_vector[j] + gradient(i)[j]) * (1.0 - vector[j] * vector[j]);
                    }
                    row_mut(made.attentional, i * len + step, d).copy_from_slice(of_vector);
                }
                let matrix = Matrix::new(&back.attentional, d, d_value + d);
                let out = MatrixMut::new(&mut both, n, d_value + d);
                product(out, Matrix::new(&vectors, n, d), matrix, 1.0, Threads::One);
                for i in 0..n {
                    let (of_context, of_hidden) = row(&both, i, d_value + d).split_at(d_value);
                    row_mut(&mut contexts, i, d_value).copy_from_slice(of_context);
                    add(row_mut(&mut hidden, i, d), of_hidden);
                }
            } else {
                for i in (0..n).filter(|i| self.is_running(first + i, step)) {
                    add(row_mut(&mut hidden, i, d), &gradient(i)[..d]);
                }
            }
            if is_after {
                self.attend_back(parts, of, back, [first, step], made, &mut contexts, &mut hidden, &mut scratch);
            }
            for i in 0..n {
                let (of_gates, of_recurrent) = (row_mut(&mut gates, i, width), row_mut(&mut recurrent, i, width));
                if !self.is_running(first + i, step) {
                    of_gates.fill(0.0);
                    of_recurrent.fill(0.0);
                    continue;
                }
                let saved = (first + i) * len + step;
                cell::back(
                    self.kind,
                    row(cells, saved, d_saved),
                    row(previous, saved, d),
                    row_mut(&mut hidden, i, d),
                    if has_memory { row_mut(&mut memory, i, d) } else { &mut [] },
                    of_gates,
                    of_recurrent,
                );
                row_mut(made.gates, i * len + step, width).copy_from_slice(of_gates);
                if !made.recurrent.is_empty() {
                    row_mut(made.recurrent, i * len + step, width).copy_from_slice(of_recurrent);
                }
            }
            let matrix = Matrix::new(&back.recurrent, width, d);
            let of_recurrent = Matrix::new(&recurrent, n, width);
            add_product(MatrixMut::new(&mut hidden, n, d), of_recurrent, matrix, 1.0, Threads::One);
            if attention.is_some() {
                let of_gates = Matrix::new(&gates, n, width);
                let (out, d_fed) = if is_after { (&mut vectors, d) } else { (&mut contexts, d_value) };
                let matrix = Matrix::new(&back.fed, width, d_fed);
                product(MatrixMut::new(out, n, d_fed), of_gates, matrix, 1.0, Threads::One);
            }
            if attention.is_some() && !is_after {
                self.attend_back(parts, of, back, [first, step], made, &mut contexts, &mut hidden, &mut scratch);
            }
        }
        made.start.copy_from_slice(&hidden);
        made.start_memory.copy_from_slice(&memory);
    }
}

impl Function for Sequence {
    fn forward(&self, inputs: &[Input]) -> Output {
        let parts = self.parts(inputs);
        let out_len = parts.output_len(self.keeps_last);
        let mut values = vec![0.0; parts.batch * out_len];
        let widths = parts.saved_widths(self.kind).map(|width| parts.len * width);
        let mut saved = widths.map(|len| vec![0.0; parts.batch * len]);
        let [a, b, c, d, e] = saved.each_mut();
        let tasks =
            split([&mut values, a, b, c, d, e], [out_len, widths[0], widths[1], widths[2], widths[3], widths[4]]);
        tasks.into_par_iter().enumerate().for_each(|(task, [out, a, b, c, d, e])| {
            vectorized(
                #[inline(always)]
                || self.forward_task(&parts, task * SENTENCES, out, [a, b, c, d, e]),
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
            if_any(fed_width > 0, len * d),
        ];
        let mut made = lens.map(|len| vec![0.0; batch * len]);
        let back = Back::new(&parts);
        split(made.each_mut(), lens).into_par_iter().enumerate().for_each(|(task, pieces)| {
            let [gates, recurrent, start, start_memory, queries, keys, values, vector, attentional] = pieces;
            let mut made = Made { gates, recurrent, start, start_memory, queries, keys, values, vector, attentional };
            vectorized(
                #[inline(always)]
                || self.backward_task(&parts, &of, &back, task * SENTENCES, &mut made),
            );
        });
        let [gates, recurrent, start, start_memory, queries, keys, values, vector, attentional] = made;

        // The gradients of the matrices are one product each, over all sentences and steps.
        let n = batch * len;
        let [previous, _, _, _, fed] = &of.saved[..] else { unreachable!("five buffers") };
        let previous = Matrix::new(previous, n, d).transposed();
        let of_gates = Matrix::new(&gates, n, width);
        let of_recurrent = if recurrent.is_empty() { &gates } else { &recurrent };
        let of_matrix = new_product(previous, Matrix::new(of_recurrent, n, width), Threads::All);
        let mut gradients = vec![of_matrix, start];
        if has_memory {
            gradients.push(start_memory);
        }
        if self.kind == CellKind::Gru {
            gradients.push(sum_of_rows(&recurrent, width)[2 * d..].to_vec());
        }
        if let Some(attention) = &parts.attention {
            gradients.extend([keys, values]);
            let states =
                if fed_width > 0 { Matrix::strided(&fed[d_value..], n, d, fed_width).transposed() } else { previous };
            if is_network {
                gradients.push(new_product(states, Matrix::new(&queries, n, d_key), Threads::All));
                gradients.push(sum_of_rows(&vector, d_key));
            }
            if attention.attentional.is_some() {
                let both = Matrix::strided(fed, n, d_value + d, fed_width).transposed();
                gradients.push(new_product(both, Matrix::new(&attentional, n, d), Threads::All));
                gradients.push(sum_of_rows(&attentional, d));
                let vectors = Matrix::strided(&fed[d_value + d..], n, d, fed_width).transposed();
                gradients.push(new_product(vectors, of_gates, Threads::All));
            } else {
                let contexts = Matrix::strided(&of.output[d..], n, d_value, d + d_value).transposed();
                gradients.push(new_product(contexts, of_gates, Threads::All));
            }
        }
        std::iter::once(gates).chain(gradients).map(Gradient::New).collect()
    }
}
