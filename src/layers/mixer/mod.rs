//! Mixers: what lets the positions of one sequence exchange something.
//!
//! In a Transformer layer it is a choice, for each side and each layer. Self-attention looks back at everything; a recurrence
//! carries a state of fixed size, so that a step of decoding costs the same after ten words and after ten thousand.
//!
//! | mixer | state | all positions at once | from |
//! | --- | --- | --- | --- |
//! | [`SelfAttention`](super::attention::multi_head::SelfAttention) | keys and values of all words | yes | Vaswani 2017 |
//! | [`Cell`](super::recurrent::Cell): vanilla, GRU, LSTM | a vector | no | Elman 1990, Cho 2014, Hochreiter 1997 |
//! | [`LinearRecurrence`]: minGRU, minLSTM, SSRU, RG-LRU | a vector | yes | Feng 2024, Kim 2019, De 2024 |
//! | [`MatrixMemory`]: linear, gated linear, delta, gated delta | a matrix for each head | in chunks, in burn's operations | Katharopoulos 2020, Yang 2023 to 2025 |
//!
//! [`ShortConvolution`] may stand before any of them. [`RecurrentEncoder`] is a stack of those with a vector, for recurrent
//! decoders.

mod config;
mod convolution;
mod encoder;
mod linear_recurrence;
mod matrix_memory;
mod recurrence;

pub use config::{MixerConfig, MixerKind, Mixers, SideConfig};
pub use convolution::ShortConvolution;
pub use encoder::{Encoded, EncoderShape, RecurrentEncoder};
pub use linear_recurrence::{Gating, LinearRecurrence};
pub use matrix_memory::{GLA_TEMPERATURE, MatrixMemory, Rule};
pub use recurrence::MixerState;

use super::linear::linear_layer;
use super::recurrent::{Order, Running};
use super::{Init, Pass};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use recurrence::{Core, read_whole};

/// The sizes of the layer that a mixer stands in.
#[derive(Clone, Copy, Debug)]
pub struct MixerShape {
    /// Width of the vectors between layers.
    pub d_model: usize,
    /// Heads of a memory that is a matrix.
    pub n_heads: usize,
    /// 1 or 2.
    pub n_directions: usize,
}

/// A mixer with a state of fixed size, in one direction or both.
///
/// Where the state is wider than the vectors between layers, where two directions meet, and for memories that are matrices, a
/// linear layer leads back to their width.
#[derive(Module, Debug)]
pub struct RecurrentMixer {
    forward: Core,
    backward: Option<Core>,
    output: Option<Linear>,
}

impl RecurrentMixer {
    /// The recurrence of a config; none if that is attention.
    pub fn new(config: &MixerConfig, shape: MixerShape, init: &Init) -> Option<Self> {
        let MixerShape { d_model, n_heads, n_directions } = shape;
        let d_state = d_model * config.expansion();
        let core = || {
            Core::vector(config.kind, d_model, d_state, init).or_else(|| {
                let turns = config.negative_eigenvalues.unwrap_or(false);
                Some(Core::Matrix(MatrixMemory::new(config.kind.rule()?, d_model, n_heads, turns, init)))
            })
        };
        let forward = core()?;
        let backward = if n_directions == 2 { core() } else { None };
        let width = n_directions * d_state;
        let has_output = width != d_model || matches!(forward, Core::Matrix(_));
        Some(Self { forward, backward, output: has_output.then(|| init.linear(width, d_model, 1)) })
    }

    /// Every position of whole sequences; those with `lengths` end in padding.
    ///
    /// # Shapes
    /// - input, output: `[batch, len, d_model]`
    pub fn forward(&self, input: Tensor<3>, lengths: Option<&[usize]>, pass: &mut Pass) -> Tensor<3> {
        let [batch, len, _] = input.dims();
        let lengths = lengths.map_or_else(|| vec![len; batch], <[usize]>::to_vec);
        let running = Running::new(&lengths, len, &input.device());
        let (both, _) = read_whole(&self.forward, self.backward.as_ref(), input, &running, pass);
        self.out(both, pass)
    }

    /// The positions that follow `state`, which becomes the state after them; of rows with `lengths`, after the last real one.
    ///
    /// # Shapes
    /// - input, output: `[rows, len, d_model]`
    ///
    /// # Panics
    /// If the mixer reads in two directions.
    pub fn advance(
        &self,
        input: Tensor<3>,
        lengths: Option<&[usize]>,
        state: &mut Option<MixerState>,
        pass: &mut Pass,
    ) -> Tensor<3> {
        assert!(self.backward.is_none(), "what reads from the end cannot go on from a state");
        let [rows, len, _] = input.dims();
        let lengths = lengths.map_or_else(|| vec![len; rows], <[usize]>::to_vec);
        let running = Running::new(&lengths, len, &input.device());
        let states = pass.scoped("forward", |pass| self.forward.read(input, state, &running, Order::Forward, pass));
        self.out(states, pass)
    }

    fn out(&self, states: Tensor<3>, pass: &mut Pass) -> Tensor<3> {
        pass.record("states", || states.clone());
        match &self.output {
            Some(output) => linear_layer(output, states, pass),
            None => states,
        }
    }
}
