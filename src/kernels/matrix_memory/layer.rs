//! All positions of a memory, forwards and back: tasks are some heads of a row.

use super::{Lanes, Memory, OfParameters, Parts, Rule};
use crate::memory::{Start, TASK, column_groups, new_pieces, side_by_side};
use crate::recurrence::Reading;
use crate::rows::sum_in_order;

/// Positions after which the forward pass keeps the memory; the backward pass goes through those between once more.
const CHECKPOINT: usize = 16;

/// A layer over whole sequences.
///
/// # Shapes
/// - packed: `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates
/// - rates: `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`; empty without rates
pub struct Layer<'a> {
    /// What becomes of the memory.
    pub rule: Rule,
    /// Which positions are read.
    pub reading: &'a Reading,
    /// Sequences.
    pub rows: usize,
    /// Positions.
    pub len: usize,
    /// Heads.
    pub n_heads: usize,
    /// What a rate of the delta rule is at most.
    pub most_replaced: f32,
    /// What the norm adds to the mean of squares.
    pub epsilon: f32,
    /// Queries, keys, values and gates.
    pub packed: &'a [f32],
    /// What a position writes or forgets.
    pub rates: &'a [f32],
    /// The logarithm of how fast each head fades, of the gated delta rule: `[n_heads]`, else empty.
    pub decay: &'a [f32],
    /// The scale of the norm: `[d_head]`, of all but linear attention, else empty.
    pub norm: &'a [f32],
}

/// What a layer makes.
pub struct Answers {
    /// What is read at every position: `[rows, len, d]`, zero on padding.
    pub read: Vec<f32>,
    /// The memory after the last position: `[rows, n_heads, d_head, d_value]`.
    pub state: Vec<f32>,
}

/// What the backward pass needs beside the inputs.
pub struct Kept {
    sizes: Sizes,
    /// Of each task, the memory before every sixteenth position.
    checkpoints: Vec<Vec<Lanes>>,
}

/// The gradients of all inputs; empty for those that are not there.
pub struct Gradients {
    /// Of queries, keys, values and gates.
    pub packed: Vec<f32>,
    /// Of the rates.
    pub rates: Vec<f32>,
    /// Of the logarithms of how fast heads fade.
    pub decay: Vec<f32>,
    /// Of the scale of the norm.
    pub norm: Vec<f32>,
    /// Of the memory before the first position.
    pub state: Vec<f32>,
}

/// The sizes, and the heads of one task.
#[derive(Clone, Copy)]
struct Sizes {
    rule: Rule,
    rows: usize,
    len: usize,
    n_heads: usize,
    d_head: usize,
    /// Tasks of a row.
    groups: usize,
}

/// Where the piece of a task lies.
#[derive(Clone, Copy)]
struct Task {
    row: usize,
    head: usize,
}

impl Sizes {
    fn new(layer: &Layer) -> Self {
        let Layer { rule, rows, len, n_heads, .. } = *layer;
        let d = layer.packed.len() / (rows * len * rule.n_packed()).max(1);
        let d_head = d / n_heads;
        let groups = column_groups(rows, n_heads, |groups| len * d * d_head / groups >= TASK);
        Self { rule, rows, len, n_heads, d_head, groups }
    }

    /// Heads of a task.
    fn heads(&self) -> usize {
        self.n_heads / self.groups
    }

    /// Columns of a task.
    fn width(&self) -> usize {
        self.heads() * self.d_head
    }

    /// Rates of a task at a position, of one kind.
    fn rates_width(&self) -> usize {
        if self.rule == Rule::GatedLinear { self.width() } else { self.heads() }
    }

    fn task(&self, i: usize) -> Task {
        Task { row: i / self.groups, head: i % self.groups * self.heads() }
    }

