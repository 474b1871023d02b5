//! Recurrences without a product at each step, over batch and channels at once.

use super::functions::{exp, flushed, sigmoid, tanh};
use super::memory::{Start, column_groups, new_pieces, side_by_side};
use super::recurrence::Reading;
use super::rows::sum_in_order;
use super::vectors::{each, update};

/// How much faster than its gate RG-LRU forgets: `c` of the paper.
pub const RG_LRU_SPEED: f64 = 8.0;
/// What RG-LRU's `1 - a^2` is at least, so that its root has a gradient.
pub const RG_LRU_FLOOR: f32 = 1e-6;

/// Which gates make `a_t` and `b_t` of `h_t = a_t * h_(t-1) + b_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gating {
    /// Gates packed as (z, x): `a = 1 - sigmoid(z)`, `b = sigmoid(z) g(x)`.
    MinGru,
    /// Gates packed as (f, i, x): `a = sigmoid(f) / (sigmoid(f) + sigmoid(i))`, `b = (1 - a) g(x)`.
    MinLstm,
    /// Gates packed as (f, x): `a = sigmoid(f)`, `b = (1 - a) x`; what others see is `relu(h)`.
    Ssru,
    /// Gates packed as (r, i, x): `a = sigmoid(L)^(8 sigmoid(r))`, `b = sqrt(1 - a^2) sigmoid(i) x`.
    RgLru,
}

impl Gating {
    /// How many matrices are packed side by side.
    pub fn n_gates(self) -> usize {
        match self {
            Self::MinGru | Self::Ssru => 2,
            Self::MinLstm | Self::RgLru => 3,
        }
    }
}

/// Channels that one task carries through all positions, at least.
const CHANNELS: usize = 64;

/// A layer over whole sequences.
///
/// # Shapes
/// - gates: `[batch, len, n_gates d]`
/// - start: `[batch, d]`
/// - decay: `[d]`, of RG-LRU, else empty
pub struct Layer<'a> {
    /// Which gates.
    pub gating: Gating,
    /// Which positions are read.
    pub reading: &'a Reading,
    /// Sequences.
    pub batch: usize,
    /// Positions.
    pub len: usize,
    /// Channels.
    pub d: usize,
    /// Those of every position, side by side.
    pub gates: &'a [f32],
    /// The state before the first position.
    pub start: &'a [f32],
    /// `L` of RG-LRU.
    pub decay: &'a [f32],
}

/// The gradients of all inputs; empty for a decay that is not there.
pub struct Gradients {
    /// Of the gates.
    pub gates: Vec<f32>,
    /// Of the state before the first position.
    pub start: Vec<f32>,
    /// Of `L`.
    pub decay: Vec<f32>,
}

/// The sizes, and the channels of one task.
struct Sizes {
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

/// `a`, the root of `1 - a^2`, and how that root changes with `-log(a)` beside `a`, from the gate `r` and `8 log(sigmoid(L))`.
#[inline(always)]
fn decayed(r: f32, slowest: f32) -> [f32; 3] {
    let log = r * slowest;
    let a = exp(log);
    // 1 - a^2, without losing the digits of what is near 1.
    let square = (1.0 + a * a) * tanh(-log);
    let is_free = square > RG_LRU_FLOOR;
    let room = if is_free { square } else { RG_LRU_FLOOR }.sqrt();
    // Not by the square of the root: that of the floor, rounded, may lie above it.
    [a, room, if is_free { a / room } else { 0.0 }]
}

impl Layer<'_> {
    fn sizes(&self) -> Sizes {
        let &Self { batch, len, d, .. } = self;
        let groups = column_groups(batch, d, |groups| d / groups >= CHANNELS);
        Sizes { len, d, n_gates: self.gating.n_gates(), width: d / groups }
    }

    /// The state after every position: `[batch, len, d]`, zero on padding.
    pub fn forward(&self) -> Vec<f32> {
        let sizes = self.sizes();
        let &Self { batch, len, d, gates, start, .. } = self;
        let (slowest, width) = (slowest(self.decay), sizes.width);
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
                                    let [a, room, _] = decayed(sigmoid(r), slowest);
                                    let h = a * h + room * sigmoid(i) * x;
                                    [h, h]
                                },
                            );
                        }
                    }
                }
            },
        );
        sizes.merged(states, len)
    }

    /// The gradients, from the states that [`Self::forward`] made and the gradient of those.
    pub fn backward(&self, states: &[f32], gradient: &[f32]) -> Gradients {
        let sizes = self.sizes();
        let &Self { batch, len, d, gates, start, .. } = self;
        let (slowest, n_gates, width) = (slowest(self.decay), sizes.n_gates, sizes.width);
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
                        Some(before) => sizes.at(states, task, *before),
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
                                    let [a, room, slope] = decayed(r, slowest);
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
        let of_decay = sum_in_order(of_slowest.concat().chunks_exact(d), d);
        // 1 - sigmoid(x), with all digits.
        let slope = |x: f32| RG_LRU_SPEED as f32 * sigmoid(-x);
        Gradients {
            gates: sizes.merged(of_gates, rows),
            start: of_start.concat(),
            decay: self.decay.iter().zip(of_decay).map(|(x, of_slowest)| of_slowest * slope(*x)).collect(),
        }
    }
}
