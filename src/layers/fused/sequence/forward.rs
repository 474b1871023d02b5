//! The steps forwards, for the sentences of one task.

use super::{AttentionKind, AttentionParts, Matrices, Parts, Sequence, row, row_mut};
use crate::layers::fused::alignment;
use crate::layers::fused::cell;
use crate::layers::fused::matrix::{Matrix, MatrixMut};
use crate::layers::fused::packed::Packed;
use crate::layers::fused::simd::tanh;

/// The attention of a task's sentences.
struct Attending<'a> {
    kind: &'a AttentionKind,
    attention: &'a AttentionParts<'a>,
    matrix: Option<&'a Packed>,
    /// The first sentence, and the number of steps.
    first: usize,
    len: usize,
    query: Vec<f32>,
    /// What the backward pass wants to find again.
    weights: &'a mut [f32],
    queries: &'a mut [f32],
}

impl Attending<'_> {
    /// The context of every sentence's query at one step.
    #[inline(always)]
    fn attend(&mut self, step: usize, hidden: &[f32], contexts: &mut [f32]) {
        let AttentionParts { source_len, d_key, d_value, .. } = *self.attention;
        let n = contexts.len() / d_value;
        match self.matrix {
            Some(matrix) => {
                let hidden = Matrix::new(hidden, n, hidden.len() / n);
                matrix.product(MatrixMut::new(&mut self.query, n, d_key), hidden);
            }
            None => self.query.copy_from_slice(hidden),
        }
        for i in 0..n {
            let (query, place) = (row(&self.query, i, d_key), i * self.len + step);
            row_mut(self.queries, place, d_key).copy_from_slice(query);
            let source = self.attention.source(self.first + i, &self.kind.lengths);
            let weights = row_mut(self.weights, place, source_len);
            alignment::attend(self.kind.score, query, &source, weights, row_mut(contexts, i, d_value));
        }
    }
}

impl Sequence {
    #[inline(always)]
    pub(super) fn forward_task(
        &self,
        parts: &Parts,
        matrices: &Matrices,
        first: usize,
        out: &mut [f32],
        saved: [&mut [f32]; 5],
    ) {
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
        let d_value = attention.map_or(0, |(_, attention)| attention.d_value);
        let (mut contexts, mut vectors) = (vec![0.0; n * d_value], vec![0.0; n * d]);
        let mut attending = attention.map(|(kind, attention)| Attending {
            kind,
            attention,
            matrix: matrices.query.as_ref(),
            first,
            len,
            query: vec![0.0; n * attention.d_key],
            weights,
            queries,
        });
        for step in self.steps(len) {
            for i in 0..n {
                let from = row(parts.gates, (first + i) * len + step, width);
                row_mut(&mut gates, i, width).copy_from_slice(from);
            }
            if let Some((attending, matrix)) = attending.as_mut().zip(matrices.fed.as_ref()) {
                let fed = if attending.kind.is_before {
                    attending.attend(step, &hidden, &mut contexts);
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
            if let Some(attending) = &mut attending
                && let Some((matrix, (_, bias))) = matrices.attentional.as_ref().zip(attending.attention.attentional)
            {
                attending.attend(step, &hidden, &mut contexts);
                for i in 0..n {
                    let saved = row_mut(fed, i * len + step, fed_width);
                    saved[..d_value].copy_from_slice(row(&contexts, i, d_value));
                    saved[d_value..d_value + d].copy_from_slice(row(&hidden, i, d));
                    saved[d_value + d..].copy_from_slice(row(&vectors, i, d));
                }
                let both = Matrix::strided(&fed[step * fed_width..], n, d_value + d, len * fed_width);
                matrix.product(MatrixMut::new(&mut vectors, n, d), both);
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
