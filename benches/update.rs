//! The parts of a training update, beside what burn offers for the same work, and whole updates of every model.
//!
//! `cargo bench --profile release --bench update`
#![recursion_limit = "256"]

use burn::module::Module;
use burn::nn::DropoutConfig;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::{AdamConfig as BurnAdamConfig, GradientsParams};
use burn::tensor::{Device, Distribution, Int, Tensor, TensorData};
use divan::Bencher;
use divan::counter::ItemsCount;
use lookback::backend::Backend;
use lookback::data::batch::{Batch, Example};
use lookback::layers::attention::AttentionConfig;
use lookback::layers::{Pass, Trace};
use lookback::models::{Model, ModelConfig, RnnConfig, TransformerConfig, Vocabularies};
use lookback::ops::{self, Body, Weight};
use lookback::pool::in_pool;
use lookback::training::loss::smoothed_cross_entropy;
use lookback::training::optimizer::{Adam, AdamConfig, GradientSet};
use lookback::training::{UpdatePart, gradients};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 32;
const LEN: usize = 32;
const VOCAB_SIZE: usize = 8000;
const D_MODEL: usize = 256;

fn main() {
    divan::main();
}

fn device(backend: &str) -> Device {
    backend
        .parse::<Backend>()
        .and_then(|b| b.open().map_err(|e| e.to_string()))
        .expect("a CPU backend")
        .device
        .autodiff()
}

fn activations(device: &Device) -> Tensor<3> {
    Tensor::random([BATCH, LEN, 4 * D_MODEL], Distribution::Default, device)
}

/// Attention in 8 heads of width 64.
mod attention {
    use super::*;
    use lookback::kernels::attention::{Heads, Incoming, Projections};

    fn with_projections(batch: usize, len: usize, is_causal: bool, work: impl FnOnce(&Projections)) {
        let (n_heads, d_head) = (8, 64);
        let width = 3 * n_heads * d_head;
        let values: Vec<f32> = (0..batch * len * width).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
        let (lengths, dropout) = (None, None);
        let heads = Heads { n_heads, n_key_value_heads: n_heads, d_head, lengths, is_causal, dropout };
        work(&Projections {
            heads: &heads,
            query: &values,
            key_value: &values,
            bias: None,
            batch,
            query_len: len,
            key_len: len,
            widths: [width, width],
            key_start: n_heads * d_head,
        });
    }

    /// Where no later key is seen, of 2048 positions in sentences of a length.
    #[divan::bench(args = [64, 128, 256, 1024])]
    fn causal_forward_and_backward(bencher: Bencher, len: usize) {
        with_projections(2048 / len, len, true, |projections| {
            bencher.bench(|| {
                let found = projections.forward();
                let incoming = Incoming { gradient: &found.values, output: &found.values, log_sums: &found.log_sums };
                projections.backward(&incoming, false).packed()
            });
        });
    }

    /// One sentence, on one core or more: ten times, since going to another thread takes its time, too.
    #[divan::bench(args = [32, 48, 64, 96, 128, 256], consts = [1, 2])]
    fn forward_alone<const CORES: usize>(bencher: Bencher, len: usize) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(CORES).build().expect("threads can be started");
        with_projections(1, len, false, |projections| {
            bencher.bench(|| pool.install(|| (0..10).for_each(|_| _ = divan::black_box(projections.forward().values))));
        });
    }
}

/// The network of additive attention, of width 256, over 128 positions of one sentence for as many queries, on one core.
mod alignment {
    use super::*;
    use lookback::kernels::alignment::{AlignmentScore, Layer};

    const POSITIONS: usize = 128;

    fn numbers(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect()
    }

    fn with_layer(work: impl FnOnce(&Layer)) {
        let [queries, keys, values] = [1, 1, 2].map(|width| numbers(width * POSITIONS * D_MODEL));
        work(&Layer {
            score: AlignmentScore::Network,
            queries: &queries,
            keys: &keys,
            values: &values,
            vector: &numbers(D_MODEL),
            lengths: None,
            batch: 1,
            query_len: POSITIONS,
            source_len: POSITIONS,
        });
    }

