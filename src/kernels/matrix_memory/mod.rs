//! A memory that is a matrix for each head, carried from position to position, and the gradients of that.
//!
//! A matrix is held in strips of columns, which stay in registers or the nearest cache while its rows are faded, written and read in one
//! pass.

mod answer;
mod layer;
mod position;
mod strip;

pub use layer::{Answers, Gradients, Kept, Layer};

use crate::vectors::total;
use position::{OfParameters, OfPosition, Parts, Position};
use std::cell::Cell;
use strip::{LANES, Lanes, OfShared, Shared, Step, totals};

/// What becomes of the memory at each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// `S_t = S_(t-1) + k_t v_t^T`
    Linear,
    /// `S_t = diag(a_t) S_(t-1) + k_t v_t^T`
    GatedLinear,
    /// `S_t = (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T`
    Delta,
    /// `S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T`
    GatedDelta,
}

impl Rule {
    /// Whether what is read is multiplied by a gate.
    pub fn is_gated(self) -> bool {
        matches!(self, Self::GatedLinear | Self::GatedDelta)
    }

    /// Whether a part of what a key has is replaced.
    pub fn is_delta(self) -> bool {
        matches!(self, Self::Delta | Self::GatedDelta)
    }

    /// Vectors of a position: query, key, value and, if there is one, the gate.
    pub fn n_packed(self) -> usize {
        if self.is_gated() { 4 } else { 3 }
    }

    /// Rates of a position: one for each head, or, of gated linear attention, one for each element of a key.
    pub fn n_rates(self) -> usize {
        match self {
            Self::Linear => 0,
            Self::GatedLinear | Self::Delta => 1,
            Self::GatedDelta => 2,
        }
    }

    /// The width of a value in the memory: that of linear attention has a one at its end.
    pub fn d_value(self, d_head: usize) -> usize {
        if self == Self::Linear { d_head + 1 } else { d_head }
    }
}

/// What the decay of a head is divided by in logarithms: `tau` of GLA.
pub const GLA_TEMPERATURE: f64 = 16.0;
/// The logarithm of what GLA keeps of a row at one position, at least.
pub const MOST_DECAY: f64 = -5.0;
/// What is added to the sum of weights of linear attention, and to the squares of a key, before dividing.
pub const TINY: f64 = 1e-6;

/// What a matrix memory is beside its tensors.
#[derive(Clone, Copy, Debug)]
pub struct MemoryConfig {
    /// What becomes of the memory at each position.
    pub rule: Rule,
    /// Matrices side by side.
    pub n_heads: usize,
    /// What a rate of the delta rule is at most.
    pub most_replaced: f64,
    /// What the norm adds to the mean of squares.
    pub epsilon: f64,
}

/// What does not change from position to position.
#[derive(Clone, Copy)]
struct Memory<'a> {
    /// What becomes of the memory.
    pub rule: Rule,
    /// Heads that are carried together.
    pub n_heads: usize,
    /// The width of a query, key and value.
    pub d_head: usize,
    /// What a rate of the delta rule is at most.
    pub most_replaced: f32,
    /// How fast each head fades, above 0: `[n_heads]`, of the gated delta rule.
    pub speed: &'a [f32],
    /// The scale of the norm: `[d_head]`, of all but linear attention.
    pub norm: &'a [f32],
    /// What the norm adds to the mean of squares.
    pub epsilon: f32,
}

