//! Examples of every score and window that can be followed on paper.

use crate::support::{SAME_TOLERANCE, assert_close, flex, tensor};
use burn::module::Module;
use lookback::layers::attention::{Alignment, ScoreConfig, WindowConfig};
use lookback::layers::{Init, Pass, Trace};
use lookback::models::weights::{Weights, apply, collect, to_vec};
use lookback::random::{Purpose, Stream};
use std::path::Path;

/// The parameters of `module` with those named set to `values` and all others to zero.
fn only<M: Module>(module: M, values: &[(&str, &[f32])]) -> M {
    let mut weights: Weights = collect(&module);
    for (path, _) in values {
        assert!(weights.contains_key(*path), "there is no {path} in {:?}", weights.keys());
    }
    for (path, weight) in &mut weights {
        let given = values.iter().find(|(name, _)| name == path);
        weight.values = given.map_or(vec![0.0; weight.values.len()], |(_, values)| values.to_vec());
    }
    apply(module, &weights, Path::new("by hand")).expect("the module's own shapes")
}

/// Scores, weights and context of one state that asks one sentence at step `step`, counted from zero.
fn ask<const D: usize>(
    (score, window): (ScoreConfig, WindowConfig),
    parameters: &[(&str, &[f32])],
    state: &[f32],
    encoder: &[[f32; D]],
    step: usize,
) -> [Vec<f32>; 3] {
    let device = flex();
    let layer = Alignment::new(&score, &window, state.len(), D, &Init::new(1, &device));
    let layer = only(layer, parameters);
    let values = tensor(encoder.concat(), [1, encoder.len(), D], &device);
    let memory = layer.prepare(values, &[encoder.len()], &Pass::inference());
    let mut trace = Trace::default();
    let state = tensor(state.to_vec(), [1, 1, state.len()], &device);
    let context = layer.forward(state, &[step], &memory, &mut Pass::traced(&mut trace));
    let traced = |name| trace.get(name).expect("it is traced").values.clone();
    [traced("scores"), traced("weights"), to_vec(context)]
}

/// The same over the whole source.
fn ask_global<const D: usize>(
    score: ScoreConfig,
    parameters: &[(&str, &[f32])],
    state: &[f32],
    encoder: &[[f32; D]],
) -> [Vec<f32>; 3] {
    ask((score, WindowConfig::Global {}), parameters, state, encoder, 0)
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    scores.iter().map(|score| score.exp() / sum).collect()
}

#[test]
fn dot_looks_at_the_state_that_points_its_way() {
    let encoder = [[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 5.0, 1.0]];
    let [scores, weights, context] = ask_global(ScoreConfig::Dot {}, &[], &[10.0, 5.0, 10.0], &encoder);
    assert_eq!(scores, [15.0, 60.0, 15.0, 35.0]);
    let rounded = |values: Vec<f32>| values.into_iter().map(f32::round).collect::<Vec<_>>();
    assert_eq!(rounded(weights), [0.0, 1.0, 0.0, 0.0]);
    assert_eq!(rounded(context), [5.0, 0.0, 1.0]);
}

#[test]
fn scaled_dot_is_divided_by_the_root_of_the_width() {
    // Of width 4: (4 + 6 + 6 + 4) / 2, 1 / 2, -4 / 2.
    let encoder = [[4.0, 3.0, 2.0, 1.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0]];
    let [scores, weights, _] = ask_global(ScoreConfig::ScaledDot {}, &[], &[1.0, 2.0, 3.0, 4.0], &encoder);
    assert_eq!(scores, [10.0, 0.5, -2.0]);
    assert_close("weights", &weights, &softmax(&[10.0, 0.5, -2.0]), SAME_TOLERANCE);
}

#[test]
fn the_variance_of_dot_products_grows_with_the_width_and_that_of_scaled_ones_does_not() {
    // 4000 products of vectors of independent standard normals. Their variance is the width; an estimate from n of them
    // is off by a part of sqrt(2 / n) = 0.022, somewhat more for narrow vectors, whose products have a heavier tail.
    const N: usize = 4000;
    for d in [4, 64] {
        let normals = |part: u64| -> Vec<f32> {
            let stream = Stream::new(1, Purpose::Initialization, &[d, part]);
            (0..N as u64 * d).map(|i| stream.normal(i) as f32).collect()
        };
        let (queries, keys) = (normals(0), normals(1));
        for (score, expected) in [(ScoreConfig::Dot {}, d as f64), (ScoreConfig::ScaledDot {}, 1.0)] {
            let device = flex();
            let layer =
                Alignment::new(&score, &WindowConfig::Global {}, d as usize, d as usize, &Init::new(1, &device));
            let [query, key] = [&queries, &keys].map(|v| tensor(v.clone(), [N, 1, d as usize], &device));
            let mut trace = Trace::default();
            layer.forward(query, &[0], &layer.prepare(key, &[1; N], &Pass::inference()), &mut Pass::traced(&mut trace));
            let products = &trace.get("scores").expect("they are traced").values;
            let variance = products.iter().map(|x| (*x as f64).powi(2)).sum::<f64>() / N as f64;
            assert!((variance / expected - 1.0).abs() < 0.15, "{score:?}, width {d}: {variance}");
        }
    }
}

