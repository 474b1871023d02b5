//! Updates of whole models: the same with operations on slices and in burn's operations, forward and backward, dropout included.

use crate::support::{assert_close, host_backends, random_cases};
use burn::module::Module;
use burn::tensor::Device;
use lookback::data::batch::{Batch, Example};
use lookback::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::mixer::{MixerKind, Mixers, SideConfig};
use lookback::layers::recurrent::CellKind;
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::{Bridge, Directions};
use lookback::models::weights::collect;
use lookback::models::{Model, ModelConfig, RnnConfig, Vocabularies};
use lookback::training::optimizer::GradientSet;
use lookback::training::{UpdatePart, gradients};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How far fused and written out may be apart, as a part of the largest element: sums of a thousand 32-bit numbers in
/// another order.
const TOLERANCE: f64 = 3e-5;

fn largest_of<'a>(tensors: impl IntoIterator<Item = &'a Vec<f32>>) -> f32 {
    tensors.into_iter().flatten().fold(0f32, |max, value| value.abs().max(max))
}

/// Compares one of several tensors, of which `largest` is the largest element. A gradient that is zero but for rounding, as
/// that of a key's bias, has no scale of its own: it is measured by a hundredth of that of the others.
fn assert_close_among(what: &str, found: &[f32], expected: &[f32], largest: f32) {
    let with_scale = |values: &[f32]| [values, &[1e-2 * largest]].concat();
    assert_close(what, &with_scale(found), &with_scale(expected), TOLERANCE);
}

/// Sentences of every length from none to `len` on both sides, `batch` in all: more than one task carries.
fn sentences(batch: usize, len: usize) -> Vec<Example> {
    let ids = |k: usize, len: usize| (0..len).map(|i| 4 + ((i + 5 * k) * 7 % 13) as u32).collect();
    (0..batch).map(|k| Example { source: ids(k, k % (len + 1)), target: ids(k + 3, k * 3 % (len + 1)) }).collect()
}

/// Loss and gradients of one update.
fn measure(model: &Model, examples: &[Example], device: &Device, is_fused: bool) -> (f64, BTreeMap<String, Vec<f32>>) {
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), &device.clone().autodiff());
    let n_total = batch.n_target_tokens();
    let place = (3, 4);
    let part = UpdatePart { batch, n_total, smoothing: 0.1, seed: 1, place, is_fused, replacement_rate: 0.0 };
    let (grads, sums) = gradients(model, &part);
    let set = GradientSet::new(model, grads, true);
    let by_path = collect(model).into_keys().map(|path| (path.clone(), set.get(&path).unwrap_or_default()));
    (sums.smoothed, by_path.collect())
}

fn check_update(what: &str, config: &ModelConfig, examples: &[Example], device: &Device) {
    let vocabularies = Vocabularies { source: 17, target: 19, shared: false };
    let model: Model = config.init(vocabularies, 1, device).expect("the config can be used").train();
    let (expected_loss, expected) = measure(&model, examples, device, false);
    let (loss, found) = measure(&model, examples, device, true);
    assert_close(&format!("{what}: loss"), &[loss], &[expected_loss], 1e-6);
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = largest_of(expected.values());
    for (path, expected) in &expected {
        assert_close_among(&format!("{what}: {path}"), &found[path], expected, largest);
    }
}

#[test]
fn a_fused_update_is_the_update_written_out() {
    for adapter in host_backends() {
        for (name, config) in crate::backends::models() {
            check_update(&format!("{name} on {}", adapter.backend), &config, &sentences(5, 6), &adapter.device);
        }
    }
}

/// A recurrent model; of two layers, its decoder makes its steps one by one, of fused parts.
fn recurrences() -> impl Strategy<Value = RnnConfig> {
    let cell = prop_oneof![Just(CellKind::Vanilla), Just(CellKind::Gru), Just(CellKind::Lstm)];
    let score = prop_oneof![
        Just(ScoreConfig::Dot {}),
        Just(ScoreConfig::ScaledDot {}),
        Just(ScoreConfig::General {}),
        Just(ScoreConfig::Additive { d_attention: 5 }),
        Just(ScoreConfig::Concat { d_attention: 6 }),
    ];
    let window = || WindowConfig::Global {};
    let attention = prop_oneof![
        Just(AttentionConfig::None {}),
        score.clone().prop_map(move |score| AttentionConfig::Bahdanau { score, window: window() }),
        (score, any::<bool>()).prop_map(move |(score, input_feeding)| AttentionConfig::Luong {
            score,
            window: window(),
            input_feeding
        }),
    ];
    let readout = prop_oneof![Just(ReadoutConfig::StateContext {}), Just(ReadoutConfig::DeepOutput { d_maxout: 5 })];
    let encoder = prop_oneof![2 => Just(None), 1 => Just(Some(MixerKind::MinGru)), 1 => Just(Some(MixerKind::Lstm))];
    let shape = (1usize..3, any::<bool>(), any::<bool>(), encoder);
    (cell, attention, readout, shape).prop_map(
        |(cell, attention, readout, (n_layers, reverse_source, starts_at_zero, encoder))| {
            RnnConfig {
                cell,
                encoder: SideConfig { mixer: encoder.map(Mixers::from) },
                n_layers,
                // The width of one direction is that of the decoder, so that any score can compare them.
                directions: Directions::Forward,
                attention,
                reverse_source,
                bridge: if starts_at_zero { Bridge::Zeros } else { Bridge::Learned },
                readout,
                d_embedding: 6,
                d_hidden: 7,
                dropout_rate: 0.2,
                ..RnnConfig::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(random_cases(60))]

    #[test]
    fn a_fused_recurrence_is_its_steps_one_by_one(config in recurrences(), batch in 1usize..40, len in 1usize..7) {
        for adapter in host_backends() {
            let what = format!("{config:?}, {batch} sentences up to {len}, on {}", adapter.backend);
            check_update(&what, &ModelConfig::Rnn(config.clone()), &sentences(batch, len), &adapter.device);
        }
    }
}
