//! The kernels of recurrent cells: a step, and the step back.

use crate::backend::gpu::kernels::cube::unit_for_each;
use crate::backend::gpu::kernels::functions::logistic;
use crate::backend::gpu::kernels::product::{ProductKernels, flat};
use crate::backend::gpu::kernels::{new_like, new_of_shape, unused};
use crate::kernels::cell::{CellKind, n_saved};
use burn::backend::tensor::FloatTensor;
use burn_cubecl::cubecl::{self, prelude::*};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

/// Vectors that a cell carries: the state, and the memory.
pub(super) fn n_last(kind: CellKind) -> usize {
    if kind == CellKind::Lstm { 2 } else { 1 }
}

/// The gradient of the candidate's bias, from those of the products with states.
pub(super) fn of_bias<B: ProductKernels>(of_products: FloatTensor<B>, d: usize) -> FloatTensor<B> {
    // The candidate's part comes last.
    B::float_slice(B::summed_rows(flat::<B>(of_products)), &[burn::tensor::Slice::from(2 * d..3 * d)])
}

/// Where a step stands: a kernel writes and reads accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// No step after it has said anything of its state; on the way forward, the last of its layer.
    Last,
    /// Others come after it in its layer.
    Within,
    /// It is no part of a layer.
    Alone,
}

/// What is read and written at every step of the way forward.
pub(super) struct Forward {
    pub gates: CubeTensor,
    pub bias: CubeTensor,
    pub lengths: CubeTensor,
    pub packed: CubeTensor,
    pub previous: CubeTensor,
    pub kept: CubeTensor,
    /// `[batch, len, d]`.
    pub sizes: [usize; 3],
    pub kind: CellKind,
    pub has_lengths: bool,
}

impl Forward {
    /// The state and the memory after a step.
    pub(super) fn step(
        &self,
        [hidden, memory, product]: [CubeTensor; 3],
        step: usize,
        place: Place,
    ) -> [CubeTensor; 2] {
        let [batch, len, d] = self.sizes;
        let client = self.gates.client.clone();
        let next = match place {
            Place::Alone => unused(&self.gates),
            _ => new_like(&self.gates, [batch, d].into()),
        };
        let next_memory = match self.kind {
            CellKind::Lstm => new_of_shape(&next),
            _ => unused(&self.gates),
        };
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        advance::launch(
            &client,
            cube_count,
            cube_dim,
            self.gates.clone().into_buffer_arg(),
            into_contiguous(product).into_buffer_arg(),
            self.bias.clone().into_buffer_arg(),
            hidden.into_buffer_arg(),
            memory.into_buffer_arg(),
            self.lengths.clone().into_buffer_arg(),
            next.clone().into_buffer_arg(),
            next_memory.clone().into_buffer_arg(),
            self.packed.clone().into_buffer_arg(),
            self.previous.clone().into_buffer_arg(),
            self.kept.clone().into_buffer_arg(),
            StepLaunch::new(batch * d, len, d, step),
            place,
            self.has_lengths,
            self.kind,
        );
        [next, next_memory]
    }
}

/// What is read and written at every step of the way back.
pub(super) struct Back {
    pub kept: CubeTensor,
    pub previous: CubeTensor,
    pub gradient: CubeTensor,
    pub lengths: CubeTensor,
    pub of_gates: CubeTensor,
    pub of_products: CubeTensor,
    pub sizes: [usize; 3],
    pub kind: CellKind,
    pub has_lengths: bool,
}

impl Back {
    /// The gradients of the product with the state, of the state past that product, and of the memory.
    pub(super) fn step(
        &self,
        [past, product, of_memory]: [CubeTensor; 3],
        step: usize,
        place: Place,
    ) -> [CubeTensor; 3] {
        let [batch, len, d] = self.sizes;
        let client = self.kept.client.clone();
        let new_past = new_like(&self.kept, [batch, d].into());
        let new_memory = if self.kind == CellKind::Lstm { new_of_shape(&new_past) } else { unused(&self.kept) };
        let of_product = new_like(&self.kept, [batch, self.kind.n_gates() * d].into());
        let (cube_count, cube_dim) = unit_for_each(batch * d, &client);
        go_back::launch(
            &client,
            cube_count,
            cube_dim,
            self.kept.clone().into_buffer_arg(),
            self.previous.clone().into_buffer_arg(),
            self.gradient.clone().into_buffer_arg(),
            self.lengths.clone().into_buffer_arg(),
            past.into_buffer_arg(),
            product.into_buffer_arg(),
            of_memory.into_buffer_arg(),
            self.of_gates.clone().into_buffer_arg(),
            self.of_products.clone().into_buffer_arg(),
            of_product.clone().into_buffer_arg(),
            new_past.clone().into_buffer_arg(),
            new_memory.clone().into_buffer_arg(),
            StepLaunch::new(batch * d, len, d, step),
            place,
            self.has_lengths,
            self.kind,
        );
        [of_product, new_past, new_memory]
    }
}

