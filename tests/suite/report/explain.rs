//! Worked examples: every number follows from the ones before it, looking changes nothing, and the page of the paper example.

use super::examples::{configs, example, example_of, rnn, softmax, transformer};
use crate::support::{assert_close, flex, golden, host_backends, tensor};
use burn::tensor::Tensor;
use lookback::data::batch::{Example, Padded};
use lookback::data::{BOS, EOS};
use lookback::decoding::score_targets;
use lookback::layers::attention::{Alignment, AttentionConfig, ScoreConfig, WindowConfig};
use lookback::layers::mixer::{MixerConfig, MixerKind, Mixers};
use lookback::layers::position::PositionConfig;
use lookback::layers::{Init, Pass, Trace};
use lookback::models::rnn::Directions;
use lookback::models::weights::{Weight, apply, collect, to_vec};
use lookback::models::{
    Autoregressive, DecoderOnlyConfig, EncoderOnlyConfig, Model, ModelConfig, Seq2Seq, TransformerConfig,
};
use lookback::report::explanation::terminal::{Look, render_step};
use lookback::report::explanation::{AttentionRow, Explanation, Mechanism, explain_trace};
use std::path::Path;

/// Rounding of a few sums in 32 bits.
const TOLERANCE: f64 = 1e-5;

/// The weights that the scores of a row should give.
fn weights_of(row: &AttentionRow, config: &ModelConfig) -> Vec<f64> {
    let window = match config {
        ModelConfig::Rnn(config) => config.attention.alignment().map(|(_, window)| window),
        ModelConfig::Transformer(_) | ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => None,
    };
    let distance = |i: usize| row.center.map_or(0.0, |center| (i + 1) as f64 - f64::from(center));
    let half_width = window.and_then(WindowConfig::half_width).map_or(f64::INFINITY, |half_width| half_width as f64);
    let scores = row.scores.iter().enumerate();
    let seen =
        scores.map(|(i, score)| if distance(i).abs() <= half_width { f64::from(*score) } else { f64::NEG_INFINITY });
    let is_gaussian = matches!(window, Some(WindowConfig::LocalP { .. }));
    let gaussian = |i: usize| if is_gaussian { (-distance(i).powi(2) / (half_width.powi(2) / 2.0)).exp() } else { 1.0 };
    softmax(seen).into_iter().enumerate().map(|(i, weight)| weight * gaussian(i)).collect()
}

#[test]
fn scores_make_weights_and_weights_make_contexts() {
    for (name, config) in configs() {
        let (_, _, explanation) = example(&config, Some("drei eins vier"));
        assert_eq!(explanation.steps.len(), 4, "{name}: three words and the end");
        let mut n_rows = 0;
        for row in explanation.steps.iter().flat_map(|step| step.attention.iter().chain(&step.self_attention)) {
            let what = format!("{name}: {} layer {} head {} step {}", row.name, row.layer, row.head, row.step);
            n_rows += 1;
            assert_eq!(row.source.len(), row.weights.len(), "{what}");
            assert_close(&format!("{what}, weights"), &row.weights, &weights_of(row, &config), TOLERANCE);
            // Shaw adds a learned value for each distance.
            if name.contains("Shaw") && row.name.ends_with("self_attention") {
                continue;
            }
            let memory = explanation.memory(row).unwrap_or_else(|| panic!("{what}: no memory"));
            let mut context = vec![0.0f64; row.context.len()];
            for (weight, value) in row.weights.iter().zip(&memory.values) {
                context.iter_mut().zip(value).for_each(|(sum, v)| *sum += f64::from(*weight) * f64::from(*v));
            }
            assert_close(&format!("{what}, context"), &row.context, &context, TOLERANCE);
        }
        let expected = match &config {
            ModelConfig::Rnn(config) => usize::from(config.attention.alignment().is_some()),
            ModelConfig::Transformer(config) => 2 * config.n_heads * config.n_decoder_layers,
            ModelConfig::DecoderOnly(_) | ModelConfig::EncoderOnly(_) => unreachable!("they have tests of their own"),
        };
        assert_eq!(n_rows, 4 * expected, "{name}: rows");
        assert_eq!(explanation.encoder.context.is_some(), expected == 0, "{name}: a fixed context");
    }
}

