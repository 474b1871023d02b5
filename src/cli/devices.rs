//! `lookback devices`.

use super::print;
use crate::backend::{Adapter, Backend};
use crate::data::batch::{Batch, Example};
use crate::error::{Error, Result};
use crate::layers::attention::AttentionConfig;
use crate::layers::norm::NormKind;
use crate::layers::position::PositionConfig;
use crate::layers::recurrent::CellKind;
use crate::models::{Model, ModelConfig, RnnConfig, TransformerConfig, Vocabularies};
use crate::training::optimizer::GradientSet;
use crate::training::{UpdatePart, gradients};
use burn::module::Module;
use clap::Args;

/// Differences of this size, relative to the largest value, come from the order of sums.
const TOLERANCE: f64 = 1e-3;

#[derive(Args, Debug)]
pub(super) struct DevicesArgs {
    /// Run one forward and backward pass of every model on every backend and print the largest difference from flex.
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: DevicesArgs) -> Result<()> {
    for backend in &Backend::ALL[1..] {
        if !backend.is_compiled() {
            print(&format!("{:<8}  not in this build; build with --features {backend}\n", backend.name()))?;
            continue;
        }
        let adapters = backend.adapters();
        if adapters.is_empty() {
            print(&format!("{:<8}  no adapter on this machine\n", backend.name()))?;
        }
        for adapter in adapters {
            let software = if adapter.is_software { "  (emulated by the CPU)" } else { "" };
            let own = adapter.own_name().map(|name| format!(": {name}")).unwrap_or_default();
            print(&format!("{:<8}  {}{own}{software}\n", backend.name(), adapter.name))?;
        }
    }
    match Backend::Auto.open() {
        Ok(adapter) => print(&format!("auto      is {} here\n", adapter.backend))?,
        Err(error) => print(&format!("auto      {error}\n"))?,
    }
    if args.check { check() } else { Ok(()) }
}

/// Compares loss and gradients of every model on every backend with flex's.
fn check() -> Result<()> {
    let reference = Backend::Flex.open()?;
    print("\nlargest difference from flex, relative to the largest value of each gradient:\n")?;
    let mut failed = false;
    for (name, config) in models() {
        let expected = measure(&config, &reference)?;
        for backend in &Backend::ALL[1..] {
            let Some(adapter) = backend.adapters().into_iter().next().filter(|_| *backend != Backend::Flex) else {
                continue;
            };
            let found = measure(&config, &adapter)?;
            let loss = (found.0 - expected.0).abs() / expected.0.abs();
            let mut worst = (loss, "loss");
            for (path, values) in &expected.1 {
                let theirs = &found.1.iter().find(|(p, _)| p == path).expect("the same model").1;
                let scale = values.iter().fold(0f64, |max, v| max.max(v.abs() as f64)).max(1e-6);
                let gap = values.iter().zip(theirs).fold(0f64, |max, (a, b)| max.max((a - b).abs() as f64));
                if gap / scale > worst.0 {
                    worst = (gap / scale, path);
                }
            }
            let verdict = if worst.0 <= TOLERANCE { "agrees" } else { "DISAGREES" };
            failed |= worst.0 > TOLERANCE;
            print(&format!("{name:<12}  {:<8}  {:.1e} at {}  {verdict}\n", backend.name(), worst.0, worst.1))?;
        }
    }
    if failed {
        return Err(Error::message("a backend computes something else than flex; do not train on it"));
    }
    Ok(())
}

fn models() -> Vec<(&'static str, ModelConfig)> {
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
    let luong = RnnConfig { attention: AttentionConfig::luong(), cell: CellKind::Lstm, ..rnn.clone() };
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
    vec![
        ("rnn", ModelConfig::Rnn(rnn)),
        ("bahdanau", ModelConfig::Rnn(bahdanau)),
        ("luong", ModelConfig::Rnn(luong)),
        ("transformer", ModelConfig::Transformer(transformer)),
        ("t5, rotary", ModelConfig::Transformer(t5_rotary)),
        ("alibi, shaw", ModelConfig::Transformer(alibi_shaw)),
    ]
}

type Gradients = Vec<(String, Vec<f32>)>;

fn measure(config: &ModelConfig, adapter: &Adapter) -> Result<(f64, Gradients)> {
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
    let paths = crate::models::weights::collect(&model.valid());
    let gradients = paths.into_keys().filter_map(|path| set.get(&path).map(|values| (path, values))).collect();
    Ok((sums.smoothed, gradients))
}
