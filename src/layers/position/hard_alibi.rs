//! Windows of one to a few tokens in some heads, and no positions in the others (hard ALiBi).

use super::Places;
use crate::layers::mask::HIDDEN;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

/// Head `i` of the first `n_windows` sees the last `i` positions, itself included, and no others; every other head sees
/// everything and knows no positions.
///
/// Copying takes the position whose last few words are the words just written, and the word behind it: the windows gather the
/// last words, the other heads find where else they stand, at any distance. Nothing is learnt, so that a model trained on short
/// sequences copies long ones.
///
/// # Reference
/// Jelassi et al., Repeat After Me: Transformers are Better than State Space Models at Copying, 2024, section 2 and appendix
/// A. **Differs from the paper:** the paper has a decoder alone; in an encoder windows reach as far to both sides.
#[derive(Module, Debug)]
pub struct HardAlibi {
    #[module(skip)]
    n_heads: usize,
    #[module(skip)]
    n_windows: usize,
}

impl HardAlibi {
    /// For `n_heads` heads, of which the first `n_windows` have windows.
    pub fn new(n_heads: usize, n_windows: usize) -> Self {
        Self { n_heads, n_windows }
    }

    /// What is added to the scores of queries at these positions: nothing, or what hides.
    ///
    /// # Shapes
    /// - output: `[1, n_heads, 1, query_len + key_len - 1]`, a number for each distance, where positions follow each other;
    ///   otherwise `[1, n_heads, query_len, key_len]`
    pub fn bias(&self, places: &Places, device: &Device) -> Tensor<4> {
        let (distances, [rows, columns]) = places.table(|distance| distance.unsigned_abs() as usize);
        let of_head = |head: usize| {
            let is_outside = move |distance: &usize| head < self.n_windows && *distance > head;
            distances.iter().map(move |distance| if is_outside(distance) { HIDDEN } else { 0.0 })
        };
        let bias: Vec<f32> = (0..self.n_heads).flat_map(of_head).collect();
        Tensor::from_data(TensorData::new(bias, [1, self.n_heads, rows, columns]), device)
    }
}
