//! Non-linearities of feed-forward networks on slices, with their gradients.

use super::dropout::Dropout;
use super::functions::{exp, sigmoid, tanh};
use super::memory::for_pieces;
use super::rows::add_to_piece;
use super::vectors::update;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of the cube in [`Activation::GeluTanh`].
pub const CUBIC: f64 = 0.044_715;

/// The non-linearity between the two products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(0, x)`, as in Vaswani 2017.
    Relu,
    /// `x Phi(x)`, Hendrycks and Gimpel 2016.
    Gelu,
    /// The approximation of it by tanh in the same paper, `x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2`: that of GPT-2.
    GeluTanh,
    /// `x sigmoid(x)`, Elfwing et al. 2017, also called swish: that of Marian's models.
    Silu,
    /// `silu(x W) * (x V)`, Shazeer 2020; the first product is twice as wide.
    Swiglu,
}

impl Activation {
    /// How many matrices the first product has side by side.
    pub fn n_packed(self) -> usize {
        if self == Self::Swiglu { 2 } else { 1 }
    }
}

/// The probability that a standard normal number is less than `x`, and its density there.
///
/// Both need the same exponential. The tail is within 8e-8 of the true one, about what a 32-bit number near 1 can hold.
///
/// # Reference
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, formula 7.1.26.
#[inline(always)]
fn normal(x: f32) -> [f32; 2] {
    let y = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * y);
    let e = exp(-y * y);
    let series = 0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4)));
    let tail = 0.5 * e * t * series;
    let below = if x < 0.0 { tail } else { 1.0 - tail };
    [below, e * 0.398_942_3]
}

/// `max(0, x)`; what is not a number stays so, as it would not with [`f32::max`].
#[inline(always)]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// `sqrt(2 / pi)`.
const SLOPE: f32 = 0.797_884_6;

/// The value and the derivative of an activation of one number.
#[inline(always)]
fn gelu(x: f32) -> [f32; 2] {
    let [below, density] = normal(x);
    [x * below, below + x * density]
}

#[inline(always)]
fn gelu_tanh(x: f32) -> [f32; 2] {
    let cubic = CUBIC as f32;
    let bent = tanh(SLOPE * x * (1.0 + cubic * x * x));
    let slope = SLOPE * (1.0 + 3.0 * cubic * x * x);
    [0.5 * x * (1.0 + bent), 0.5 * (1.0 + bent) + 0.5 * x * (1.0 - bent * bent) * slope]
}

/// `x sigmoid(x)` and its slope.
#[inline(always)]
pub(super) fn silu(x: f32) -> [f32; 2] {
    let gate = sigmoid(x);
    [x * gate, gate * (1.0 + x * (1.0 - gate))]
}

/// Rows of sums become `dropout(max(0, sums + bias))`.
pub fn rectify(sums: &mut [f32], bias: &[f32], dropout: Option<&Dropout>) {
    for_pieces(
        sums,
        bias.len(),
        #[inline(always)]
        |start, piece| {
            add_to_piece(piece, bias);
            update(
                [],
                [&mut *piece],
                #[inline(always)]
                |[], [value]| [relu(value)],
            );
            if let Some(dropout) = dropout {
                dropout.apply(start, piece);
            }
        },
    );
}

/// The gradient of what was rectified, in the place of that of `active`, which [`rectify`] made: zero where a unit was negative or dropped,
/// so that neither the sums nor the mask are needed.
pub fn unrectify(gradient: &mut [f32], active: &[f32], dropout: Option<&Dropout>) {
    let kept = dropout.map_or(1.0, |dropout| dropout.kept());
    for_pieces(
        gradient,
        1,
        #[inline(always)]
        |start, piece| {
            update(
                [&active[start..start + piece.len()]],
                [piece],
                #[inline(always)]
                |[active], [value]| {
                    // Multiplied in any case, so that the choice is an instruction and not a branch.
                    let scaled = value * kept;
                    [if active <= 0.0 { 0.0 } else { scaled }]
                },
            );
        },
    );
}

/// The values of a function that gives its value and its slope.
#[inline(always)]
fn activate(inner: &[f32], out: &mut [f32], function: impl Fn(f32) -> [f32; 2]) {
    update(
        [inner],
        [out],
        #[inline(always)]
        |[x], _| [function(x)[0]],
    );
}

/// A gradient times the slopes of such a function.
#[inline(always)]
fn inactivate(inner: &[f32], gradient: &mut [f32], function: impl Fn(f32) -> [f32; 2]) {
    update(
        [inner],
        [gradient],
        #[inline(always)]
        |[x], [g]| [g * function(x)[1]],
    );
}