/// A step, and the sizes of what it reads and writes.
#[derive(CubeType, CubeLaunch)]
struct Step {
    /// The elements of the states of all sentences.
    n: usize,
    /// The steps of a sentence.
    len: usize,
    /// The elements of a state.
    d: usize,
    /// Which of the steps it is.
    number: usize,
}

/// Where the things of one element of a state are. Of several vectors side by side, each comes after as many elements as a state has.
#[derive(CubeType, Clone, Copy)]
struct Element {
    sentence: usize,
    /// Its number in a state.
    i: usize,
    /// Among the states before all steps.
    previous: usize,
    /// Among the gates of all steps, the first.
    gate: usize,
    /// Among the products of this step, the first.
    product: usize,
    /// Among what is kept of all steps, the first.
    saved: usize,
    /// Among what a layer shows.
    shown: usize,
    /// Among the last states that stand behind that, the first.
    last: usize,
}

#[cube]
fn element(step: &Step, at: usize, #[comptime] kind: CellKind) -> Element {
    let d = step.d;
    let sentence = at / d;
    let i = at % d;
    let n_gates = comptime!(kind.n_gates()).runtime();
    let n_saved = comptime!(n_saved(kind)).runtime();
    let n_last = comptime!(n_last(kind)).runtime();
    let token = sentence * step.len + step.number;
    let first_shown = sentence * (step.len + n_last) * d + i;
    Element {
        sentence,
        i,
        previous: token * d + i,
        gate: token * n_gates * d + i,
        product: sentence * n_gates * d + i,
        saved: token * n_saved * d + i,
        shown: first_shown + step.number * d,
        last: first_shown + step.len * d,
    }
}

/// Each unit an element of a state. The equations are those of [`Cell`](crate::layers::recurrent::Cell).
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube(launch)]
fn advance(
    gates: &[f32],
    product: &[f32],
    bias: &[f32],
    hidden: &[f32],
    memory: &[f32],
    lengths: &[f32],
    next: &mut [f32],
    next_memory: &mut [f32],
    packed: &mut [f32],
    previous: &mut [f32],
    kept: &mut [f32],
    step: Step,
    #[comptime] place: Place,
    #[comptime] has_lengths: bool,
    #[comptime] kind: CellKind,
) {
    let at = ABSOLUTE_POS;
    if at < step.n {
        let d = step.d;
        let here = element(&step, at, kind);
        let input = here.gate;
        let own = here.product;
        let save = here.saved;
        let old = hidden[at];
        let mut new = old;
        let mut new_memory = 0.0f32;
        if comptime!(kind == CellKind::Vanilla) {
            new = (gates[input] + product[own]).tanh();
            kept[save] = new;
        } else if comptime!(kind == CellKind::Gru) {
            let reset = logistic(gates[input] + product[own]);
            let update = logistic(gates[input + d] + product[own + d]);
            let inner = product[own + 2 * d] + bias[here.i];
            let candidate = (gates[input + 2 * d] + reset * inner).tanh();
            new = candidate + update * (old - candidate);
            kept[save] = reset;
            kept[save + d] = update;
            kept[save + 2 * d] = candidate;
            kept[save + 3 * d] = inner;
        } else {
            let enter = logistic(gates[input] + product[own]);
            let forget = logistic(gates[input + d] + product[own + d]);
            let leave = logistic(gates[input + 2 * d] + product[own + 2 * d]);
            let candidate = (gates[input + 3 * d] + product[own + 3 * d]).tanh();
            new_memory = forget * memory[at] + enter * candidate;
            let squashed = new_memory.tanh();
            new = leave * squashed;
            kept[save] = enter;
            kept[save + d] = forget;
            kept[save + 2 * d] = leave;
            kept[save + 3 * d] = candidate;
            kept[save + 4 * d] = squashed;
            kept[save + 5 * d] = memory[at];
        }
        let mut shown = new;
        if has_lengths {
            let is_real = f32::cast_from(step.number) < lengths[here.sentence];
            shown = select(is_real, new, 0.0f32);
            new = select(is_real, new, old);
            if comptime!(kind == CellKind::Lstm) {
                new_memory = select(is_real, new_memory, memory[at]);
            }
        }
        if comptime!(place == Place::Alone) {
            packed[at] = new;
            if comptime!(kind == CellKind::Lstm) {
                packed[step.n + at] = new_memory;
            }
        } else {
            previous[here.previous] = old;
            packed[here.shown] = shown;
            next[at] = new;
            if comptime!(kind == CellKind::Lstm) {
                next_memory[at] = new_memory;
            }
            if comptime!(place == Place::Last) {
                packed[here.last] = new;
                if comptime!(kind == CellKind::Lstm) {
                    packed[here.last + d] = new_memory;
                }
            }
        }
    }
}

