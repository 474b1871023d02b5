//! Functions of one number.

use burn_cubecl::cubecl::{self, prelude::*};

/// `1 / (1 + e^-x)`.
#[cube]
pub(super) fn logistic(x: f32) -> f32 {
    1.0f32 / (1.0f32 + (-x).exp())
}

/// `x / (1 + e^-x)`.
#[cube]
pub(super) fn silu(x: f32) -> f32 {
    x * logistic(x)
}

/// The slope of that.
#[cube]
pub(super) fn silu_slope(x: f32) -> f32 {
    let share = logistic(x);
    share * (1.0f32 + x * (1.0f32 - share))
}

/// `ln(1 + e^x)`. The logarithm that devices have of what is near 1 has few digits left, so that this is a series, as on the host.
#[cube]
pub(super) fn softplus(x: f32) -> f32 {
    // ln(1 + e) = 2 artanh(e / (2 + e)), where the quotient is at most a third.
    let e = (-x.abs()).exp();
    let z = e / (2.0f32 + e);
    let y = z * z;
    let series = 1.0f32 / 3.0f32
        + y * (1.0f32 / 5.0f32 + y * (1.0f32 / 7.0f32 + y * (1.0f32 / 9.0f32 + y * (1.0f32 / 11.0f32 + y / 13.0f32))));
    max(x, 0.0f32) + 2.0f32 * z * (1.0f32 + y * series)
}

/// The hyperbolic tangent. That of devices may have few digits left near zero, where this is a series, as on the host.
#[cube]
pub(super) fn tanh(x: f32) -> f32 {
    let y = x * x;
    let near = x
        * (1.0f32
            + y * (-1.0f32 / 3.0f32 + y * (2.0f32 / 15.0f32 + y * (-17.0f32 / 315.0f32 + y * (62.0f32 / 2835.0f32)))));
    select(x.abs() < 0.25f32, near, x.tanh())
}
