//! Models in 8 bits: close to what was rounded, and written out in floats the same as their rounded weights.

use super::laws::column;
use crate::support::{SAME_TOLERANCE, assert_close, golden, host_backends};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::{collect, to_vec};
use lookback::models::{PreparedModel, Seq2Seq};

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

/// How far rounding may move a score, as a part of the largest: a hundred and twenty-seventh of the largest of some thirty
/// factors, carried through a few layers.
const ROUNDED_TOLERANCE: f64 = 0.05;

/// How far it may be moved by a sum in another order, after which a factor or two may be rounded the other way.
const ONE_STEP_TOLERANCE: f64 = 0.01;

#[test]
fn models_in_8_bits_are_close_to_what_was_rounded() {
    let mut n_changed = 0;
    for adapter in host_backends() {
        for case in &golden().models {
            let what = format!("{} on {}", case.name, adapter.backend);
            let model = case.model(&adapter.device);
            let int8 = PreparedModel::int8(model.clone()).unwrap();
            let len = case.target_input.iter().map(Vec::len).min().unwrap();
            let words: Vec<Vec<u32>> = case.target_input.iter().map(|sentence| sentence[..len].to_vec()).collect();
            let found = steps(&int8, &case.source, &words, true);
            let rounded = steps(int8.floats(), &case.source, &words, false);
            assert_close(&what, &steps(&int8, &case.source, &words, false), &rounded, SAME_TOLERANCE);
            // Rows are rounded only where layers are fused.
            let exact = steps(&model, &case.source, &words, true);
            assert_close(&format!("{what}: rounded rows"), &found, &rounded, ROUNDED_TOLERANCE);
            assert_close(&format!("{what}: rounded rows and weights"), &found, &exact, ROUNDED_TOLERANCE);
            for from in [&rounded, &exact] {
                n_changed += usize::from(found.iter().zip(from).any(|(a, b)| (a - b).abs() > 1e-3));
            }
            let alone = steps(&int8, &case.source[..1], &words[..1], true);
            let (among, alone) = (found.chunks(found.len() / len), alone.chunks(alone.len() / len));
            for (step, (among, alone)) in among.zip(alone).enumerate() {
                assert_close(&format!("{what}: step {step} alone"), &among[..alone.len()], alone, ONE_STEP_TOLERANCE);
            }

            // Norms, biases and what is looked up keep their bits; matrices do not.
            let (before, after) = (collect(&model), collect(int8.floats()));
            for (path, weight) in &before {
                let is_matrix = weight.shape.len() == 2 && !path.contains("embedding") && path.ends_with("weight");
                let is_rounded = after[path] != *weight;
                assert!(
                    is_matrix || !is_rounded || model.tied_table() == Some(path.as_str()),
                    "{what}: {path} was rounded"
                );
            }
        }
    }
    assert_eq!(n_changed, 2 * host_backends().len() * golden().models.len(), "rounding changes every model");
}
