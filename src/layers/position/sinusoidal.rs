//! Sinusoidal positions.

use super::{Places, PositionTable};
use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

/// `x_pos + PE(pos)` with `PE(pos, 2i) = sin(pos / 10000^(2i/d))` and `PE(pos, 2i+1) = cos(pos / 10000^(2i/d))`.
///
/// burn-nn's `PositionalEncoding` computes the same numbers into a table of fixed length and panics beyond it; here any
/// position can be asked for.
///
/// # Reference
/// Vaswani et al., Attention Is All You Need, 2017, section 3.5. As in the paper.
#[derive(Module, Debug, Default)]
pub struct Sinusoids {
    #[module(skip)]
    table: PositionTable,
}

impl Sinusoids {
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, places: &Places) -> Tensor<3> {
        let [_, len, d_model] = input.dims();
        let values = self.table.rows(places, d_model, |position, column| sinusoid(position, column, d_model));
        let table = TensorData::new(values, [1, len, d_model]);
        let table = Tensor::<3>::from_data(table, &input.device());
        input + table
    }
}

/// `sin(pos / 10000^(2i/d))` in even columns and the cosine in odd ones, row-major `[len, d_model]`.
pub fn sinusoids(offset: usize, len: usize, d_model: usize) -> Vec<f32> {
    let numbers = |position| (0..d_model).map(move |column| sinusoid(position, column, d_model));
    (offset..offset + len).flat_map(numbers).collect()
}

fn sinusoid(position: usize, column: usize, d_model: usize) -> f32 {
    let exponent = (column / 2 * 2) as f64 / d_model as f64;
    let angle = position as f64 / 10_000f64.powf(exponent);
    if column.is_multiple_of(2) { angle.sin() as f32 } else { angle.cos() as f32 }
}
