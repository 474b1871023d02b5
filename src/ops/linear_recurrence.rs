//! Recurrences without a product at each step, over batch and channels at once.

use super::gating::{Gating, RG_LRU_FLOOR, RG_LRU_SPEED};
use super::named::{Arrays, Gradient, Gradients, Output, Tensors, Views, named};
use super::operation::{Backward, Body, Keeps, Operation, run};
use super::scan::{coefficients, scan};
use crate::kernels::functions::{exp, flushed, sigmoid, tanh};
use crate::kernels::memory::{Start, column_groups, new_pieces, side_by_side, sum_in_order};
use crate::kernels::recurrence::Reading;
use crate::kernels::vectors::{each, update};
use burn::tensor::Tensor;

named! {
    /// What `Recurrence` takes.
    LinearRecurrenceInputs {
        /// `[batch, len, n_gates d_state]`.
        gates: one 3,
        /// `[batch, d_state]`.
        start: one 2,
        /// `L` of RG-LRU: `[d_state]`.
        decay: maybe 1,
    }
}

/// Channels that one task carries through all positions, at least.
const CHANNELS: usize = 64;

/// The state after every position: see [`LinearRecurrence`](crate::layers::mixer::LinearRecurrence).
///
/// In burn's operations, the gates and the scan are some thirty passes over memory; here the gates of a channel are computed beside its
/// state, and again in the backward pass, so that only the states are kept.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d_state]`
/// - start: `[batch, d_state]`
/// - decay: `[d_state]`, of RG-LRU
/// - output: `[batch, len, d_state]`, zero on padding
pub fn linear_recurrence(
    gating: Gating,
    gates: Tensor<3>,
    start: Tensor<2>,
    decay: Option<Tensor<1>>,
    reading: Reading,
    body: Body,
) -> Tensor<3> {
    run(Recurrence { gating, reading }, LinearRecurrenceInputs { gates, start, decay }, body).output
}

#[derive(Debug)]
struct Recurrence {
    gating: Gating,
    reading: Reading,
}

/// The sizes, and the channels of one task.
struct Sizes {
    batch: usize,
    len: usize,
    d: usize,
    n_gates: usize,
    width: usize,
}

/// Where the piece of a task lies.
#[derive(Clone, Copy)]
struct Task {
    sentence: usize,
    channel: usize,
}

impl Sizes {
    fn new([batch, len, width]: [usize; 3], n_gates: usize) -> Self {
        let d = width / n_gates;
        let groups = column_groups(batch, d, |groups| d / groups >= CHANNELS);
        Self { batch, len, d, n_gates, width: d / groups }
    }

    fn task(&self, place: usize, rows: usize) -> Task {
        let (i, groups) = (place / (rows * self.width), self.d / self.width);
        Task { sentence: i / groups, channel: i % groups * self.width }
    }

    /// The gates of a task at a position.
    #[inline(always)]
    fn gates<'a, const N: usize>(&self, gates: &'a [f32], task: Task, position: usize) -> [&'a [f32]; N] {
        let row = (task.sentence * self.len + position) * self.n_gates * self.d;
        each(&[][..], |gate| &gates[row + gate * self.d + task.channel..][..self.width])
    }

    /// A task's channels of a position.
    #[inline(always)]
    fn at<'a>(&self, values: &'a [f32], task: Task, position: usize) -> &'a [f32] {
        &values[(task.sentence * self.len + position) * self.d + task.channel..][..self.width]
    }

    /// A task's channels of a vector for each sentence.
    #[inline(always)]
    fn of_sentence<'a>(&self, values: &'a [f32], task: Task) -> &'a [f32] {
        &values[task.sentence * self.d + task.channel..][..self.width]
    }

    /// Groups of channels, each with `rows` rows a sentence, side by side.
    fn merged(&self, values: Vec<f32>, rows: usize) -> Vec<f32> {
        side_by_side(values, rows, self.width, self.d / self.width)
    }
}

/// `x + 1/2` or `sigmoid(x)`, and its slope.
#[inline(always)]
fn positive(x: f32) -> [f32; 2] {
    let s = sigmoid(x);
    if x >= 0.0 { [x + 0.5, 1.0] } else { [s, s * (1.0 - s)] }
}

/// `8 log(sigmoid(L))`.
fn slowest(decay: &[f32]) -> Vec<f32> {
    let log_sigmoid = |x: f64| if x < 0.0 { x - x.exp().ln_1p() } else { -(-x).exp().ln_1p() };
    decay.iter().map(|x| (RG_LRU_SPEED * log_sigmoid(*x as f64)) as f32).collect()
}

