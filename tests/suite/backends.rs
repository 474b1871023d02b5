//! Backends: the same model is the same on each, within the rounding of 32 bits.

use crate::reliability::sampled;
use crate::support::{
    GRADIENT_TOLERANCE, assert_close, closed_form_tensor, flex, gradients_by_path, wgpu, wgpu_beside,
};
use crate::training::lookback;
use burn::module::Module;
use burn::tensor::{Device, Tensor};
use lookback::backend::gpu::{self, sums_of_squares};
use lookback::backend::{Adapter, Backend};
use lookback::data::batch::{Batch, Example};
use lookback::decoding::{DecodingConfig, Request, decode};
use lookback::kernels::dropout::Dropout;
use lookback::layers::Pass;
use lookback::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::mixer::{MixerConfig, MixerKind, Mixers, SideConfig};
use lookback::layers::norm::NormKind;
use lookback::layers::position::PositionConfig;
use lookback::layers::recurrent::CellKind;
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::Directions;
use lookback::models::transformer::NormPosition;
use lookback::models::weights::to_vec;
use lookback::models::{
    DecoderOnlyConfig, EncoderOnlyConfig, Model, ModelConfig, RnnConfig, TransformerConfig, Vocabularies,
};
use lookback::random::{Purpose, Stream};
use lookback::training::loss::smoothed_cross_entropy;
use lookback::training::optimizer::{Adam, AdamConfig, GradientSet};
use lookback::training::{UpdatePart, gradients};
use std::collections::BTreeMap;

/// How far a GPU may be from flex, as a part of the largest element: its exponentials and its sums are others, and drivers
/// may contract a product and a sum into one rounding.
const GPU_TOLERANCE: f64 = 2e-4;

