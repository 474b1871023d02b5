//! A short causal convolution, channel by channel.

use super::memory::{Start, new_pieces};
use super::rows::sum_in_order;
use super::vectors::update;

/// An input that follows a past.
///
/// # Shapes
/// - input: `[rows, len, d]`
/// - past: `[rows, n_past, d]`
/// - weight: `[n_past + 1, d]`; row `j` is for the position `j` before
#[derive(Clone, Copy)]
pub struct Convolution<'a> {
    /// What is read.
    pub input: &'a [f32],
    /// What comes before.
    pub past: &'a [f32],
    /// What each position before is multiplied by.
    pub weight: &'a [f32],
    /// Positions of the input.
    pub len: usize,
    /// Channels.
    pub d: usize,
}

/// The gradients of all inputs.
pub struct Gradients {
    /// Of the input.
    pub input: Vec<f32>,
    /// Of what comes before.
    pub past: Vec<f32>,
    /// Of the weight.
    pub weight: Vec<f32>,
}

impl<'a> Convolution<'a> {
    fn n_past(&self) -> usize {
        self.weight.len() / self.d - 1
    }

    fn rows(&self) -> usize {
        self.input.len() / (self.len * self.d)
    }

    /// The vector of a row at a position, counted from the beginning of the past.
    #[inline(always)]
    fn at(&self, row: usize, position: usize) -> &'a [f32] {
        let (n_past, d) = (self.n_past(), self.d);
        match position.checked_sub(n_past) {
            None => &self.past[(row * n_past + position) * d..][..d],
            Some(position) => &self.input[(row * self.len + position) * d..][..d],
        }
    }

    /// `y_t = sum_j w_j * x_(t-j)`, and what comes before the next: shaped like input and past.
    pub fn forward(&self) -> [Vec<f32>; 2] {
        let (len, d, n_past) = (self.len, self.d, self.n_past());
        let (values, next) = new_pieces(
            Start::Zeros(self.input.len()),
            len * d,
            #[inline(always)]
            |place, out| {
                let row = place / (len * d);
                for (t, out) in out.chunks_exact_mut(d).enumerate() {
                    for (j, weight) in self.weight.chunks_exact(d).enumerate() {
                        update(
                            [self.at(row, t + n_past - j), weight],
                            [&mut *out],
                            #[inline(always)]
                            |[x, w], [sum]| [sum + x * w],
                        );
                    }
                }
                let mut next = Vec::with_capacity(n_past * d);
                for position in len..len + n_past {
                    next.extend_from_slice(self.at(row, position));
                }
                next
            },
        );
        [values, next.concat()]
    }

    /// The gradients, from those of what [`Self::forward`] makes.
    pub fn backward(&self, of_output: &[f32], of_next: &[f32]) -> Gradients {
        let (len, d, n_past) = (self.len, self.d, self.n_past());
        let n_all = (n_past + len) * d;
        // Each row's past and input side by side.
        let (of_all, of_weights) = new_pieces(
            Start::Zeros(self.rows() * n_all),
            n_all,
            #[inline(always)]
            |place, out| {
                let row = place / n_all;
                out[len * d..].copy_from_slice(&of_next[row * n_past * d..][..n_past * d]);
                let mut of_weight = vec![0.0; self.weight.len()];
                for (t, of_output) in of_output[row * len * d..][..len * d].chunks_exact(d).enumerate() {
                    let weights = self.weight.chunks_exact(d).zip(of_weight.chunks_exact_mut(d));
                    for (j, (weight, of_weight)) in weights.enumerate() {
                        let position = t + n_past - j;
                        update(
                            [of_output, weight, self.at(row, position)],
                            [&mut out[position * d..][..d], of_weight],
                            #[inline(always)]
                            |[g, w, x], [of_x, of_w]| [of_x + g * w, of_w + g * x],
                        );
                    }
                }
                of_weight
            },
        );
        // Row by row, which are copied whole.
        let part = |start: usize, n: usize| {
            of_all.chunks_exact(n_all).map(|row| &row[start * d..][..n * d]).collect::<Vec<_>>().concat()
        };
        Gradients {
            input: part(n_past, len),
            past: part(0, n_past),
            weight: sum_in_order(of_weights.iter().map(Vec::as_slice), self.weight.len()),
        }
    }
}
