//! Decoding steps with caches that grow in place, against steps written out in burn's operations.

use super::laws::indices;
use crate::support::{SAME_TOLERANCE, assert_close, golden, host_backends};
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::to_vec;
use lookback::models::{Autoregressive, Model, Rows, Seq2Seq};

const BEAMS: usize = 3;
const STEPS: usize = 5;

/// Beams that survive a step, by their numbers within a sentence: repeated, dropped and reordered.
const PARENTS: [[usize; BEAMS]; STEPS] = [[0, 0, 0], [0, 1, 2], [2, 2, 0], [1, 1, 1], [2, 0, 1]];

/// The logits of a beam search that takes [`PARENTS`] and arbitrary words; `is_fused` says how each step is made.
fn search(model: &Model, source: &[Vec<u32>], is_fused: impl Fn(usize) -> bool) -> Vec<f32> {
    let mut pass = Pass::inference().fused(is_fused(0));
    let memory = model.encode(&Padded::new(source, 0, &model.device()), &mut pass);
    let mut state = model.start(&memory, BEAMS);
    let ids = |values: Vec<usize>| indices(values, &model.device());
    let mut logits = Vec::new();
    for (t, parents) in PARENTS.iter().enumerate() {
        let words = |shift: usize| (0..source.len() * BEAMS).map(|row| shift + (5 * row + 7 * t) % 9).collect();
        let mut pass = Pass::inference().fused(is_fused(t));
        // The state before the step stays what it was: it is stepped from twice.
        let (_, _) = model.step(ids(words(4)), state.clone(), &memory, &mut pass);
        let (of_step, next) = model.step(ids(words(3)), state, &memory, &mut pass);
        logits.extend(to_vec(of_step));
        let rows = (0..source.len()).flat_map(|i| parents.iter().map(move |parent| i * BEAMS + parent)).collect();
        state = next.select(&ids(rows));
    }
    logits
}

#[test]
fn steps_that_grow_in_place_are_steps_that_copy() {
    for adapter in host_backends() {
        for case in &golden().models {
            let what = format!("{} on {}", case.name, adapter.backend);
            let model = case.model(&adapter.device);
            let expected = search(&model, &case.source, |_| false);
            assert_close(&what, &search(&model, &case.source, |_| true), &expected, SAME_TOLERANCE);
            // A step that is written out goes on from one that was fused.
            assert_close(&what, &search(&model, &case.source, |t| t < 2), &expected, SAME_TOLERANCE);
        }
    }
}
