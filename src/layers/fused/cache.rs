//! Self-attention of a decoder that writes: one new position in each row, and keys and values that grow in place.
//!
//! Concatenation copies all keys and values at every step, and reordering the hypotheses of a beam does it once more. Here
//! each row owns its own; a row that is chosen by several hypotheses is copied when the first of them grows.

use super::attention::Heads;
use super::one_query::{Positions, attend_one};
use super::simd::vectorized;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rayon::prelude::*;
use std::sync::Arc;

/// Multiplications from which on rows are spread over all cores.
const PARALLEL_FROM: usize = 1 << 17;

/// Keys and values of the words of each row so far.
#[derive(Clone, Debug)]
pub struct GrowingCache {
    /// For each row `[len, 2 n_key_value_heads d_head]`: at every position the keys of all heads, then the values.
    rows: Vec<Arc<Vec<f32>>>,
    width: usize,
}

impl GrowingCache {
    fn new(n_rows: usize, width: usize) -> Self {
        Self { rows: vec![Arc::default(); n_rows], width }
    }

    /// A cache of positions that were computed at once: `[rows, len, 2 n_key_value_heads d_head]`. What stands before the start
    /// of a row is left out.
    pub fn from_packed(packed: Tensor<3>, starts: Option<&[usize]>) -> Self {
        let [n_rows, len, width] = packed.dims();
        let values = packed.try_into_vec_as::<f32>().expect("a tensor in memory can be read");
        let row = |i: usize| {
            let start = starts.map_or(0, |starts| starts[i]);
            Arc::new(values[(i * len + start) * width..(i + 1) * len * width].to_vec())
        };
        Self { rows: (0..n_rows).map(row).collect(), width }
    }

    /// The rows `rows`, in that order; nothing is copied.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        let rows = rows.clone().try_into_vec_as::<i64>().expect("indices can be read");
        Self { rows: rows.into_iter().map(|row| self.rows[row as usize].clone()).collect(), width: self.width }
    }

    /// All of it: `[rows, len, 2 n_key_value_heads d_head]`; shorter rows end where the others do, after zeros.
    pub fn packed(&self, device: &Device) -> Tensor<3> {
        let len = self.rows.iter().map(|row| row.len()).max().unwrap_or(0) / self.width;
        let mut values = vec![0.0; self.rows.len() * len * self.width];
        for (out, row) in values.chunks_exact_mut((len * self.width).max(1)).zip(&self.rows) {
            let start = out.len() - row.len();
            out[start..].copy_from_slice(row);
        }
        Tensor::from_data(TensorData::new(values, [self.rows.len(), len, self.width]), device)
    }
}

/// Adds a position to a row that others may share.
fn append(row: &mut Arc<Vec<f32>>, position: &[f32]) {
    match Arc::get_mut(row) {
        Some(values) => values.extend_from_slice(position),
        None => {
            let mut values = Vec::with_capacity(2 * (row.len() + position.len()));
            values.extend_from_slice(row);
            values.extend_from_slice(position);
            *row = Arc::new(values);
        }
    }
}

/// Attention of the next position of each row to itself and to those in `cache`, which grows by one. Nothing learns through
/// it, and nothing is dropped.
///
/// # Shapes
/// - packed: `[rows, 1, (n_heads + 2 n_key_value_heads) d_head]`: query, keys and values of all heads side by side
/// - bias: `[1, n_heads, 1, len]`, the new position included; a shorter row takes the end of it
/// - output: `[rows, 1, n_heads d_head]`
pub fn step_attention(
    packed: Tensor<3>,
    cache: &mut Option<GrowingCache>,
    bias: Option<Tensor<4>>,
    heads: &Heads,
) -> Tensor<3> {
    let device = packed.device();
    let [n_rows, _, _] = packed.dims();
    let Heads { n_heads, n_key_value_heads, d_head, .. } = *heads;
    let (d_model, width) = (n_heads * d_head, 2 * n_key_value_heads * d_head);
    let read = "a tensor in memory can be read";
    let packed = packed.try_into_vec_as::<f32>().expect(read);
    let bias = bias.map(|bias| bias.try_into_vec_as::<f32>().expect(read));
    let cache = cache.get_or_insert_with(|| GrowingCache::new(n_rows, width));
    let len = cache.rows.iter().map(|row| row.len()).max().unwrap_or(0) / width + 1;
    let mut out = vec![0.0; n_rows * d_model];
    let task = |row: &mut Arc<Vec<f32>>, packed: &[f32], out: &mut [f32]| {
        let (query, position) = packed.split_at(d_model);
        append(row, position);
        vectorized(
            #[inline(always)]
            || attend(out, query, row, bias.as_deref(), heads),
        );
    };
    // Rows that one thread takes: all of them, where the work is not worth a second one.
    let at_once = if n_rows * len * d_model < PARALLEL_FROM { n_rows } else { 1 };
    let new = packed.par_chunks_exact(d_model + width);
    let rows = cache.rows.par_iter_mut().zip(new).zip(out.par_chunks_exact_mut(d_model));
    rows.with_min_len(at_once).for_each(|((row, packed), out)| task(row, packed, out));
    Tensor::from_data(TensorData::new(out, [n_rows, 1, d_model]), &device)
}

/// What one row's new position finds.
#[inline(always)]
fn attend(out: &mut [f32], query: &[f32], row: &[f32], bias: Option<&[f32]>, heads: &Heads) {
    let Heads { n_heads, n_key_value_heads, d_head, .. } = *heads;
    let width = 2 * n_key_value_heads * d_head;
    let len = row.len() / width;
    let mut weights = vec![0.0; len];
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
}