    /// What a task has of a position.
    #[inline(always)]
    fn parts<'a>(&self, packed: &'a [f32], rates: &'a [f32], task: Task, position: usize) -> Parts<&'a [f32]> {
        let (d, width, row) = (self.n_heads * self.d_head, self.width(), task.row * self.len + position);
        let part = |i: usize| &packed[(row * self.rule.n_packed() + i) * d + task.head * self.d_head..][..width];
        let n_rates = self.rule.n_rates();
        let rate = |i: usize| {
            let own = self.rates_width();
            if i < n_rates {
                &rates[(row * n_rates + i) * own * self.groups + task.head / self.heads() * own..][..own]
            } else {
                &[]
            }
        };
        let gate = if self.rule.is_gated() { part(3) } else { &[] };
        Parts { query: part(0), key: part(1), value: part(2), gate, rates: [rate(0), rate(1)] }
    }

    /// A task's matrices of what has some for each row.
    fn state<'a>(&self, values: &'a [f32], task: Task) -> &'a [f32] {
        let of_head = self.d_head * self.rule.d_value(self.d_head);
        &values[(task.row * self.n_heads + task.head) * of_head..][..self.heads() * of_head]
    }
}

/// The parts of a position in gradients of a task.
#[inline(always)]
fn parts_mut<'a>(sizes: &Sizes, packed: &'a mut [f32], rates: &'a mut [f32], position: usize) -> Parts<&'a mut [f32]> {
    let (n_packed, width) = (sizes.rule.n_packed(), sizes.width());
    let (query, rest) = packed[position * n_packed * width..][..n_packed * width].split_at_mut(width);
    let (key, rest) = rest.split_at_mut(width);
    let (value, gate) = rest.split_at_mut(width);
    let own = sizes.rates_width();
    let n_rates = sizes.rule.n_rates();
    let (first, second) = rates[position * n_rates * own..][..n_rates * own].split_at_mut(own.min(n_rates * own));
    Parts { query, key, value, gate, rates: [first, second] }
}

/// What the backward pass of a task finds beside the gradients of its projections.
struct Found {
    of_rates: Vec<f32>,
    of_parameters: OfParameters,
    of_state: Vec<f32>,
}

