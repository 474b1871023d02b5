//! Properties of self-attention with every position scheme, over shapes, lengths, groups of heads and both sides.

mod distance;
mod golden;
mod grouped;
mod masking;
mod room;

use crate::support::{closed_form_tensor, host_backends, with_closed_form};
use burn::tensor::{Device, Tensor};
use lookback::layers::attention::{MultiHeadConfig, SelfAttention};
use lookback::layers::position::{AttentionPositions, Position, PositionConfig, Side};
use lookback::layers::{Init, Mask, Pass, Trace, TraceEntry};
use lookback::ops::KeyValueCache;
use proptest::prelude::*;

/// A layer, its scheme, and a batch.
#[derive(Clone, Debug)]
struct Case {
    scheme: PositionConfig,
    side: Side,
    batch: usize,
    n_key_value_heads: usize,
    group: usize,
    d_head: usize,
    len: usize,
    /// Of each sentence, up to `len`.
    lengths: Vec<usize>,
}

/// The schemes whose scores are a function of the distance.
fn relative() -> Vec<PositionConfig> {
    vec![
        PositionConfig::Rotary { base: 100.0 },
        PositionConfig::Alibi {},
        PositionConfig::T5 { n_buckets: 6, max_distance: 5 },
        PositionConfig::Shaw { max_distance: 2 },
    ]
}

/// All schemes; the first two act on embeddings alone.
fn schemes() -> Vec<PositionConfig> {
    let absolute = [PositionConfig::Sinusoidal {}, PositionConfig::Learned { max_len: 16 }, PositionConfig::None {}];
    absolute.into_iter().chain(relative()).collect()
}

fn cases_of(schemes: Vec<PositionConfig>) -> impl Strategy<Value = Case> {
    let side = prop_oneof![Just(Side::Encoder), Just(Side::Decoder)];
    let sizes = (1usize..=3, 1usize..=3, 1usize..=3, 1usize..=9);
    let lengths = prop::collection::vec(0usize..=9, 3);
    (prop::sample::select(schemes), side, 1usize..=3, sizes, lengths).prop_map(
        |(scheme, side, batch, sizes, lengths)| {
            let (n_key_value_heads, group, half, len) = sizes;
            let lengths = lengths[..batch].iter().map(|length| *length.min(&len)).collect();
            Case { scheme, side, batch, n_key_value_heads, group, d_head: 2 * half, len, lengths }
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    cases_of(schemes())
}

/// A case on a device.
struct Subject {
    layer: SelfAttention,
    position: Position,
    d_model: usize,
    device: Device,
}

impl Case {
    fn config(&self) -> MultiHeadConfig {
        let n_heads = self.n_key_value_heads * self.group;
        let n_key_value_heads = self.n_key_value_heads;
        MultiHeadConfig { n_key_value_heads, ..MultiHeadConfig::new(n_heads * self.d_head, n_heads) }
    }

    fn subjects(&self) -> impl Iterator<Item = Subject> {
        host_backends().into_iter().map(|adapter| self.on(&adapter.device))
    }

    fn on(&self, device: &Device) -> Subject {
        let (config, init) = (self.config(), Init::new(1, device));
        Subject {
            layer: with_closed_form(SelfAttention::new(&config, &self.scheme, &init), 2.0),
            position: with_closed_form(self.scheme.init(config.d_model, config.n_heads, self.side, &init), 4.0),
            d_model: config.d_model,
            device: device.clone(),
        }
    }

    /// The mask of the case's side: of padding in an encoder, of the future in a decoder.
    fn mask(&self, key_len: usize, device: &Device) -> Mask {
        match self.side {
            Side::Encoder => Mask::padding(&self.lengths, key_len, device),
            Side::Decoder => Mask::causal(key_len, device),
        }
    }

    /// Whether the query may see the key.
    fn sees(&self, sentence: usize, query: usize, key: usize) -> bool {
        match self.side {
            Side::Encoder => key < self.lengths[sentence],
            Side::Decoder => key <= query,
        }
    }
}

impl Subject {
    fn input(&self, batch: usize, len: usize) -> Tensor<3> {
        closed_form_tensor("input", [batch, len, self.d_model], 4.0, &self.device)
    }

    fn positions(&self, offset: usize, len: usize) -> AttentionPositions {
        self.position.in_attention(offset, len, &self.device)
    }

    fn forward(&self, input: Tensor<3>, mask: &Mask, pass: &mut Pass) -> Tensor<3> {
        let input = self.position.embed(input, 0);
        let positions = self.positions(0, input.dims()[1]);
        self.layer.forward(input, mask, &positions, pass)
    }

    fn infer(&self, input: Tensor<3>, mask: &Mask) -> Tensor<3> {
        self.forward(input, mask, &mut Pass::inference())
    }

    fn traced(&self, input: Tensor<3>, mask: &Mask, name: &str) -> TraceEntry {
        let mut trace = Trace::default();
        self.forward(input, mask, &mut Pass::traced(&mut trace));
        trace.get(name).expect("attention is traced").clone()
    }

    fn step(&self, input: Tensor<3>, offset: usize, cache: &mut Option<KeyValueCache>, pass: &mut Pass) -> Tensor<3> {
        self.layer.step(self.position.embed(input, offset), cache, &Mask::none(), &self.positions(offset, 1), pass)
    }
}
