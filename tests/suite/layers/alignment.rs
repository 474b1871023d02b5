//! Attention of a recurrent decoder: every score, every window, both placements.

use crate::support::{SAME_TOLERANCE, assert_close, flex, tensor};
use lookback::layers::attention::{Alignment, AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::{Init, Pass, Trace};
use lookback::models::weights::{Weights, apply, collect, to_vec};
use std::path::Path;

/// The parameters of `module` with those named set to `values` and all others to zero.
fn only<M: burn::module::Module>(module: M, values: &[(&str, &[f32])]) -> M {
    let mut weights: Weights = collect(&module);
    for (path, weight) in &mut weights {
        let given = values.iter().find(|(name, _)| name == path);
        weight.values = given.map_or(vec![0.0; weight.values.len()], |(_, values)| values.to_vec());
    }
    apply(module, &weights, Path::new("by hand")).expect("the module's own shapes")
}

#[test]
fn additive_weights_can_be_derived_by_hand() {
    // Widths of one: e_i = 2 tanh(0.5 s + h_i), s = 1, h = (0.5, -0.5, 3 hidden): e = (2 tanh 1, 0).
    let device = flex();
    let score = ScoreConfig::Additive { d_attention: 1 };
    let layer = Alignment::new(&score, &WindowConfig::Global {}, 1, 1, &Init::new(1, &device));
    let layer = only(layer, &[("score.query.weight", &[0.5]), ("score.key.weight", &[1.0]), ("score.vector", &[2.0])]);
    let memory = layer.prepare(tensor(vec![0.5, -0.5, 3.0], [1, 3, 1], &device), &[2]);
    let mut trace = Trace::default();
    let query = tensor(vec![1.0], [1, 1, 1], &device);
    let context = layer.forward(query, &[0], &memory, &mut Pass::traced(&mut trace));
    let odds = (2.0 * 1f64.tanh()).exp();
    let weights = [odds / (1.0 + odds), 1.0 / (1.0 + odds), 0.0];
    assert_close("weights", &trace.get("weights").expect("traced").values, &weights, SAME_TOLERANCE);
    assert_close("context", &to_vec(context), &[0.5 * weights[0] - 0.5 * weights[1]], SAME_TOLERANCE);
}

#[test]
fn no_attention_is_no_layer() {
    assert!(AttentionConfig::None {}.init(7, 11, 3, &Init::new(1, &flex())).is_none());
}
