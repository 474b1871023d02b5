//! What is computed on a backend and on flex, and how far the two are apart.

use crate::backend::Adapter;
use crate::data::batch::{Batch, Example};
use crate::error::Result;
use crate::layers::attention::AttentionConfig;
use crate::layers::mixer::{MixerConfig, MixerKind, Mixers, SideConfig};
use crate::layers::norm::NormKind;
use crate::layers::position::PositionConfig;
use crate::layers::recurrent::CellKind;
use crate::models::weights::{Weights, collect};
use crate::models::{
    DecoderOnlyConfig, EncoderOnlyConfig, Model, ModelConfig, RnnConfig, TransformerConfig, Vocabularies,
};
use crate::training::optimizer::{Adam, AdamConfig, GradientSet};
use crate::training::{UpdatePart, gradients};
use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Differences of this size, relative to the largest value, come from the order of sums.
const TOLERANCE: f64 = 1e-3;
/// Bits of the fraction of a 32-bit float.
const FLOAT_BITS: u32 = 23;
/// And of what tensor cores of NVIDIA's may make of it.
const TF32_BITS: u32 = 10;

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// A Transformer and a recurrent model with attention.
    Quick,
    /// Every family, with every scheme that computes something else.
    All,
}

/// How far a backend is from flex with one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The model.
    pub model: String,
    /// The largest difference, relative to the largest value of the same tensor.
    pub difference: f64,
    /// Where it is: the loss, or the gradient or the update of a parameter.
    pub at: String,
    /// How many bits of a factor's fraction burn's products there keep, if they do not keep all 23 of a 32-bit float: 10 in TF32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_of_products: Option<u32>,
}

impl Difference {
    /// Whether the order of sums explains it.
    pub fn agrees(&self) -> bool {
        self.difference <= TOLERANCE
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, difference, at, bits_of_products } = self;
        if *difference < f64::MAX {
            let digits = if *difference < 1.0 { 4 } else { 0 };
            write!(
                f,
                "{at} of a small model ({model}) differs from flex by {difference:.digits$} times its largest value"
            )?;
        } else {
            write!(f, "{at} of a small model ({model}) is not finite")?;
        }
        f.write_str(&bits_of_products.map(said_of_products).unwrap_or_default())
    }
}

/// That products keep so few bits of a fraction.
pub fn said_of_products(bits: u32) -> String {
    let name = if bits == TF32_BITS { " (TF32)" } else { "" };
    format!(", where burn's products keep {bits} of the {FLOAT_BITS} bits of a fraction{name}")
}

/// The one that is furthest from flex.
pub fn worst(differences: &[Difference]) -> &Difference {
    let order = |d: &&Difference| if d.difference.is_nan() { f64::INFINITY } else { d.difference };
    differences.iter().max_by(|a, b| order(a).total_cmp(&order(b))).expect("at least one model is compared")
}

/// Compares a backend with a reference, model by model.
///
/// # Errors
/// If a model cannot be made.
pub fn compare(
    adapter: &Adapter,
    reference: &Adapter,
    depth: Depth,
    mut show: impl FnMut(&Difference) -> Result<()>,
) -> Result<()> {
    let bits_of_products = Some(bits_of_products(&adapter.device)).filter(|bits| *bits < FLOAT_BITS);
    for (name, config) in models(depth) {
        let expected = measure(&config, reference)?;
        let found = measure(&config, adapter)?;
        let mut worst = Difference { model: name.into(), difference: -1.0, at: String::new(), bits_of_products };
        for ((at, values), (_, theirs)) in expected.iter().zip(&found) {
            let scale = values.iter().fold(0f64, |max, v| max.max(v.abs() as f64)).max(1e-6);
            // A value that is no number is as far away as can be.
            let gap = values.iter().zip(theirs).map(|(a, b)| (a - b).abs() as f64);
            let gap = gap.fold(0f64, |max, gap| if gap.is_finite() { max.max(gap) } else { f64::MAX });
            // JSON has no infinity.
            let difference = (gap / scale).min(f64::MAX);
            if difference > worst.difference {
                worst = Difference { difference, at: at.clone(), ..worst };
            }
        }
        show(&worst)?;
    }
    Ok(())
}

/// How many bits of the fraction of a factor are not lost in burn's product of matrices, which large products are there, and smaller ones
/// that have no kernel of ours.
///
/// A diagonal matrix times the identity is itself, whose entry k is 1 + 2^-k.
fn bits_of_products(device: &Device) -> u32 {
    // Large enough for the units that multiply tiles.
    const SIZE: usize = 64;
    let entry = |k: usize| if k < FLOAT_BITS as usize { 1.0 + 0.5f32.powi(k as i32 + 1) } else { 1.0 };
    let mut values = vec![0f32; SIZE * SIZE];
    for k in 0..SIZE {
        values[k * SIZE + k] = entry(k);
    }
    let factor = Tensor::<2>::from_data(TensorData::new(values, [SIZE, SIZE]), device);
    let product = factor.matmul(Tensor::eye(SIZE, device));
    let product: Vec<f32> = product.into_data().try_into_vec().expect("32-bit floats");
    (0..FLOAT_BITS).take_while(|k| product[*k as usize * (SIZE + 1)] == entry(*k as usize)).count() as u32
}

