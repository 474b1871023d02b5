//! The steps forwards, for the sentences of one task.

use super::{Matrices, Recurrence, StepAttention, row, row_mut};
use crate::functions::tanh;
use crate::matrix::{Matrix, MatrixMut};
use crate::product::Packed;
use crate::{alignment, cell};

/// The attention of a task's sentences.
struct Attending<'a> {
    attention: &'a StepAttention<'a>,
    matrix: Option<&'a Packed>,
    powers: &'a [f32],
    /// The first sentence, and the steps of a sentence that are kept.
    first: usize,
    n_kept: usize,
    query: Vec<f32>,
    /// What the backward pass needs.
    weights: &'a mut [f32],
    queries: &'a mut [f32],
}

impl Attending<'_> {
    /// The context of every sentence's query at the step whose place is `kept`.
    #[inline(always)]
    fn attend(&mut self, kept: usize, hidden: &[f32], contexts: &mut [f32]) {
        let StepAttention { source_len, d_key, d_value, .. } = *self.attention;
        let n = contexts.len() / d_value;
        match self.matrix {
            Some(matrix) => {
                let hidden = Matrix::new(hidden, n, hidden.len() / n);
                matrix.product(MatrixMut::new(&mut self.query, n, d_key), hidden);
            }
            None => self.query.copy_from_slice(hidden),
        }
        for i in 0..n {
            let (query, place) = (row(&self.query, i, d_key), i * self.n_kept + kept);
            row_mut(self.queries, place, d_key).copy_from_slice(query);
            let source = self.attention.source(self.first + i, self.powers);
            let weights = row_mut(self.weights, place, source_len);
            alignment::attend(self.attention.score, query, &source, weights, row_mut(contexts, i, d_value));
        }
    }
}

impl Recurrence<'_> {
    /// The steps of the sentences from `first` on: into states, contexts, last states and last memories, and what is kept of all steps
    /// or of one.
    #[inline(always)]
    pub(super) fn forward_task(
        &self,
        matrices: &Matrices,
        first: usize,
        out: [&mut [f32]; 4],
        kept: [&mut [f32]; 5],
        n_kept: usize,
    ) {
        let Self { len, d, .. } = *self;
        let [_, d_saved, _, _, fed_width] = self.kept_widths();
        let [states, contexts_out, last, last_memory] = out;
        let [previous, cells, weights, queries, fed] = kept;
        let n = last.len() / d;
        let width = self.n_gates() * d;
        let mut hidden = self.start[first * d..][..n * d].to_vec();
        let mut memory = match self.start_memory {
            [] => Vec::new(),
            memory => memory[first * d..][..n * d].to_vec(),
        };
        let (mut gates, mut recurrent) = (vec![0.0; n * width], vec![0.0; n * width]);
        let attention = self.attention.as_ref();
        let d_value = self.d_value();
        let (mut contexts, mut vectors) = (vec![0.0; n * d_value], vec![0.0; n * d]);
        let mut attending = attention.map(|attention| Attending {
            attention,
            matrix: matrices.query.as_ref(),
            powers: &matrices.powers,
            first,
            n_kept,
            query: vec![0.0; n * attention.d_key],
            weights,
            queries,
        });
        for step in self.reading.steps(len) {
            let kept = step.min(n_kept - 1);
            for i in 0..n {
                let from = row(self.gates, (first + i) * len + step, width);
                row_mut(&mut gates, i, width).copy_from_slice(from);
            }
            if let Some((attending, matrix)) = attending.as_mut().zip(matrices.fed.as_ref()) {
                let fed = if !self.attends_late() {
                    attending.attend(kept, &hidden, &mut contexts);
                    Matrix::new(&contexts, n, d_value)
                } else {
                    Matrix::new(&vectors, n, d)
                };
                matrix.add_product(MatrixMut::new(&mut gates, n, width), fed);
            }
            let before = Matrix::new(&hidden, n, d);
            matrices.recurrent.product(MatrixMut::new(&mut recurrent, n, width), before);
            for i in 0..n {
                if !self.is_running(first + i, step) {
                    continue;
                }
                row_mut(previous, i * n_kept + kept, d).copy_from_slice(row(&hidden, i, d));
                cell::step(
                    self.kind,
                    row(&gates, i, width),
                    row(&recurrent, i, width),
                    self.candidate_bias,
                    row_mut(&mut hidden, i, d),
                    if memory.is_empty() { &mut [] } else { row_mut(&mut memory, i, d) },
                    row_mut(cells, i * n_kept + kept, d_saved),
                );
            }
            if let Some(attending) = &mut attending
                && let Some((matrix, (_, bias))) = matrices.attentional.as_ref().zip(attending.attention.attentional)
            {
                attending.attend(kept, &hidden, &mut contexts);
                for i in 0..n {
                    let saved = row_mut(fed, i * n_kept + kept, fed_width);
                    saved[..d_value].copy_from_slice(row(&contexts, i, d_value));
                    saved[d_value..d_value + d].copy_from_slice(row(&hidden, i, d));
                    saved[d_value + d..].copy_from_slice(row(&vectors, i, d));
                }
                let both = Matrix::strided(&fed[kept * fed_width..], n, d_value + d, n_kept * fed_width);
                matrix.product(MatrixMut::new(&mut vectors, n, d), both);
                for vector in vectors.chunks_exact_mut(d) {
                    vector.iter_mut().zip(bias).for_each(|(value, bias)| *value = tanh(*value + bias));
                }
            }
            let made = if self.attends_late() { &vectors } else { &hidden };
            for i in (0..n).filter(|i| self.is_running(first + i, step)) {
                row_mut(states, i * len + step, d).copy_from_slice(row(made, i, d));
                row_mut(contexts_out, i * len + step, d_value).copy_from_slice(row(&contexts, i, d_value));
            }
        }
        last.copy_from_slice(&hidden);
        last_memory.copy_from_slice(&memory);
    }
}
