//! What lets positions exchange something, side by side: learning from long sequences, reading a beginning at once, and one step.
//!
//! `cargo bench --profile release --bench mixers`
#![recursion_limit = "256"]

use burn::tensor::{Device, Distribution, Int, Tensor};
use divan::Bencher;
use divan::counter::ItemsCount;
use lookback::backend::Backend;
use lookback::data::batch::Padded;
use lookback::layers::mixer::{MixerConfig, MixerKind, MixerShape, Mixers, RecurrentMixer};
use lookback::layers::position::PositionConfig;
use lookback::layers::{Init, Pass};
use lookback::models::{Autoregressive, DecoderOnlyConfig, Model, ModelConfig, Seq2Seq, Vocabularies};
use lookback::pool::in_pool;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const D_MODEL: usize = 256;
const N_HEADS: usize = 4;
/// Tokens of a batch, however long its sequences are.
const N_TOKENS: usize = 8192;
const RECURRENCES: [MixerKind; 8] = [
    MixerKind::Gru,
    MixerKind::Lstm,
    MixerKind::MinGru,
    MixerKind::Ssru,
    MixerKind::Linear,
    MixerKind::GatedLinear,
    MixerKind::Delta,
    MixerKind::GatedDelta,
];

fn main() {
    divan::main();
}

fn device() -> Device {
    "flex".parse::<Backend>().and_then(|b| b.open().map_err(|e| e.to_string())).expect("a CPU backend").device
}

/// Forward and backward of one mixer over [`N_TOKENS`] tokens.
#[divan::bench(args = RECURRENCES, consts = [128, 512, 2048], sample_count = 10)]
fn learning<const LEN: usize>(bencher: Bencher, kind: MixerKind) {
    learn(bencher, kind, LEN, D_MODEL);
}

/// The same in sequences of 512 tokens, for other widths.
#[divan::bench(args = [MixerKind::Gru, MixerKind::MinGru, MixerKind::GatedDelta], consts = [64, 128, 256, 512], sample_count = 10)]
fn learning_by_width<const WIDTH: usize>(bencher: Bencher, kind: MixerKind) {
    learn(bencher, kind, 512, WIDTH);
}

fn learn(bencher: Bencher, kind: MixerKind, len: usize, d_model: usize) {
    let device = device().autodiff();
    let shape = MixerShape { d_model, n_heads: N_HEADS, n_directions: 1 };
    let mixer = RecurrentMixer::new(&MixerConfig::new(kind), shape, &Init::new(1, &device)).expect("a recurrence");
    let input = Tensor::<3>::random([N_TOKENS / len, len, d_model], Distribution::Default, &device).require_grad();
    bencher.counter(ItemsCount::new(N_TOKENS)).bench_local(|| {
        in_pool(&device, || {
            let output = mixer.forward(input.clone(), None, &mut Pass::training(1, 0, 0));
            // By axis: a full sum would take as long as the mixer.
            output.sum_dim(2).sum_dim(1).sum().backward()
        })
    });
}

/// A language model of two layers.
fn model(kind: MixerKind, d_model: usize, device: &Device) -> Model {
    let config = DecoderOnlyConfig {
        d_model,
        d_feed_forward: 4 * d_model,
        n_heads: N_HEADS,
        n_layers: 2,
        reads_source: false,
        mixer: Mixers::from(kind),
        positions: PositionConfig::None {},
        ..DecoderOnlyConfig::default()
    };
    let vocabularies = Vocabularies { source: 1000, target: 1000, shared: true };
    ModelConfig::DecoderOnly(config).init(vocabularies, 1, device).expect("the config is right")
}

fn text(len: usize, device: &Device) -> Padded {
    Padded::new(&[(0..len).map(|i| 4 + (i * 7919 % 996) as u32).collect()], 0, device)
}

const KINDS: [MixerKind; 5] =
    [MixerKind::Attention, MixerKind::Gru, MixerKind::MinGru, MixerKind::GatedLinear, MixerKind::Delta];

/// One token more after so many: the same for every recurrence, ever more for attention.
#[divan::bench(args = KINDS, consts = [16, 512, 2048], sample_count = 50)]
fn step<const SEEN: usize>(bencher: Bencher, kind: MixerKind) {
    go_on(bencher, kind, SEEN, D_MODEL);
}

/// The same after 512 tokens, in a model twice as wide.
#[divan::bench(args = KINDS, sample_count = 50)]
fn step_wide(bencher: Bencher, kind: MixerKind) {
    go_on(bencher, kind, 512, 2 * D_MODEL);
}

fn go_on(bencher: Bencher, kind: MixerKind, n_seen: usize, d_model: usize) {
    let device = device();
    let model = model(kind, d_model, &device);
    let memory = in_pool(&device, || model.encode(&text(n_seen, &device), &mut Pass::inference().fused(true)));
    let previous = Tensor::<1, Int>::from_data([7], &device);
    bencher.counter(ItemsCount::new(1usize)).bench_local(|| {
        in_pool(&device, || {
            let state = model.start(&memory, 1);
            model.step(previous.clone(), state, &memory, &mut Pass::inference().fused(true)).0.into_data()
        })
    });
}

/// The first 512 tokens of a text at once, in models of two widths.
#[divan::bench(args = KINDS, consts = [D_MODEL, 2 * D_MODEL], sample_count = 20)]
fn prefill<const WIDTH: usize>(bencher: Bencher, kind: MixerKind) {
    const LEN: usize = 512;
    let device = device();
    let (model, text) = (model(kind, WIDTH, &device), text(LEN, &device));
    bencher.counter(ItemsCount::new(LEN)).bench_local(|| {
        in_pool(&device, || {
            let memory = model.encode(&text, &mut Pass::inference().fused(true));
            drop(model.start(&memory, 1));
        })
    });
}
