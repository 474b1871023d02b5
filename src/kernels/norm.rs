//! Layer normalization, and that by the root mean square.

use super::memory::{Start, mapped, new_pieces, task_rows};
use super::rows::sum_of_rows;
use super::vectors::{sum, update};

/// `gamma (x - mean) / sqrt(var + epsilon) + beta` of every row.
///
/// # Shapes
/// - x, result: rows of `width`
/// - gamma, beta: `[width]`
///
/// # Reference
/// Ba, Kiros and Hinton, Layer Normalization, 2016.
pub fn layer_norm(x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32) -> Vec<f32> {
    let width = gamma.len();
    mapped(
        x,
        width,
        #[inline(always)]
        |_, piece| {
            for row in piece.chunks_exact_mut(width) {
                let (mean, scale) = moments(row, epsilon);
                update(
                    [gamma, beta],
                    [row],
                    #[inline(always)]
                    |[gamma, beta], [value]| [(value - mean) * scale * gamma + beta],
                );
            }
        },
    )
}

/// The gradients of `x` and of `gamma`, from that of [`layer_norm`]. (That of `beta` is the sum of the rows.)
pub fn layer_back(x: &[f32], gamma: &[f32], gradient: &[f32], epsilon: f32) -> [Vec<f32>; 2] {
    let width = gamma.len();
    // Pieces of fixed size, added in order: the sum does not depend on the number of threads.
    let (of_x, of_gamma) = new_pieces(
        Start::Zeros(x.len()),
        task_rows(width) * width,
        #[inline(always)]
        |start, out| {
            let (x, gradient) = (&x[start..][..out.len()], &gradient[start..][..out.len()]);
            back_rows(out, x, gradient, gamma, epsilon)
        },
    );
    [of_x, sum_of_rows(&of_gamma.concat(), width)]
}

/// `gamma x / sqrt(mean(x^2) + epsilon)` of every row.
///
/// # Shapes
/// - x, result: rows of `width`
/// - gamma: `[width]`
///
/// # Reference
/// Zhang and Sennrich, Root Mean Square Layer Normalization, 2019, equation 4.
pub fn rms_norm(x: &[f32], gamma: &[f32], epsilon: f32) -> Vec<f32> {
    let width = gamma.len();
    mapped(
        x,
        width,
        #[inline(always)]
        |_, piece| {
            for row in piece.chunks_exact_mut(width) {
                let scale = scale_of(row, epsilon);
                update(
                    [gamma],
                    [row],
                    #[inline(always)]
                    |[gamma], [value]| [value * scale * gamma],
                );
            }
        },
    )
}

/// The gradients of `x` and of `gamma`, from that of [`rms_norm`].
pub fn rms_back(x: &[f32], gamma: &[f32], gradient: &[f32], epsilon: f32) -> [Vec<f32>; 2] {
    let width = gamma.len();
    let (of_x, of_gamma) = new_pieces(
        Start::Zeros(x.len()),
        task_rows(width) * width,
        #[inline(always)]
        |start, out| {
            let mut of_gamma = vec![0.0; width];
            for (i, out) in out.chunks_exact_mut(width).enumerate() {
                let at = start + i * width..start + (i + 1) * width;
                let (x, gradient) = (&x[at.clone()], &gradient[at]);
                let scale = scale_of(x, epsilon);
                let along = sum(
                    [gradient, gamma, x],
                    #[inline(always)]
                    |[g, gamma, x]| g * gamma * x,
                ) * scale
                    / width as f32;
                update(
                    [x, gradient, gamma],
                    [out, &mut of_gamma],
                    #[inline(always)]
                    |[x, gradient, gamma], [_, of_gamma]| {
                        let normal = x * scale;
                        [scale * (gradient * gamma - normal * along), of_gamma + gradient * normal]
                    },
                );
            }
            of_gamma
        },
    );
    [of_x, sum_of_rows(&of_gamma.concat(), width)]
}

/// One over the root mean square of a row.
#[inline(always)]
fn scale_of(row: &[f32], epsilon: f32) -> f32 {
    let squares = sum(
        [row],
        #[inline(always)]
        |[value]| value * value,
    );
    1.0 / (squares / row.len() as f32 + epsilon).sqrt()
}

/// The mean of a row, and one over its deviation.
#[inline(always)]
fn moments(row: &[f32], epsilon: f32) -> (f32, f32) {
    let n = row.len() as f32;
    let mean = sum(
        [row],
        #[inline(always)]
        |[value]| value,
    ) / n;
    let variance = sum(
        [row],
        #[inline(always)]
        |[value]| (value - mean) * (value - mean),
    ) / n;
    (mean, 1.0 / (variance + epsilon).sqrt())
}

/// The gradients of some rows, and their part of that of gamma.
#[inline(always)]
fn back_rows(out: &mut [f32], x: &[f32], gradient: &[f32], gamma: &[f32], epsilon: f32) -> Vec<f32> {
    let width = gamma.len();
    let n = width as f32;
    let mut of_gamma = vec![0.0; width];
    for (out, (x, gradient)) in out.chunks_exact_mut(width).zip(x.chunks_exact(width).zip(gradient.chunks_exact(width)))
    {
        let (mean, scale) = moments(x, epsilon);
        let of_normal = sum(
            [gradient, gamma],
            #[inline(always)]
            |[g, gamma]| g * gamma,
        ) / n;
        let along = sum(
            [gradient, gamma, x],
            #[inline(always)]
            |[g, gamma, x]| g * gamma * (x - mean),
        ) * scale
            / n;
        update(
            [x, gradient, gamma],
            [out, &mut of_gamma],
            #[inline(always)]
            |[x, gradient, gamma], [_, of_gamma]| {
                let normal = (x - mean) * scale;
                [scale * (gradient * gamma - of_normal - normal * along), of_gamma + gradient * normal]
            },
        );
    }
    of_gamma
}
