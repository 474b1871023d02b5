//! Keys and values of a decoder that writes, which grow by a position at each step.
//!
//! Concatenation would copy all keys and values at every step. On the host each row owns its own; a row that is chosen by several
//! hypotheses is copied when the first of them grows. Elsewhere there is room for positions to come, and the next one is written into it.

use super::attention::{HeadSizes, Projected, attention};
use super::bridge::is_on_host;
use super::mask::Mask;
use super::operation::Body;
use crate::kernels::dropout::Dropout;
use crate::kernels::one_query::attend_heads;
use burn::tensor::{Device, Int, Tensor, TensorData};
use rayon::prelude::*;
use std::sync::Arc;

/// Multiplications from which on rows are spread over all cores.
const PARALLEL_FROM: usize = 1 << 17;
/// The least number of positions that room is made for on a device, so that short targets need no more.
const LEAST_ROOM: usize = 32;

/// Keys and values of the words of each row so far: at every position the keys of all heads, then the values.
#[derive(Clone, Debug)]
pub struct KeyValueCache(Kept);

// One exists for each layer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
enum Kept {
    /// Rows in this process's memory, which grow in place.
    Rows(Rows),
    /// Positions on a device, with room for more.
    Ahead(Ahead),
}

impl KeyValueCache {
    /// A cache of positions that were computed at once. `starts` says in which column each row begins; without it, in the first.
    ///
    /// # Shapes
    /// - packed: `[rows, len, 2 n_key_value_heads d_head]`
    pub fn new(packed: Tensor<3>, starts: Option<&[usize]>, body: Body) -> Self {
        match grows_in_place(&packed, body) {
            true => Self(Kept::Rows(Rows::from_packed(packed, starts))),
            false => Self(Kept::Ahead(Ahead::full(packed))),
        }
    }

    /// The rows `rows`, in that order.
    pub fn select(&self, rows: &Tensor<1, Int>) -> Self {
        match &self.0 {
            Kept::Rows(cache) => Self(Kept::Rows(cache.select(rows))),
            Kept::Ahead(ahead) => Self(Kept::Ahead(ahead.select(rows))),
        }
    }

    /// `cache` with a position more, and all of it. Shorter rows end where the others do, after zeros.
    ///
    /// # Shapes
    /// - next: `[rows, 1, 2 n_key_value_heads d_head]`
    /// - output: `[rows, len, 2 n_key_value_heads d_head]`
    pub fn followed_by(cache: &mut Option<Self>, next: Tensor<3>) -> Tensor<3> {
        let ahead = match cache.take() {
            None => Ahead::empty(&next),
            Some(Self(Kept::Rows(rows))) => Ahead::full(rows.packed(&next.device())),
            Some(Self(Kept::Ahead(ahead))) => ahead,
        };
        let ahead = ahead.followed_by(next);
        let all = ahead.all();
        *cache = Some(Self(Kept::Ahead(ahead)));
        all
    }
}

/// Positions of all rows in one tensor that is longer than they are.
#[derive(Clone, Debug)]
struct Ahead {
    /// `[rows, room, 2 n_key_value_heads d_head]`; what comes after the first `len` positions is never read.
    values: Tensor<3>,
    len: usize,
}

impl Ahead {
    /// No position yet, of rows such as those of `next`.
    fn empty(next: &Tensor<3>) -> Self {
        let [n_rows, _, width] = next.dims();
        Self { values: Tensor::zeros([n_rows, LEAST_ROOM, width], &next.device()), len: 0 }
    }

    /// The positions of `packed`, without room for more.
    fn full(packed: Tensor<3>) -> Self {
        Self { len: packed.dims()[1], values: packed }
    }

    /// Appends the positions of `next`. Copies nothing else while there is room and nobody else holds the values.
    fn followed_by(self, next: Tensor<3>) -> Self {
        let [n_rows, n_new, width] = next.dims();
        let (room, len) = (self.values.dims()[1], self.len + n_new);
        let values = if len <= room {
            self.values
        } else {
            // Half as much again: however many positions come, each is copied about twice.
            let more = len + (len / 2).max(LEAST_ROOM);
            let longer = Tensor::zeros([n_rows, more, width], &next.device());
            longer.slice_assign([0..n_rows, 0..room], self.values)
        };
        Self { values: values.slice_assign([0..n_rows, self.len..len], next), len }
    }

    /// All positions. On a GPU this is a view of them, wherever the width is a multiple of its alignment.
    fn all(&self) -> Tensor<3> {
        self.values.clone().narrow(1, 0, self.len)
    }

    /// The rows `rows`, in that order.
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self { values: self.values.clone().select(0, rows.clone()), len: self.len }
    }
}

