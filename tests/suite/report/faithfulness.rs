//! Erasing source words, and gradient x input beside it.

use crate::support::{SAME_TOLERANCE, assert_close, flex, golden, golden_with_source};
use burn::module::Module;
use lookback::data::batch::Example;
use lookback::data::{EOS, UNK};
use lookback::decoding::score_targets;
use lookback::models::weights::{apply, collect};
use lookback::report::attention::collect::Written;
use lookback::report::faithfulness::{Attribution, Erasure, Faithfulness, erase, gradient_times_input, spearman};
use std::path::Path;

fn pair() -> Written {
    Written { number: 1, source: vec![4, 5, 6], target: vec![5, 4, EOS], ..Written::default() }
}

#[test]
fn the_effect_of_erasing_is_the_difference_of_two_scores() {
    for case in &golden().models {
        let model = case.model(&flex());
        let erased = erase(&model, &pair());
        let score = |source: &[u32]| {
            let example = Example { source: source.to_vec(), target: vec![5, 4] };
            score_targets(&model, &[example], 1000).remove(0)
        };
        let (whole, without) = (score(&[4, 5, 6]), score(&[4, UNK, 6]));
        // Erased sources are scored in one batch, these two alone, and products of other numbers of rows round otherwise: by a
        // part of the scores, of which an effect is a small difference.
        let found: Vec<f64> = (0..3).map(|t| without[t] + f64::from(erased.effect.values[t * 3 + 1])).collect();
        assert_close(&case.name, &found, &whole, SAME_TOLERANCE);
    }
}

#[test]
fn gradient_times_input_is_nothing_where_a_word_is_erased_already() {
    for case in golden_with_source() {
        let model = case.model(&flex()).train().no_grad();
        let told = gradient_times_input(&model, &pair());
        assert_eq!((told.n_words, told.values.len()), (3, 9), "{}", case.name);
        assert!(told.values.iter().all(|value| value.is_finite()), "{}", case.name);
        assert!(told.values.iter().any(|value| *value != 0.0), "{} has no gradient", case.name);
        let told = gradient_times_input(&model, &Written { source: vec![UNK, 5, UNK], ..pair() });
        for row in told.values.chunks(3) {
            assert_eq!((row[0], row[2]), (0.0, 0.0), "{}", case.name);
        }
    }
}

#[test]
fn gradient_times_input_is_the_effect_of_moving_a_word_s_vector_a_little() {
    // With smaller steps the rounding of the scores shows, with larger ones the curvature of the recurrent cases, whose weights
    // are large; two steps together cancel its first term (Richardson).
    const STEP: f32 = 8e-3;
    const TABLE: &str = "source_embedding.weight";
    let mut checked = 0;
    for case in &golden().models {
        let model = case.model(&flex());
        let weights = collect(&model);
        // Where source and target, or source and scores, share a table, moving a vector moves more than the source.
        let Some(table) = weights.get(TABLE).filter(|_| model.tied_table() != Some(TABLE)) else { continue };
        let width = table.shape[1];
        let told = gradient_times_input(&model.clone().train().no_grad(), &pair());
        for (j, word) in pair().source.iter().enumerate() {
            let score = |step: f32| {
                let mut moved = weights.clone();
                for i in 0..width {
                    let unknown = table.values[UNK as usize * width + i];
                    let value = &mut moved.get_mut(TABLE).unwrap().values[*word as usize * width + i];
                    *value += step * (unknown - *value);
                }
                let moved = apply(model.clone(), &moved, Path::new("a moved vector")).unwrap();
                let example = Example { source: pair().source, target: vec![5, 4] };
                score_targets(&moved, &[example], 1000).remove(0)
            };
            let quotients = |step: f32| -> Vec<f64> {
                let difference = |(less, more): (f64, f64)| (less - more) / (2.0 * f64::from(step));
                score(-step).into_iter().zip(score(step)).map(difference).collect()
            };
            for (t, (near, far)) in quotients(STEP).into_iter().zip(quotients(2.0 * STEP)).enumerate() {
                let quotient = (4.0 * near - far) / 3.0;
                let told = f64::from(told.values[t * 3 + j]);
                let allowed = 1e-3 + 0.02 * told.abs();
                assert!(
                    (quotient - told).abs() < allowed,
                    "{}: word {j}, target {t}: {told}, not {quotient}",
                    case.name
                );
            }
        }
        checked += 1;
    }
    assert!(checked > 2, "only {checked} models were checked");
}

#[test]
fn rank_correlations_by_hand() {
    assert_eq!(spearman(&[1.0, 2.0, 9.0], &[-4.0, 0.0, 0.1]), 1.0);
    assert_eq!(spearman(&[1.0, 2.0, 9.0], &[3.0, 2.0, 1.0]), -1.0);
    assert_eq!(spearman(&[1.0, 1.0], &[3.0, 2.0]), 0.0);
    // Ranks 0 1 2 3 and 1 0 2 3: 1 - 6 * 2 / (4 * 15).
    assert_close("spearman", &[spearman(&[1., 2., 3., 4.], &[2., 1., 3., 4.])], &[0.8], 1e-12);
}

#[test]
fn a_verdict_by_hand() {
    let told = Attribution { n_words: 2, values: vec![0.9, 0.1, 0.2, 0.8] };
    let effect = Attribution { n_words: 2, values: vec![2.0, 0.0, 1.0, 0.5] };
    let erased = Erasure { effect, changed: vec![true, false, false, false] };
    let verdict = Faithfulness::of([(&told, &erased)]);
    assert_eq!((verdict.n_targets, verdict.effect_of_most, verdict.effect_of_least), (2, 1.25, 0.5));
    assert_eq!((verdict.effect_of_any, verdict.changed_by_most, verdict.changed_by_any), (0.875, 0.5, 0.25));
    assert_eq!((verdict.same_most, verdict.rank_correlation), (0.5, 0.0));
    assert_eq!(Attribution::of_weights(&[0.1, 0.2, 0.7, 0.3, 0.3, 0.4], 3).values, [0.1, 0.2, 0.3, 0.3]);
}
