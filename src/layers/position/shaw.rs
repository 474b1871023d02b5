//! Relative positions as keys and values (Shaw).

use super::Places;
use crate::layers::Init;
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Of the paper's base model.
pub(super) fn default_max_distance() -> usize {
    16
}

/// Distances, clipped to `[-k, k]`: the rows of every layer's [`ShawTables`].
#[derive(Module, Debug)]
pub struct Shaw {
    #[module(skip)]
    max_distance: usize,
}

/// `e_ij = q_i . (k_j + a^K_(j-i)) / sqrt(d)` and `z_i = sum_j alpha_ij (v_j + a^V_(j-i))`, with a learned vector `a` for each
/// distance from `-k` to `k`; all further away share the last.
///
/// Attention kernels know no vector that is added to the values of one query and not of another, so that this is written
/// out. Nothing of size `[batch, n_heads, query_len, key_len, d_head]` is made: the products with `a` are matrix products with
/// the query's position as the batch, as section 3.3 of the paper proposes.
///
/// # Reference
/// Shaw, Uszkoreit and Vaswani, Self-Attention with Relative Position Representations, 2018, equations 3 to 5. As in the
/// paper: shared by the heads, unique in each layer (section 4.1, big model, and the authors' program).
#[derive(Module, Debug)]
pub struct ShawTables {
    /// `a^K`: `[2 k + 1, d_head]`.
    key: Param<Tensor<2>>,
    /// `a^V`: `[2 k + 1, d_head]`.
    value: Param<Tensor<2>>,
}

impl Shaw {
    /// Distances up to `max_distance` are told apart.
    pub fn new(max_distance: usize) -> Self {
        Self { max_distance }
    }

    /// The rows of the tables for queries at these positions: `[query_len * key_len]`.
    pub fn distances(&self, places: &Places, device: &Device) -> Tensor<1, Int> {
        let max = self.max_distance as i64;
        let rows = places.by_pair(|distance| (distance.clamp(-max, max) + max) as i32);
        let len = rows.len();
        Tensor::from_data(TensorData::new(rows, [len]), device)
    }
}

impl ShawTables {
    /// Tables of one layer with Xavier-uniform numbers.
    pub fn new(max_distance: usize, d_head: usize, init: &Init) -> Self {
        let n_distances = 2 * max_distance + 1;
        let bound = (6.0 / (n_distances + d_head) as f64).sqrt();
        let table = || init.uniform([n_distances, d_head], bound);
        Self { key: table(), value: table() }
    }

    /// `q_i . a^K_(j-i)` for every pair.
    ///
    /// # Shapes
    /// - query: `[batch, n_heads, query_len, d_head]`
    /// - distances: `[query_len * key_len]`
    /// - output: `[batch, n_heads, query_len, key_len]`
    pub fn scores(&self, query: Tensor<4>, distances: &Tensor<1, Int>) -> Tensor<4> {
        let keys = vectors(&self.key, distances, query.dims()[2]);
        by_query(query, keys.swap_dims(1, 2))
    }

    /// `sum_j alpha_ij a^V_(j-i)` for every query.
    ///
    /// # Shapes
    /// - weights: `[batch, n_heads, query_len, key_len]`
    /// - output: `[batch, n_heads, query_len, d_head]`
    pub fn average(&self, weights: Tensor<4>, distances: &Tensor<1, Int>) -> Tensor<4> {
        let values = vectors(&self.value, distances, weights.dims()[2]);
        by_query(weights, values)
    }
}

/// The rows of `table` for every pair: `[query_len, key_len, d_head]`.
fn vectors(table: &Param<Tensor<2>>, distances: &Tensor<1, Int>, query_len: usize) -> Tensor<3> {
    let table = table.val();
    let (d_head, n_pairs) = (table.dims()[1], distances.dims()[0]);
    table.select(0, distances.clone()).reshape([query_len, n_pairs / query_len, d_head])
}

/// Multiplies the rows of each query with a matrix of its own.
///
/// - left: `[batch, n_heads, query_len, inner]`, right: `[query_len, inner, outer]`
/// - output: `[batch, n_heads, query_len, outer]`
fn by_query(left: Tensor<4>, right: Tensor<3>) -> Tensor<4> {
    let ([batch, n_heads, query_len, inner], outer) = (left.dims(), right.dims()[2]);
    let left = left.permute([2, 0, 1, 3]).reshape([query_len, batch * n_heads, inner]);
    left.matmul(right).reshape([query_len, batch, n_heads, outer]).permute([1, 2, 0, 3])
}