/// Each unit an element of a state.
// A kernel has no variable without a value: what every branch sets is set before.
#[allow(clippy::too_many_arguments, unused_assignments)]
#[cube(launch)]
fn go_back(
    kept: &[f32],
    previous: &[f32],
    gradient: &[f32],
    lengths: &[f32],
    past: &[f32],
    product: &[f32],
    of_memory: &[f32],
    of_gates: &mut [f32],
    of_products: &mut [f32],
    of_product: &mut [f32],
    new_past: &mut [f32],
    new_memory: &mut [f32],
    step: Step,
    #[comptime] place: Place,
    #[comptime] has_lengths: bool,
    #[comptime] kind: CellKind,
) {
    let at = ABSOLUTE_POS;
    if at < step.n {
        let d = step.d;
        let here = element(&step, at, kind);
        let output = here.gate;
        let own = here.product;
        let save = here.saved;
        // What the steps after this one say of the state, and of the memory.
        let mut carried = 0.0f32;
        let mut of_memory_after = 0.0f32;
        let mut of_shown = 0.0f32;
        if comptime!(place == Place::Alone) {
            carried = gradient[at];
            if comptime!(kind == CellKind::Lstm) {
                of_memory_after = gradient[step.n + at];
            }
        } else {
            of_shown = gradient[here.shown];
            if comptime!(place == Place::Last) {
                carried = gradient[here.last];
                if comptime!(kind == CellKind::Lstm) {
                    of_memory_after = gradient[here.last + d];
                }
            } else {
                carried = past[at] + product[at];
                if comptime!(kind == CellKind::Lstm) {
                    of_memory_after = of_memory[at];
                }
            }
        }
        let mut is_real = true;
        if has_lengths {
            is_real = f32::cast_from(step.number) < lengths[here.sentence];
        }
        let g = carried + of_shown;
        let old = previous[here.previous];
        let mut direct = 0.0f32;
        let mut of_memory_before = 0.0f32;
        if comptime!(kind == CellKind::Vanilla) {
            let h = kept[save];
            let of_sum = select(is_real, g * (1.0f32 - h * h), 0.0f32);
            of_gates[output] = of_sum;
            of_product[own] = of_sum;
        } else if comptime!(kind == CellKind::Gru) {
            let reset = kept[save];
            let update = kept[save + d];
            let candidate = kept[save + 2 * d];
            let inner = kept[save + 3 * d];
            let of_candidate = select(is_real, g * (1.0f32 - update) * (1.0f32 - candidate * candidate), 0.0f32);
            let of_reset = select(is_real, of_candidate * inner * reset * (1.0f32 - reset), 0.0f32);
            let of_update = select(is_real, g * (old - candidate) * update * (1.0f32 - update), 0.0f32);
            direct = g * update;
            of_gates[output] = of_reset;
            of_gates[output + d] = of_update;
            of_gates[output + 2 * d] = of_candidate;
            of_products[output] = of_reset;
            of_products[output + d] = of_update;
            of_products[output + 2 * d] = of_candidate * reset;
            of_product[own] = of_reset;
            of_product[own + d] = of_update;
            of_product[own + 2 * d] = of_candidate * reset;
        } else {
            let enter = kept[save];
            let forget = kept[save + d];
            let leave = kept[save + 2 * d];
            let candidate = kept[save + 3 * d];
            let squashed = kept[save + 4 * d];
            let before = kept[save + 5 * d];
            let of_c = of_memory_after + g * leave * (1.0f32 - squashed * squashed);
            let of_enter = select(is_real, of_c * candidate * enter * (1.0f32 - enter), 0.0f32);
            let of_forget = select(is_real, of_c * before * forget * (1.0f32 - forget), 0.0f32);
            let of_leave = select(is_real, g * squashed * leave * (1.0f32 - leave), 0.0f32);
            let of_candidate = select(is_real, of_c * enter * (1.0f32 - candidate * candidate), 0.0f32);
            of_memory_before = select(is_real, of_c * forget, of_memory_after);
            of_gates[output] = of_enter;
            of_gates[output + d] = of_forget;
            of_gates[output + 2 * d] = of_leave;
            of_gates[output + 3 * d] = of_candidate;
            of_product[own] = of_enter;
            of_product[own + d] = of_forget;
            of_product[own + 2 * d] = of_leave;
            of_product[own + 3 * d] = of_candidate;
        }
        new_past[at] = select(is_real, direct, carried);
        if comptime!(kind == CellKind::Lstm) {
            new_memory[at] = of_memory_before;
        }
    }
}
