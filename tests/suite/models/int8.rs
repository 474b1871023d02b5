//! Models in 8 bits: the same as their rounded weights as floats, and close to what was rounded.

use super::laws::column;
use crate::support::{SAME_TOLERANCE, assert_close, golden, host_backends, largest};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::{collect, to_vec};
use lookback::models::{Int8Model, Seq2Seq};

/// The logits of every step for a batch of golden words.
fn steps<M: Seq2Seq>(model: &M, source: &[Vec<u32>], words: &[Vec<u32>], is_fused: bool) -> Vec<f32> {
    let device = model.device();
    let mut pass = Pass::inference().fused(is_fused);
    let memory = model.encode(&Padded::new(source, 0, &device), &mut pass);
    let mut state = model.start(&memory, 1);
    let mut logits = Vec::new();
    for t in 0..words[0].len() {
        let (of_step, next) = model.step(column(words, t, &device), state, &memory, &mut pass);
        logits.extend(to_vec(of_step));
        state = next;
    }
    logits
}

#[test]
fn models_in_8_bits_are_the_models_of_their_rounded_weights() {
    let mut n_changed = 0;
    for adapter in host_backends() {
        for case in &golden().models {
            let what = format!("{} on {}", case.name, adapter.backend);
            let model = case.model(&adapter.device);
            let int8 = Int8Model::new(model.clone()).unwrap();
            let len = case.target_input.iter().map(Vec::len).min().unwrap();
            let words: Vec<Vec<u32>> = case.target_input.iter().map(|sentence| sentence[..len].to_vec()).collect();
            let found = steps(&int8, &case.source, &words, true);
            assert_close(&what, &found, &steps(int8.rounded(), &case.source, &words, false), SAME_TOLERANCE);

            let exact = steps(&model, &case.source, &words, true);
            let error = largest(&found.iter().zip(&exact).map(|(a, b)| f64::from(a - b)).collect::<Vec<f64>>());
            let exact: Vec<f64> = exact.into_iter().map(f64::from).collect();
            assert!(error < 0.05 * largest(&exact), "{what}: rounding moves a score by {error}");
            n_changed += usize::from(error > 1e-4 * largest(&exact));

            // Norms, biases and what is looked up keep their bits; matrices do not.
            let (before, after) = (collect(&model), collect(int8.rounded()));
            for (path, weight) in &before {
                let is_matrix = weight.shape.len() == 2 && !path.contains("embedding") && path.ends_with("weight");
                let is_rounded = after[path] != *weight;
                assert!(is_matrix || !is_rounded || path == "target_embedding.weight", "{what}: {path} was rounded");
            }
        }
    }
    assert_eq!(n_changed, host_backends().len() * golden().models.len(), "rounding changes every model");
}
