//! Attention of one query.
// Written with places, since zipped iterators do not become wide instructions.
#![allow(clippy::needless_range_loop)]

use super::machine::vectorized;
use super::vectors::{LANES, add_weighted, exponentials, max, sum, update};

/// What is added to the score of a hidden position: far below any real score, and finite, so that no row becomes NaN.
pub const HIDDEN: f32 = -1e9;

/// Keys and values of one head at some positions.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    /// Position after position.
    pub values: &'a [f32],
    /// Elements of a position.
    pub width: usize,
    /// Where the key begins in a position.
    pub key: usize,
    /// Where the value begins.
    pub value: usize,
}

/// The contexts of one position's queries in all heads, with all positions of a row. A call, so that it is compiled in this package.
///
/// # Shapes
/// - out, which is zero, and query: `[n_heads, d_head]`
/// - row: `[len, 2, n_key_value_heads, d_head]`
/// - bias: `[n_heads, at least len]`, of which a shorter row takes the end
pub fn attend_heads(
    out: &mut [f32],
    query: &[f32],
    row: &[f32],
    bias: Option<&[f32]>,
    [n_heads, n_key_value_heads, d_head]: [usize; 3],
) {
    let width = 2 * n_key_value_heads * d_head;
    let len = row.len() / width;
    let mut weights = vec![0.0; len];
    vectorized(
        #[inline(always)]
        || {
            for (head, out) in out.chunks_exact_mut(d_head).enumerate() {
                let query = &query[head * d_head..][..d_head];
                let key = head * n_key_value_heads / n_heads * d_head;
                let bias = bias.map(|bias| {
                    let of_head = bias.len() / n_heads;
                    &bias[(head + 1) * of_head - len..]
                });
                let positions = Positions { values: row, width, key, value: n_key_value_heads * d_head + key };
                attend_one(out, query, positions, bias, &mut weights);
            }
        },
    );
}

/// Attention of one query in one head to as many positions as there are `weights`, in which it leaves the weights: `out`, which is
/// zero, becomes the context. The logarithm of the sum of the exponentials of the scores.
#[inline(always)]
pub fn attend_one(
    out: &mut [f32],
    query: &[f32],
    positions: Positions,
    bias: Option<&[f32]>,
    weights: &mut [f32],
) -> f32 {
    let d_head = query.len();
    let scale = (d_head as f32).powf(-0.5);
    let Positions { values, width, key, value } = positions;
    let n_hidden = bias.map_or(0, |bias| n_hidden_first(&bias[..weights.len()]));
    let (hidden, weights) = weights.split_at_mut(n_hidden);
    hidden.fill(0.0);
    let values = &values[n_hidden * width..];
    let len = weights.len();
    for i in 0..len {
        let score = sum(
            [query, &values[i * width + key..][..d_head]],
            #[inline(always)]
            |[q, k]| q * k,
        );
        weights[i] = scale * score;
    }
    if let Some(bias) = bias {
        update(
            [&bias[n_hidden..][..len]],
            [&mut *weights],
            #[inline(always)]
            |[bias], [weight]| [weight + bias],
        );
    }
    let highest = max(weights);
    if highest == f32::NEG_INFINITY {
        // Either there is nothing to see, or no score is a number, which the context must show.
        let is_hidden = !weights.iter().any(|score| score.is_nan());
        let weight = if is_hidden { 0.0 } else { f32::NAN };
        weights.fill(weight);
        out.iter_mut().for_each(|out| *out += weight);
        return highest + weight;
    }
    let total = exponentials(weights, highest);
    update(
        [],
        [&mut *weights],
        #[inline(always)]
        |[], [weight]| [weight / total],
    );
    add_weighted(
        out,
        weights,
        #[inline(always)]
        |i| &values[i * width + value..][..d_head],
    );
    highest + total.ln()
}

/// Positions before the first that a bias shows, whole vectors of them, so that what is left is summed in the same order; 0 where it shows
/// none. Where a window ends a long row, the rest of it is not read.
#[inline(always)]
fn n_hidden_first(bias: &[f32]) -> usize {
    let mut n = 0;
    for vector in bias.as_chunks::<LANES>().0 {
        let mut n_hidden = 0;
        for lane in 0..LANES {
            n_hidden += u32::from(vector[lane] <= HIDDEN);
        }
        if n_hidden < LANES as u32 {
            break;
        }
        n += LANES;
    }
    if bias[n..].iter().all(|bias| *bias <= HIDDEN) { 0 } else { n }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The context of a query among positions, and their weights.
    fn attended(bias: &[f32], query: &[f32], row: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let width = 2 * query.len();
        let positions = Positions { values: row, width, key: 0, value: query.len() };
        let (mut out, mut weights) = (vec![0.0; query.len()], vec![1.0; bias.len()]);
        attend_one(&mut out, query, positions, Some(bias), &mut weights);
        (out, weights)
    }

    #[test]
    fn what_a_bias_hides_at_the_beginning_is_not_read() {
        let (d_head, len, n_hidden) = (8, 61, 50);
        let number = |i: usize| (i * 7919 % 1009) as f32 / 504.5 - 1.0;
        let query: Vec<f32> = (0..d_head).map(number).collect();
        let mut row: Vec<f32> = (0..len * 2 * d_head).map(|i| number(i + 100)).collect();
        let bias: Vec<f32> = (0..len).map(|i| if i < n_hidden { HIDDEN } else { number(i) }).collect();
        let whole = attended(&bias, &query, &row);
        // Of fifty positions those of three vectors are passed over.
        row[..48 * 2 * d_head].fill(f32::NAN);
        assert_eq!(attended(&bias, &query, &row), whole);
        assert!(whole.1[..n_hidden].iter().all(|weight| *weight == 0.0));
        let (visible, weights) = attended(&bias[n_hidden..], &query, &row[n_hidden * 2 * d_head..]);
        for (one, other) in whole.0.iter().zip(&visible).chain(whole.1[n_hidden..].iter().zip(&weights)) {
            assert!((one - other).abs() < 1e-6, "{one} and {other}");
        }
    }

    #[test]
    fn where_everything_is_hidden_all_positions_have_the_same_weight() {
        let (query, row) = ([0.0; 4], [1.0; 40 * 8]);
        let (context, weights) = attended(&[HIDDEN; 40], &query, &row);
        assert_eq!(weights, [1.0 / 40.0; 40]);
        assert!(context.iter().all(|value| (value - 1.0).abs() < 1e-6));
    }
}
