//! Residual connections of a recurrent model, where they can be seen by themselves.

use crate::support::{SAME_TOLERANCE, assert_close, flex};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::layers::recurrent::CellKind;
use lookback::models::readout::ReadoutConfig;
use lookback::models::rnn::{Bridge, Directions, OutputKind};
use lookback::models::weights::{apply, collect, to_vec};
use lookback::models::{Model, ModelConfig, RnnConfig, Seq2Seq, Vocabularies};
use std::path::Path;

const D: usize = 13;

/// A model whose parameters are zero but for the bias of the decoder's first layer, `b_i = 0.1 i`, and an output that shows
/// the state as it is. Its first layer says `tanh(b)` at every step, those above it nothing.
fn transparent(residual: bool, dropout_rate: f64) -> Model {
    let config = RnnConfig {
        cell: CellKind::Vanilla,
        d_embedding: 3,
        d_hidden: D,
        n_layers: 3,
        residual,
        directions: Directions::Forward,
        bridge: Bridge::Zeros,
        readout: ReadoutConfig::State {},
        output: OutputKind::Projection,
        dropout_rate,
        ..RnnConfig::default()
    };
    let vocabularies = Vocabularies { source: 5, target: D, shared: false };
    let model = ModelConfig::Rnn(config).init(vocabularies, 1, &flex()).expect("the config can be used");
    let mut weights = collect(&model);
    for (path, weight) in &mut weights {
        let value = |i: usize| match path.as_str() {
            "decoder.0.input.bias" => 0.1 * i as f32,
            "output.projection.weight" if i / D == i % D => 1.0,
            _ => 0.0,
        };
        weight.values = (0..weight.values.len()).map(value).collect();
    }
    apply(model, &weights, Path::new("by hand")).expect("the model's own shapes")
}

fn logits(model: &Model, pass: &mut Pass) -> Vec<f32> {
    let [source, target] = [vec![4, 2], vec![1; 40]].map(|sentence| Padded::new(&[sentence], 0, &flex()));
    to_vec(model.forward(&source, &target, pass))
}

fn first_layer(i: usize) -> f64 {
    (0.1 * (i % D) as f64).tanh()
}

#[test]
fn what_a_silent_layer_has_read_goes_by_it() {
    let expected: Vec<f64> = (0..40 * D).map(first_layer).collect();
    assert_close("residual", &logits(&transparent(true, 0.5), &mut Pass::inference()), &expected, SAME_TOLERANCE);
    let without = logits(&transparent(false, 0.5), &mut Pass::inference());
    assert!(without.iter().all(|value| *value == 0.0), "{without:?}");
}

#[test]
fn what_goes_by_a_layer_is_not_dropped() {
    // The readout drops half and doubles the rest; had the layers' inputs been dropped too, there would be eightfold ones.
    let found = logits(&transparent(true, 0.5), &mut Pass::training(1, 2, 3));
    let mut seen = [0, 0];
    for (i, value) in found.iter().enumerate().filter(|(i, _)| i % D > 0) {
        let is_kept = *value != 0.0;
        let expected = if is_kept { 2.0 * first_layer(i) } else { 0.0 };
        assert!((*value as f64 - expected).abs() < 1e-6, "element {i} is {value} instead of {expected}");
        seen[is_kept as usize] += 1;
    }
    // Five standard deviations around a half of 480.
    assert!(seen.iter().all(|n| (185..=295).contains(n)), "{seen:?} dropped and kept");
}
