//! Models that write together: the mean of their probabilities, step by step as for a whole target.

use super::laws::column;
use crate::support::{SAME_TOLERANCE, assert_close, flex, golden};
use burn::tensor::activation::softmax;
use lookback::data::batch::Padded;
use lookback::layers::Pass;
use lookback::models::weights::{Weights, apply, collect, to_vec};
use lookback::models::{Autoregressive, Ensemble, Model, ModelConfig, Seq2Seq, Vocabularies};
use serde_json::json;
use std::path::Path;

/// The model with every parameter a little larger: another model with the same vocabularies.
pub fn grown(model: &Model) -> Model {
    let mut weights: Weights = collect(model);
    weights.values_mut().flat_map(|weight| &mut weight.values).for_each(|value| *value *= 1.2);
    apply(model.clone(), &weights, Path::new("grown")).expect("the same shapes")
}

fn probabilities<M: Seq2Seq>(model: &M, source: &[Vec<u32>], words: &[Vec<u32>]) -> Vec<f32> {
    let device = model.device();
    let mut pass = Pass::inference().fused(true);
    to_vec(softmax(model.forward(&Padded::new(source, 0, &device), &Padded::new(words, 0, &device), &mut pass), 2))
}

#[test]
fn an_ensemble_has_the_mean_of_its_models_probabilities() {
    for case in &golden().models {
        let first = case.model(&flex());
        let second = grown(&first);
        let of = |models: &[&Model]| Ensemble::new(models.iter().map(|model| (*model).clone()).collect());
        let (source, words) = (&case.source, &case.target_input);
        let [one, other] = [&first, &second].map(|model| probabilities(model, source, words));
        let mean: Vec<f32> = one.iter().zip(&other).map(|(a, b)| 0.5 * (a + b)).collect();
        assert!(one.iter().zip(&other).any(|(a, b)| (a - b).abs() > 1e-3), "{}: two models", case.name);
        let both = of(&[&first, &second]);
        assert_close(&case.name, &probabilities(&both, source, words), &mean, SAME_TOLERANCE);
        assert_eq!(probabilities(&of(&[&first]), source, words), one, "{}: one alone", case.name);
        let thrice = probabilities(&of(&[&first, &first, &first]), source, words);
        assert_close(&case.name, &thrice, &one, SAME_TOLERANCE);
    }
}

#[test]
fn an_ensemble_steps_as_it_reads_whole_targets() {
    for case in &golden().models {
        let first = case.model(&flex());
        let both = Ensemble::new(vec![first.clone(), grown(&first)]);
        let device = both.device();
        let len = case.target_input.iter().map(Vec::len).min().unwrap();
        let words: Vec<Vec<u32>> = case.target_input.iter().map(|sentence| sentence[..len].to_vec()).collect();
        let whole = probabilities(&both, &case.source, &words);
        let mut pass = Pass::inference().fused(true);
        let memory = both.encode(&Padded::new(&case.source, 0, &device), &mut pass);
        let mut state = both.start(&memory, 1);
        for t in 0..len {
            let (logits, next) = both.step(column(&words, t, &device), state, &memory, &mut pass);
            state = next;
            let [rows, vocab] = logits.dims();
            let found = to_vec(softmax(logits, 1));
            let expected: Vec<f32> =
                (0..rows).flat_map(|row| whole[(row * len + t) * vocab..][..vocab].to_vec()).collect();
            assert_close(&format!("{}: step {t}", case.name), &found, &expected, SAME_TOLERANCE);
        }
    }
}

#[test]
fn an_ensemble_reads_and_writes_no_more_than_its_shortest_model() {
    let of_len = |max_len: usize| {
        let config = json!({
            "kind": "transformer", "d_model": 8, "d_feed_forward": 8, "n_heads": 1, "n_encoder_layers": 1,
            "n_decoder_layers": 1, "positions": { "kind": "learned", "max_len": max_len },
        });
        let config: ModelConfig = serde_json::from_value(config).unwrap();
        config.init(Vocabularies { source: 11, target: 11, shared: true }, 1, &flex()).unwrap()
    };
    for lengths in [[8, 12], [12, 8]] {
        let limits = Ensemble::new(lengths.map(of_len).to_vec()).limits();
        let found = [limits.source, limits.target].map(|limit| limit.map(|limit| limit.len));
        assert_eq!(found, [Some(8), Some(8)], "{lengths:?}");
    }
}
