//! One step of a recurrent cell for one sentence, forward and backward.

use super::simd::{sigmoid, tanh};
use crate::layers::recurrent::CellKind;

/// How many vectors of the state's width a step keeps for its way back.
pub fn n_saved(kind: CellKind) -> usize {
    match kind {
        CellKind::Vanilla => 1,
        CellKind::Gru => 4,
        CellKind::Lstm => 6,
    }
}

/// `N` vectors of width `d`, one after the other.
#[inline(always)]
fn parts<const N: usize>(values: &[f32], d: usize) -> [&[f32]; N] {
    std::array::from_fn(|i| &values[i * d..][..d])
}

#[inline(always)]
fn parts_mut<const N: usize>(values: &mut [f32], d: usize) -> [&mut [f32]; N] {
    let mut pieces = values.chunks_exact_mut(d);
    std::array::from_fn(|_| pieces.next().expect("as many vectors as were asked for"))
}

/// The new state from the gates' input part and recurrent part; see [`Cell`](crate::layers::recurrent::Cell). `hidden` and
/// `memory` hold the state before and after.
#[inline(always)]
pub fn step(
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
        CellKind::Vanilla => {
            let [input, recurrent] = [&input[..d], &recurrent[..d]];
            let saved = &mut saved[..d];
            for i in 0..d {
                hidden[i] = tanh(input[i] + recurrent[i]);
                saved[i] = hidden[i];
            }
        }
        CellKind::Gru => {
            let bias = &bias.expect("a GRU has a bias of its candidate")[..d];
            let ([x_r, x_z, x_n], [u_r, u_z, u_n]) = (parts::<3>(input, d), parts::<3>(recurrent, d));
            let [r, z, n, inner] = parts_mut::<4>(saved, d);
            for i in 0..d {
                r[i] = sigmoid(x_r[i] + u_r[i]);
                z[i] = sigmoid(x_z[i] + u_z[i]);
                inner[i] = u_n[i] + bias[i];
                n[i] = tanh(x_n[i] + r[i] * inner[i]);
                hidden[i] = n[i] + z[i] * (hidden[i] - n[i]);
            }
        }
        CellKind::Lstm => {
            let (x, u) = (parts::<4>(input, d), parts::<4>(recurrent, d));
            let [i_, f, o, g, squashed, before] = parts_mut::<6>(saved, d);
            let memory = &mut memory[..d];
            for i in 0..d {
                i_[i] = sigmoid(x[0][i] + u[0][i]);
                f[i] = sigmoid(x[1][i] + u[1][i]);
                o[i] = sigmoid(x[2][i] + u[2][i]);
                g[i] = tanh(x[3][i] + u[3][i]);
                before[i] = memory[i];
                memory[i] = f[i] * memory[i] + i_[i] * g[i];
                squashed[i] = tanh(memory[i]);
                hidden[i] = o[i] * squashed[i];
            }
        }
    }
}

/// The way back. `of_hidden` and `of_memory` hold the gradient of the new state and then what reaches the old one past the
/// product with the recurrent matrix; `of_input` and `of_recurrent` get the gradients of the gates' parts.
#[inline(always)]
pub fn back(
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
            let (saved, of_input) = (&saved[..d], &mut of_input[..d]);
            for i in 0..d {
                of_input[i] = of_hidden[i] * (1.0 - saved[i] * saved[i]);
                of_hidden[i] = 0.0;
            }
            of_recurrent[..d].copy_from_slice(of_input);
        }
        CellKind::Gru => {
            let [r, z, n, inner] = parts::<4>(saved, d);
            let ([x_r, x_z, x_n], [u_r, u_z, u_n]) = (parts_mut::<3>(of_input, d), parts_mut::<3>(of_recurrent, d));
            let previous = &previous[..d];
            for i in 0..d {
                let g = of_hidden[i];
                let of_n = g * (1.0 - z[i]) * (1.0 - n[i] * n[i]);
                x_n[i] = of_n;
                u_n[i] = of_n * r[i];
                x_r[i] = of_n * inner[i] * r[i] * (1.0 - r[i]);
                u_r[i] = x_r[i];
                x_z[i] = g * (previous[i] - n[i]) * z[i] * (1.0 - z[i]);
                u_z[i] = x_z[i];
                of_hidden[i] = g * z[i];
            }
        }
        CellKind::Lstm => {
            let [i_, f, o, g, squashed, before] = parts::<6>(saved, d);
            let [x_i, x_f, x_o, x_g] = parts_mut::<4>(of_input, d);
            let of_memory = &mut of_memory[..d];
            for i in 0..d {
                let of_h = of_hidden[i];
                let of_c = of_memory[i] + of_h * o[i] * (1.0 - squashed[i] * squashed[i]);
                x_i[i] = of_c * g[i] * i_[i] * (1.0 - i_[i]);
                x_f[i] = of_c * before[i] * f[i] * (1.0 - f[i]);
                x_o[i] = of_h * squashed[i] * o[i] * (1.0 - o[i]);
                x_g[i] = of_c * i_[i] * (1.0 - g[i] * g[i]);
                of_memory[i] = of_c * f[i];
                of_hidden[i] = 0.0;
            }
            of_recurrent[..4 * d].copy_from_slice(&of_input[..4 * d]);
        }
    }
}
