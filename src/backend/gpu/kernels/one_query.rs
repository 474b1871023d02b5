//! Attention of the one query that each sequence has at a step of a decoder, on a GPU: one launch, where heads that are cut out, compared,
//! weighed, averaged and joined take seven. It has no gradient.

use super::cube::{UNITS_OF_ROW, cube_for_each, max_of_cube, sum_of_cube};
use super::{computed_plain, new_like};
use crate::backend::gpu::{Heads, Softening};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn_cubecl::CubeBackend;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Positions whose weights a cube holds: 8 KiB of the 16 that WebGPU promises.
const MOST_KEYS: usize = 2048;

/// Backends that attend with one query and a number for each key of each head.
#[backend_extension(Cube, Fusion: cfg(feature = "fusion"))]
pub trait OneQueryKernels: Backend {
    /// The contexts of all heads side by side.
    #[fusion(meta = |query, _key_value, _bias, _heads, _how| query.clone())]
    fn attended_once(
        query: FloatTensor<Self>,
        key_value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        heads: Heads,
        how: Softening,
    ) -> FloatTensor<Self>;
}

/// `softmax(scale * Q K^T + bias) V` in every head. None where there are more queries or very many keys, where a weight is dropped or a tensor
/// has a graph, and where the tensors are not ones of 32-bit floats on a device that has this kernel.
///
/// # Shapes
/// - query, output: `[rows, 1, n_heads d_head]`
/// - key_value: `[rows, len, 2 n_key_value_heads d_head]`
/// - bias: `[rows or 1, n_heads, 1, len]`
pub fn one_query(
    query: &Tensor<3>,
    key_value: &Tensor<3>,
    bias: &Tensor<4>,
    heads: Heads,
    how: Softening,
) -> Option<Tensor<3>> {
    let (rows, len) = (query.dims()[0], key_value.dims()[1]);
    let [of_rows, of_heads, ..] = bias.dims();
    assert!(
        (of_rows == 1 || of_rows == rows) && bias.dims() == [of_rows, of_heads, 1, len] && of_heads == heads.n_heads,
        "a bias {:?} of {rows} rows with {} heads and {len} keys",
        bias.dims(),
        heads.n_heads
    );
    if query.dims()[1] != 1 || len > MOST_KEYS || how.dropout.is_some() {
        return None;
    }
    let (query, key_value, bias) = (computed_plain(query)?, computed_plain(key_value)?, computed_plain(bias)?);
    Some(Tensor::from_dispatch(Dispatch::attended_once(query, key_value, bias, heads, how)))
}

impl OneQueryKernels for CubeBackend {
    fn attended_once(
        query: FloatTensor<Self>,
        key_value: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        heads: Heads,
        how: Softening,
    ) -> FloatTensor<Self> {
        attend(query, key_value, bias, true, heads, how)
    }
}

/// Whether [`attend`] takes these queries and keys.
pub(super) fn is_taken(query: &CubeTensor, key_value: &CubeTensor, how: Softening) -> bool {
    query.meta.shape()[1] == 1 && key_value.meta.shape()[1] <= MOST_KEYS && how.dropout.is_none()
}

/// `softmax(scale * Q K^T + hiding) V` in every head. Queries and keys are read where they lie, as parts of a projection and of a cache.
///
/// # Shapes
/// - query, output: `[rows, 1, n_heads d_head]`
/// - key_value: `[rows, len, 2 n_key_value_heads d_head]`
/// - hiding: `[rows or 1, n_heads or 1, 1, len]`
pub(super) fn attend(
    query: CubeTensor,
    key_value: CubeTensor,
    hiding: CubeTensor,
    hides: bool,
    heads: Heads,
    how: Softening,
) -> CubeTensor {
    let [query, key_value] = [query, key_value].map(|tensor| match tensor.meta.strides()[2] {
        1 => tensor,
        _ => into_contiguous(tensor),
    });
    let hiding = into_contiguous(hiding);
    let (shape, strides) = (key_value.meta.shape().clone(), key_value.meta.strides().clone());
    let [rows, len, width] = [0, 1, 2].map(|axis| shape[axis]);
    let Heads { n_heads, d_head } = heads;
    let context = new_like(&query, [rows, 1, n_heads * d_head].into());
    let [of_rows, of_heads] = [0, 1].map(|axis| hiding.meta.shape()[axis]);
    let of_row = if hides && of_rows > 1 { of_heads * len } else { 0 };
    let of_head = if hides && of_heads > 1 { len } else { 0 };
    let query_step = query.meta.strides()[0];
    attend_one::launch(
        &query.client.clone(),
        cube_for_each(rows * n_heads),
        CubeDim::new_1d(UNITS_OF_ROW),
        query.into_buffer_arg(),
        key_value.into_buffer_arg(),
        hiding.into_buffer_arg(),
        context.clone().into_buffer_arg(),
        rows * n_heads,
        n_heads,
        n_heads / (width / 2 / d_head),
        d_head,
        len,
        width / 2,
        query_step,
        strides[0],
        strides[1],
        of_row,
        of_head,
        how.scale,
        hides,
    );
    context
}

/// Each cube a head of a row. Its units share the keys out to compare them, and the elements of the context to sum them up.
#[allow(clippy::too_many_arguments)]
#[cube(launch)]
fn attend_one(
    query: &[f32],
    key_value: &[f32],
    hiding: &[f32],
    context: &mut [f32],
    n: usize,
    n_heads: usize,
    heads_of_key: usize,
    d_head: usize,
    len: usize,
    to_value: usize,
    query_step: usize,
    row_step: usize,
    position_step: usize,
    of_row: usize,
    of_head: usize,
    scale: f32,
    #[comptime] hides: bool,
) {
    let own_head = CUBE_POS;
    if own_head < n {
        let row = own_head / n_heads;
        let head = own_head % n_heads;
        let of_query = row * query_step + head * d_head;
        let of_keys = row * row_step + head / heads_of_key * d_head;
        let mut weights = Shared::<[f32]>::new_slice(comptime!(MOST_KEYS));
        let first = UNIT_POS as usize;
        let step = comptime!(UNITS_OF_ROW as usize).runtime();
        let mut own = f32::min_value();
        let mut key = first;
        while key < len {
            let of_key = of_keys + key * position_step;
            let mut score = 0.0f32;
            let mut i = 0usize;
            while i < d_head {
                score += query[of_query + i] * key_value[of_key + i];
                i += 1;
            }
            score *= scale;
            if hides {
                score += hiding[row * of_row + head * of_head + key];
            }
            weights[key] = score;
            own = max(own, score);
            key += step;
        }
        let highest = max_of_cube(own, UNITS_OF_ROW);
        own = 0.0f32;
        key = first;
        while key < len {
            let exponential = (weights[key] - highest).exp();
            weights[key] = exponential;
            own += exponential;
            key += step;
        }
        // Behind this, every unit sees the weights of all.
        let sum = sum_of_cube(own, UNITS_OF_ROW);
        let mut i = first;
        while i < d_head {
            let mut total = 0.0f32;
            key = 0usize;
            while key < len {
                total += weights[key] * key_value[of_keys + key * position_step + to_value + i];
                key += 1;
            }
            context[own_head * d_head + i] = total / sum;
            i += step;
        }
    }
}