/// Models whose rows of attention are told apart, or that have mixers without any.
fn mixed() -> Vec<(String, ModelConfig)> {
    let decoder_only = |mixer: Mixers, positions: PositionConfig| {
        ModelConfig::DecoderOnly(DecoderOnlyConfig {
            d_model: 16,
            d_feed_forward: 24,
            n_heads: 4,
            n_layers: 2,
            mixer,
            positions,
            ..DecoderOnlyConfig::default()
        })
    };
    let hybrid = [MixerKind::GatedDelta, MixerKind::Attention].map(MixerConfig::new);
    let mut models = vec![
        ("decoder-only".into(), decoder_only(Mixers::default(), PositionConfig::Rotary { base: 100.0 })),
        ("decoder-only, Shaw".into(), decoder_only(Mixers::default(), PositionConfig::Shaw { max_distance: 2 })),
        ("decoder-only, hybrid".into(), decoder_only(Mixers::InTurn(hybrid.into()), PositionConfig::None {})),
        ("decoder-only, lstm".into(), decoder_only(MixerKind::Lstm.into(), PositionConfig::None {})),
    ];
    models.extend(MixerKind::RECURRENT.map(|kind| {
        let config = TransformerConfig { mixer: kind.into(), ..transformer(PositionConfig::None {}) };
        (format!("{kind:?}"), ModelConfig::Transformer(config))
    }));
    models
}

#[test]
fn one_attention_over_source_and_target_is_shown_in_two_parts_that_sum_to_one() {
    for (name, config) in mixed().into_iter().take(3) {
        let (_, _, explanation) = example(&config, Some("drei eins vier"));
        let ModelConfig::DecoderOnly(model) = &config else { panic!("{name}") };
        let n_attending = (0..model.n_layers).filter(|i| model.mixer.of_layer(*i).is_attention()).count();
        for step in &explanation.steps {
            assert_eq!(step.attention.len(), n_attending * 4, "{name}: rows to the source");
            assert_eq!(step.self_attention.len(), n_attending * 4, "{name}: rows to the target");
            for (to_source, to_target) in step.attention.iter().zip(&step.self_attention) {
                let what = format!("{name}: step {} layer {} head {}", step.step, to_source.layer, to_source.head);
                assert_eq!((to_source.layer, to_source.head), (to_target.layer, to_target.head), "{what}");
                // Four words and the end; the start symbol and what has been written.
                assert_eq!((to_source.weights.len(), to_target.weights.len()), (5, step.step), "{what}");
                let both = |of: fn(&AttentionRow) -> &Vec<f32>| [of(to_source).clone(), of(to_target).clone()].concat();
                let scores = both(|row| &row.scores);
                let expected = softmax(scores.iter().map(|score| f64::from(*score)));
                assert_close(&what, &both(|row| &row.weights), &expected, TOLERANCE);
                if name.contains("Shaw") {
                    continue;
                }
                let memories = [to_source, to_target].map(|row| explanation.memory(row).expect("keys and values"));
                let values = memories[0].values.iter().chain(&memories[1].values);
                let mut context = vec![0.0f64; to_source.context.len()];
                for (weight, value) in both(|row| &row.weights).iter().zip(values) {
                    context.iter_mut().zip(value).for_each(|(sum, v)| *sum += f64::from(*weight) * f64::from(*v));
                }
                assert_close(&format!("{what}, context"), &to_source.context, &context, TOLERANCE);
                assert_eq!(to_source.context, to_target.context, "{what}");
            }
        }
    }
}

