//! Maxout: of every pair of numbers, the larger.

use super::dropout::Dropout;
use super::memory::{Start, new_pieces, task_rows};
use super::vectors::update;

/// `dropout(max(a + b_a, c + b_c))` of every pair, and one for each maximum that is the second of its pair, else zero.
///
/// # Shapes
/// - sums: rows of `2 n`, the numbers of a pair `n` apart
/// - bias: `[2 n]`
/// - both results: rows of `n`
///
/// # Reference
/// Goodfellow et al., Maxout Networks, 2013.
pub fn maxout(sums: &[f32], bias: &[f32], dropout: Option<&Dropout>) -> [Vec<f32>; 2] {
    let (left, right) = bias.split_at(bias.len() / 2);
    let n = left.len();
    let (values, is_second) = new_pieces(
        Start::Zeros(sums.len() / 2),
        task_rows(2 * n) * n,
        #[inline(always)]
        |start, out| {
            let mut is_second = vec![0.0; out.len()];
            let sums = sums[2 * start..].chunks_exact(2 * n);
            for ((out, is_second), sums) in out.chunks_exact_mut(n).zip(is_second.chunks_exact_mut(n)).zip(sums) {
                let (first, second) = sums.split_at(n);
                update(
                    [first, left, second, right],
                    [out, is_second],
                    #[inline(always)]
                    |[first, left, second, right], _| {
                        let (a, b) = (first + left, second + right);
                        // What is not a number is passed on, whichever of the two it is.
                        let takes_second = a < b || b.is_nan();
                        [if takes_second { b } else { a }, if takes_second { 1.0 } else { 0.0 }]
                    },
                );
            }
            if let Some(dropout) = dropout {
                dropout.apply(start, out);
            }
            is_second
        },
    );
    [values, is_second.concat()]
}

/// The gradient of the sums, from that of [`maxout`]: of each pair, the larger number has it.
pub fn back(gradient: &[f32], is_second: &[f32], n: usize, dropout: Option<&Dropout>) -> Vec<f32> {
    let dropped = dropout.map(|dropout| dropout.dropped(gradient));
    let gradient = dropped.as_deref().unwrap_or(gradient);
    let pieces = new_pieces(
        Start::Zeros(2 * gradient.len()),
        task_rows(2 * n) * 2 * n,
        #[inline(always)]
        |start, out| {
            for (i, out) in out.chunks_exact_mut(2 * n).enumerate() {
                let place = start / 2 + i * n;
                let (left, right) = out.split_at_mut(n);
                update(
                    [&gradient[place..][..n], &is_second[place..][..n]],
                    [left, right],
                    #[inline(always)]
                    |[gradient, is_second], _| {
                        let of_second = gradient * is_second;
                        [gradient - of_second, of_second]
                    },
                );
            }
        },
    );
    pieces.0
}
