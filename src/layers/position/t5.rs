//! Relative positions in buckets (T5).

use super::{Places, Side};
use crate::layers::Init;
use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};

/// As in the published models.
pub(super) fn default_n_buckets() -> usize {
    32
}

/// As in the published models.
pub(super) fn default_max_distance() -> usize {
    128
}

/// How distances are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// All of them; in an encoder half are for what follows and half for what precedes.
    pub n_buckets: usize,
    /// From this distance on all share the last bucket.
    pub max_distance: usize,
    /// Whether the future can be seen.
    pub side: Side,
}

/// `e_mn = q_m . k_n / sqrt(d) + b_h(bucket(n - m))` with a learned number for each head and bucket.
///
/// One table for all layers of a stack, another for the other stack.
///
/// # Reference
/// Raffel et al., Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer, 2020, section 2.1, and
/// `_relative_position_bucket` of its program, Mesh TensorFlow. **Differs from the paper:** the scores are divided by the
/// square root of the width; T5 leaves that to its initial weights.
#[derive(Module, Debug)]
pub struct T5Bias {
    /// `[n_buckets, n_heads]`.
    table: Param<Tensor<2>>,
    #[module(skip)]
    buckets: Buckets,
}

impl Buckets {
    /// The bucket of the key that stands `distance` after the query.
    ///
    /// The first half of a direction's buckets holds one distance each; in the second, bucket `e + j` of `2 e` begins at
    /// distance `e (max_distance / e)^(j / e)`, a geometric series.
    pub fn bucket(&self, distance: i64) -> usize {
        let is_after = distance > 0;
        let (first, n) = match self.side {
            Side::Encoder => (if is_after { self.n_buckets / 2 } else { 0 }, self.n_buckets / 2),
            // The future is hidden anyway.
            Side::Decoder if is_after => return 0,
            Side::Decoder => (0, self.n_buckets),
        };
        let (distance, n_exact) = (distance.unsigned_abs() as usize, n / 2);
        if distance < n_exact {
            return first + distance;
        }
        let share = (distance as f64 / n_exact as f64).ln() / (self.max_distance as f64 / n_exact as f64).ln();
        first + (n_exact + (share * (n - n_exact) as f64) as usize).min(n - 1)
    }
}

impl T5Bias {
    /// For `n_heads` heads, with normal initial numbers of this deviation.
    pub fn new(buckets: Buckets, n_heads: usize, deviation: f64, init: &Init) -> Self {
        Self { table: init.normal([buckets.n_buckets, n_heads], deviation), buckets }
    }

    /// What is added to the scores of queries at these positions.
    ///
    /// # Shapes
    /// - output: `[1, n_heads, 1, query_len + key_len - 1]`, a number for each distance, where positions follow each other;
    ///   otherwise `[1, n_heads, query_len, key_len]`
    pub fn bias(&self, places: &Places) -> Tensor<4> {
        let table = self.table.val();
        let n_heads = table.dims()[1];
        let (buckets, [rows, columns]) = places.table(|distance| self.buckets.bucket(distance) as i32);
        let buckets = Tensor::from_data(TensorData::new(buckets, [rows * columns]), &table.device());
        // [n_heads, rows * columns]
        let bias = table.select(0, buckets).transpose();
        bias.reshape([1, n_heads, rows, columns])
    }
}
