//! One step of a recurrent cell, forward and backward: of one sentence, and of many.

use super::functions::{flushed, sigmoid, tanh};
use super::machine::vectorized;
use super::memory::{task_rows, zeros};
use super::vectors::{each, update};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The choice of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CellKind {
    /// `h' = tanh(W x + U h + b)` (Elman 1990).
    Vanilla,
    /// Gated recurrent unit (Cho et al. 2014).
    Gru,
    /// Long short-term memory (Hochreiter and Schmidhuber 1997; Gers et al. 2000).
    Lstm,
}

impl CellKind {
    /// How many matrices are packed side by side.
    pub fn n_gates(self) -> usize {
        match self {
            Self::Vanilla => 1,
            Self::Gru => 3,
            Self::Lstm => 4,
        }
    }
}

/// How many vectors of the state's width a step keeps for its way back.
pub fn n_saved(kind: CellKind) -> usize {
    match kind {
        CellKind::Vanilla => 1,
        CellKind::Gru => 4,
        CellKind::Lstm => 6,
    }
}

/// A step of many sentences.
///
/// # Shapes
/// - input, recurrent: `[rows, n_gates d]`, the products with input and state
/// - hidden: `[rows, d]`
/// - memory: `[rows, d]` of an LSTM, else empty
/// - candidate_bias: `[d]`, of a GRU
pub struct Step<'a> {
    /// Which cell.
    pub kind: CellKind,
    /// The input's part of the gates.
    pub input: &'a [f32],
    /// The state's part of the gates.
    pub recurrent: &'a [f32],
    /// The states before.
    pub hidden: &'a [f32],
    /// The memories before.
    pub memory: &'a [f32],
    /// Of a GRU.
    pub candidate_bias: Option<&'a [f32]>,
    /// The width of the state.
    pub d: usize,
}

/// The gradients of all inputs. (That of the candidate's bias is the sum of the last third of the recurrent part's.)
pub struct Gradients {
    /// Of the input's part of the gates.
    pub input: Vec<f32>,
    /// Of the state's part.
    pub recurrent: Vec<f32>,
    /// Of the states before.
    pub hidden: Vec<f32>,
    /// Of the memories before.
    pub memory: Vec<f32>,
}

impl Step<'_> {
    /// The states and memories after, and what the backward pass needs.
    pub fn forward(&self) -> [Vec<f32>; 3] {
        let &Self { kind, d, .. } = self;
        let n_rows = self.hidden.len() / d;
        let (width, d_saved) = (kind.n_gates() * d, n_saved(kind) * d);
        let (mut hidden, mut memory) = (self.hidden.to_vec(), self.memory.to_vec());
        let mut saved = zeros(n_rows * d_saved);
        let n = task_rows(width);
        let d_memory = if memory.is_empty() { 0 } else { d };
        let mut memories: Vec<&mut [f32]> = memory.chunks_mut((n * d_memory).max(1)).collect();
        memories.resize_with(n_rows.div_ceil(n), Default::default);
        let pieces = hidden.par_chunks_mut(n * d).zip(memories).zip(saved.par_chunks_mut(n * d_saved));
        pieces.enumerate().for_each(|(task, ((hidden, memory), saved))| {
            vectorized(
                #[inline(always)]
                || {
                    let rows = hidden.chunks_exact_mut(d).zip(saved.chunks_exact_mut(d_saved));
                    for (i, (hidden, saved)) in rows.enumerate() {
                        let row = (task * n + i) * width;
                        let (input, recurrent) = (&self.input[row..][..width], &self.recurrent[row..][..width]);
                        let memory = &mut memory[i * d_memory..][..d_memory];
                        step(kind, input, recurrent, self.candidate_bias, hidden, memory, saved);
                    }
                },
            )
        });
        [hidden, memory, saved]
    }

    /// The gradients, from what [`Self::forward`] saved and the gradients of the states and memories after.
    pub fn backward(&self, saved: &[f32], of_hidden: &[f32], of_memory: &[f32]) -> Gradients {
        let &Self { kind, d, .. } = self;
        let n_rows = self.hidden.len() / d;
        let (width, d_saved) = (kind.n_gates() * d, n_saved(kind) * d);
        let [mut of_input, mut of_recurrent] = [zeros(n_rows * width), zeros(n_rows * width)];
        let (mut of_hidden, mut of_memory) = (of_hidden.to_vec(), of_memory.to_vec());
        let d_memory = if of_memory.is_empty() { 0 } else { d };
        vectorized(
            #[inline(always)]
            || {
                for row in 0..n_rows {
                    back(
                        kind,
                        &saved[row * d_saved..][..d_saved],
                        &self.hidden[row * d..][..d],
                        &mut of_hidden[row * d..][..d],
                        &mut of_memory[row * d_memory..][..d_memory],
                        &mut of_input[row * width..][..width],
                        &mut of_recurrent[row * width..][..width],
                    );
                }
            },
        );
        Gradients { input: of_input, recurrent: of_recurrent, hidden: of_hidden, memory: of_memory }
    }
}

/// `N` vectors of width `d`, one after the other.
#[inline(always)]
fn parts<const N: usize>(values: &[f32], d: usize) -> [&[f32]; N] {
    each(&values[..0], |i| &values[i * d..][..d])
}

#[inline(always)]
fn parts_mut<const N: usize>(values: &mut [f32], d: usize) -> [&mut [f32]; N] {
    let mut pieces = values.chunks_exact_mut(d);
    std::array::from_fn(|_| pieces.next().expect("as many vectors as were asked for"))
}

