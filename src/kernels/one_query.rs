//! Attention of one query.

use super::machine::vectorized;
use super::vectors::{add_weighted, exponentials, max, sum, update};

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
            [&bias[..len]],
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