impl Memory<'_> {
    /// Strips of a head.
    #[inline(always)]
    fn n_strips(&self) -> usize {
        self.rule.d_value(self.d_head).div_ceil(LANES)
    }

    /// Rows of strips of all heads.
    #[inline(always)]
    pub fn n_rows(&self) -> usize {
        self.n_heads * self.n_strips() * self.d_head
    }

    /// The strip of a head.
    #[inline(always)]
    fn strip(&self, head: usize, strip: usize) -> std::ops::Range<usize> {
        let start = (head * self.n_strips() + strip) * self.d_head;
        start..start + self.d_head
    }

    /// The columns of a head's values in a strip.
    #[inline(always)]
    fn columns(&self, strip: usize) -> std::ops::Range<usize> {
        (strip * LANES).min(self.d_head)..((strip + 1) * LANES).min(self.d_head)
    }

    /// Strips from matrices, or of zeros.
    ///
    /// # Shapes
    /// - matrices: `[n_heads, d_head, d_value]`
    pub fn strips(&self, matrices: Option<&[f32]>) -> Vec<Lanes> {
        let mut strips = vec![[0.0; LANES]; self.n_rows()];
        let d_value = self.rule.d_value(self.d_head);
        for (i, row) in matrices.unwrap_or_default().chunks_exact(d_value).enumerate() {
            for (strip, piece) in row.chunks(LANES).enumerate() {
                let at = self.strip(i / self.d_head, strip).start + i % self.d_head;
                strips[at][..piece.len()].copy_from_slice(piece);
            }
        }
        strips
    }

    /// The inverse of [`strips`](Memory::strips).
    pub fn matrices(&self, strips: &[Lanes]) -> Vec<f32> {
        let d_value = self.rule.d_value(self.d_head);
        let mut matrices = vec![0.0; self.n_heads * self.d_head * d_value];
        for (i, row) in matrices.chunks_exact_mut(d_value).enumerate() {
            for (strip, piece) in row.chunks_mut(LANES).enumerate() {
                let at = self.strip(i / self.d_head, strip).start + i % self.d_head;
                piece.copy_from_slice(&strips[at][..piece.len()]);
            }
        }
        matrices
    }

    #[inline(always)]
    fn shared<'p>(&self, position: &'p Position, head: usize) -> Shared<'p> {
        let own = head * self.d_head..(head + 1) * self.d_head;
        Shared {
            kept: &position.kept[own.clone()],
            key: &position.key[own.clone()],
            query: &position.query[own],
            rate: self.rule.is_delta().then(|| position.rate[head]),
        }
    }

    /// Fades, writes and reads the memory at a position that is [prepared](Memory::prepare).
    #[inline(always)]
    pub fn advance(&self, position: &mut Position, memory: &mut [Lanes]) {
        let memory = Cell::from_mut(memory).as_slice_of_cells();
        self.advance_from(position, memory, memory);
    }

    /// The same from one place to another.
    #[inline(always)]
    pub fn advance_into(&self, position: &mut Position, before: &mut [Lanes], after: &mut [Lanes]) {
        let [before, after] = [before, after].map(|memory| Cell::from_mut(memory).as_slice_of_cells());
        self.advance_from(position, before, after);
    }

    #[inline(always)]
    fn advance_from(&self, position: &mut Position, before: &[Cell<Lanes>], after: &[Cell<Lanes>]) {
        for head in 0..self.n_heads {
            for strip in 0..self.n_strips() {
                let value = self.value(position, head, strip);
                let rows = self.strip(head, strip);
                let shared = self.shared(position, head);
                let [read, missing] = strip::advance(&before[rows.clone()], &after[rows], shared, &value);
                let at = head * self.n_strips() + strip;
                (position.read[at], position.missing[at]) = (read, missing);
            }
        }
    }

    /// The gradients of what [`advance`](Memory::advance) has taken, from those of what was read and of the memory after it; the latter
    /// becomes that of the memory before it.
    #[inline(always)]
    pub fn advance_backward(
        &self,
        position: &Position,
        around: [&[Lanes]; 2],
        of_memory: &mut [Lanes],
        of: &mut OfPosition,
    ) {
        if self.rule == Rule::GatedLinear {
            self.backward_of_rows::<true>(position, around, of_memory, of);
        } else {
            self.backward_of_rows::<false>(position, around, of_memory, of);
        }
    }

    /// The same, of rows that fade one by one or, where `EACH` is false, together.
    #[inline(always)]
    fn backward_of_rows<const EACH: bool>(
        &self,
        position: &Position,
        [before, after]: [&[Lanes]; 2],
        of_memory: &mut [Lanes],
        of: &mut OfPosition,
    ) {
        for head in 0..self.n_heads {
            let own = head * self.d_head..(head + 1) * self.d_head;
            let of_shared = &mut of.shared;
            for strip in 0..self.n_strips() {
                let at = head * self.n_strips() + strip;
                let rows = self.strip(head, strip);
                let step =
                    Step { before: &before[rows.clone()], after: &after[rows.clone()], missing: &position.missing[at] };
                let shared = self.shared(position, head);
                let (of_memory, of_read) = (&mut of_memory[rows], &of.read[at]);
                let of_value = if strip == 0 {
                    strip::advance_backward::<EACH, true>(of_memory, step, shared, of_read, of_shared)
                } else {
                    strip::advance_backward::<EACH, false>(of_memory, step, shared, of_read, of_shared)
                };
                // The one at the end of a value of linear attention has no gradient.
                let columns = self.columns(strip);
                let n = columns.len();
                of.value[own.clone()][columns].copy_from_slice(&of_value[..n]);
            }
            totals(&of_shared.query, &mut of.query[own.clone()]);
            totals(&of_shared.key, &mut of.key[own.clone()]);
            of.rate[head] = total(of_shared.rate);
            if EACH {
                totals(&of_shared.log_kept, &mut of.log_kept[own]);
            } else {
                of.log_kept[head] = total(of_shared.log_kept[0]);
            }
        }
    }
}

/// The sum of products of two vectors of a head, in four lanes: heads can be narrow.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 4];
    let ((fours, rest), (other_fours, other_rest)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in fours.iter().zip(other_fours) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    let mut sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (a, b) in rest.iter().zip(other_rest) {
        sum += a * b;
    }
    sum
}