/// The new state from the gates' input part and recurrent part; see `layers::recurrent::Cell`. `hidden` and
/// `memory` hold the state before and after.
#[inline(always)]
pub(super) fn step(
    kind: CellKind,
    input: &[f32],
    recurrent: &[f32],
    bias: Option<&[f32]>,
    hidden: &mut [f32],
    memory: &mut [f32],
    saved: &mut [f32],
) {
    let d = hidden.len();
    match kind {
        CellKind::Vanilla => update(
            [&input[..d], &recurrent[..d]],
            [hidden, &mut saved[..d]],
            #[inline(always)]
            |[x, u], _| {
                let h = tanh(x + u);
                [h, h]
            },
        ),
        CellKind::Gru => {
            let bias = bias.expect("a GRU has a bias of its candidate");
            let ([x_r, x_z, x_n], [u_r, u_z, u_n]) = (parts::<3>(input, d), parts::<3>(recurrent, d));
            let [r, z, n, inner] = parts_mut::<4>(saved, d);
            let inputs = [x_r, x_z, x_n, u_r, u_z, u_n, bias];
            update(
                inputs,
                [hidden, r, z, n, inner],
                #[inline(always)]
                |[x_r, x_z, x_n, u_r, u_z, u_n, bias], [h, ..]| {
                    let r = sigmoid(x_r + u_r);
                    let z = sigmoid(x_z + u_z);
                    let inner = u_n + bias;
                    let n = tanh(x_n + r * inner);
                    [n + z * (h - n), r, z, n, inner]
                },
            );
        }
        CellKind::Lstm => {
            let ([x_i, x_f, x_o, x_g], [u_i, u_f, u_o, u_g]) = (parts::<4>(input, d), parts::<4>(recurrent, d));
            let [i, f, o, g, squashed, before] = parts_mut::<6>(saved, d);
            let inputs = [x_i, x_f, x_o, x_g, u_i, u_f, u_o, u_g];
            let outputs = [hidden, memory, i, f, o, g, squashed, before];
            update(
                inputs,
                outputs,
                #[inline(always)]
                |[x_i, x_f, x_o, x_g, u_i, u_f, u_o, u_g], [_, before, ..]| {
                    let [i, f, o] = [sigmoid(x_i + u_i), sigmoid(x_f + u_f), sigmoid(x_o + u_o)];
                    let g = tanh(x_g + u_g);
                    let memory = f * before + i * g;
                    let squashed = tanh(memory);
                    [o * squashed, memory, i, f, o, g, squashed, before]
                },
            );
        }
    }
}

/// The way back. `of_hidden` and `of_memory` hold the gradient of the new state and then what reaches the old one past the
/// product with the recurrent matrix; `of_input` and `of_recurrent` get the gradients of the gates' parts.
#[inline(always)]
pub(super) fn back(
    kind: CellKind,
    saved: &[f32],
    previous: &[f32],
    of_hidden: &mut [f32],
    of_memory: &mut [f32],
    of_input: &mut [f32],
    of_recurrent: &mut [f32],
) {
    let d = of_hidden.len();
    match kind {
        CellKind::Vanilla => {
            let outputs = [of_hidden, &mut of_input[..d], &mut of_recurrent[..d]];
            update(
                [&saved[..d]],
                outputs,
                #[inline(always)]
                |[h], [g, ..]| {
                    let of_sum = flushed(g * (1.0 - h * h));
                    [0.0, of_sum, of_sum]
                },
            );
        }
        CellKind::Gru => {
            let [r, z, n, inner] = parts::<4>(saved, d);
            let ([x_r, x_z, x_n], [u_r, u_z, u_n]) = (parts_mut::<3>(of_input, d), parts_mut::<3>(of_recurrent, d));
            let outputs = [of_hidden, x_r, x_z, x_n, u_r, u_z, u_n];
            update(
                [r, z, n, inner, previous],
                outputs,
                #[inline(always)]
                |[r, z, n, inner, previous], [g, ..]| {
                    let of_n = flushed(g * (1.0 - z) * (1.0 - n * n));
                    let of_r = flushed(of_n * inner * r * (1.0 - r));
                    let of_z = flushed(g * (previous - n) * z * (1.0 - z));
                    [flushed(g * z), of_r, of_z, of_n, of_r, of_z, of_n * r]
                },
            );
        }
        CellKind::Lstm => {
            let [i, f, o, g, squashed, before] = parts::<6>(saved, d);
            let [x_i, x_f, x_o, x_g] = parts_mut::<4>(of_input, d);
            let outputs = [of_hidden, of_memory, x_i, x_f, x_o, x_g];
            update(
                [i, f, o, g, squashed, before],
                outputs,
                #[inline(always)]
                |[i, f, o, g, squashed, before], [of_h, of_c, ..]| {
                    let of_c = flushed(of_c + of_h * o * (1.0 - squashed * squashed));
                    let of_i = flushed(of_c * g * i * (1.0 - i));
                    let of_f = flushed(of_c * before * f * (1.0 - f));
                    let of_o = flushed(of_h * squashed * o * (1.0 - o));
                    [0.0, of_c * f, of_i, of_f, of_o, flushed(of_c * i * (1.0 - g * g))]
                },
            );
            of_recurrent[..4 * d].copy_from_slice(&of_input[..4 * d]);
        }
    }
}
