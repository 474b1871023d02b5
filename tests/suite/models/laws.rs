//! The laws that every model keeps, checked with the weights of every golden case on every host backend.

mod rows;

use crate::support::{
    ModelCase, SAME_TOLERANCE, assert_close, golden, gradients_by_path, host_backends, largest, weighted_sum,
};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use lookback::data::batch::Padded;
use lookback::data::{BOS, EOS, PAD};
use lookback::layers::attention::{ScoreConfig, WindowConfig};
use lookback::layers::mixer::MixerKind;
use lookback::layers::position::PositionConfig;
use lookback::layers::{Pass, Trace};
use lookback::models::weights::{apply, collect, to_vec};
use lookback::models::{Answers, Autoregressive, Memory, Model, ModelConfig, RnnConfig, Seq2Seq, State};
use std::path::Path;

/// A golden model on a device.
struct Subject {
    what: String,
    case: &'static ModelCase,
    model: Model,
    device: Device,
}

fn subjects() -> impl Iterator<Item = Subject> {
    host_backends().into_iter().flat_map(|adapter| {
        golden().models.iter().map(move |case| Subject {
            what: format!("{} on {}", case.name, adapter.backend),
            model: case.model(&adapter.device),
            device: adapter.device.clone(),
            case,
        })
    })
}

impl Subject {
    fn vocab_size(&self) -> usize {
        self.case.logits_shape[2]
    }

    fn padded(&self, sentences: &[Vec<u32>], min_len: usize) -> Padded {
        Padded::new(sentences, min_len, &self.device)
    }

    fn forward(&self, source: &Padded, target_input: &Padded) -> Tensor<3> {
        self.model.forward(source, target_input, &mut Pass::inference())
    }

    /// The logits of the case's batch.
    fn whole(&self) -> Tensor<3> {
        self.forward(&self.padded(&self.case.source, 0), &self.padded(&self.case.target_input, 0))
    }

    fn encode(&self) -> Memory {
        self.model.encode(&self.padded(&self.case.source, 0), &mut Pass::inference())
    }

    /// The logits of every step when each row is given its own words.
    fn steps(&self, memory: &Memory, n_beams: usize, words: &[Vec<u32>]) -> Vec<Tensor<2>> {
        let mut state = self.model.start(memory, n_beams);
        let columns = (0..longest(words)).map(|t| column(words, t, &self.device));
        columns
            .map(|previous| {
                let (logits, next) = self.step(previous, state.clone(), memory);
                state = next;
                logits
            })
            .collect()
    }

    fn step(&self, previous: Tensor<1, Int>, state: State, memory: &Memory) -> (Tensor<2>, State) {
        self.model.step(previous, state, memory, &mut Pass::inference())
    }

    /// Another batch of targets, as long as the case's.
    fn other_words(&self) -> Vec<Vec<u32>> {
        let other = |word: u32| if word == 1 { 1 } else { 3 + (word + 5) % 10 };
        self.case.target_input.iter().map(|sentence| sentence.iter().map(|word| other(*word)).collect()).collect()
    }
}

fn longest(words: &[Vec<u32>]) -> usize {
    words.iter().map(Vec::len).max().expect("a batch has sentences")
}

/// Word `t` of every sentence.
pub(super) fn column(words: &[Vec<u32>], t: usize, device: &Device) -> Tensor<1, Int> {
    indices(words.iter().map(|sentence| *sentence.get(t).unwrap_or(&PAD) as usize), device)
}

pub(super) fn indices(values: impl IntoIterator<Item = usize>, device: &Device) -> Tensor<1, Int> {
    let values: Vec<i32> = values.into_iter().map(|value| value as i32).collect();
    let len = values.len();
    Tensor::from_data(TensorData::new(values, [len]), device)
}

/// The rows `chosen` of row-major `values`.
fn pick<T: Copy>(values: &[T], width: usize, chosen: &[usize]) -> Vec<T> {
    chosen.iter().flat_map(|row| values[row * width..(row + 1) * width].iter().copied()).collect()
}

#[test]
fn stepping_is_the_same_as_the_whole_sentence_at_once() {
    for subject in subjects() {
        let steps = subject.steps(&subject.encode(), 1, &subject.case.target_input);
        let steps = to_vec(Tensor::stack::<3>(steps, 1));
        assert_close(&subject.what, &steps, &to_vec(subject.whole()), SAME_TOLERANCE);
    }
}