    fn one_core() -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started")
    }

    #[divan::bench]
    fn forward(bencher: Bencher) {
        let pool = one_core();
        with_layer(|layer| bencher.bench(|| pool.install(|| layer.forward())));
    }

    #[divan::bench]
    fn backward(bencher: Bencher) {
        let pool = one_core();
        let (weights, of_contexts) =
            ([1.0 / POSITIONS as f32; POSITIONS * POSITIONS], numbers(2 * POSITIONS * D_MODEL));
        with_layer(|layer| bencher.bench(|| pool.install(|| layer.backward(&weights, &of_contexts))));
    }
}

/// A batch of sentences' product with a wide matrix, in a step of decoding.
mod few_rows {
    use super::*;

    fn operands(n_rows: usize) -> (Tensor<2>, Tensor<2>) {
        let device = device("flex").inner();
        let random = |shape: [usize; 2]| Tensor::random(shape, Distribution::Default, &device);
        (random([n_rows, 512]), random([512, 2048]))
    }

    #[divan::bench(args = [1, 8, 32, 96, 128])]
    fn ours(bencher: Bencher, n_rows: usize) {
        let (x, weight) = operands(n_rows);
        bencher.bench(|| {
            in_pool(&x.device(), || ops::linear(x.clone(), Weight::plain(weight.clone()), None, Body::Fused))
        });
    }

    #[divan::bench(args = [1, 8, 32, 96, 128])]
    fn burn(bencher: Bencher, n_rows: usize) {
        let (x, weight) = operands(n_rows);
        bencher.bench(|| in_pool(&x.device(), || x.clone().matmul(weight.clone())));
    }
}

mod dropout {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let input = activations(&device("flex"));
        bencher.bench(|| Pass::training(1, 2, 3).dropout(input.clone(), 0.1));
    }

    #[divan::bench]
    fn burn(bencher: Bencher) {
        let input = activations(&device("flex"));
        let dropout = DropoutConfig::new(0.1).init();
        bencher.bench(|| dropout.forward(input.clone()));
    }
}

mod cross_entropy {
    use super::*;

    fn logits() -> Tensor<3> {
        Tensor::random([BATCH, LEN, VOCAB_SIZE], Distribution::Default, &device("flex")).require_grad()
    }

    fn targets() -> Vec<u32> {
        (0..BATCH * LEN).map(|i| 4 + (i * 7919 % (VOCAB_SIZE - 4)) as u32).collect()
    }

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let (logits, targets) = (logits(), targets());
        bencher.bench(|| smoothed_cross_entropy(logits.clone(), &targets, 0.1, BATCH * LEN).mean.backward());
    }

    #[divan::bench]
    fn burn(bencher: Bencher) {
        let logits = logits();
        let ids: Vec<i32> = targets().iter().map(|id| *id as i32).collect();
        let ids = Tensor::<1, Int>::from_data(TensorData::new(ids, [BATCH * LEN]), &logits.device());
        let loss = CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).init(&logits.device());
        bencher.bench(|| loss.forward(logits.clone().reshape([BATCH * LEN, VOCAB_SIZE]), ids.clone()).backward());
    }
}

fn transformer() -> ModelConfig {
    ModelConfig::Transformer(TransformerConfig { d_model: D_MODEL, d_feed_forward: 4 * D_MODEL, ..Default::default() })
}

fn bahdanau() -> ModelConfig {
    ModelConfig::Rnn(RnnConfig {
        d_hidden: D_MODEL,
        attention: AttentionConfig::bahdanau(D_MODEL),
        ..RnnConfig::default()
    })
}

fn fixed_context() -> ModelConfig {
    ModelConfig::Rnn(RnnConfig { d_hidden: D_MODEL, ..RnnConfig::default() })
}

fn model(config: &ModelConfig, device: &Device) -> Model {
    let vocabularies = Vocabularies { source: VOCAB_SIZE, target: VOCAB_SIZE, shared: false };
    config.init(vocabularies, 1, &device.clone().inner()).expect("the config is right").train()
}

