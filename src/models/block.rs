//! What stacks of layers are made of: a mixer inside a residual connection, and the block of a mixer and a feed-forward network.

use super::residual::{NormPosition, Residual, ResidualStream};
use super::{Rows, check_rate};
use crate::error::{Error, Result};
use crate::layers::attention::MultiHeadConfig;
use crate::layers::attention::multi_head::SelfAttention;
use crate::layers::feed_forward::{Activation, FeedForward};
use crate::layers::mixer::{MixerConfig, MixerShape, MixerState, RecurrentMixer, ShortConvolution};
use crate::layers::norm::{Norm, NormKind};
use crate::layers::position::{AttentionPositions, PositionConfig};
use crate::layers::{Init, Mask, Pass, indices};
use crate::ops::KeyValueCache;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// What the layers of a stack have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockConfig {
    pub heads: MultiHeadConfig,
    pub d_feed_forward: usize,
    pub dropout_rate: f64,
    pub activation_dropout_rate: f64,
    pub norm_position: NormPosition,
    pub norm: NormKind,
    pub norm_epsilon: f64,
    pub activation: Activation,
}

impl BlockConfig {
    /// Checks sizes and rates. `n_layers` has the keys of the numbers of layers.
    pub(super) fn validate(&self, n_layers: &[(&str, usize)], embedding_dropout_rate: f64) -> Result<()> {
        let MultiHeadConfig { d_model, n_heads, n_key_value_heads, .. } = self.heads;
        let sizes = [
            ("d_model", d_model),
            ("d_feed_forward", self.d_feed_forward),
            ("n_heads", n_heads),
            ("n_key_value_heads", n_key_value_heads),
        ];
        if let Some((key, _)) = sizes.iter().chain(n_layers).find(|(_, value)| *value == 0) {
            return Err(Error::config(format!("model.{key}"), "must be at least 1, got 0"));
        }
        if !d_model.is_multiple_of(n_heads) {
            let message = format!("must divide model.d_model, got {n_heads} and {d_model}");
            return Err(Error::config("model.n_heads", message));
        }
        if !n_heads.is_multiple_of(n_key_value_heads) {
            let message = format!("must divide model.n_heads, got {n_key_value_heads} and {n_heads}");
            return Err(Error::config("model.n_key_value_heads", message));
        }
        for (key, rate) in [
            ("dropout_rate", self.dropout_rate),
            ("embedding_dropout_rate", embedding_dropout_rate),
            ("attention_dropout_rate", self.heads.dropout_rate),
            ("activation_dropout_rate", self.activation_dropout_rate),
        ] {
            check_rate(key, rate)?;
        }
        Ok(())
    }

    pub(super) fn norm(&self, init: &Init) -> Norm {
        self.norm.init(self.heads.d_model, self.norm_epsilon, init)
    }

    pub(super) fn residual(&self, init: &Init) -> Residual {
        Residual::new(self.norm(init), self.norm_position, self.dropout_rate)
    }

    pub(super) fn feed_forward(&self, init: &Init) -> FeedForward {
        FeedForward::new(self.heads.d_model, self.d_feed_forward, self.activation, self.activation_dropout_rate, init)
    }
}

/// What a layer keeps of the positions so far.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerState {
    /// The last inputs of its convolution.
    pub inputs: Option<Tensor<3>>,
    /// Keys and values of its attention.
    pub cache: Option<KeyValueCache>,
    /// The state of its recurrence.
    pub recurrent: Option<MixerState>,
}

impl Rows for LayerState {
    fn select(&self, rows: &Tensor<1, Int>) -> Self {
        Self {
            inputs: self.inputs.clone().map(|inputs| inputs.select(0, rows.clone())),
            cache: self.cache.as_ref().map(|cache| cache.select(rows)),
            recurrent: self.recurrent.as_ref().map(|state| state.select(rows)),
        }
    }
}

/// A layer's mixer inside a residual connection, and a convolution before it, if there is one.
///
/// Not a module: a layer names the fields, of which one of `attention` and `recurrence` is there, because variants of an enum
/// are no part of a parameter's path, and a file is to say which it holds.
pub(super) struct Mixing<'a> {
    pub attention: Option<&'a SelfAttention>,
    pub recurrence: Option<&'a RecurrentMixer>,
    pub convolution: Option<&'a ShortConvolution>,
    pub residual: &'a Residual,
}

