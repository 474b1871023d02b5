//! Memories that are matrices, over batch and heads at once.

use super::named::{Array, Arrays, Gradient, Gradients, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::written_memory::{MemoryConfig, MemoryParameters, written_memory};
use crate::kernels::matrix_memory::{Lanes, Memory, OfParameters, Parts, Rule};
use crate::kernels::memory::{Start, TASK, column_groups, new_pieces, side_by_side, sum_in_order};
use crate::kernels::recurrence::Reading;
use burn::tensor::Tensor;

named! {
    /// What `MatrixMemory` takes.
    MemoryInputs {
        /// `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates.
        packed: one 3,
        /// `[rows, len, n_rates n_heads]`, of gated linear attention `[rows, len, d]`.
        rates: maybe 3,
        /// `A` of the gated delta rule: `[n_heads]`.
        decay: maybe 1,
        /// `[d_head]`.
        norm: maybe 1,
        /// `[rows, n_heads, d_head, d_value]`.
        state: maybe 4,
    }
}

named! {
    /// What `MatrixMemory` gives.
    MemoryOutputs {
        /// `[rows, len, d]`.
        read: one 3,
        /// `[rows, n_heads, d_head, d_value]`.
        state: one 4,
    }
}

/// Positions after which the forward pass keeps the memory; the backward pass goes through those between once more.
const CHECKPOINT: usize = 16;

/// What is read at every position, and the memory after the last: see [`MatrixMemory`](crate::layers::mixer::MatrixMemory).
///
/// In burn's operations, heads are cut out and turned, positions are read in chunks by products of matrices that grow with the chunk, and
/// the backward pass keeps every step of that; here each head is carried from position to position, and every sixteenth memory is
/// kept.
///
/// # Shapes
/// - packed: `[rows, len, n_packed d]`: queries, keys, values and, of gated rules, gates
/// - state, output's second: `[rows, n_heads, d_head, d_value]`
/// - output's first: `[rows, len, d]`, zero on padding
///
/// # Panics
/// If the rule lacks a parameter, or there is no position.
pub fn matrix_memory(
    config: MemoryConfig,
    packed: Tensor<3>,
    parameters: MemoryParameters,
    state: Option<Tensor<4>>,
    reading: Reading,
    body: Body,
) -> (Tensor<3>, Tensor<4>) {
    let MemoryParameters { rates, decay, norm } = parameters;
    let rule = config.rule;
    assert!(packed.dims()[1] > 0, "a sequence has a position");
    assert_eq!(rates.is_some(), rule.n_rates() > 0, "rates of {rule:?}");
    assert_eq!(decay.is_some(), rule == Rule::GatedDelta, "a decay of {rule:?}");
    assert_eq!(norm.is_some(), rule != Rule::Linear, "a norm of {rule:?}");
    let outputs = run(MatrixMemory { config, reading }, MemoryInputs { packed, rates, decay, norm, state }, body);
    (outputs.read, outputs.state)
}

#[derive(Debug)]
struct MatrixMemory {
    config: MemoryConfig,
    reading: Reading,
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
    fn new(config: MemoryConfig, [rows, len, width]: [usize; 3]) -> Self {
        let (rule, n_heads) = (config.rule, config.n_heads);
        let d = width / rule.n_packed();
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

/// What a rule has beside queries, keys and values; empty where it has nothing.
struct Slices<'a> {
    rates: &'a [f32],
    norm: &'a [f32],
    /// How fast each head fades.
    speed: Vec<f32>,
}

impl<'a> Slices<'a> {
    fn new(inputs: &MemoryInputs<Views<'a>>) -> Self {
        Self {
            rates: inputs.rates.map(|rates| rates.values).unwrap_or_default(),
            norm: inputs.norm.map(|norm| norm.values).unwrap_or_default(),
            speed: inputs.decay.iter().flat_map(|decay| decay.values.iter().map(|a| a.exp())).collect(),
        }
    }
}

/// What the forward pass keeps.
struct Kept {
    sizes: Sizes,
    /// Of each task, the memory before every sixteenth position.
    checkpoints: Vec<Vec<Lanes>>,
}

/// What the backward pass of a task finds beside the gradients of its projections.
struct Found {
    of_rates: Vec<f32>,
    of_parameters: OfParameters,
    of_state: Vec<f32>,
}

impl MatrixMemory {
    /// What a task carries.
    fn memory<'a>(&self, sizes: &Sizes, task: Task, speed: &'a [f32], norm: &'a [f32]) -> Memory<'a> {
        Memory {
            rule: sizes.rule,
            n_heads: sizes.heads(),
            d_head: sizes.d_head,
            most_replaced: self.config.most_replaced as f32,
            speed: if speed.is_empty() { speed } else { &speed[task.head..][..sizes.heads()] },
            norm,
            epsilon: self.config.epsilon as f32,
        }
    }
}

impl Operation for MatrixMemory {
    type Inputs = MemoryInputs<Tensors>;
    type Outputs = MemoryOutputs<Tensors>;
    type Kept = Kept;

    fn keeps(&self) -> Keeps<Self> {
        let inputs =
            MemoryInputs { packed: true, rates: Some(true), decay: Some(true), norm: Some(true), state: Some(false) };
        Keeps { inputs, outputs: MemoryOutputs { read: false, state: false } }
    }

    fn forward(&self, inputs: MemoryInputs<Views>) -> (MemoryOutputs<Arrays>, Kept) {
        let sizes = Sizes::new(self.config, inputs.packed.shape);
        let Sizes { rows, len, n_heads, d_head, .. } = sizes;
        let (packed, width) = (inputs.packed.values, sizes.width());
        let Slices { rates, norm, speed } = Slices::new(&inputs);
        let (read, ends) = new_pieces(
            Start::Zeros(rows * len * n_heads * d_head),
            len * width,
            #[inline(always)]
            |place, out| {
                let task = sizes.task(place / (len * width));
                let memory = self.memory(&sizes, task, &speed, norm);
                let mut strips = memory.strips(inputs.state.map(|state| sizes.state(state.values, task)));
                let mut position = memory.position();
                let mut checkpoints = Vec::with_capacity(len.div_ceil(CHECKPOINT) * memory.n_rows());
                for (i, step) in self.reading.steps_of(task.row, len).enumerate() {
                    if i % CHECKPOINT == 0 {
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
        let outputs = MemoryOutputs {
            read: Array { shape: [rows, len, n_heads * d_head], values: side_by_side(read, len, width, sizes.groups) },
            state: Array { shape: [rows, n_heads, d_head, sizes.rule.d_value(d_head)], values: states.concat() },
        };
        (outputs, Kept { sizes, checkpoints })
    }

    fn backward(&self, of: Backward<Self>) -> MemoryInputs<Gradients> {
        let Kept { sizes, checkpoints } = of.kept;
        let Sizes { rows, len, d_head, groups, .. } = sizes;
        let (packed, width, n_packed) = (of.inputs.packed.values, sizes.width(), sizes.rule.n_packed());
        let Slices { rates, norm, speed } = Slices::new(&of.inputs);
        let (of_read, of_state) = (of.gradients.read.values, of.gradients.state.values);
        let n_rates = sizes.rule.n_rates() * sizes.rates_width();
        let (of_packed, found) = new_pieces(
            Start::Zeros(rows * len * groups * n_packed * width),
            len * n_packed * width,
            #[inline(always)]
            |place, out| {
                let n_task = place / (len * n_packed * width);
                let task = sizes.task(n_task);
                let memory = self.memory(&sizes, task, &speed, norm);
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
                        memories.copy_within(i * n..(i + 1) * n, (i + 1) * n);
                        memory.advance(&mut positions[i], &mut memories[(i + 1) * n..][..n]);
                    }
                    for (i, step) in steps.iter().enumerate().rev() {
                        let parts = sizes.parts(packed, rates, task, *step);
                        let mut of_parts = parts_mut(&sizes, out, &mut of_rates, *step);
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
            sum_in_order(of_all_tasks(of_task).chunks_exact(width), width)
        };
        let of_rates = || {
            side_by_side(of_all_tasks(|found| &found.of_rates), len * sizes.rule.n_rates(), sizes.rates_width(), groups)
        };
        let of_decay = || summed(sizes.n_heads, |found| &found.of_parameters.speed);
        let of_norm = || summed(d_head, |found| &found.of_parameters.norm);
        let of_start = || of_all_tasks(|found| &found.of_state);
        MemoryInputs {
            rates: of.needed.rates.map(|needed| Gradient::when(needed, of_rates)),
            decay: of.needed.decay.map(|needed| Gradient::when(needed, of_decay)),
            norm: of.needed.norm.map(|needed| Gradient::when(needed, of_norm)),
            state: of.needed.state.map(|needed| Gradient::when(needed, of_start)),
            packed: Gradient::New(side_by_side(of_packed, len * n_packed, width, groups)),
        }
    }

    fn written(&self, inputs: MemoryInputs<Tensors>) -> MemoryOutputs<Tensors> {
        self.in_burn(inputs, Body::Written)
    }

    fn on_gpu(&self, inputs: &MemoryInputs<Tensors>) -> Option<MemoryOutputs<Tensors>> {
        let MemoryInputs { packed, rates, decay, norm, state } = inputs;
        let (rates, decay, norm) = (rates.clone(), decay.clone(), norm.clone());
        let inputs = MemoryInputs { packed: packed.clone(), rates, decay, norm, state: state.clone() };
        Some(self.in_burn(inputs, Body::Fused))
    }
}

impl MatrixMemory {
    /// In burn's operations, but for the products if `body` allows others.
    fn in_burn(&self, inputs: MemoryInputs<Tensors>, body: Body) -> MemoryOutputs<Tensors> {
        let parameters = MemoryParameters { rates: inputs.rates, decay: inputs.decay, norm: inputs.norm };
        let (read, state) = written_memory(self.config, inputs.packed, parameters, inputs.state, &self.reading, body);
        MemoryOutputs { read, state }
    }
}