/// One model of each kind, with sizes that fix the kernels which have to be compiled. The Transformers have each position
/// scheme on one side, both norms, and heads in groups.
pub fn models() -> [(&'static str, ModelConfig); 11] {
    let rnn = RnnConfig { d_embedding: 8, d_hidden: 12, dropout_rate: 0.1, ..RnnConfig::default() };
    let transformer = TransformerConfig {
        d_model: 16,
        d_feed_forward: 24,
        n_encoder_layers: 1,
        n_decoder_layers: 1,
        dropout_rate: 0.1,
        attention_dropout_rate: 0.1,
        ..TransformerConfig::default()
    };
    let bahdanau = RnnConfig { attention: AttentionConfig::bahdanau(10), ..rnn.clone() };
    let luong = RnnConfig {
        cell: CellKind::Lstm,
        n_layers: 2,
        residual: true,
        attention: AttentionConfig::Luong {
            score: ScoreConfig::General {},
            window: WindowConfig::LocalP { half_width: 2 },
            input_feeding: true,
        },
        readout: ReadoutConfig::State {},
        ..rnn.clone()
    };
    let cosine = RnnConfig {
        directions: Directions::Forward,
        encoder: SideConfig { mixer: Some(MixerKind::MinLstm.into()) },
        attention: AttentionConfig::Bahdanau { score: ScoreConfig::Cosine {}, window: WindowConfig::Global {} },
        ..rnn.clone()
    };
    let schemes = |encoder: PositionConfig, decoder: PositionConfig| TransformerConfig {
        norm: NormKind::Rms,
        norm_position: NormPosition::Post,
        positions: encoder,
        decoder_positions: Some(decoder),
        ..transformer.clone()
    };
    let t5 = PositionConfig::T5 { n_buckets: 6, max_distance: 5 };
    let t5_rotary = schemes(t5, PositionConfig::Rotary { base: 10_000.0 });
    let alibi_shaw = schemes(PositionConfig::Alibi {}, PositionConfig::Shaw { max_distance: 2 });
    let none_learned = schemes(PositionConfig::None {}, PositionConfig::Learned { max_len: 8 });
    let mixer = |kind| MixerConfig::new(kind);
    let recurrences = TransformerConfig {
        positions: PositionConfig::None {},
        encoder: SideConfig { mixer: Some(Mixers::InTurn(vec![mixer(MixerKind::RgLru), mixer(MixerKind::Linear)])) },
        decoder: SideConfig { mixer: Some(Mixers::InTurn(vec![mixer(MixerKind::Gru), mixer(MixerKind::GatedLinear)])) },
        ..transformer.clone()
    };
    let hybrid = DecoderOnlyConfig {
        d_model: 16,
        d_feed_forward: 20,
        n_layers: 3,
        dropout_rate: 0.0,
        mixer: Mixers::InTurn(vec![
            MixerConfig { convolution: Some(2), ..mixer(MixerKind::MinGru) },
            MixerConfig { negative_eigenvalues: Some(true), ..mixer(MixerKind::GatedDelta) },
            mixer(MixerKind::Attention),
        ]),
        positions: PositionConfig::HardAlibi { n_windows: None },
        ..DecoderOnlyConfig::default()
    };
    let encoder_only = EncoderOnlyConfig {
        d_model: 16,
        d_feed_forward: 20,
        n_layers: 2,
        dropout_rate: 0.1,
        mixer: Mixers::InTurn(vec![mixer(MixerKind::GatedDelta), mixer(MixerKind::Attention)]),
        ..EncoderOnlyConfig::default()
    };
    let grouped = TransformerConfig { n_key_value_heads: Some(2), ..t5_rotary };
    [
        ("rnn", ModelConfig::Rnn(rnn)),
        ("bahdanau", ModelConfig::Rnn(bahdanau)),
        ("luong local-p with input feeding", ModelConfig::Rnn(luong)),
        ("bahdanau cosine over minLSTM", ModelConfig::Rnn(cosine)),
        ("transformer", ModelConfig::Transformer(transformer)),
        ("t5 and rotary, grouped heads", ModelConfig::Transformer(grouped)),
        ("alibi and shaw", ModelConfig::Transformer(alibi_shaw)),
        ("none and learned", ModelConfig::Transformer(none_learned)),
        ("recurrences in both sides", ModelConfig::Transformer(recurrences)),
        ("decoder-only hybrid", ModelConfig::DecoderOnly(hybrid)),
        ("encoder-only hybrid", ModelConfig::EncoderOnly(encoder_only)),
    ]
}

fn init(config: &ModelConfig, device: &Device) -> Model {
    let vocabularies = Vocabularies { source: 17, target: 19, shared: false };
    config.init(vocabularies, 1, device).expect("the config can be used")
}

fn batch(device: &Device) -> Batch {
    let examples = [
        Example { source: vec![4, 9, 13, 6, 11], target: vec![5, 8, 7] },
        Example { source: vec![7, 5], target: vec![18, 4, 6, 10, 12] },
        Example { source: vec![], target: vec![4] },
    ];
    Batch::new(&examples.iter().collect::<Vec<_>>(), device)
}

/// Everything that a backend computes for a model: logits, the loss, gradients, the weights after one update.
fn measure(config: &ModelConfig, adapter: &Adapter) -> BTreeMap<String, Vec<f32>> {
    let model = init(config, &adapter.device);
    let logits = model.forward_batch(&batch(&adapter.device), &mut Pass::inference());
    let mut found = BTreeMap::from([("logits".to_string(), to_vec(logits))]);

    let model = model.train();
    let batch = batch(&adapter.device.clone().autodiff());
    let n_total = batch.n_target_tokens();
    let part =
        UpdatePart { batch, n_total, smoothing: 0.1, seed: 1, place: (0, 0), is_fused: true, replacement_rate: 0.0 };
    let (grads, sums) = gradients(&model, &part);
    assert_eq!(sums.n_tokens, n_total);
    found.insert("loss".to_string(), vec![sums.smoothed as f32, sums.cross_entropy as f32, sums.n_correct as f32]);
    let set = GradientSet::new(&model, grads, adapter.backend.is_host());
    found.insert("norm".to_string(), vec![set.norm() as f32]);
    for path in lookback::models::weights::collect(&model.valid()).into_keys() {
        let gradient = set.get(&path).unwrap_or_else(|| panic!("{path} has no gradient on {}", adapter.backend));
        found.insert(format!("gradient of {path}"), gradient);
    }
    // With a large epsilon an update is near the gradient itself; else Adam would blow up rounding to the sign of zero.
    let mut adam = Adam::new(AdamConfig { epsilon: 1.0, ..AdamConfig::default() });
    let updated = adam.step(model, set, 0.5, 1.0);
    for (path, weight) in lookback::models::weights::collect(&updated.valid()) {
        found.insert(format!("{path} after an update"), weight.values);
    }
    found
}

/// Which elements are dropped is computed on the device, bit for bit as on the host: no mask is sent.
#[test]
fn a_gpu_drops_what_the_host_drops() {
    let Some(adapter) = wgpu_beside() else { return };
    for (i, shape) in [[1, 1], [1, 2], [3, 5], [7, 9], [64, 1001]].into_iter().enumerate() {
        for rate in [0.1, 0.5, 0.97] {
            let dropout = Dropout::new(Stream::new(7, Purpose::Dropout, &[3, i as u64, u64::MAX]), rate);
            let ones = |device| Tensor::<2>::ones(shape, device);
            let found = gpu::dropout(&ones(&adapter.device), dropout).expect("it is computed there");
            let mask = dropout.mask(shape[0] * shape[1]);
            assert_eq!(to_vec(found), mask, "{shape:?}, rate {rate}");
            let tens = Tensor::<2>::full(shape, 10.0, &adapter.device);
            let found = gpu::add_dropped(&tens, &ones(&adapter.device), dropout).expect("it is computed there");
            let sums: Vec<f32> = mask.iter().map(|factor| 10.0 + factor).collect();
            assert_eq!(to_vec(found), sums, "{shape:?}, rate {rate}");
            assert!(gpu::dropout(&ones(&flex()), dropout).is_none(), "the host has operations for that");
        }
    }
}

/// The norm of all gradients: of tensors with fewer numbers than the kernel has units, and of tensors with many more.
#[test]
fn a_gpu_sums_the_squares_that_the_host_sums() {
    let Some(adapter) = wgpu() else { return };
    let lengths = [1, 255, 16_384, 16_385, 100_003];
    let values: Vec<Vec<f32>> =
        lengths.iter().map(|n| (0..*n).map(|i| (i * 7919 % 1009) as f32 / 504.5 - 1.0).collect()).collect();
    let on = |device: &Device| -> Vec<Tensor<1>> {
        values.iter().map(|values| Tensor::from_data(values.as_slice(), device)).collect()
    };
    for n in 1..=lengths.len() {
        let found = sums_of_squares(&on(&adapter.device)[..n]).expect("it is computed there");
        let found: f64 = to_vec(found).iter().map(|sum| f64::from(*sum)).sum();
        let exact: f64 = values[..n].iter().flatten().map(|value| f64::from(*value).powi(2)).sum();
        assert!((found / exact - 1.0).abs() < 1e-6, "{n} tensors: {found} and not {exact}");
    }
    assert!(sums_of_squares(&on(&flex())).is_none(), "the host has a loop for that");
    assert!(sums_of_squares(&[]).is_none());
}

fn compare(adapter: &Adapter, tolerance: f64, models: impl IntoIterator<Item = (&'static str, ModelConfig)>) {
    for (name, config) in models {
        let expected = measure(&config, &Backend::Flex.open().expect("the tests are built with flex"));
        let found = measure(&config, adapter);
        assert_eq!(found.len(), expected.len());
        for (what, expected) in &expected {
            assert_close(&format!("{name} on {}: {what}", adapter.backend), &found[what], expected, tolerance);
        }
    }
}

#[test]
fn ndarray_agrees_with_flex() {
    compare(&Backend::Ndarray.open().expect("the tests are built with ndarray"), GRADIENT_TOLERANCE, models());
}

#[test]
fn a_gpu_agrees_with_flex() {
    let Some(adapter) = wgpu() else { return };
    compare(&adapter, GPU_TOLERANCE, sampled(models(), 4));
}

#[test]
fn a_gpu_writes_what_flex_writes() {
    let Some(adapter) = wgpu_beside() else { return };
    let requests = [vec![4, 9, 13], vec![7], vec![], vec![5, 6, 16, 8]].map(Request::new);
    for (name, config) in sampled(models(), 4) {
        // Answers of one length, and of one for each source, so that some end before others.
        for (beam_size, factor, extra) in [(1, 0.0, 5), (2, 0.0, 5), (1, 1.0, 1), (2, 1.0, 1)] {
            let (max_len_factor, max_len_extra) = (Some(factor), Some(extra));
            let decoding = DecodingConfig { beam_size, max_len_factor, max_len_extra, ..Default::default() };
            let [found, expected] = [&adapter.device, &flex()]
                .map(|device| decode(&init(&config, device), &requests, &decoding, 1, |_| ()));
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                assert_eq!(found.tokens, expected.tokens, "{name}, {beam_size} beams");
                let gap = (found.log_probability - expected.log_probability).abs();
                assert!(gap <= GPU_TOLERANCE * expected.log_probability.abs(), "{name}: {found:?}, {expected:?}");
            }
        }
    }
}

#[test]
fn the_loss_of_the_device_is_the_loss_of_the_host() {
    let Some(adapter) = wgpu() else { return };
    const TARGETS: [u32; 6] = [5, 0, 12, 2, 4, 0];
    let measure = |device: &Device| {
        let logits = closed_form_tensor::<3>("logits", [2, 3, 13], 16.0, device).require_grad();
        let loss = smoothed_cross_entropy(logits.clone(), &TARGETS, 0.1, 4);
        let gradient = to_vec(logits.grad(&loss.mean.clone().backward()).expect("a leaf has a gradient"));
        (loss.sums(), gradient)
    };
    let (expected, expected_gradient) = measure(&flex().autodiff());
    let (found, gradient) = measure(&adapter.device.clone().autodiff());
    assert_eq!((found.n_correct, found.n_tokens), (expected.n_correct, expected.n_tokens));
    let sums = [found.smoothed, found.cross_entropy];
    assert_close("sums", &sums, &[expected.smoothed, expected.cross_entropy], GPU_TOLERANCE);
    assert_close("gradient", &gradient, &expected_gradient, GPU_TOLERANCE);
}

#[test]
fn two_runs_on_one_backend_are_equal_to_the_bit() {
    for backend in [Backend::Flex, Backend::Ndarray] {
        let adapter = backend.open().expect("the tests are built with it");
        for (name, config) in models() {
            assert_eq!(measure(&config, &adapter), measure(&config, &adapter), "{name} on {backend}");
        }
    }
}

#[test]
fn looking_for_a_gpu_is_silent() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut command = lookback(dir.path(), &["devices"]);
    // Where it is unset, Mesa's drivers complain to standard error.
    let output = command.env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn host_backends_know_that_they_are() {
    assert!(lookback::backend::is_host(&flex()) && lookback::backend::is_host(&flex().autodiff()));
    let model = init(&models()[0].1, &flex()).train();
    let batch = batch(&flex().autodiff());
    let logits = model.forward_batch(&batch, &mut Pass::inference());
    assert!(!gradients_by_path(&model, logits.sum().backward()).is_empty());
}