#[test]
fn general_has_a_matrix_between_the_states() {
    // W = (1 2 3; 4 5 6), so (1, 2) W = (9, 12, 15); what is kept is W transposed.
    let encoder = [[1.0, 0.0, 0.0], [0.0, 1.0, -1.0], [1.0, 1.0, 1.0]];
    let w: &[f32] = &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    let [scores, ..] = ask_global(ScoreConfig::General {}, &[("score.key.weight", w)], &[1.0, 2.0], &encoder);
    assert_eq!(scores, [9.0, -3.0, 36.0]);
}

#[test]
fn additive_is_a_network_over_both_states() {
    // Widths of one: e_i = 2 tanh(0.5 s + h_i), s = 1, h = (0.5, -0.5): e = (2 tanh 1, 0).
    let score = ScoreConfig::Additive { d_attention: 1 };
    let parameters: [(&str, &[f32]); 3] =
        [("score.query.weight", &[0.5]), ("score.key.weight", &[1.0]), ("score.vector", &[2.0])];
    let [scores, weights, context] = ask_global(score.clone(), &parameters, &[1.0], &[[0.5], [-0.5]]);
    let expected = softmax(&[2.0 * 1f64.tanh(), 0.0]);
    assert_close("scores", &scores, &[2.0 * 1f64.tanh(), 0.0], SAME_TOLERANCE);
    assert_close("weights", &weights, &expected, SAME_TOLERANCE);
    assert_close("context", &context, &[0.5 * expected[0] - 0.5 * expected[1]], SAME_TOLERANCE);
    // The bias stands inside: 2 tanh(0.5 + h_i + 0.5).
    let biased = [&parameters[..], &[("score.key.bias", &[0.5])]].concat();
    let [scores, ..] = ask_global(score, &biased, &[1.0], &[[0.5], [-1.0]]);
    assert_close("scores with a bias", &scores, &[2.0 * 1.5f64.tanh(), 0.0], SAME_TOLERANCE);
}

#[test]
fn concat_has_the_decoder_state_first() {
    // W [s; h] = 0.5 s + h_1 - h_2, v = 2, s = 1.
    let score = ScoreConfig::Concat { d_attention: 1 };
    let parameters: [(&str, &[f32]); 2] = [("score.weight", &[0.5, 1.0, -1.0]), ("score.vector", &[2.0])];
    let [scores, ..] = ask_global(score, &parameters, &[1.0], &[[1.0, 0.5], [0.0, 0.5], [0.0, 1.5]]);
    assert_close("scores", &scores, &[2.0 * 1f64.tanh(), 0.0, -2.0 * 1f64.tanh()], SAME_TOLERANCE);
}

#[test]
fn cosine_sees_directions_alone() {
    // Along, across, against, nowhere; the sharpness is 2.
    let encoder = [[6.0, 8.0], [-4.0, 3.0], [-0.3, -0.4], [0.0, 0.0]];
    let sharpness: &[f32] = &[2f32.ln()];
    let [scores, weights, _] =
        ask_global(ScoreConfig::Cosine {}, &[("score.log_sharpness", sharpness)], &[3.0, 4.0], &encoder);
    assert_close("scores", &scores, &[2.0, 0.0, -2.0, 0.0], SAME_TOLERANCE);
    assert_close("weights", &weights, &softmax(&[2.0, 0.0, -2.0, 0.0]), SAME_TOLERANCE);
    // A state of zero has no direction, and looks everywhere.
    let [_, weights, _] =
        ask_global(ScoreConfig::Cosine {}, &[("score.log_sharpness", sharpness)], &[0.0, 0.0], &encoder);
    assert_eq!(weights, [0.25; 4]);
}

#[test]
fn cosine_is_the_dot_product_of_normalized_vectors_times_its_sharpness() {
    let normalized = |vector: [f32; 3]| {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        vector.map(|x| x / length)
    };
    let (state, encoder) = ([0.3, -2.0, 1.5], [[4.0, 1.0, -2.0], [0.1, 0.2, 0.3], [-1.0, 7.0, 0.5], [0.0, -3.0, 0.0]]);
    let [cosine, ..] = ask_global(ScoreConfig::Cosine {}, &[("score.log_sharpness", &[3f32.ln()])], &state, &encoder);
    let [dot, ..] = ask_global(ScoreConfig::Dot {}, &[], &normalized(state), &encoder.map(normalized));
    let expected: Vec<f32> = dot.iter().map(|score| 3.0 * score).collect();
    assert_close("scores", &cosine, &expected, SAME_TOLERANCE);
}

