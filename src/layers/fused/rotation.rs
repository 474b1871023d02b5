//! Rotary positions on packed projections.

use super::function::{Backprop, Function, Gradient, Input, Output, apply};
use super::pieces::mapped;
use burn::tensor::Tensor;

/// Turns the first heads of each position.
#[derive(Debug)]
struct Rotate {
    n_turned: usize,
    d_head: usize,
}

/// The first `n_turned` heads of each position turned by its angles, the rest as they are: see
/// [`Rotary`](crate::layers::position::Rotary).
///
/// # Shapes
/// - packed, output: `[batch, len, .. d_head]`
/// - cosines, sines: `[1, 1, len, d_head / 2]`
pub fn rotate(packed: Tensor<3>, cosines: Tensor<4>, sines: Tensor<4>, n_turned: usize) -> Tensor<3> {
    let d_head = 2 * cosines.dims()[3];
    let inputs = vec![packed.into_dispatch(), cosines.into_dispatch(), sines.into_dispatch()];
    apply(Rotate { n_turned, d_head }, inputs)
}

impl Rotate {
    /// Turns forwards, or with `sign` -1 back.
    fn turned(&self, values: &[f32], inputs: &[Input], sign: f32) -> Vec<f32> {
        let [packed, cosines, sines] = inputs else { unreachable!("three inputs") };
        let [len, width] = [packed.shape[1], packed.shape[2]];
        let half = self.d_head / 2;
        mapped(
            values,
            width,
            #[inline(always)]
            |start, piece| {
                for (row, out) in piece.chunks_exact_mut(width).enumerate() {
                    let angle = (start / width + row) % len * half;
                    let (cosines, sines) = (&cosines.values[angle..][..half], &sines.values[angle..][..half]);
                    for head in out.chunks_exact_mut(self.d_head).take(self.n_turned) {
                        let (first, second) = head.split_at_mut(half);
                        for i in 0..half {
                            let (a, b, sine) = (first[i], second[i], sign * sines[i]);
                            first[i] = a * cosines[i] - b * sine;
                            second[i] = a * sine + b * cosines[i];
                        }
                    }
                }
            },
        )
    }
}

impl Function for Rotate {
    fn forward(&self, inputs: &[Input]) -> Output {
        let values = self.turned(inputs[0].values, inputs, 1.0);
        Output { shape: inputs[0].shape.to_vec(), values, saved: Vec::new() }
    }

    fn backward(&self, of: Backprop) -> Vec<Gradient> {
        // The inverse of a rotation is its transpose.
        let of_packed = Gradient::when(of.wanted[0], || self.turned(of.gradient, of.inputs, -1.0));
        vec![of_packed, Gradient::None, Gradient::None]
    }
}