/// `a`, and the root of `1 - a^2`, from the gate `r` and `8 log(sigmoid(L))`.
#[inline(always)]
fn decayed(r: f32, slowest: f32) -> [f32; 2] {
    let log = r * slowest;
    let a = exp(log);
    // 1 - a^2, without losing the digits of what is near 1.
    let room = (1.0 + a * a) * tanh(-log);
    [a, if room > RG_LRU_FLOOR { room } else { RG_LRU_FLOOR }.sqrt()]
}

impl Operation for Recurrence {
    type Inputs = LinearRecurrenceInputs<Tensors>;
    type Outputs = Output<3, Tensors>;
    type Kept = ();

    fn keeps(&self) -> Keeps<Self> {
        let inputs = LinearRecurrenceInputs { gates: true, start: true, decay: Some(true) };
        Keeps { inputs, outputs: Output { output: true } }
    }

    fn forward(&self, inputs: LinearRecurrenceInputs<Views>) -> (Output<3, Arrays>, ()) {
        let sizes = Sizes::new(inputs.gates.shape, self.gating.n_gates());
        let (gates, start) = (inputs.gates.values, inputs.start.values);
        let slowest = inputs.decay.map(|decay| slowest(decay.values)).unwrap_or_default();
        let Sizes { batch, len, d, width, .. } = sizes;
        let (states, _) = new_pieces(
            Start::Zeros(batch * len * d),
            len * width,
            #[inline(always)]
            |place, out| {
                let task = sizes.task(place, len);
                let mut hidden = sizes.of_sentence(start, task).to_vec();
                for position in self.reading.steps_of(task.sentence, len) {
                    let out = &mut out[position * width..][..width];
                    match self.gating {
                        Gating::MinGru => update(
                            sizes.gates::<2>(gates, task, position),
                            [&mut hidden, out],
                            #[inline(always)]
                            |[z, x], [h, _]| {
                                let h = h + sigmoid(z) * (positive(x)[0] - h);
                                [h, h]
                            },
                        ),
                        Gating::MinLstm => update(
                            sizes.gates::<3>(gates, task, position),
                            [&mut hidden, out],
                            #[inline(always)]
                            |[f, i, x], [h, _]| {
                                let (f, i) = (sigmoid(f), sigmoid(i));
                                let new = positive(x)[0];
                                let h = new + f / (f + i) * (h - new);
                                [h, h]
                            },
                        ),
                        Gating::Ssru => update(
                            sizes.gates::<2>(gates, task, position),
                            [&mut hidden, out],
                            #[inline(always)]
                            |[f, x], [h, _]| {
                                let h = x + sigmoid(f) * (h - x);
                                [h, h]
                            },
                        ),
                        Gating::RgLru => {
                            let [r, i, x] = sizes.gates::<3>(gates, task, position);
                            update(
                                [r, i, x, &slowest[task.channel..][..width]],
                                [&mut hidden, out],
                                #[inline(always)]
                                |[r, i, x, slowest], [h, _]| {
                                    let [a, room] = decayed(sigmoid(r), slowest);
                                    let h = a * h + room * sigmoid(i) * x;
                                    [h, h]
                                },
                            );
                        }
                    }
                }
            },
        );
        (Output::new([batch, len, d], sizes.merged(states, len)), ())
    }

