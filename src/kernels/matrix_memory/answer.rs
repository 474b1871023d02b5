//! What becomes of what a memory reads at a position.

use super::{Memory, OfParameters, OfPosition, Position, Rule, TINY, dot};
use crate::activation::silu;
use crate::vectors::update;

impl Memory<'_> {
    /// The root of the mean of the squares of what a head has read.
    #[inline(always)]
    fn size(&self, read: &[f32]) -> f32 {
        (dot(read, read) / self.d_head as f32 + self.epsilon).sqrt()
    }

    /// What others see: what was read, divided by the sum of weights or normalized, and gated.
    #[inline(always)]
    pub fn finish(&self, position: &Position, gate: &[f32], out: &mut [f32]) {
        let (d, n_strips) = (self.d_head, self.n_strips());
        for (head, out) in out.chunks_exact_mut(d).enumerate() {
            let read = position.read[head * n_strips..][..n_strips].as_flattened();
            if self.rule == Rule::Linear {
                let total = read[d] + TINY as f32;
                for (out, read) in out.iter_mut().zip(read) {
                    *out = read / total;
                }
            } else {
                let size = self.size(&read[..d]);
                for (out, (read, norm)) in out.iter_mut().zip(read.iter().zip(self.norm)) {
                    *out = read / size * norm;
                }
            }
        }
        if self.rule.is_gated() {
            update(
                [gate],
                [out],
                #[inline(always)]
                |[gate], [out]| [out * silu(gate)[0]],
            );
        }
    }

    /// The gradients of what was read and of the gate, from those of what others see; the former are found in `of`.
    #[inline(always)]
    pub fn finish_backward(
        &self,
        position: &Position,
        gate: &[f32],
        of_out: &[f32],
        of: &mut OfPosition,
        of_gate: &mut [f32],
        of_parameters: &mut OfParameters,
    ) {
        let (d, n_strips) = (self.d_head, self.n_strips());
        // Lent: the backward pass of the memory writes the gradient of the value there later.
        let of_ungated = &mut of.value;
        match self.rule.is_gated() {
            true => update(
                [of_out, gate],
                [of_ungated],
                #[inline(always)]
                |[of_out, gate], _| [of_out * silu(gate)[0]],
            ),
            false => of_ungated.copy_from_slice(of_out),
        }
        for head in 0..self.n_heads {
            let own = head * d..(head + 1) * d;
            let read = position.read[head * n_strips..][..n_strips].as_flattened();
            let of_read = of.read[head * n_strips..][..n_strips].as_flattened_mut();
            let of_ungated = &of.value[own.clone()];
            if self.rule == Rule::Linear {
                let total = read[d] + TINY as f32;
                for (of_read, of_ungated) in of_read.iter_mut().zip(of_ungated) {
                    *of_read = of_ungated / total;
                }
                of_read[d] = -dot(&of_read[..d], &read[..d]) / total;
                continue;
            }
            let size = self.size(&read[..d]);
            for (of_read, (of_ungated, norm)) in of_read.iter_mut().zip(of_ungated.iter().zip(self.norm)) {
                *of_read = of_ungated * norm / size;
            }
            if self.rule.is_gated() {
                let of_gate = &mut of_gate[own.clone()];
                let ungated = read.iter().zip(self.norm);
                for (of_gate, ((read, norm), of_out)) in of_gate.iter_mut().zip(ungated.zip(&of_out[own.clone()])) {
                    *of_gate = read / size * norm * of_out;
                }
            }
            let of_norm = &mut of_parameters.norm[own];
            for (of_norm, (read, of_ungated)) in of_norm.iter_mut().zip(read.iter().zip(of_ungated)) {
                *of_norm += read / size * of_ungated;
            }
            // The size changes with every element.
            let along = dot(&of_read[..d], &read[..d]) / (size * size * d as f32);
            for (of_read, read) in of_read[..d].iter_mut().zip(read) {
                *of_read -= along * read;
            }
        }
        if self.rule.is_gated() {
            update(
                [gate],
                [of_gate],
                #[inline(always)]
                |[gate], [of_gate]| [of_gate * silu(gate)[1]],
            );
        }
    }
}