fn part(device: &Device) -> UpdatePart<Batch> {
    let ids = |k: usize| (0..LEN - 1).map(|i| 4 + ((i + 31 * k) * 7919 % (VOCAB_SIZE - 4)) as u32).collect();
    let examples: Vec<Example> = (0..BATCH).map(|k| Example { source: ids(k), target: ids(k + BATCH) }).collect();
    let batch = Batch::new(&examples.iter().collect::<Vec<_>>(), device);
    UpdatePart {
        n_total: batch.n_target_tokens(),
        batch,
        smoothing: 0.1,
        seed: 1,
        place: (0, 0),
        is_fused: true,
        replacement_rate: 0.0,
    }
}

mod optimizer {
    use super::*;

    #[divan::bench(sample_count = 20)]
    fn ours(bencher: Bencher) {
        let device = device("flex");
        let model = model(&transformer(), &device);
        let part = part(&device);
        let mut adam = Adam::new(AdamConfig::default());
        bencher
            .with_inputs(|| GradientSet::new(&model, gradients(&model, &part).0, true))
            .bench_local_values(|grads| adam.step(model.clone(), grads, 1.0, 1e-4));
    }

    #[divan::bench(sample_count = 20)]
    fn burn(bencher: Bencher) {
        let device = device("flex");
        let model = model(&transformer(), &device);
        let part = part(&device);
        let mut adam: ::burn::optim::ModuleOptimizer = BurnAdamConfig::new().init();
        bencher
            .with_inputs(|| -> GradientsParams { gradients(&model, &part).0 })
            .bench_local_values(|grads| adam.step(1e-4, model.clone(), grads));
    }
}

/// What looking costs, and that not looking costs nothing: a forward pass that nobody watches, the thousand calls of
/// `record` that it does not even make, and a pass that is traced whole.
mod trace {
    use super::*;

    #[divan::bench]
    fn a_thousand_records_that_nobody_reads(bencher: Bencher) {
        let tensor = activations(&device("flex"));
        bencher.bench_local(|| {
            let mut pass = Pass::inference();
            for _ in 0..1000 {
                divan::black_box(&mut pass).record("weights", || tensor.clone());
            }
        });
    }

    #[divan::bench(sample_count = 20)]
    fn forward_untraced(bencher: Bencher) {
        let device = device("flex").inner();
        let (model, batch) = (model(&transformer(), &device).valid(), part(&device).batch);
        bencher.bench_local(|| model.forward_batch(&batch, &mut Pass::inference()));
    }

    #[divan::bench(sample_count = 20)]
    fn forward_traced(bencher: Bencher) {
        let device = device("flex").inner();
        let (model, batch) = (model(&transformer(), &device).valid(), part(&device).batch);
        bencher.bench_local(|| {
            let mut trace = Trace::default();
            model.forward_batch(&batch, &mut Pass::traced(&mut trace));
            trace
        });
    }
}

/// One whole update: forward, backward, clipping, Adam; with layers fused and without.
#[divan::bench(
    args = ["flex transformer", "flex bahdanau", "flex fixed-context", "ndarray transformer", "ndarray bahdanau",
        "ndarray fixed-context"],
    consts = [true, false],
    sample_count = 20
)]
fn update<const FUSED: bool>(bencher: Bencher, name: &str) {
    let (backend, name) = name.split_once(' ').expect("a backend and a model");
    let device = device(backend);
    let config = match name {
        "transformer" => transformer(),
        "bahdanau" => bahdanau(),
        _ => fixed_context(),
    };
    let mut model = Some(model(&config, &device));
    let part = UpdatePart { is_fused: FUSED, ..part(&device) };
    let mut adam = Adam::new(AdamConfig::default());
    bencher.counter(ItemsCount::new(part.n_total)).bench_local(|| {
        let current = model.take().expect("one update at a time");
        let (grads, _) = gradients(&current, &part);
        let grads = GradientSet::new(&current, grads, true);
        let scale = 1.0 / grads.norm().max(1.0);
        model = Some(adam.step(current, grads, scale, 1e-4));
    });
}