    fn backward(&self, of: Backward<Self>) -> LinearRecurrenceInputs<Gradients> {
        let n_gates = self.gating.n_gates();
        let sizes = Sizes::new(of.inputs.gates.shape, n_gates);
        let (gates, start) = (of.inputs.gates.values, of.inputs.start.values);
        let (output, gradient) = (of.outputs.output.values, of.gradients.output.values);
        let slowest = of.inputs.decay.map(|decay| slowest(decay.values)).unwrap_or_default();
        let Sizes { batch, len, d, width, .. } = sizes;
        let rows = len * n_gates;
        let (of_gates, ends) = new_pieces(
            Start::Zeros(batch * rows * d),
            rows * width,
            #[inline(always)]
            |place, out| {
                let task = sizes.task(place, rows);
                // The gradient of the state, and that of `8 log(sigmoid(L))`.
                let (mut of_state, mut of_slowest) =
                    (vec![0.0; width], vec![0.0; if slowest.is_empty() { 0 } else { width }]);
                let mut order = self.reading.steps_of(task.sentence, len).rev().peekable();
                while let Some(position) = order.next() {
                    let before = match order.peek() {
                        Some(before) => sizes.at(output, task, *before),
                        None => sizes.of_sentence(start, task),
                    };
                    let gradient = sizes.at(gradient, task, position);
                    let mut parts = out[position * n_gates * width..][..n_gates * width].chunks_exact_mut(width);
                    let mut next = || parts.next().expect("a part for each gate");
                    match self.gating {
                        Gating::MinGru => {
                            let [z, x] = sizes.gates::<2>(gates, task, position);
                            update(
                                [z, x, before, gradient],
                                [&mut of_state, next(), next()],
                                #[inline(always)]
                                |[z, x, before, g], [of_h, ..]| {
                                    let (of_h, z, [new, slope]) = (flushed(of_h + g), sigmoid(z), positive(x));
                                    [of_h * (1.0 - z), of_h * (new - before) * z * (1.0 - z), of_h * z * slope]
                                },
                            );
                        }
                        Gating::MinLstm => {
                            let [f, i, x] = sizes.gates::<3>(gates, task, position);
                            update(
                                [f, i, x, before, gradient],
                                [&mut of_state, next(), next(), next()],
                                #[inline(always)]
                                |[f, i, x, before, g], [of_h, ..]| {
                                    let (of_h, f, i, [new, slope]) =
                                        (flushed(of_h + g), sigmoid(f), sigmoid(i), positive(x));
                                    let a = f / (f + i);
                                    let of_log = of_h * (before - new) * a * (1.0 - a);
                                    [of_h * a, of_log * (1.0 - f), -of_log * (1.0 - i), of_h * (1.0 - a) * slope]
                                },
                            );
                        }
                        Gating::Ssru => {
                            let [f, x] = sizes.gates::<2>(gates, task, position);
                            update(
                                [f, x, before, gradient],
                                [&mut of_state, next(), next()],
                                #[inline(always)]
                                |[f, x, before, g], [of_h, ..]| {
                                    let (of_h, a) = (flushed(of_h + g), sigmoid(f));
                                    [of_h * a, of_h * (before - x) * a * (1.0 - a), of_h * (1.0 - a)]
                                },
                            );
                        }
                        Gating::RgLru => {
                            let [r, i, x] = sizes.gates::<3>(gates, task, position);
                            update(
                                [r, i, x, &slowest[task.channel..][..width], before, gradient],
                                [&mut of_state, &mut of_slowest, next(), next(), next()],
                                #[inline(always)]
                                |[r, i, x, slowest, before, g], [of_h, of_slowest, ..]| {
                                    let (of_h, r, i) = (flushed(of_h + g), sigmoid(r), sigmoid(i));
                                    let [a, room] = decayed(r, slowest);
                                    let slope = if room * room > RG_LRU_FLOOR { a / room } else { 0.0 };
                                    let of_log = of_h * (before - i * x * slope) * a;
                                    let of_input = of_h * room;
                                    [
                                        of_h * a,
                                        of_slowest + of_log * r,
                                        of_log * slowest * r * (1.0 - r),
                                        of_input * x * i * (1.0 - i),
                                        of_input * i,
                                    ]
                                },
                            );
                        }
                    }
                }
                (of_state, of_slowest)
            },
        );
        let (of_start, of_slowest): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let of_decay = |needed: bool| {
            Gradient::when(needed, || {
                let sum = sum_in_order(of_slowest.concat().chunks_exact(d), d);
                // 1 - sigmoid(x), with all digits.
                let slope = |x: f32| RG_LRU_SPEED as f32 * sigmoid(-x);
                let decay = of.inputs.decay.expect("its gradient is needed").values;
                sum.iter().zip(decay).map(|(of_slowest, x)| of_slowest * slope(*x)).collect()
            })
        };
        LinearRecurrenceInputs {
            gates: Gradient::New(sizes.merged(of_gates, rows)),
            start: Gradient::when(of.needed.start, || of_start.concat()),
            decay: of.needed.decay.map(of_decay),
        }
    }

    fn written(&self, inputs: LinearRecurrenceInputs<Tensors>) -> Output<3, Tensors> {
        let [a, b] = coefficients(self.gating, inputs.gates, inputs.decay);
        Output { output: scan(a, b, inputs.start, &self.reading) }
    }
}
