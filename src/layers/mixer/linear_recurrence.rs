//! Recurrences that train in parallel: minGRU, minLSTM, SSRU and RG-LRU.

use super::MixerKind;
pub use crate::kernels::linear_recurrence::Gating;
use crate::kernels::linear_recurrence::RG_LRU_SPEED;
use crate::kernels::recurrence::Reading;
use crate::layers::linear::linear_layer;
use crate::layers::{Init, Pass};
use crate::ops::{linear_recurrence, scan};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData, activation};

impl MixerKind {
    /// The gates of a recurrence that trains in parallel; none of another mixer.
    pub fn gating(self) -> Option<Gating> {
        match self {
            Self::MinGru => Some(Gating::MinGru),
            Self::MinLstm => Some(Gating::MinLstm),
            Self::Ssru => Some(Gating::Ssru),
            Self::RgLru => Some(Gating::RgLru),
            _ => None,
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
            // a^8, what is left with the gate fully open, is spread over 0.9 to 0.999 as in the paper.
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
        let gates = linear_layer(&self.gates, input, pass);
        let decay = self.decay.as_ref().map(|decay| decay.val());
        pass.record("kept", || {
            let [kept, _] = scan::coefficients(self.gating, gates.clone(), decay.clone());
            kept
        });
        linear_recurrence(self.gating, gates, start, decay, reading, pass.body())
    }

    /// The width of the state.
    pub fn d_state(&self) -> usize {
        self.gates.weight.dims()[1] / self.gating.n_gates()
    }

    /// What others see of states.
    pub fn seen(&self, states: Tensor<3>) -> Tensor<3> {
        if self.gating == Gating::Ssru { activation::relu(states) } else { states }
    }
}
