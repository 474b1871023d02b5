//! Rotary positions (RoPE).

use super::{Places, PositionTable};
use crate::layers::Pass;
use crate::ops;
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

/// The published base.
pub(super) fn default_base() -> f64 {
    10_000.0
}

/// Turns query `m` and key `n` by angles in proportion to `m` and `n`, so that their product depends on `n - m` alone:
///
/// `(q_i, q_(i + d/2)) -> (q_i cos(m t_i) - q_(i + d/2) sin(m t_i), q_i sin(m t_i) + q_(i + d/2) cos(m t_i))`
///
/// with `t_i = base^(-2i/d)` for `i = 0, ..., d/2 - 1` and the width `d` of a head. Values are not turned. The cache holds
/// keys that are already turned, each by its own position.
///
/// burn-nn's `RotaryEncoding` has a table of fixed length and panics beyond it, computes the angles in 32 bits, which at
/// position 10,000 are off by a thousandth, and multiplies with a matrix of signs where two products and a sum do.
///
/// # Reference
/// Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021, equations 15 and 34. **Differs from the
/// paper:** element `i` is paired with `i + d/2` instead of its neighbour, as in GPT-NeoX and LLaMA: the halves of a row are
/// contiguous, and the two forms differ by a permutation of the columns of `W^Q` and `W^K`.
#[derive(Module, Debug)]
pub struct Rotary {
    #[module(skip)]
    d_head: usize,
    #[module(skip)]
    base: f64,
    #[module(skip)]
    cosines: PositionTable,
    #[module(skip)]
    sines: PositionTable,
}

/// The angles of some positions.
///
/// # Shapes
/// - cosines, sines: `[1, 1, len, d_head / 2]`
#[derive(Clone, Debug)]
pub struct Rotation {
    cosines: Tensor<4>,
    sines: Tensor<4>,
}

impl Rotary {
    /// For heads of width `d_head`.
    ///
    /// # Panics
    /// If the width is odd.
    pub fn new(d_head: usize, base: f64) -> Self {
        assert!(d_head.is_multiple_of(2), "d_head must be even, got {d_head}");
        Self { d_head, base, cosines: PositionTable::default(), sines: PositionTable::default() }
    }

    /// The angles of some positions.
    pub fn rotation(&self, places: &Places, device: &Device) -> Rotation {
        let (len, half) = (places.len(), self.d_head / 2);
        // In 64 bits: angles grow with the position, and what counts is what is left of them beyond whole turns.
        let angle = |position: usize, column: usize| {
            let exponent = -((column * 2) as f64) / self.d_head as f64;
            position as f64 * self.base.powf(exponent)
        };
        let tensor = |table: &PositionTable, value: fn(f64) -> f64| {
            let values = table.rows(places, half, |position, column| value(angle(position, column)) as f32);
            Tensor::from_data(TensorData::new(values, [1, 1, len, half]), device)
        };
        Rotation { cosines: tensor(&self.cosines, f64::cos), sines: tensor(&self.sines, f64::sin) }
    }
}

impl Rotation {
    /// The first `n_turned` heads of each position turned, heads side by side.
    ///
    /// # Shapes
    /// - packed, output: `[batch, len, .. d_head]`
    pub fn apply(&self, packed: Tensor<3>, n_turned: usize, pass: &Pass) -> Tensor<3> {
        ops::rotate(packed, self.cosines.clone(), self.sines.clone(), n_turned, pass.body())
    }
}