#[test]
fn reading_known_words_at_once_is_the_same_as_stepping_and_so_is_what_follows() {
    for subject in subjects() {
        let words = subject.case.target_input.clone();
        let len = longest(&words);
        let columns: Vec<Tensor<1, Int>> = (0..len).map(|t| column(&words, t, &subject.device)).collect();
        let memory = subject.encode();
        let expected = subject.steps(&memory, 1, &words);
        for n_read in 1..len {
            let what = format!("{}, {n_read} of {len}", subject.what);
            let (first, n_scored) = (Tensor::stack::<2>(columns[..n_read].to_vec(), 1), n_read.min(2));
            let start = subject.model.start(&memory, 1);
            let pass = || Pass::inference();
            let (logits, state) = subject.model.prefill(first.clone(), start.clone(), &memory, n_scored, &mut pass());
            let scored = Tensor::stack::<3>(expected[n_read - n_scored..n_read].to_vec(), 1);
            assert_close(&what, &to_vec(logits.unwrap()), &to_vec(scored), SAME_TOLERANCE);
            let (next, _) = subject.step(columns[n_read].clone(), state, &memory);
            assert_close(&format!("{what}, then"), &to_vec(next), &to_vec(expected[n_read].clone()), SAME_TOLERANCE);
            // A state that has read can read on; fused, and with nothing scored.
            let rest = Tensor::stack::<2>(columns[n_read..].to_vec(), 1);
            let (logits, _) =
                subject.model.prefill(rest, state_of(&subject, first, start, &memory), &memory, 1, &mut pass());
            let last = to_vec(expected[len - 1].clone());
            assert_close(&format!("{what}, on"), &to_vec(logits.unwrap()), &last, SAME_TOLERANCE);
        }
    }
}

/// The state after `tokens`, read by fused layers.
fn state_of(subject: &Subject, tokens: Tensor<2, Int>, start: State, memory: &Memory) -> State {
    let (logits, state) = subject.model.prefill(tokens, start, memory, 0, &mut Pass::inference().fused(true));
    assert!(logits.is_none());
    state
}

#[test]
fn a_sentence_in_a_batch_is_the_same_as_alone() {
    for subject in subjects() {
        let [_, target_len, vocab_size] = subject.case.logits_shape;
        let whole = to_vec(subject.whole());
        for (i, (source, target)) in subject.case.source.iter().zip(&subject.case.target_input).enumerate() {
            let alone = subject.forward(
                &subject.padded(std::slice::from_ref(source), 0),
                &subject.padded(std::slice::from_ref(target), 0),
            );
            let batched = &whole[i * target_len * vocab_size..][..target.len() * vocab_size];
            assert_close(&format!("{}: sentence {i}", subject.what), &to_vec(alone), batched, SAME_TOLERANCE);
        }
    }
}

#[test]
fn the_width_of_the_padding_does_not_matter() {
    // The learned tables of the golden cases end at 8.
    const WIDE: usize = 8;
    for subject in subjects() {
        let case = subject.case;
        let [batch, target_len, vocab_size] = case.logits_shape;
        let source = subject.padded(&case.source, WIDE);
        assert!(source.len() == WIDE && longest(&case.source) < WIDE);
        let wide = subject.forward(&source, &subject.padded(&case.target_input, WIDE)).narrow(1, 0, target_len);
        assert_close(&subject.what, &to_vec(wide), &to_vec(subject.whole()), SAME_TOLERANCE);
        let memory = subject.model.encode(&source, &mut Pass::inference());
        let steps = to_vec(Tensor::stack::<3>(subject.steps(&memory, 1, &case.target_input), 1));
        assert_eq!(steps.len(), batch * target_len * vocab_size);
        assert_close(&format!("{}, stepping", subject.what), &steps, &to_vec(subject.whole()), SAME_TOLERANCE);
    }
}

#[test]
fn the_words_in_the_padding_do_not_matter() {
    for subject in subjects() {
        let mut source = subject.padded(&subject.case.source, 8);
        let expected = subject.forward(&source, &subject.padded(&subject.case.target_input, 0));
        // Any word where padding was, the lengths as before.
        let lengths = source.lengths.clone();
        let ids: Vec<i32> = source.ids.clone().into_data().iter::<i32>().collect();
        let ids = ids.iter().enumerate().map(|(i, id)| if i % 8 < lengths[i / 8] { *id } else { 3 + i as i32 % 7 });
        source.ids = Tensor::from_data(TensorData::new(ids.collect::<Vec<i32>>(), [lengths.len(), 8]), &subject.device);
        let found = subject.forward(&source, &subject.padded(&subject.case.target_input, 0));
        assert_eq!(to_vec(found), to_vec(expected), "{}", subject.what);
    }
}