/// The parts of [`Mixing`] that a layer owns.
pub(super) type Mixer = (Option<SelfAttention>, Option<RecurrentMixer>, Option<ShortConvolution>);

/// The mixer of a layer that reads in `n_directions`.
pub(super) fn mixer(
    config: &BlockConfig,
    own: &MixerConfig,
    n_directions: usize,
    positions: &PositionConfig,
    init: &Init,
) -> Mixer {
    let MultiHeadConfig { d_model, n_heads, .. } = config.heads;
    let recurrence = RecurrentMixer::new(own, MixerShape { d_model, n_heads, n_directions }, init);
    let attention = recurrence.is_none().then(|| SelfAttention::new(&config.heads, positions, init));
    let convolution = own.convolution.map(|width| ShortConvolution::new(width, d_model, init));
    (attention, recurrence, convolution)
}

impl Mixing<'_> {
    /// Whole sequences; those with `lengths` end in padding.
    pub(super) fn forward(
        &self,
        stream: ResidualStream,
        lengths: Option<&[usize]>,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> ResidualStream {
        self.mix(
            stream,
            |convolution, x, pass| convolution.advance(x, &mut None, pass),
            |attention, x, pass| attention.forward(x, mask, positions, pass),
            |recurrence, x, pass| recurrence.forward(x, lengths, pass),
            pass,
        )
    }

    /// The next position alone; `mask` hides the part of the cache that lies before a row begins.
    pub(super) fn step(
        &self,
        stream: ResidualStream,
        state: &mut LayerState,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> ResidualStream {
        let LayerState { inputs, cache, recurrent } = state;
        self.mix(
            stream,
            |convolution, x, pass| convolution.advance(x, inputs, pass),
            |attention, x, pass| attention.step(x, cache, mask, positions, pass),
            |recurrence, x, pass| recurrence.advance(x, None, recurrent, pass),
            pass,
        )
    }

    /// The first positions of sequences that go on, all at once, laid out as `rows` says.
    pub(super) fn prefill(
        &self,
        stream: ResidualStream,
        rows: &RightAligned,
        state: &mut LayerState,
        mask: &Mask,
        positions: &AttentionPositions,
        pass: &mut Pass,
    ) -> ResidualStream {
        let LayerState { inputs, cache, recurrent } = state;
        self.mix(
            stream,
            // What is before the beginning of a row is as nothing.
            |convolution, x, pass| convolution.advance(rows.real(x), inputs, pass),
            |attention, x, pass| {
                let (x, filled) = attention.prefill(x, rows.starts(), mask, positions, pass);
                *cache = Some(filled);
                x
            },
            |recurrence, x, pass| rows.to_right(recurrence.advance(rows.to_left(x), rows.lengths(), recurrent, pass)),
            pass,
        )
    }

    /// The convolution, if there is one, and what the layer mixes with, called as those say.
    fn mix(
        &self,
        stream: ResidualStream,
        convolve: impl FnOnce(&ShortConvolution, Tensor<3>, &mut Pass) -> Tensor<3>,
        attend: impl FnOnce(&SelfAttention, Tensor<3>, &mut Pass) -> Tensor<3>,
        recur: impl FnOnce(&RecurrentMixer, Tensor<3>, &mut Pass) -> Tensor<3>,
        pass: &mut Pass,
    ) -> ResidualStream {
        self.residual.around(stream, pass, |x, pass| {
            let x = match self.convolution {
                Some(convolution) => convolve(convolution, x, pass),
                None => x,
            };
            match (self.attention, self.recurrence) {
                (Some(attention), _) => pass.scoped("self_attention", |pass| attend(attention, x, pass)),
                (None, Some(recurrence)) => pass.scoped("recurrence", |pass| recur(recurrence, x, pass)),
                (None, None) => x,
            }
        })
    }
}

/// Sequences of several lengths that end at the same place, so that what follows them stands in one column.
///
/// Attention reads them so, since a distance is then the difference of two columns in every row; a recurrence begins where a
/// row begins, so that it has them moved to the left.
pub(super) struct RightAligned {
    lengths: Vec<usize>,
    len: usize,
    /// Where each place takes its vector from, in the other layout: to the right, to the left; nothing where all are as long.
    moves: Option<[Tensor<1, Int>; 2]>,
    /// One where a row has begun, else zero: `[batch, len, 1]`.
    real: Option<Tensor<3>>,
}

impl RightAligned {
    /// For sequences of these lengths, which are padded to `len`.
    pub(super) fn new(lengths: &[usize], len: usize, device: &Device) -> Self {
        let is_ragged = lengths.iter().any(|length| *length < len);
        let places = |from: fn(usize, usize, usize) -> usize| {
            let rows = lengths.iter().enumerate();
            indices(rows.flat_map(|(row, length)| (0..len).map(move |i| row * len + from(i, *length, len))), device)
        };
        // A place without a vector gets an arbitrary one, which is never used.
        let moves = is_ragged.then(|| {
            [
                places(|i, length, len| (i + length).checked_sub(len).unwrap_or(len - 1)),
                places(|i, length, len| if i < length { len - length + i } else { 0 }),
            ]
        });
        let real = is_ragged.then(|| {
            let rows = lengths.iter();
            let real = rows.flat_map(|length| (0..len).map(move |i| if i + length >= len { 1f32 } else { 0.0 }));
            let real: Vec<f32> = real.collect();
            Tensor::from_data(TensorData::new(real, [lengths.len(), len, 1]), device)
        });
        Self { lengths: lengths.to_vec(), len, moves, real }
    }

    /// The column in which each row begins; nothing if it is the first in all.
    pub(super) fn starts(&self) -> Option<Vec<usize>> {
        self.moves.as_ref().map(|_| self.lengths.iter().map(|length| self.len - length).collect())
    }

    fn lengths(&self) -> Option<&[usize]> {
        self.moves.as_ref().map(|_| &*self.lengths)
    }

    fn real(&self, x: Tensor<3>) -> Tensor<3> {
        match &self.real {
            Some(real) => x * real.clone(),
            None => x,
        }
    }

    /// From rows that begin in the first column.
    pub(super) fn to_right(&self, x: Tensor<3>) -> Tensor<3> {
        self.moved(x, 0)
    }

    fn to_left(&self, x: Tensor<3>) -> Tensor<3> {
        self.moved(x, 1)
    }

    fn moved(&self, x: Tensor<3>, to: usize) -> Tensor<3> {
        let Some(moves) = &self.moves else { return x };
        let [batch, len, d] = x.dims();
        x.reshape([batch * len, d]).select(0, moves[to].clone()).reshape([batch, len, d])
    }
}

/// A mixer and a feed-forward network: a layer of an encoder (Vaswani 2017, figure 1, left) or of a model without one.
#[derive(Module, Debug)]
pub(super) struct Block {
    attention: Option<SelfAttention>,
    recurrence: Option<RecurrentMixer>,
    convolution: Option<ShortConvolution>,
    attention_residual: Residual,
    feed_forward: FeedForward,
    feed_forward_residual: Residual,
}

impl Block {
    pub(super) fn new(
        config: &BlockConfig,
        own: &MixerConfig,
        n_directions: usize,
        positions: &PositionConfig,
        init: &Init,
    ) -> Self {
        let (attention, recurrence, convolution) = mixer(config, own, n_directions, positions, init);
        Self {
            attention,
            recurrence,
            convolution,
            attention_residual: config.residual(init),
            feed_forward: config.feed_forward(init),
            feed_forward_residual: config.residual(init),
        }
    }

    /// What the positions make of each other.
    pub(super) fn mixing(&self) -> Mixing<'_> {
        Mixing {
            attention: self.attention.as_ref(),
            recurrence: self.recurrence.as_ref(),
            convolution: self.convolution.as_ref(),
            residual: &self.attention_residual,
        }
    }

    /// The sublayer after the mixer.
    pub(super) fn after_mixing(&self, stream: ResidualStream, pass: &mut Pass) -> ResidualStream {
        self.feed_forward_residual.around(stream, pass, |x, pass| self.feed_forward.forward(x, pass)).recorded(pass)
    }
}
