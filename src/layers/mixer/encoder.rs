//! A stack of recurrent layers that reads a whole sequence, in one direction or both.

use super::recurrence::{Core, read_whole};
use super::{MixerConfig, Mixers, ShortConvolution};
use crate::layers::recurrent::{CellState, Running};
use crate::layers::{Init, Pass};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

/// One layer of [`RecurrentEncoder`].
#[derive(Module, Debug)]
struct EncoderLayer {
    convolution: Option<ShortConvolution>,
    forward: Core,
    backward: Option<Core>,
}

/// The sizes of a [`RecurrentEncoder`].
#[derive(Clone, Debug)]
pub struct EncoderShape {
    /// The recurrence of each layer, whose state is a vector.
    pub mixers: Mixers,
    /// Width of the input.
    pub d_input: usize,
    /// Width of the state in each layer and direction.
    pub d_hidden: usize,
    /// Layers.
    pub n_layers: usize,
    /// 1 or 2.
    pub n_directions: usize,
    /// Whether layers from the second on add what they have read to what they say.
    pub residual: bool,
    /// Probability of dropping an element between layers.
    pub dropout_rate: f64,
    /// Whether words come in reverse, which a trace has to say of what is recorded in that order.
    pub is_reversed: bool,
}

impl EncoderShape {
    /// An encoder with weights drawn as burn's own layers draw theirs.
    ///
    /// # Panics
    /// As [`RecurrentEncoder::new`].
    pub fn init(self, device: &Device) -> RecurrentEncoder {
        RecurrentEncoder::new(self, &Init::random(device))
    }
}

/// What the encoder has read.
///
/// # Shapes
/// - states: `[batch, source_len, d_output]`, zero on padding
/// - every final state: `[batch, d_hidden]`
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The states ("annotations") of the top layer, both directions side by side.
    pub states: Tensor<3>,
    /// For each layer the last real state of each direction, forward first, without what a residual connection adds.
    pub finals: Vec<Vec<CellState>>,
}

/// `h_i = cell(x_i, h_(i-1))`, `h_0 = 0`, in `n_layers` layers, each over the states of the one below; instead of a cell any
/// other recurrence whose state is a vector.
///
/// # Reference
/// Cho et al. 2014, section 2.1; Sutskever et al. 2014 for depth; Wu et al. 2016, section 3.1, for residual connections,
/// which here begin with the second layer instead of the third, skip the dropout and leave the state that a cell carries on as it is;
/// Schuster and Paliwal 1997 for two directions, joined as in Bahdanau 2015, section 3.2.
#[derive(Module, Debug)]
pub struct RecurrentEncoder {
    layers: Vec<EncoderLayer>,
    #[module(skip)]
    residual: bool,
    #[module(skip)]
    dropout_rate: f64,
    #[module(skip)]
    is_reversed: bool,
}

impl RecurrentEncoder {
    /// An encoder of that shape.
    ///
    /// # Panics
    /// If a mixer is attention or has a state that is a matrix.
    pub fn new(shape: EncoderShape, init: &Init) -> Self {
        let EncoderShape { mixers, d_input, d_hidden, n_layers, n_directions, residual, dropout_rate, is_reversed } =
            shape;
        let layer = |(i, own): (usize, MixerConfig)| {
            let d_input = if i == 0 { d_input } else { n_directions * d_hidden };
            let core = || Core::vector(own.kind, d_input, d_hidden, init).expect("a state that is a vector");
            EncoderLayer {
                convolution: own.convolution.map(|width| ShortConvolution::new(width, d_input, init)),
                forward: core(),
                backward: (n_directions == 2).then(core),
            }
        };
        let layers = mixers.made(n_layers, false).into_iter().enumerate().map(layer).collect();
        Self { layers, residual, dropout_rate, is_reversed }
    }

    /// Reads `input`; a sentence's state stands still on its padding.
    ///
    /// # Shapes
    /// - input: `[batch, source_len, d_input]`
    pub fn forward(&self, input: Tensor<3>, lengths: &[usize], pass: &mut Pass) -> Encoded {
        let running = Running::new(lengths, input.dims()[1], &input.device());
        let mut finals = Vec::new();
        let mut states = input;
        for (i, layer) in self.layers.iter().enumerate() {
            let below = (self.residual && i > 0).then(|| states.clone());
            if i > 0 {
                states = pass.dropout(states, self.dropout_rate);
            }
            let scope = format!("encoder.{i}.{}", if self.is_reversed { "reversed" } else { "recurrence" });
            let (read, layer_finals) = pass.scoped(&scope, |pass| layer.read(states, &running, pass));
            states = match below {
                Some(below) => read + below,
                None => read,
            };
            finals.push(layer_finals);
            pass.record(&format!("encoder.{i}.states"), || states.clone());
        }
        Encoded { states, finals }
    }
}

impl EncoderLayer {
    /// The states of both directions side by side, and the last one of each.
    fn read(&self, input: Tensor<3>, running: &Running, pass: &mut Pass) -> (Tensor<3>, Vec<CellState>) {
        let input = match &self.convolution {
            Some(convolution) => convolution.advance(input, &mut None, pass),
            None => input,
        };
        let (states, last) = read_whole(&self.forward, self.backward.as_ref(), input, running, pass);
        let cores = [&self.forward].into_iter().chain(&self.backward);
        (states, cores.zip(last).map(|(core, state)| core.shown(state)).collect())
    }
}