#[test]
fn every_mixer_has_formulas_of_its_own() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, config) in mixed() {
        let (_, _, explanation) = example(&config, Some("drei"));
        let lines = &explanation.mechanism.formulas;
        let of_mixer: Vec<&str> = lines.iter().filter(|line| line.makes == "cell").map(|line| &*line.text).collect();
        assert!(name.contains("only") || seen.insert(of_mixer.join("; ")), "{name} has the formulas of another");
        assert!(lines.iter().all(|line| !line.text.is_empty() && !line.meaning.starts_with(':')), "{name}");
        let n_states = explanation.steps[0].layers.len();
        assert_eq!(n_states, 2, "{name}: a state for each layer");
    }
}

#[test]
fn logits_make_the_probabilities_of_forced_decoding() {
    for (name, config) in configs().into_iter().chain(mixed()) {
        let (model, tokenizers, explanation) = example(&config, Some("drei eins vier"));
        let source = tokenizers.source().encode("two one five one");
        let target = tokenizers.target().encode("drei eins vier");
        let expected = score_targets(&model, &[Example { source, target: target.clone() }], 1000).remove(0);
        for ((step, expected), id) in explanation.steps.iter().zip(&expected).zip(target.iter().chain([&EOS])) {
            let found = softmax(step.logits.iter().map(|logit| f64::from(*logit)));
            assert_eq!(step.chosen.id, *id, "{name}");
            assert!((found[*id as usize].ln() - expected).abs() < TOLERANCE, "{name}: step {}", step.step);
            assert!((f64::from(step.chosen.probability) - expected.exp()).abs() < TOLERANCE, "{name}");
            assert!(step.top[0].probability >= step.chosen.probability, "{name}");
        }
    }
}

/// The log-odds of each target word against the contrast of its step.
fn log_odds(model: &Model, source: &[u32], target: &[u32], explanation: &Explanation) -> Vec<f64> {
    let input: Vec<u32> = [BOS].iter().chain(target).copied().collect();
    let padded = Padded::sources([&source.to_vec()], &flex());
    let logits = to_vec(model.forward(&padded, &Padded::new(&[input], 0, &flex()), &mut Pass::inference()));
    let rows = logits.chunks(logits.len() / explanation.steps.len());
    let difference = |row: &[f32], a: u32, b: u32| f64::from(row[a as usize]) - f64::from(row[b as usize]);
    rows.zip(&explanation.steps).map(|(row, step)| difference(row, step.chosen.id, step.contrast.id)).collect()
}

#[test]
fn an_influence_is_the_slope_of_the_log_odds() {
    const STEP: f32 = 1e-3;
    for (name, config) in configs() {
        let (model, tokenizers, explanation) = example(&config, Some("drei eins"));
        let weights = collect(&model);
        let table = "source_embedding.weight";
        let width = weights[table].shape[1];
        let source = tokenizers.source().encode("two one five one");
        let target = tokenizers.target().encode("drei eins");
        // "five" stands once: moving its vector towards that of <unk> moves one place.
        let place = 2;
        let odds = |part: f32| {
            let mut moved = weights.clone();
            let values = &mut moved.get_mut(table).unwrap().values;
            for i in 0..width {
                let (word, unknown) = (source[place] as usize * width + i, 3 * width + i);
                values[word] += part * (values[word] - values[unknown]);
            }
            let moved = apply(model.clone(), &moved, Path::new("moved")).unwrap();
            log_odds(&moved, &source, &target, &explanation)
        };
        for (step, (more, less)) in explanation.steps.iter().zip(odds(STEP).iter().zip(odds(-STEP))) {
            let slope = (more - less) / (2.0 * f64::from(STEP));
            let found = f64::from(step.influence[place]);
            assert!((found - slope).abs() < 0.005 + 0.02 * slope.abs(), "{name}: {found} for a slope of {slope}");
            assert_ne!(step.contrast.id, step.chosen.id, "{name}");
        }
    }
}

