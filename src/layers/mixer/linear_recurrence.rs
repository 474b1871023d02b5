//! Recurrences that train in parallel: minGRU, minLSTM, SSRU and RG-LRU.

use super::{MixerKind, log_sigmoid, real};
use crate::layers::fused::{self, Reading};
use crate::layers::{Init, Pass};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData, activation};

/// How much faster than its gate RG-LRU forgets: `c` of the paper.
pub const RG_LRU_SPEED: f64 = 8.0;
/// What RG-LRU's `1 - a^2` is at least, so that its root has a gradient.
pub const RG_LRU_FLOOR: f32 = 1e-6;

/// Which gates make `a_t` and `b_t` of `h_t = a_t * h_(t-1) + b_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// That of a mixer, if it has one.
    pub fn of(kind: MixerKind) -> Option<Self> {
        match kind {
            MixerKind::MinGru => Some(Self::MinGru),
            MixerKind::MinLstm => Some(Self::MinLstm),
            MixerKind::Ssru => Some(Self::Ssru),
            MixerKind::RgLru => Some(Self::RgLru),
            _ => None,
        }
    }

    /// How many matrices are packed side by side.
    pub fn n_gates(self) -> usize {
        match self {
            Self::MinGru | Self::Ssru => 2,
            Self::MinLstm | Self::RgLru => 3,
        }
    }
}

/// `h_t = a_t * h_(t-1) + b_t`, element by element, where `a` and `b` are made of `x_t` alone: see [`Gating`], with
/// `g(x) = x + 1/2` for `x >= 0` and `sigmoid(x)` below.
///
/// No gate sees the state, so that one product makes the gates of all positions, and what is left of the recurrence is one
/// multiplication and one sum for each element. burn has no such layer.
///
/// # Reference
/// Feng et al., Were RNNs All We Needed?, 2024, section 3 and appendix B (the `g` that keeps states above 0); Kim et al., From
/// Research to Production and Back: Ludicrously Fast Neural Machine Translation, 2019, section 3.1; De et al., Griffin: Mixing
/// Gated Linear Recurrences with Local Attention, 2024, equations 1 to 4. **Differs from the papers:** every gate has a bias;
/// RG-LRU's gates have whole matrices where Griffin's are block-diagonal, and read what `x` is projected from, so that one
/// product makes all three.
#[derive(Module, Debug)]
pub struct LinearRecurrence {
    /// Every gate: `[d_model, n_gates * d_state]`.
    gates: Linear,
    /// `L` of RG-LRU: `[d_state]`.
    decay: Option<Param<Tensor<1>>>,
    #[module(skip)]
    gating: Gating,
}

impl LinearRecurrence {
    /// A recurrence that reads vectors of width `d_model` into a state of width `d_state`.
    pub fn new(gating: Gating, d_model: usize, d_state: usize, init: &Init) -> Self {
        let n_gates = gating.n_gates();
        let decay = (gating == Gating::RgLru).then(|| {
            // a^8, what is left with the gate half open, is spread over 0.9 to 0.999 as in the paper.
            let at = |i: usize| (i as f64 + 0.5) / d_state as f64;
            let left = |i: usize| (0.9 + 0.099 * at(i)).powf(1.0 / RG_LRU_SPEED);
            let logits: Vec<f32> = (0..d_state).map(|i| (left(i) / (1.0 - left(i))).ln() as f32).collect();
            Param::from_data(TensorData::new(logits, [d_state]), init.device())
        });
        Self { gates: init.linear(d_model, n_gates * d_state, n_gates), decay, gating }
    }

    /// The state after every position of `input`, from `start` on.
    ///
    /// # Shapes
    /// - input: `[rows, len, d_model]`
    /// - start: `[rows, d_state]`
    /// - output: `[rows, len, d_state]`, zero on padding
    pub fn states(&self, input: Tensor<3>, start: Tensor<2>, reading: Reading, pass: &mut Pass) -> Tensor<3> {
        let is_fused = pass.fuses(&input.device());
        let gates = fused::linear_layer(&self.gates, input, pass);
        let decay = self.decay.as_ref().map(|decay| decay.val());
        if is_fused {
            return fused::linear_recurrence(self.gating, gates, start, decay, reading);
        }
        let [a, b] = self.coefficients(gates, decay);
        pass.record("kept", || a.clone());
        scan(a, b, start, &reading)
    }

