//! Functions of one number, in instructions that work on many at once.

/// `e^x` for `x <= 88` to about one unit in the last place, zero below -87, in instructions that work on many elements at once.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // e^x = 2^n e^r with |r| <= ln(2) / 2; adding 1.5 * 2^23 leaves the integer n in the lowest bits.
    let clamped = if x < -87.0 { -87.0 } else { x };
    let shifted = clamped * std::f32::consts::LOG2_E + 12_582_912.0;
    let n = shifted - 12_582_912.0;
    let r = (clamped - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p =
        1.0 + r * (1.0 + r * (0.5 + r * (0.166_666_67 + r * (0.041_666_54 + r * (0.008_333_95 + r * 0.001_394_4)))));
    let value = p * f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if x < -87.0 { 0.0 } else { value }
}

/// Zero for what is below 1e-30. A gradient that goes back over hundreds of steps fades through numbers that are too small to be
/// stored as others are, and arithmetic with those takes a hundred times as long.
#[inline(always)]
pub fn flushed(x: f32) -> f32 {
    if x.abs() < 1e-30 { 0.0 } else { x }
}

/// `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    // Beyond 88 on the negative side the sum would overflow.
    1.0 / (1.0 + exp(if x < -88.0 { 88.0 } else { -x }))
}

/// `ln(1 + e^x)`, to about 1e-6 of itself.
#[inline(always)]
pub fn softplus(x: f32) -> f32 {
    // ln(1 + e) = 2 artanh(e / (2 + e)), where the quotient is at most a third.
    let e = exp(-x.abs());
    let z = e / (2.0 + e);
    let y = z * z;
    let series = 1.0 / 3.0 + y * (1.0 / 5.0 + y * (1.0 / 7.0 + y * (1.0 / 9.0 + y * (1.0 / 11.0 + y * (1.0 / 13.0)))));
    (if x > 0.0 { x } else { 0.0 }) + 2.0 * z * (1.0 + y * series)
}

/// The hyperbolic tangent, to about 1e-7 of itself.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let e = exp(-2.0 * x.abs());
    let far = ((1.0 - e) / (1.0 + e)).copysign(x);
    // Near zero the difference above has few digits left; the series has all of them.
    let y = x * x;
    let near = x * (1.0 + y * (-1.0 / 3.0 + y * (2.0 / 15.0 + y * (-17.0 / 315.0 + y * (62.0 / 2835.0)))));
    if x.abs() < 0.25 { near } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error relative to `f64`, and where.
    fn worst(values: impl Iterator<Item = f32>, found: fn(f32) -> f32, expected: fn(f64) -> f64) -> (f64, f32) {
        let error = |x: f32| ((found(x) as f64 / expected(x as f64) - 1.0).abs(), x);
        values.map(error).fold((0.0, 0.0), |worst, here| if here.0 > worst.0 { here } else { worst })
    }

    fn between(low: f32, high: f32) -> impl Iterator<Item = f32> {
        (0..=200_000).map(move |i| low + (high - low) * (i as f32 / 200_000.0))
    }

    #[test]
    fn functions_are_those_of_the_standard_library_to_a_few_units_in_the_last_place() {
        let (error, x) = worst(between(-86.9, 87.9), exp, f64::exp);
        assert!(error < 2e-6, "exp({x}) is {error:.1e} off");
        let (error, x) = worst(between(-20.0, 20.0).chain(between(-1.0, 1.0)).filter(|x| *x != 0.0), tanh, f64::tanh);
        assert!(error < 5e-7, "tanh({x}) is {error:.1e} off");
        let (error, x) = worst(between(-20.0, 88.0), sigmoid, |x| 1.0 / (1.0 + (-x).exp()));
        assert!(error < 5e-6, "sigmoid({x}) is {error:.1e} off");
        let (error, x) = worst(between(-80.0, 88.0).chain(between(-2.0, 2.0)), softplus, |x| x.exp().ln_1p());
        assert!(error < 2e-6, "softplus({x}) is {error:.1e} off");
    }

    #[test]
    fn the_ends_of_the_line_are_exact() {
        assert_eq!([exp(0.0), exp(-1e4), exp(f32::NEG_INFINITY)], [1.0, 0.0, 0.0]);
        assert_eq!([tanh(0.0), tanh(50.0), tanh(-50.0), tanh(f32::INFINITY)], [0.0, 1.0, -1.0, 1.0]);
        assert_eq!([sigmoid(0.0), sigmoid(200.0), sigmoid(f32::INFINITY)], [0.5, 1.0, 1.0]);
        assert!(sigmoid(-200.0) < 1e-37 && sigmoid(f32::NEG_INFINITY) < 1e-37);
        assert_eq!([softplus(f32::NEG_INFINITY), softplus(f32::INFINITY)], [0.0, f32::INFINITY]);
        let of_nan = [exp, tanh, sigmoid, softplus].map(|function: fn(f32) -> f32| function(f32::NAN));
        assert!(of_nan.iter().all(|value| value.is_nan()), "{of_nan:?}");
    }

    #[test]
    fn only_what_is_too_small_to_matter_is_flushed() {
        assert_eq!([flushed(1e-31), flushed(-1e-40), flushed(f32::MIN_POSITIVE)], [0.0; 3]);
        assert_eq!([flushed(1e-29), flushed(-2.0), flushed(f32::INFINITY)], [1e-29, -2.0, f32::INFINITY]);
        assert!(flushed(f32::NAN).is_nan());
    }
}