#[test]
fn looking_changes_no_bit() {
    for adapter in host_backends() {
        for case in &golden().models {
            let model = case.model(&adapter.device);
            let source = Padded::new(&case.source[..1], 0, &adapter.device);
            let run = |pass: &mut Pass| {
                let memory = model.encode(&source, pass);
                let mut state = model.start(&memory, 1);
                let mut logits = Vec::new();
                for word in [BOS, 5, 4] {
                    let word =
                        Tensor::from_data(burn::tensor::TensorData::new(vec![word as i32], [1]), &adapter.device);
                    let (found, next) = model.step(word, state, &memory, pass);
                    state = next;
                    logits.extend(to_vec(found));
                }
                logits.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let mut trace = Trace::default();
            let traced = run(&mut Pass::traced(&mut trace));
            assert_eq!(run(&mut Pass::inference()), traced, "{} on {}", case.name, adapter.backend);
            assert!(trace.get("decoder.logits").is_some(), "{}", case.name);
        }
    }
}

#[test]
fn without_a_target_the_model_s_own_is_explained() {
    let (_, config) = configs().swap_remove(0);
    let (_, _, explanation) = example(&config, None);
    assert!(!explanation.forced);
    assert_eq!(explanation.steps.len(), explanation.target.len());
    assert!(explanation.steps.iter().all(|step| step.chosen == step.preferred), "greedy search takes the likeliest");
    let (_, _, explanation) = example(&config, Some("vier vier"));
    assert!(explanation.forced && explanation.steps.iter().any(|step| step.chosen != step.preferred));
}

#[test]
fn a_state_is_set_beside_the_one_before_it_in_each_direction() {
    let (name, config) = configs().into_iter().find(|(name, _)| name.contains("reversed")).unwrap();
    let (_, _, explanation) = example(&config, Some("drei"));
    let from = |layer: usize, i: usize| -> Vec<&str> {
        let state = &explanation.encoder.layers[layer].states[i];
        state.changes.iter().map(|change| change.from.as_str()).collect()
    };
    assert_eq!(explanation.encoder.layers.len(), 2, "{name}");
    // Read: one five one two </s>.
    for layer in 0..2 {
        assert_eq!(from(layer, 0), ["one", "</s>"]);
        assert_eq!(from(layer, 3), ["start", "five"]);
        assert_eq!(from(layer, 4), ["two", "start"]);
    }
}

#[test]
fn an_encoder_s_gate_follows_from_its_input_and_the_state_before() {
    for what in ["fixed", "reversed"] {
        let (name, config) = configs().into_iter().find(|(name, _)| name.contains(what)).unwrap();
        let ModelConfig::Rnn(rnn) = &config else { panic!("{name} is recurrent") };
        let (model, _, explanation) = example(&config, Some("drei"));
        let weights = collect(&model);
        let states = |layer: usize| -> Vec<Vec<f32>> {
            explanation.encoder.layers[layer].states.iter().map(|state| state.vector.clone()).collect()
        };
        // Places in the order of reading; the end symbol is the last in both.
        let n = explanation.source.len();
        let order: Vec<usize> = (0..n - 1).rev().chain([n - 1]).filter(|_| rnn.reverse_source).collect();
        let order = if order.is_empty() { (0..n).collect() } else { order };
        let directions: &[(&str, Vec<usize>)] =
            &[("forward", order.clone()), ("backward", order.iter().rev().copied().collect())];
        let n_directions = if rnn.directions == Directions::Both { 2 } else { 1 };
        for layer in 0..rnn.n_layers {
            let below = match layer {
                0 => explanation.source_words.iter().map(|word| word.embedded.clone()).collect(),
                _ => states(layer - 1),
            };
            let states = states(layer);
            for (d, (direction, places)) in directions[..n_directions].iter().enumerate() {
                let parameter = |what: &str| &weights[&format!("encoder.layers.{layer}.{direction}.{what}")];
                let [input, bias, recurrent] = ["input.weight", "input.bias", "recurrent"].map(parameter);
                let width = recurrent.shape[0];
                let mut before = vec![0.0; width];
                for place in places {
                    let gate = |i: usize| {
                        // The second of all gates, in both cells.
                        let column = width + i;
                        let from = |x: &[f32], weight: &Weight| -> f64 {
                            let row = |j: usize| f64::from(weight.values[j * weight.shape[1] + column]);
                            x.iter().enumerate().map(|(j, x)| f64::from(*x) * row(j)).sum()
                        };
                        let sum =
                            from(&below[*place], input) + from(&before, recurrent) + f64::from(bias.values[column]);
                        1.0 / (1.0 + (-sum).exp())
                    };
                    let mean = (0..width).map(gate).sum::<f64>() / width as f64;
                    let state = &explanation.encoder.layers[layer].states[*place];
                    assert_eq!(state.kept.len(), n_directions, "{name}");
                    let what = format!("{name}: layer {layer}, {direction}, place {place}");
                    assert_close(&what, &state.kept[d..=d], &[mean], TOLERANCE);
                    before = states[*place][d * width..][..width].to_vec();
                }
            }
        }
    }
}

/// What a linear recurrence keeps at a word of the first layer depends on that word alone: equal words keep as much.
#[test]
fn what_an_encoder_keeps_at_a_word_stands_at_that_word() {
    for mixer in [MixerKind::MinGru, MixerKind::GatedLinear, MixerKind::GatedDelta] {
        let config = ModelConfig::EncoderOnly(EncoderOnlyConfig {
            d_model: 8,
            d_feed_forward: 12,
            n_heads: 2,
            n_layers: 1,
            mixer: Mixers::from(mixer),
            positions: PositionConfig::None {},
            ..EncoderOnlyConfig::default()
        });
        let (_, _, explanation) = example_of(&config, "two two five one", None);
        let states = &explanation.encoder.layers[0].states;
        for direction in 0..2 {
            let kept: Vec<f32> = states.iter().map(|state| state.kept[direction]).collect();
            assert_close(&format!("{mixer:?}, {direction}"), &kept[..1], &kept[1..2], TOLERANCE);
            assert!(kept[1..].windows(2).all(|pair| (pair[0] - pair[1]).abs() > 1e-4), "{mixer:?}: {kept:?}");
        }
    }
}

/// Scores 15, 60, 15, 35 of the worked example that the articles use for the dot product.
fn paper_example() -> Explanation {
    let device = flex();
    let query = tensor(vec![10., 5., 10.], [1, 1, 3], &device);
    let states = tensor(vec![0., 1., 1., 5., 0., 1., 1., 1., 0., 0., 5., 1.], [1, 4, 3], &device);
    let init = Init::new(1, &device);
    let alignment = Alignment::new(&ScoreConfig::Dot {}, &WindowConfig::Global {}, 3, 3, &init);
    let mut trace = Trace::default();
    let mut pass = Pass::traced(&mut trace);
    let memory = alignment.prepare(states, &[4], &pass);
    memory.record(&mut pass);
    pass.scoped("attention", |pass| alignment.forward(query, &[0], &memory, pass));
    let attention =
        AttentionConfig::Luong { score: ScoreConfig::Dot {}, window: WindowConfig::Global {}, input_feeding: false };
    let mut mechanism = Mechanism::new(&ModelConfig::Rnn(rnn(attention)));
    mechanism.formulas.retain(|formula| ["query", "score", "weights", "context"].contains(&formula.makes));
    let names = ["h_1", "h_2", "h_3", "h_4"].map(String::from);
    explain_trace(&trace, &names, mechanism)
}

#[test]
fn the_paper_example() {
    let explanation = paper_example();
    let row = &explanation.steps[0].attention[0];
    assert_eq!(row.scores, [15.0, 60.0, 15.0, 35.0]);
    let rounded: Vec<f32> = row.weights.iter().map(|weight| weight.round()).collect();
    assert_eq!(rounded, [0.0, 1.0, 0.0, 0.0]);
    assert_close("context", &row.context, &[5.0, 0.0, 1.0], 1e-6);
    let page = render_step(&explanation, &explanation.steps[0], &Look::default());
    insta::assert_snapshot!("paper_example", page);
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guides/explain.md")).unwrap();
    assert!(docs.contains(page.trim()), "docs/guides/explain.md shows another page than\n{page}");
}