#[test]
fn the_future_does_not_matter() {
    // Answers of encoders do not see each other at all.
    for subject in subjects().filter(|subject| subject.case.config.family().answer_len(1).is_none()) {
        let [batch, target_len, vocab_size] = subject.case.logits_shape;
        let source = subject.padded(&subject.case.source, 0);
        let whole = to_vec(subject.whole());
        let other = subject.other_words();
        for t in 1..target_len {
            let target = |row: usize| -> Vec<u32> {
                let (kept, changed) = (&subject.case.target_input[row], &other[row]);
                let word = |i: usize| if i < t { kept.get(i) } else { changed.get(i) };
                (0..target_len).map(|i| *word(i).unwrap_or(&if i < t { PAD } else { 3 })).collect()
            };
            let targets: Vec<Vec<u32>> = (0..batch).map(target).collect();
            let changed = to_vec(subject.forward(&source, &subject.padded(&targets, 0)));
            let (mut past, mut future) = (0.0f32, 0.0f32);
            for (i, (a, b)) in whole.iter().zip(&changed).enumerate() {
                let side = if i / vocab_size % target_len < t { &mut past } else { &mut future };
                *side = side.max((a - b).abs());
            }
            assert_eq!(past, 0.0, "{}: words from {t} on change what came before", subject.what);
            assert!(future > 0.01, "{}: words from {t} on change nothing: {future}", subject.what);
        }
    }
}

#[test]
fn a_causal_encoder_sees_no_token_to_the_right_and_another_sees_all() {
    let mut n_checked = [0, 0];
    for subject in subjects() {
        let ModelConfig::EncoderOnly(config) = &subject.case.config else { continue };
        if config.output == Answers::Class {
            continue;
        }
        n_checked[usize::from(config.is_causal)] += 1;
        let sentence = vec![5, 9, 4, 7, EOS];
        let logits = |sentence: &Vec<u32>| {
            let given = subject.padded(&[vec![BOS; 5]], 0);
            to_vec(subject.forward(&subject.padded(std::slice::from_ref(sentence), 0), &given))
        };
        let whole = logits(&sentence);
        for changed in 0..4 {
            let mut other = sentence.clone();
            other[changed] = 11;
            let gaps: Vec<f32> = whole.iter().zip(logits(&other)).map(|(a, b)| (a - b).abs()).collect();
            let (before, after) = gaps.split_at(changed * subject.vocab_size());
            let largest = |gaps: &[f32]| gaps.iter().fold(0f32, |max, gap| gap.max(max));
            assert!(largest(after) > 0.01, "{}: token {changed} changes nothing", subject.what);
            // A recurrence may read forwards alone, and a convolution looks back.
            let looks_ahead = !config.is_causal && config.mixer.all().iter().all(|mixer| mixer.bidirectional.is_none());
            match looks_ahead {
                false => assert_eq!(largest(before), 0.0, "{}: token {changed} is seen before it comes", subject.what),
                true if changed > 0 => {
                    assert!(largest(before) > 1e-3, "{}: token {changed} is not looked ahead at", subject.what)
                }
                true => {}
            }
        }
    }
    assert!(n_checked[0] >= 5 && n_checked[1] >= 2, "{n_checked:?}");
}

#[test]
fn the_source_matters() {
    for subject in subjects().filter(|subject| subject.case.config.reads_source()) {
        let swapped: Vec<_> = subject.case.source.iter().cloned().rev().collect();
        let swapped =
            to_vec(subject.forward(&subject.padded(&swapped, 0), &subject.padded(&subject.case.target_input, 0)));
        let gaps: Vec<f64> = to_vec(subject.whole()).iter().zip(swapped).map(|(a, b)| (a - b) as f64).collect();
        assert!(largest(&gaps) > 0.01, "{}: other sources change nothing", subject.what);
    }
}

#[test]
fn the_weights_of_a_source_that_is_read_backwards_stand_in_the_order_of_its_words() {
    let mut n_checked = 0;
    for subject in subjects() {
        let ModelConfig::Rnn(config) = &subject.case.config else { continue };
        // What knows positions sees another sentence.
        let Some((score, WindowConfig::Global {})) = config.attention.alignment() else { continue };
        if !config.reverse_source || matches!(score, ScoreConfig::Location { .. }) {
            continue;
        }
        n_checked += 1;
        let straight = ModelConfig::Rnn(RnnConfig { reverse_source: false, ..config.clone() });
        let straight = straight.init(subject.case.vocabularies(), 1, &subject.device).expect("the config can be used");
        let straight = apply(straight, &collect(&subject.model), Path::new("golden")).expect("the same parameters");
        let weights = |model: &Model, words: [u32; 4]| {
            let source: Vec<u32> = words.into_iter().chain([EOS]).collect();
            let mut trace = Trace::default();
            let source = subject.padded(&[source], 0);
            model.forward(&source, &subject.padded(&[vec![BOS]], 0), &mut Pass::traced(&mut trace));
            trace.get("attention.weights").expect("attention is traced").values.clone()
        };
        let mut expected = weights(&straight, [8, 4, 9, 5]);
        expected[..4].reverse();
        assert_close(&subject.what, &weights(&subject.model, [5, 9, 4, 8]), &expected, SAME_TOLERANCE);
    }
    let at_least = 5 * host_backends().len();
    assert!(n_checked >= at_least, "only {n_checked} golden cases with global attention read backwards");
}

