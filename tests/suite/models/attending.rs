//! The laws of recurrent models with every score, window and placement, over random lengths and words.

use crate::support::{
    SAME_TOLERANCE, assert_close, flex, gradients_by_path, random_cases, weighted_sum, with_closed_form,
};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::data::batch::Padded;
use lookback::layers::attention::{AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::recurrent::CellKind;
use lookback::layers::{Pass, Trace};
use lookback::models::rnn::Directions;
use lookback::models::weights::to_vec;
use lookback::models::{Autoregressive, Model, ModelConfig, RnnConfig, Seq2Seq, Vocabularies};
use proptest::collection::vec;
use proptest::prelude::*;

/// Every score with every window in every placement.
pub fn every_attention() -> Vec<AttentionConfig> {
    let scores = crate::layers::alignment::scores(12);
    let windows = crate::layers::alignment::windows(2);
    let pairs = || scores.iter().flat_map(|score| windows.iter().map(move |window| (score.clone(), window.clone())));
    let luong = |input_feeding: bool| {
        pairs().map(move |(score, window)| AttentionConfig::Luong { score, window, input_feeding })
    };
    let bahdanau = pairs().map(|(score, window)| AttentionConfig::Bahdanau { score, window });
    let all: Vec<_> = bahdanau.chain(luong(false)).chain(luong(true)).collect();
    assert_eq!(all.len(), 63);
    all
}

/// A model whose attention is far from uniform. Every other one has two layers with a residual connection.
pub fn attending(attention: &AttentionConfig, cell: CellKind, dropout_rate: f64, device: &Device) -> Model {
    let is_residual = cell == CellKind::Lstm;
    let config = RnnConfig {
        cell,
        d_embedding: 5,
        d_hidden: 7,
        n_layers: if is_residual { 2 } else { 1 },
        residual: is_residual,
        directions: Directions::Forward,
        attention: attention.clone(),
        dropout_rate,
        ..RnnConfig::default()
    };
    let vocabularies = Vocabularies { source: 11, target: 13, shared: false };
    let model = ModelConfig::Rnn(config).init(vocabularies, 1, device).expect("the config can be used");
    with_closed_form(model, 2.0)
}

/// Sentences of both sides; a source may be empty, a target begins with the start symbol.
#[derive(Clone, Debug)]
struct Case {
    cell: CellKind,
    source: Vec<Vec<u32>>,
    target: Vec<Vec<u32>>,
}

fn cases() -> impl Strategy<Value = Case> {
    let cell = prop_oneof![Just(CellKind::Vanilla), Just(CellKind::Gru), Just(CellKind::Lstm)];
    let pair = || (vec(3..11u32, 0..7), vec(3..13u32, 0..5));
    (cell, vec(pair(), 1..4)).prop_map(|(cell, pairs)| {
        let (source, target): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let target = target.into_iter().map(|words| [&[1], &words[..]].concat()).collect();
        Case { cell, source, target }
    })
}

fn padded(sentences: &[Vec<u32>], min_len: usize) -> Padded {
    Padded::new(sentences, min_len, &flex())
}

fn forward(model: &Model, source: &[Vec<u32>], target: &[Vec<u32>], widths: [usize; 2]) -> Vec<f32> {
    let [source, target] = [padded(source, widths[0]), padded(target, widths[1])];
    to_vec(model.forward(&source, &target, &mut Pass::inference()))
}

/// The logits of every step, each of `n_beams` beams reading the same words.
fn stepped(model: &Model, case: &Case, n_beams: usize) -> Vec<Vec<f32>> {
    let memory = model.encode(&padded(&case.source, 0), &mut Pass::inference());
    let mut state = model.start(&memory, n_beams);
    let len = case.target.iter().map(Vec::len).max().expect("a batch has sentences");
    let mut found = Vec::new();
    for t in 0..len {
        let words = case.target.iter().flat_map(|words| vec![*words.get(t).unwrap_or(&0) as i32; n_beams]);
        let words: Vec<i32> = words.collect();
        let n = words.len();
        let previous = Tensor::<1, Int>::from_data(TensorData::new(words, [n]), &flex());
        let (logits, next) = model.step(previous, state, &memory, &mut Pass::inference());
        state = next;
        found.push(to_vec(logits));
    }
    found
}

/// The real target positions of row-major logits `[batch, len, 13]`.
fn real(logits: &[f32], target: &[Vec<u32>], len: usize) -> Vec<f32> {
    let row = |(i, words): (usize, &Vec<u32>)| logits[i * len * 13..][..words.len() * 13].to_vec();
    target.iter().enumerate().flat_map(row).collect()
}

fn check(attention: &AttentionConfig, case: &Case) {
    let what = format!("{attention:?}, {case:?}");
    let model = attending(attention, case.cell, 0.0, &flex());
    let len = case.target.iter().map(Vec::len).max().expect("a batch has sentences");
    let whole = forward(&model, &case.source, &case.target, [0, 0]);
    assert!(whole.iter().all(|logit| logit.is_finite()), "{what}: {whole:?}");
    let whole_real = real(&whole, &case.target, len);

    let mut trace = Trace::default();
    let [source, target] = [padded(&case.source, 0), padded(&case.target, 0)];
    let traced = to_vec(model.forward(&source, &target, &mut Pass::traced(&mut trace)));
    assert_eq!(traced, whole, "{what}: watching changes nothing, not a bit");
    assert!(trace.get("attention.weights").is_some(), "{what}: {:?}", trace.entries.len());

    for n_beams in [1, 2] {
        let steps = stepped(&model, case, n_beams);
        for (t, logits) in steps.iter().enumerate() {
            for (row, beam) in logits.chunks(13).enumerate() {
                let expected = &whole[((row / n_beams) * len + t) * 13..][..13];
                if t < case.target[row / n_beams].len() {
                    assert_close(&format!("{what}: step {t}, row {row}"), beam, expected, SAME_TOLERANCE);
                }
            }
        }
    }

    for i in 0..case.source.len() {
        let alone = forward(&model, &case.source[i..=i], &case.target[i..=i], [0, 0]);
        let batched = &whole[i * len * 13..][..alone.len()];
        assert_close(&format!("{what}: sentence {i} alone"), &alone, batched, SAME_TOLERANCE);
    }

    let wide = forward(&model, &case.source, &case.target, [11, len]);
    assert_close(&format!("{what}: wider"), &real(&wide, &case.target, len), &whole_real, SAME_TOLERANCE);

    for t in 1..len {
        let change = |word: &u32| 3 + (word + 4) % 10;
        let other: Vec<Vec<u32>> = case
            .target
            .iter()
            .map(|words| words.iter().enumerate().map(|(i, w)| if i < t { *w } else { change(w) }).collect())
            .collect();
        let changed = forward(&model, &case.source, &other, [0, 0]);
        for (i, (a, b)) in whole.iter().zip(&changed).enumerate() {
            assert!(i / 13 % len >= t || a == b, "{what}: words from {t} on change logit {i}");
        }
    }
}

#[test]
fn every_attention_keeps_the_laws_of_decoders() {
    for attention in every_attention() {
        proptest!(random_cases(3), |(case in cases())| check(&attention, &case));
    }
}

#[test]
fn an_empty_sentence_in_a_batch_leaves_every_gradient_finite_and_its_words_without() {
    let device = flex().autodiff();
    for attention in every_attention() {
        for cell in [CellKind::Gru, CellKind::Lstm] {
            let model = attending(&attention, cell, 0.0, &flex()).train();
            let source = Padded::new(&[vec![4, 9, 2], vec![], vec![2]], 5, &device);
            let target = Padded::new(&[vec![1, 5], vec![1, 7, 8], vec![1]], 0, &device);
            let logits = model.forward(&source, &target, &mut Pass::inference());
            let gradients = gradients_by_path(&model, weighted_sum(logits).backward());
            for (path, gradient) in &gradients {
                assert!(gradient.iter().all(|value| value.is_finite()), "{attention:?}: {path}: {gradient:?}");
            }
            // Padding is word 0, which no sentence has.
            let words = &gradients["source_embedding.weight"];
            assert!(words[..5].iter().all(|value| *value == 0.0), "{attention:?}: padding learns: {:?}", &words[..5]);
            assert!(words[20..25].iter().any(|value| *value != 0.0), "{attention:?}: word 4 learns nothing");
        }
    }
}

#[test]
fn a_luong_decoder_that_feeds_its_input_depends_on_where_it_looked() {
    // Two sources that differ in their words: with and without feeding, the second step's logits differ, but only with
    // feeding does the state itself.
    let states = |input_feeding: bool, words: &[u32]| -> Vec<f32> {
        let attention =
            AttentionConfig::Luong { score: ScoreConfig::General {}, window: WindowConfig::Global {}, input_feeding };
        let config = RnnConfig {
            d_embedding: 5,
            d_hidden: 7,
            attention,
            bridge: lookback::models::rnn::Bridge::Zeros,
            ..RnnConfig::default()
        };
        let vocabularies = Vocabularies { source: 11, target: 13, shared: false };
        let model = ModelConfig::Rnn(config).init(vocabularies, 1, &flex()).expect("the config can be used");
        let mut trace = Trace::default();
        let (source, target) = (padded(&[words.to_vec()], 0), padded(&[vec![1, 5]], 0));
        with_closed_form(model, 2.0).forward(&source, &target, &mut Pass::traced(&mut trace));
        trace.entries.iter().filter(|entry| entry.name == "decoder.state").flat_map(|e| e.values.clone()).collect()
    };
    let (one, other) = ([4, 9, 2], [7, 3, 2]);
    assert_eq!(states(false, &one), states(false, &other), "without a bridge and feeding no state knows the source");
    let (one, other) = (states(true, &one), states(true, &other));
    assert_eq!(one[..7], other[..7], "the first step is fed zeros");
    assert_ne!(one[7..], other[7..], "the second is fed what the first saw");
}