fn models(depth: Depth) -> Vec<(&'static str, ModelConfig)> {
    let rnn = RnnConfig { d_embedding: 8, d_hidden: 12, dropout_rate: 0.0, ..RnnConfig::default() };
    let transformer = TransformerConfig {
        d_model: 16,
        d_feed_forward: 32,
        n_encoder_layers: 2,
        n_decoder_layers: 2,
        dropout_rate: 0.0,
        ..TransformerConfig::default()
    };
    let bahdanau = RnnConfig { attention: AttentionConfig::bahdanau(12), ..rnn.clone() };
    if depth == Depth::Quick {
        return vec![("transformer", ModelConfig::Transformer(transformer)), ("bahdanau", ModelConfig::Rnn(bahdanau))];
    }
    // Its encoder is of recurrences of another kind.
    let luong = RnnConfig {
        attention: AttentionConfig::luong(),
        cell: CellKind::Lstm,
        encoder: SideConfig { mixer: Some(MixerKind::MinLstm.into()) },
        ..rnn.clone()
    };
    // Every scheme that does something else in attention, on one side or the other.
    let t5_rotary = TransformerConfig {
        positions: PositionConfig::T5 { n_buckets: 6, max_distance: 5 },
        decoder_positions: Some(PositionConfig::Rotary { base: 10_000.0 }),
        norm: NormKind::Rms,
        n_key_value_heads: Some(2),
        ..transformer.clone()
    };
    let alibi_shaw = TransformerConfig {
        positions: PositionConfig::Alibi {},
        decoder_positions: Some(PositionConfig::Shaw { max_distance: 2 }),
        ..transformer.clone()
    };
    // A recurrence of vectors, one of matrices, and attention over source and target.
    let kinds = [MixerKind::MinGru, MixerKind::GatedDelta, MixerKind::Attention];
    let hybrid = DecoderOnlyConfig {
        d_model: 16,
        d_feed_forward: 32,
        n_layers: 3,
        dropout_rate: 0.0,
        mixer: Mixers::InTurn(kinds.map(MixerConfig::new).into()),
        ..DecoderOnlyConfig::default()
    };
    // Both directions.
    let encoder_only = EncoderOnlyConfig {
        d_model: 16,
        d_feed_forward: 32,
        n_layers: 2,
        dropout_rate: 0.0,
        mixer: Mixers::InTurn([MixerKind::RgLru, MixerKind::Attention].map(MixerConfig::new).into()),
        ..EncoderOnlyConfig::default()
    };
    vec![
        ("rnn", ModelConfig::Rnn(rnn)),
        ("bahdanau", ModelConfig::Rnn(bahdanau)),
        ("luong", ModelConfig::Rnn(luong)),
        ("transformer", ModelConfig::Transformer(transformer)),
        ("t5, rotary", ModelConfig::Transformer(t5_rotary)),
        ("alibi, shaw", ModelConfig::Transformer(alibi_shaw)),
        ("decoder-only", ModelConfig::DecoderOnly(hybrid)),
        ("encoder-only", ModelConfig::EncoderOnly(encoder_only)),
    ]
}

/// Numbers with what they are, in a fixed order: the loss, the gradient of every parameter, and how an update moves it.
fn measure(config: &ModelConfig, adapter: &Adapter) -> Result<Vec<(String, Vec<f32>)>> {
    let vocabularies = Vocabularies { source: 17, target: 19, shared: false };
    let model: Model = config.init(vocabularies, 1, &adapter.device)?.train();
    let examples = [
        Example { source: vec![4, 9, 13, 6, 11], target: vec![5, 8, 7] },
        Example { source: vec![7, 5], target: vec![18, 4, 6, 10, 12] },
    ];
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &adapter.device.clone().autodiff());
    let n_total = batch.n_target_tokens();
    let part =
        UpdatePart { batch, n_total, smoothing: 0.1, seed: 1, place: (0, 0), is_fused: true, replacement_rate: 0.0 };
    let (grads, sums) = gradients(&model, &part);
    let set = GradientSet::new(&model, grads, adapter.backend.is_host());
    let before: Weights = collect(&model.valid());
    let mut found = vec![("the loss".to_string(), vec![sums.smoothed as f32])];
    for path in before.keys() {
        found.extend(set.get(path).map(|values| (format!("the gradient of {path}"), values)));
    }
    // With so large an epsilon the update is smooth in the gradient; else Adam would make much of the noise of small ones.
    let mut adam = Adam::new(AdamConfig { epsilon: 1.0, ..AdamConfig::default() });
    let after = collect(&adam.step(model, set, 1.0, 1.0).valid());
    for (path, weight) in before {
        let moved = after[&path].values.iter().zip(&weight.values).map(|(after, before)| after - before).collect();
        found.push((format!("the update of {path}"), moved));
    }
    Ok(found)
}
