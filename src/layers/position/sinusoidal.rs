//! Sinusoidal positions.

use super::Places;
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// `x_pos + PE(pos)` with `PE(pos, 2i) = sin(pos / 10000^(2i/d))` and `PE(pos, 2i+1) = cos(pos / 10000^(2i/d))`.
///
/// burn-nn's `PositionalEncoding` computes the same numbers into a table of fixed length and panics beyond it; here any
/// position can be asked for.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, section 3.5. As in the paper.
#[derive(Module, Debug)]
pub struct Sinusoids;

impl Sinusoids {
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, places: &Places) -> Tensor<3> {
        let [_, len, d_model] = input.dims();
        let table = TensorData::new(sinusoids_at(places.iter(), d_model), [1, len, d_model]);
        let table = Tensor::<3>::from_data(table, &input.device());
        input + table
    }
}

/// `sin(pos / 10000^(2i/d))` in even columns and the cosine in odd ones, row-major `[len, d_model]`.
pub fn sinusoids(offset: usize, len: usize, d_model: usize) -> Vec<f32> {
    sinusoids_at(offset..offset + len, d_model)
}

fn sinusoids_at(positions: impl Iterator<Item = usize>, d_model: usize) -> Vec<f32> {
    let mut values = Vec::new();
    for position in positions {
        for column in 0..d_model {
            let exponent = (column / 2 * 2) as f64 / d_model as f64;
            let angle = position as f64 / 10_000f64.powf(exponent);
            values.push(if column % 2 == 0 { angle.sin() } else { angle.cos() } as f32);
        }
    }
    values
}