/// The places of a packed bias whose gradient is zero but for rounding, because the softmax does not see them.
///
/// A key's bias adds the same number to every score of a query. (Rotary positions turn it with its key, so that it counts.) And where the
/// first head has a window, it sees its own position alone, which has all weight, whatever the query.
fn unseen_biases(config: &ModelConfig, path: &str) -> Vec<usize> {
    let (positions, d_model, n_heads, n_key_value_heads) = match config {
        ModelConfig::Transformer(c) if path.starts_with("encoder") => {
            (&c.positions, c.d_model, c.n_heads, c.n_key_value_heads())
        }
        ModelConfig::Transformer(c) => (c.decoder_positions(), c.d_model, c.n_heads, c.n_key_value_heads()),
        ModelConfig::DecoderOnly(c) => (&c.positions, c.d_model, c.n_heads, c.n_key_value_heads()),
        ModelConfig::EncoderOnly(c) => (&c.positions, c.d_model, c.n_heads, c.n_key_value_heads()),
        ModelConfig::Rnn(_) => return Vec::new(),
    };
    let d_head = d_model / n_heads;
    let d_key = d_head * n_key_value_heads;
    match path.rsplit_once("attention.") {
        Some((_, "query_key_value.bias")) => match positions {
            PositionConfig::Rotary { .. } => Vec::new(),
            PositionConfig::HardAlibi { n_windows } if n_windows.unwrap_or(n_heads / 2) > 0 => {
                (0..d_head).chain(d_model..d_model + d_key).collect()
            }
            _ => (d_model..d_model + d_key).collect(),
        },
        Some((_, "key_value.bias")) => (0..d_key).collect(),
        _ => Vec::new(),
    }
}

/// Whether a layer shows nothing of a state below zero.
fn has_rectified_states(config: &ModelConfig) -> bool {
    let mixers = match config {
        ModelConfig::Transformer(config) => vec![config.encoder_mixers(), config.decoder_mixers()],
        ModelConfig::Rnn(config) => config.encoder.mixer.iter().collect(),
        ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => Vec::new(),
    };
    mixers.iter().any(|mixers| mixers.all().iter().any(|mixer| mixer.kind == MixerKind::Ssru))
}

#[test]
fn every_parameter_learns_but_the_biases_that_a_softmax_does_not_see() {
    // Rounding leaves less than this part of the largest element of the packed bias; what learns has more.
    const ROUNDING: f64 = 1e-5;
    for subject in subjects() {
        let model = subject.model.clone().train();
        let device = subject.device.clone().autodiff();
        let [source, target] =
            [&subject.case.source, &subject.case.target_input].map(|sentences| Padded::new(sentences, 0, &device));
        let logits = model.forward(&source, &target, &mut Pass::training(1, 1, 1));
        let gradients = gradients_by_path(&model, weighted_sum(logits).backward());
        assert_eq!(gradients.len(), subject.case.parameters.len(), "{}: parameters with a gradient", subject.what);
        for (path, gradient) in gradients {
            let gradient: Vec<f64> = gradient.into_iter().map(f64::from).collect();
            // A rectified unit that no word of so small a batch turns on learns nothing, nor does the loser of every pair.
            let has_kinks = path.ends_with("inner.bias")
                || path.ends_with("deep.bias")
                || path.ends_with("gates.bias") && has_rectified_states(&subject.case.config);
            let is_vector = ["bias", "beta", "gamma"].iter().any(|end| path.ends_with(end));
            let unseen = unseen_biases(&subject.case.config, &path);
            let allowed = ROUNDING * largest(&gradient);
            assert!(largest(&gradient) > 1e-4, "{}: {path} learns nothing", subject.what);
            for (i, value) in gradient.iter().enumerate() {
                let what = format!("{}: the gradient of {path}[{i}] is {value:e}", subject.what);
                if unseen.contains(&i) {
                    assert!(value.abs() <= allowed, "{what}");
                } else if is_vector && !has_kinks {
                    assert!(value.abs() > 0.0, "{what}");
                }
            }
        }
    }
}
