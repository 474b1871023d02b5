//! Rotary positions.

use super::memory::mapped;

/// The angles of every position.
///
/// # Shapes
/// - cosines, sines: `[len, half]`, `half` being half the width of a head
#[derive(Clone, Copy)]
pub struct Angles<'a> {
    /// The cosine of each.
    pub cosines: &'a [f32],
    /// The sine of each.
    pub sines: &'a [f32],
    /// Angles of a position.
    pub half: usize,
}

/// Rows of `width`, one for each position of each sentence, whose first `n_turned` heads are turned by their position's angles, or with
/// `sign` -1 back.
pub fn rotate(values: &[f32], width: usize, n_turned: usize, angles: Angles, sign: f32) -> Vec<f32> {
    let Angles { cosines, sines, half } = angles;
    let len = cosines.len() / half;
    mapped(
        values,
        width,
        #[inline(always)]
        |start, piece| {
            for (row, out) in piece.chunks_exact_mut(width).enumerate() {
                let angle = (start / width + row) % len * half;
                let (cosines, sines) = (&cosines[angle..][..half], &sines[angle..][..half]);
                for head in out.chunks_exact_mut(2 * half).take(n_turned) {
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