    /// The width of the state.
    pub fn d_state(&self) -> usize {
        self.gates.weight.dims()[1] / self.gating.n_gates()
    }

    /// What others see of states.
    pub fn seen(&self, states: Tensor<3>) -> Tensor<3> {
        if self.gating == Gating::Ssru { activation::relu(states) } else { states }
    }

    /// `a` and `b` of every position.
    fn coefficients(&self, gates: Tensor<3>, decay: Option<Tensor<1>>) -> [Tensor<3>; 2] {
        let d = gates.dims()[2] / self.gating.n_gates();
        let part = |i: usize| gates.clone().narrow(2, i * d, d);
        let gate = |i: usize| activation::sigmoid(part(i));
        let rest = |a: Tensor<3>| a.neg().add_scalar(1.0);
        match self.gating {
            Gating::MinGru => {
                let z = gate(0);
                [rest(z.clone()), z * positive(part(1))]
            }
            Gating::MinLstm => {
                let (forget, input) = (gate(0), gate(1));
                let a = forget.clone() / (forget + input);
                [a.clone(), rest(a) * positive(part(2))]
            }
            Gating::Ssru => {
                let a = gate(0);
                [a.clone(), rest(a) * part(1)]
            }
            Gating::RgLru => {
                let decay = decay.expect("RG-LRU has a decay");
                let slowest = log_sigmoid(decay).mul_scalar(RG_LRU_SPEED).unsqueeze::<3>();
                let log = gate(0) * slowest;
                let a = log.clone().exp();
                // 1 - a^2, without losing the digits of what is near 1.
                let room = (a.clone() * a.clone()).add_scalar(1.0) * log.neg().tanh();
                let room = room.clamp_min(RG_LRU_FLOOR).sqrt();
                [a, room * gate(1) * part(2)]
            }
        }
    }
}

/// `x + 1/2` for `x >= 0`, `sigmoid(x)` below: always above 0, and without a jump.
fn positive(x: Tensor<3>) -> Tensor<3> {
    let is_negative = x.clone().lower_elem(0.0);
    let below = activation::sigmoid(x.clone());
    x.add_scalar(0.5).mask_where(is_negative, below)
}

/// All states of `h_t = a_t * h_(t-1) + b_t`, in as many passes as the length has binary digits: after pass `k`, each position
/// knows what `2^k` positions make of the state before them (Hillis and Steele 1986).
fn scan(a: Tensor<3>, b: Tensor<3>, start: Tensor<2>, reading: &Reading) -> Tensor<3> {
    let [rows, len, d] = a.dims();
    let device = a.device();
    let real = reading.lengths.as_ref().and_then(|lengths| real(lengths, len, &device));
    let turn = |x: Tensor<3>| if reading.is_backward { x.flip([1]) } else { x };
    // On padding the state stands still.
    let (a, b) = match &real {
        Some(real) => (a * real.clone() + real.clone().neg().add_scalar(1.0), b * real.clone()),
        None => (a, b),
    };
    let (mut a, mut b) = (turn(a), turn(b));
    let mut reach = 1;
    while reach < len {
        let before =
            |x: &Tensor<3>, filler: Tensor<3>| Tensor::cat(vec![filler, x.clone().narrow(1, 0, len - reach)], 1);
        b = b.clone() + a.clone() * before(&b, Tensor::zeros([rows, reach, d], &device));
        a = a.clone() * before(&a, Tensor::ones([rows, reach, d], &device));
        reach *= 2;
    }
    let states = turn(a * start.unsqueeze_dim::<3>(1) + b);
    match real {
        Some(real) => states * real,
        None => states,
    }
}