#[test]
fn cosine_starts_with_a_sharpness_of_ten() {
    let layer = Alignment::new(&ScoreConfig::Cosine {}, &WindowConfig::Global {}, 2, 2, &Init::new(1, &flex()));
    assert_close("g", &collect(&layer)["score.log_sharpness"].values, &[10f64.ln()], SAME_TOLERANCE);
}

#[test]
fn location_sees_the_decoder_state_alone() {
    // One row of W for each place: (1, 0), (0, 1), (1, 1), of which a sentence of two words has two.
    let score = ScoreConfig::Location { max_source_len: 3 };
    let parameters: [(&str, &[f32]); 1] = [("score.position.weight", &[1.0, 0.0, 1.0, 0.0, 1.0, 1.0])];
    let three = ask_global(score.clone(), &parameters, &[2.0, 3.0], &[[7.0], [-1.0], [5.0]]);
    assert_eq!(three[0], [2.0, 3.0, 5.0]);
    let [scores, weights, context] = ask_global(score, &parameters, &[2.0, 3.0], &[[4.0], [9.0]]);
    let expected = softmax(&[2.0, 3.0]);
    assert_eq!(scores, [2.0, 3.0]);
    assert_close("weights", &weights, &expected, SAME_TOLERANCE);
    assert_close("context", &context, &[4.0 * expected[0] + 9.0 * expected[1]], SAME_TOLERANCE);
}

#[test]
fn local_m_goes_along_with_the_step_and_stays_at_the_end() {
    // Equal scores, five words, one to each side.
    let local = (ScoreConfig::Dot {}, WindowConfig::LocalM { half_width: 1 });
    let third = 1.0 / 3.0;
    for (step, expected) in [
        (0, [0.5, 0.5, 0.0, 0.0, 0.0]),
        (1, [third, third, third, 0.0, 0.0]),
        (2, [0.0, third, third, third, 0.0]),
        (4, [0.0, 0.0, 0.0, 0.5, 0.5]),
        (5, [0.0, 0.0, 0.0, 0.5, 0.5]),
        (99, [0.0, 0.0, 0.0, 0.5, 0.5]),
    ] {
        let [_, weights, _] = ask(local.clone(), &[], &[0.0], &[[1.0]; 5], step);
        assert_close(&format!("step {step}"), &weights, &expected, SAME_TOLERANCE);
    }
}

#[test]
fn local_p_weighs_the_softmax_with_a_gaussian_around_its_centre() {
    // With v = 0 the centre is S sigmoid(0) = S / 2 = 2 of four words, at every step; D = 2, so sigma = 1, and the fourth
    // word stands on the edge. Equal scores: the softmax gives a quarter to each of four, a third to each of three.
    for (half_width, expected) in [
        (2, [0.25 * (-0.5f64).exp(), 0.25, 0.25 * (-0.5f64).exp(), 0.25 * (-2f64).exp()]),
        (1, [(-2f64).exp() / 3.0, 1.0 / 3.0, (-2f64).exp() / 3.0, 0.0]),
    ] {
        for step in [0, 7] {
            let local = (ScoreConfig::Dot {}, WindowConfig::LocalP { half_width });
            let [_, weights, context] = ask(local, &[], &[0.0], &[[1.0]; 4], step);
            assert_close(&format!("D = {half_width}"), &weights, &expected, SAME_TOLERANCE);
            assert_close("context", &context, &[expected.iter().sum::<f64>()], SAME_TOLERANCE);
        }
    }
    // v tanh(W s) = 2 tanh(0.5): the centre of four words is at 4 sigmoid(2 tanh(0.5)) = 2.86.
    let centre = 4.0 / (1.0 + (-2.0 * 0.5f64.tanh()).exp());
    let parameters: [(&str, &[f32]); 2] =
        [("window.predictor.projection.weight", &[0.5]), ("window.predictor.vector", &[2.0])];
    let local = (ScoreConfig::Dot {}, WindowConfig::LocalP { half_width: 2 });
    let [_, weights, _] = ask(local, &parameters, &[1.0], &[[0.0]; 4], 0);
    let expected = [1.0, 2.0, 3.0, 4.0].map(|i: f64| (-(i - centre).powi(2) / 2.0).exp() / 4.0);
    assert_close("weights", &weights, &expected, SAME_TOLERANCE);
}