impl Layer<'_> {
    /// How fast each head fades.
    fn speed(&self) -> Vec<f32> {
        self.decay.iter().map(|a| a.exp()).collect()
    }

    /// What a task carries.
    fn memory<'a>(&'a self, sizes: &Sizes, task: Task, speed: &'a [f32]) -> Memory<'a> {
        Memory {
            rule: sizes.rule,
            n_heads: sizes.heads(),
            d_head: sizes.d_head,
            most_replaced: self.most_replaced,
            speed: if speed.is_empty() { speed } else { &speed[task.head..][..sizes.heads()] },
            norm: self.norm,
            epsilon: self.epsilon,
        }
    }

    /// All positions forwards, from a memory or from zeros, and what [`backward`](Layer::backward) needs.
    pub fn forward(&self, state: Option<&[f32]>) -> (Answers, Kept) {
        self.read(state, true)
    }

    /// The same where there will be no backward pass: nothing is kept for it.
    pub fn answer(&self, state: Option<&[f32]>) -> Answers {
        self.read(state, false).0
    }

    fn read(&self, state: Option<&[f32]>, keeps: bool) -> (Answers, Kept) {
        let sizes = Sizes::new(self);
        let Sizes { rows, len, n_heads, d_head, .. } = sizes;
        let (packed, rates, width, speed) = (self.packed, self.rates, sizes.width(), self.speed());
        let (read, ends) = new_pieces(
            Start::Zeros(rows * len * n_heads * d_head),
            len * width,
            #[inline(always)]
            |place, out| {
                let task = sizes.task(place / (len * width));
                let memory = self.memory(&sizes, task, &speed);
                let mut strips = memory.strips(state.map(|state| sizes.state(state, task)));
                let mut position = memory.position();
                let n_kept = if keeps { len.div_ceil(CHECKPOINT) } else { 0 };
                let mut checkpoints = Vec::with_capacity(n_kept * memory.n_rows());
                for (i, step) in self.reading.steps_of(task.row, len).enumerate() {
                    if keeps && i % CHECKPOINT == 0 {
                        checkpoints.extend_from_slice(&strips);
                    }
                    let parts = sizes.parts(packed, rates, task, step);
                    memory.prepare(&parts, &mut position);
                    memory.advance(&mut position, &mut strips);
                    memory.finish(&position, parts.gate, &mut out[step * width..][..width]);
                }
                (memory.matrices(&strips), checkpoints)
            },
        );
        let (states, checkpoints): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let answers = Answers { read: side_by_side(read, len, width, sizes.groups), state: states.concat() };
        (answers, Kept { sizes, checkpoints })
    }

    /// All positions back, from the gradients of what [`forward`](Layer::forward) made.
    pub fn backward(&self, kept: &Kept, of_read: &[f32], of_state: &[f32]) -> Gradients {
        let Kept { sizes, checkpoints } = kept;
        let Sizes { rows, len, d_head, groups, .. } = *sizes;
        let (packed, rates, speed) = (self.packed, self.rates, self.speed());
        let (width, n_packed) = (sizes.width(), sizes.rule.n_packed());
        let n_rates = sizes.rule.n_rates() * sizes.rates_width();
        let (of_packed, found) = new_pieces(
            Start::Zeros(rows * len * groups * n_packed * width),
            len * n_packed * width,
            #[inline(always)]
            |place, out| {
                let n_task = place / (len * n_packed * width);
                let task = sizes.task(n_task);
                let memory = self.memory(sizes, task, &speed);
                let n = memory.n_rows();
                let mut of_memory = memory.strips(Some(sizes.state(of_state, task)));
                let (mut of_position, mut of_parameters) = (memory.of_position(), memory.of_parameters());
                let mut of_rates = vec![0.0; len * n_rates];
                let mut positions: Vec<_> = (0..CHECKPOINT.min(len)).map(|_| memory.position()).collect();
                let mut memories = vec![Default::default(); (CHECKPOINT.min(len) + 1) * n];
                let steps: Vec<usize> = self.reading.steps_of(task.row, len).collect();
                for (steps, checkpoint) in steps.chunks(CHECKPOINT).zip(checkpoints[n_task].chunks_exact(n)).rev() {
                    memories[..n].copy_from_slice(checkpoint);
                    for (i, step) in steps.iter().enumerate() {
                        memory.prepare(&sizes.parts(packed, rates, task, *step), &mut positions[i]);
                        let (before, after) = memories[i * n..][..2 * n].split_at_mut(n);
                        memory.advance_into(&mut positions[i], before, after);
                    }
                    for (i, step) in steps.iter().enumerate().rev() {
                        let parts = sizes.parts(packed, rates, task, *step);
                        let mut of_parts = parts_mut(sizes, out, &mut of_rates, *step);
                        let at = (task.row * len + step) * width * groups + task.head * d_head;
                        let (of_out, position) = (&of_read[at..][..width], &positions[i]);
                        memory.finish_backward(
                            position,
                            parts.gate,
                            of_out,
                            &mut of_position,
                            of_parts.gate,
                            &mut of_parameters,
                        );
                        let around = [&memories[i * n..][..n], &memories[(i + 1) * n..][..n]];
                        memory.advance_backward(position, around, &mut of_memory, &mut of_position);
                        memory.prepare_backward(&parts, position, &mut of_position, &mut of_parts, &mut of_parameters);
                    }
                }
                Found { of_rates, of_parameters, of_state: memory.matrices(&of_memory) }
            },
        );
        let of_all_tasks = |of_task: fn(&Found) -> &[f32]| found.iter().map(of_task).collect::<Vec<_>>().concat();
        // Row after row and head after head.
        let summed = |width: usize, of_task: fn(&Found) -> &[f32]| {
            sum_in_order(of_all_tasks(of_task).chunks_exact(width.max(1)), width)
        };
        Gradients {
            packed: side_by_side(of_packed, len * n_packed, width, groups),
            rates: side_by_side(
                of_all_tasks(|found| &found.of_rates),
                len * sizes.rule.n_rates(),
                sizes.rates_width(),
                groups,
            ),
            decay: summed(self.decay.len(), |found| &found.of_parameters.speed),
            norm: summed(self.norm.len(), |found| &found.of_parameters.norm),
            state: of_all_tasks(|found| &found.of_state),
        }
    }
}
