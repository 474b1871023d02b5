//! The steps back, for the sentences of one task.

use super::{Incoming, Kept, Matrices, Recurrence, StepAttention, add, row, row_mut};
use crate::alignment::{self, OfAlignment};
use crate::cell;
use crate::matrix::{Matrix, MatrixMut};

/// What the backward pass makes, sentence by sentence.
pub(super) struct Made<'a> {
    pub(super) gates: &'a mut [f32],
    /// Of the GRU, whose parts have different gradients; empty for the others.
    pub(super) recurrent: &'a mut [f32],
    pub(super) start: &'a mut [f32],
    pub(super) start_memory: &'a mut [f32],
    pub(super) queries: &'a mut [f32],
    pub(super) keys: &'a mut [f32],
    pub(super) values: &'a mut [f32],
    pub(super) vector: &'a mut [f32],
    /// Of the contexts of all steps.
    pub(super) contexts: &'a mut [f32],
    /// Of the scores of all steps.
    pub(super) scores: &'a mut [f32],
    /// Before the hyperbolic tangent of the attentional vector.
    pub(super) attentional: &'a mut [f32],
}

impl Recurrence<'_> {
    /// Adds to the gradients of states what one step's attention hands back from those of its contexts. It comes after the backward step
    /// of the cell if attention stands before the cell, and the other way round.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    fn attend_back(
        &self,
        kept: &Kept,
        incoming: &Incoming,
        matrices: &Matrices,
        [first, step]: [usize; 2],
        made: &mut Made,
        contexts: &mut [f32],
        hidden: &mut [f32],
        query: &mut [f32],
    ) {
        let Some(attention) = &self.attention else { return };
        let StepAttention { source_len, d_key, d_value, .. } = *attention;
        let Self { len, d, .. } = *self;
        let n = contexts.len() / d_value;
        let Kept { weights, queries, .. } = kept;
        for i in 0..n {
            let saved = (first + i) * len + step;
            let of_context = row_mut(contexts, i, d_value);
            add(of_context, row(incoming.contexts, saved, d_value));
            let source = attention.source(first + i, &matrices.powers);
            let of_alignment = OfAlignment {
                scores: row_mut(made.scores, i * len + step, source_len),
                keys: row_mut(made.keys, i, source_len * d_key),
                vector: if made.vector.is_empty() { &mut [] } else { row_mut(made.vector, i, d_key) },
            };
            alignment::back(
                attention.score,
                row(queries, saved, d_key),
                &source,
                row(weights, saved, source_len),
                of_context,
                of_alignment,
                row_mut(query, i, d_key),
            );
            row_mut(made.contexts, i * len + step, d_value).copy_from_slice(of_context);
            row_mut(made.queries, i * len + step, d_key).copy_from_slice(row(query, i, d_key));
        }
        match &matrices.query {
            Some(matrix) => matrix.add_product(MatrixMut::new(hidden, n, d), Matrix::new(query, n, d_key)),
            None => add(hidden, query),
        }
    }

    /// The gradients of keys and values that are products over all steps.
    fn back_to_sources(&self, kept: &Kept, first: usize, made: &mut Made) {
        let Some(attention) = &self.attention else { return };
        let StepAttention { source_len, d_key, d_value, .. } = *attention;
        let Kept { weights, queries, .. } = kept;
        for i in 0..made.start.len() / self.d {
            let steps = |values, sentence: usize, width: usize| {
                Matrix::new(row(values, sentence, self.len * width), self.len, width)
            };
            alignment::back_to_source(
                attention.score,
                [steps(queries, first + i, d_key), steps(weights, first + i, source_len)],
                [steps(made.contexts, i, d_value), steps(made.scores, i, source_len)],
                MatrixMut::new(row_mut(made.keys, i, source_len * d_key), source_len, d_key),
                MatrixMut::new(row_mut(made.values, i, source_len * d_value), source_len, d_value),
            );
        }
    }

    /// The steps back of the sentences from `first` on.
    #[inline(always)]
    pub(super) fn backward_task(
        &self,
        kept: &Kept,
        incoming: &Incoming,
        matrices: &Matrices,
        first: usize,
        made: &mut Made,
    ) {
        let Self { len, d, .. } = *self;
        let [_, d_saved, _, d_key, _] = self.kept_widths();
        let width = self.n_gates() * d;
        let n = made.start.len() / d;
        let Kept { previous, cells, .. } = kept;
        let (has_attention, is_after) = (self.attention.is_some(), self.attends_late());
        let d_value = self.d_value();
        let has_memory = !self.start_memory.is_empty();
        let (mut gates, mut recurrent) = (vec![0.0; n * width], vec![0.0; n * width]);
        let mut contexts = vec![0.0; n * d_value];
        let (mut vectors, mut both) = (vec![0.0; n * d], vec![0.0; n * (d_value + d)]);
        let mut hidden = incoming.last[first * d..][..n * d].to_vec();
        let mut memory = match has_memory {
            true => incoming.last_memory[first * d..][..n * d].to_vec(),
            false => Vec::new(),
        };
        let mut query = vec![0.0; n * d_key];
        for step in self.reading.steps(len).rev() {
            let gradient = |i: usize| row(incoming.states, (first + i) * len + step, d);
            if is_after {
                for i in 0..n {
                    let vector = row(incoming.made_states, (first + i) * len + step, d);
                    let of_vector = row_mut(&mut vectors, i, d);
                    for j in 0..d {
                        of_vector[j] = (of_vector[j] + gradient(i)[j]) * (1.0 - vector[j] * vector[j]);
                    }
                    row_mut(made.attentional, i * len + step, d).copy_from_slice(of_vector);
                }
                let matrix = matrices.attentional.as_ref().expect("attention after the step has it");
                matrix.product(MatrixMut::new(&mut both, n, d_value + d), Matrix::new(&vectors, n, d));
                for i in 0..n {
                    let (of_context, of_hidden) = row(&both, i, d_value + d).split_at(d_value);
                    row_mut(&mut contexts, i, d_value).copy_from_slice(of_context);
                    add(row_mut(&mut hidden, i, d), of_hidden);
                }
            } else {
                for i in (0..n).filter(|i| self.is_running(first + i, step)) {
                    add(row_mut(&mut hidden, i, d), gradient(i));
                }
            }
            if is_after {
                self.attend_back(kept, incoming, matrices, [first, step], made, &mut contexts, &mut hidden, &mut query);
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
            let of_recurrent = Matrix::new(&recurrent, n, width);
            matrices.recurrent.add_product(MatrixMut::new(&mut hidden, n, d), of_recurrent);
            if let Some(matrix) = &matrices.fed {
                let (out, d_fed) = if is_after { (&mut vectors, d) } else { (&mut contexts, d_value) };
                matrix.product(MatrixMut::new(out, n, d_fed), Matrix::new(&gates, n, width));
            }
            if has_attention && !is_after {
                self.attend_back(kept, incoming, matrices, [first, step], made, &mut contexts, &mut hidden, &mut query);
            }
        }
        self.back_to_sources(kept, first, made);
        made.start.copy_from_slice(&hidden);
        made.start_memory.copy_from_slice(&memory);
    }
}
