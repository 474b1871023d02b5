//! Adam's step on one parameter.

use super::machine::vectorized;
use super::memory::TASK;
use super::vectors::update;
use rayon::prelude::*;

/// The numbers of a step that are the same for every element.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the mean of the gradients, and of that of their squares.
    pub decays: [f32; 2],
    /// What a gradient is multiplied by.
    pub scale: f32,
    /// What the mean gradient is multiplied by: the learning rate, and the correction of the mean.
    pub rate: f32,
    /// What the mean square is multiplied by before its root.
    pub root: f32,
    /// What is left of a weight, without its gradient.
    pub keep: f32,
    /// Added to the root.
    pub epsilon: f32,
}

/// One step: `values` and both moments move by `gradient`.
///
/// # Reference
/// Kingma and Ba, Adam, 2015, algorithm 1; Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2.
pub fn adam(values: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], step: AdamStep) {
    let AdamStep { decays: [b1, b2], scale, rate, root, keep, epsilon } = step;
    let moments = first.par_chunks_mut(TASK).zip(second.par_chunks_mut(TASK));
    values.par_chunks_mut(TASK).zip(gradient.par_chunks(TASK)).zip(moments).for_each(
        |((values, gradient), (first, second))| {
            vectorized(
                #[inline(always)]
                || {
                    update(
                        [gradient],
                        [values, first, second],
                        #[inline(always)]
                        |[gradient], [value, first, second]| {
                            let g = gradient * scale;
                            let first = b1 * first + (1.0 - b1) * g;
                            let second = b2 * second + (1.0 - b2) * g * g;
                            [keep * value - rate * first / ((second * root).sqrt() + epsilon), first, second]
                        },
                    )
                },
            );
        },
    );
}
