//! Attention with linear biases (ALiBi).

use super::Places;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

/// `e_mn = q_m . k_n / sqrt(d) - slope_h |m - n|`: the further away, the lower the score, in each head by a slope of its own.
///
/// Nothing is learnt, and no distance is special, so that a model reads longer input than it was trained on.
///
/// # Reference
/// Press, Smith and Lewis, Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation, 2022,
/// section 3. **Differs from the paper:** the paper has a decoder alone; in the encoder both directions are lowered alike.
#[derive(Module, Debug)]
pub struct Alibi {
    #[module(skip)]
    n_heads: usize,
}

/// The slope of each head: `2^(-8/n), 2^(-16/n), ..., 2^-8` for a power of two.
///
/// Other numbers of heads take the slopes of the next smaller power of two, and then every second one of the next larger,
/// from the first on, as the authors' program does.
pub fn slopes(n_heads: usize) -> Vec<f64> {
    let n = if n_heads == 0 { 0 } else { 1 << n_heads.ilog2() };
    let geometric = |n: usize, i: usize| 2f64.powf(-8.0 * (i + 1) as f64 / n as f64);
    let further = (0..n_heads - n).map(|i| geometric(2 * n, 2 * i));
    (0..n).map(|i| geometric(n, i)).chain(further).collect()
}

impl Alibi {
    /// For `n_heads` heads.
    pub fn new(n_heads: usize) -> Self {
        Self { n_heads }
    }

    /// What is added to the scores of queries at these positions.
    ///
    /// # Shapes
    /// - output: `[1, n_heads, 1, query_len + key_len - 1]`, a number for each distance, where positions follow each other;
    ///   otherwise `[1, n_heads, query_len, key_len]`
    pub fn bias(&self, places: &Places, device: &Device) -> Tensor<4> {
        let slopes: Vec<f32> = slopes(self.n_heads).into_iter().map(|slope| slope as f32).collect();
        let (distances, [rows, columns]) = places.table(|distance| -distance.abs() as f32);
        let slopes = Tensor::<4>::from_data(TensorData::new(slopes, [1, self.n_heads, 1, 1]), device);
        let distances = TensorData::new(distances, [1, 1, rows, columns]);
        slopes * Tensor::from_data(distances, device)
    }
}