/// Whether keys and values can grow in place: nothing learns through them.
fn grows_in_place(packed: &Tensor<3>, body: Body) -> bool {
    body == Body::Fused && !packed.is_autodiff() && is_on_host(&packed.clone().into_dispatch())
}

/// Attention of the next position of each row to itself and to those in `cache`, which grows by one. `mask` hides columns in which a
/// row has not begun.
///
/// # Shapes
/// - packed: `[rows, 1, (n_heads + 2 n_key_value_heads) d_head]`: query, keys and values of all heads side by side
/// - bias: `[1, n_heads, 1, len]`, the new position included; a shorter row takes the end of it
/// - output: `[rows, 1, n_heads d_head]`
pub fn step_attention(
    packed: Tensor<3>,
    cache: &mut Option<KeyValueCache>,
    bias: Option<Tensor<4>>,
    sizes: HeadSizes,
    mask: &Mask,
    dropout: Option<Dropout>,
    body: Body,
) -> Tensor<3> {
    let [n_rows, _, _] = packed.dims();
    let [d_query, d_key] = sizes.widths();
    let in_place = grows_in_place(&packed, body) && dropout.is_none();
    match cache {
        None if in_place => *cache = Some(KeyValueCache(Kept::Rows(Rows::new(n_rows, 2 * d_key)))),
        _ => {}
    }
    if in_place && let Some(KeyValueCache(Kept::Rows(rows))) = cache {
        return rows.step(packed, bias, &sizes);
    }
    let query = packed.clone().narrow(2, 0, d_query);
    let all = KeyValueCache::followed_by(cache, packed.narrow(2, d_query, 2 * d_key));
    attention(Projected::Apart(query, all), bias, sizes, mask, dropout, body)
}

/// Keys and values of the words of each row so far.
#[derive(Clone, Debug)]
struct Rows {
    /// For each row `[len, 2 n_key_value_heads d_head]`: at every position the keys of all heads, then the values.
    rows: Vec<Arc<Vec<f32>>>,
    width: usize,
}

impl Rows {
    fn new(n_rows: usize, width: usize) -> Self {
        Self { rows: vec![Arc::default(); n_rows], width }
    }

    /// A cache of positions that were computed at once: `[rows, len, 2 n_key_value_heads d_head]`. What stands before the start
    /// of a row is left out.
    fn from_packed(packed: Tensor<3>, starts: Option<&[usize]>) -> Self {
        let [n_rows, len, width] = packed.dims();
        let values = packed.try_into_vec_as::<f32>().expect("a tensor in memory can be read");
        let row = |i: usize| {
            let start = starts.map_or(0, |starts| starts[i]);
            Arc::new(values[(i * len + start) * width..(i + 1) * len * width].to_vec())
        };
        Self { rows: (0..n_rows).map(row).collect(), width }
    }

    /// The rows `rows`, in that order; nothing is copied.
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        let rows = rows.clone().try_into_vec_as::<i64>().expect("indices can be read");
        Self { rows: rows.into_iter().map(|row| self.rows[row as usize].clone()).collect(), width: self.width }
    }

    /// All of it: `[rows, len, 2 n_key_value_heads d_head]`; shorter rows end where the others do, after zeros.
    fn packed(&self, device: &Device) -> Tensor<3> {
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

impl Rows {
    fn step(&mut self, packed: Tensor<3>, bias: Option<Tensor<4>>, sizes: &HeadSizes) -> Tensor<3> {
        let device = packed.device();
        let [n_rows, _, _] = packed.dims();
        let ([d_query, _], width) = (sizes.widths(), self.width);
        let read = "a tensor in memory can be read";
        let packed = packed.try_into_vec_as::<f32>().expect(read);
        let bias = bias.map(|bias| bias.try_into_vec_as::<f32>().expect(read));
        let len = self.rows.iter().map(|row| row.len()).max().unwrap_or(0) / width + 1;
        let mut out = vec![0.0; n_rows * d_query];
        let task = |row: &mut Arc<Vec<f32>>, packed: &[f32], out: &mut [f32]| {
            let (query, position) = packed.split_at(d_query);
            append(row, position);
            attend_heads(out, query, row, bias.as_deref(), [sizes.n_heads, sizes.n_key_value_heads, sizes.d_head]);
        };
        // Rows that one thread takes: all of them, where the work is not worth a second one.
        let at_once = if n_rows * len * d_query < PARALLEL_FROM { n_rows } else { 1 };
        let new = packed.par_chunks_exact(d_query + width);
        let rows = self.rows.par_iter_mut().zip(new).zip(out.par_chunks_exact_mut(d_query));
        rows.with_min_len(at_once).for_each(|((row, packed), out)| task(row, packed, out));
        Tensor::from_data(TensorData::new(out, [n_rows, 1, d_query]), &device)
    }
}