/// `dropout(activation(inner))`: rows of `d` numbers from rows of as many, or twice as many where the activation is gated.
pub fn activated(activation: Activation, inner: &[f32], d: usize, dropout: Option<&Dropout>) -> Vec<f32> {
    let n = inner.len() / activation.n_packed();
    let mut active = vec![0.0; n];
    for_pieces(
        &mut active,
        d,
        #[inline(always)]
        |start, piece| {
            let end = start + piece.len();
            match activation {
                Activation::Relu => update(
                    [&inner[start..end]],
                    [&mut *piece],
                    #[inline(always)]
                    |[x], _| [relu(x)],
                ),
                Activation::Gelu => activate(&inner[start..end], piece, gelu),
                Activation::GeluTanh => activate(&inner[start..end], piece, gelu_tanh),
                Activation::Silu => activate(&inner[start..end], piece, silu),
                Activation::Swiglu => {
                    for (row, inner) in piece.chunks_mut(d).zip(inner[2 * start..2 * end].chunks(2 * d)) {
                        let (gate, value) = inner.split_at(d);
                        update(
                            [gate, value],
                            [row],
                            #[inline(always)]
                            |[gate, value], _| [silu(gate)[0] * value],
                        );
                    }
                }
            }
            if let Some(dropout) = dropout {
                dropout.apply(start, piece);
            }
        },
    );
    active
}

/// The gradient of `inner`, from that of [`activated`].
pub fn inactivated(
    activation: Activation,
    inner: &[f32],
    mut gradient: Vec<f32>,
    d: usize,
    dropout: Option<&Dropout>,
) -> Vec<f32> {
    let is_gated = activation == Activation::Swiglu;
    if !is_gated || dropout.is_some() {
        for_pieces(
            &mut gradient,
            d,
            #[inline(always)]
            |start, piece| {
                if let Some(dropout) = dropout {
                    dropout.apply(start, piece);
                }
                let end = start + piece.len();
                match activation {
                    Activation::Relu => update(
                        [&inner[start..end]],
                        [piece],
                        #[inline(always)]
                        |[x], [g]| [if x <= 0.0 { 0.0 } else { g }],
                    ),
                    Activation::Gelu => inactivate(&inner[start..end], piece, gelu),
                    Activation::GeluTanh => inactivate(&inner[start..end], piece, gelu_tanh),
                    Activation::Silu => inactivate(&inner[start..end], piece, silu),
                    Activation::Swiglu => {}
                }
            },
        );
    }
    if !is_gated {
        return gradient;
    }
    let mut both = vec![0.0; inner.len()];
    for_pieces(
        &mut both,
        2 * d,
        #[inline(always)]
        |start, piece| {
            let rows = piece.chunks_mut(2 * d).zip(inner[start..].chunks(2 * d)).zip(gradient[start / 2..].chunks(d));
            for ((row, inner), gradient) in rows {
                let (of_gate, of_value) = row.split_at_mut(d);
                let (gate, value) = inner.split_at(d);
                update(
                    [gate, value, gradient],
                    [of_gate, of_value],
                    #[inline(always)]
                    |[gate, value, g], _| {
                        let [silu, slope] = silu(gate);
                        [g * value * slope, g * silu]
                    },
                );
            }
        },
    );
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_the_tables() {
        // x, Phi(x), phi(x).
        for (x, below, density) in [
            (0.0f32, 0.5, 0.398_942_3),
            (1.0, 0.841_344_8, 0.241_970_72),
            (-1.0, 0.158_655_26, 0.241_970_72),
            (2.5, 0.993_790_3, 0.017_528_3),
            (-4.0, 3.167_124e-5, 1.338_302e-4),
        ] {
            let found = normal(x);
            assert!((found[0] - below).abs() < 1.5e-7, "Phi({x}) = {} is not {below}", found[0]);
            assert!((found[1] - density).abs() < 1e-7, "phi({x}) = {} is not {density}", found[1]);
        }
        assert!(normal(f32::NAN)[0].is_nan() && gelu(f32::NAN)[1].is_nan());
        assert_eq!(normal(40.0)[0], 1.0);
        assert_eq!(gelu(-40.0), [0.0, 0.0]);
    }

    #[test]
    fn derivatives_are_difference_quotients() {
        for function in [gelu, gelu_tanh, silu] {
            for i in -40..=40 {
                let x = i as f32 / 8.0;
                let step = 1.0 / 64.0;
                let quotient = (function(x + step)[0] - function(x - step)[0]) / (2.0 * step);
                assert!((quotient - function(x)[1]).abs() < 2e-4, "at {x}: {quotient} and {}", function(x)[1]);
            }
        }
    }
}
