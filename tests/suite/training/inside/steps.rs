//! How a language model goes on with a text, step by step.

use super::super::text::{TRAINED, loaded};
use super::super::{assert_says, read, succeed};
use super::{forward, letters, probability, tiny};
use crate::support::{SAME_TOLERANCE, assert_close};
use lookback::data::text::{continuation_ids, prompt_ids};
use lookback::data::{EOS, TokenizerConfig, Tokenizers, TokenizersConfig, UNK};
use lookback::decoding::Continuation;
use lookback::layers::mixer::MixerKind;
use lookback::models::Model;
use lookback::models::weights::{apply, collect};
use lookback::report::attribution::{Contrast, contrasts_times_text};
use lookback::report::explanation::{Detail, Explanation, Given, TextQuestion, explain_text};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn question<'a>(beginning: &'a str, continuation: Option<&'a str>) -> TextQuestion<'a> {
    TextQuestion {
        beginning,
        continuation: continuation.map(Given::Text),
        max_tokens: 6,
        context: None,
        sampling: None,
        seed: 1,
        detail: Detail::Everything,
    }
}

/// How a random model goes on with "ab".
fn example(mixer: MixerKind, continuation: Option<&str>) -> (Model, Explanation) {
    let ((config, model), tokenizers) = (tiny(mixer), letters());
    let question = question("ab", continuation);
    let explanation = explain_text(&model, &config, tokenizers.target(), &question, |_, _, _| ());
    (model, explanation)
}

#[test]
fn a_step_looks_at_what_the_map_of_the_text_says_and_has_its_probabilities() {
    let loaded = loaded();
    let tokenizer = loaded.tokenizers.target();
    for continuation in [None, Some("gad\nf")] {
        let question = TextQuestion { context: Some(12), ..question("abc", continuation) };
        let found = explain_text(&loaded.model, &loaded.config.model, tokenizer, &question, |_, _, _| ());
        assert_eq!((found.forced, found.source_text.as_str()), (continuation.is_some(), "abc"));
        assert_eq!(found.source, ["</s>", "a", "b", "c"]);
        assert_eq!(found.target_text, continuation.unwrap_or("def\n"));
        let mut ids = prompt_ids("abc", tokenizer);
        if continuation.is_none() {
            // The model's own: the tokens and probabilities of `generate`.
            let written = Continuation::new(&loaded.model, &ids, Some(12), None, 1);
            for (step, next) in found.steps.iter().zip(written) {
                assert_eq!(step.chosen.id, next.id);
                let p = f64::from(step.chosen.probability);
                assert_close("probability", &[p.ln()], &[next.log_probability], 1e-4);
                assert_eq!(step.preferred, step.chosen);
            }
            assert_eq!(found.target, ["d", "e", "f", "</s>"], "the end of the line ends it");
        }
        let n_before = ids.len();
        ids.extend(found.steps.iter().map(|step| step.chosen.id));
        let (trace, logits) = forward(&loaded.model, &ids[..ids.len() - 1]);
        let n = ids.len() - 1;
        let weights = &trace.get("decoder.0.self_attention.weights").unwrap().values;
        assert_eq!(found.steps.len(), ids.len() - n_before);
        for step in &found.steps {
            let read = n_before + step.step - 1;
            assert!(step.attention.is_empty());
            assert_eq!(step.self_attention.len(), 2, "one row for each head");
            for row in &step.self_attention {
                let expected = &weights[((row.head - 1) * n + read - 1) * n..][..read];
                assert_close("weights", &row.weights, expected, SAME_TOLERANCE);
                assert_eq!(row.source.len(), read, "the text so far");
                assert_eq!(row.source.last(), Some(&step.previous));
                assert_eq!(found.memory(row).unwrap().values.len(), n);
            }
            assert_eq!(found.in_sight(step), step.self_attention[0].source.to_vec());
            assert_eq!(step.influence.len(), read);
            let p = probability(&logits[read - 1], step.chosen.id);
            assert_close("probability", &[step.chosen.probability], &[p], SAME_TOLERANCE);
            for choice in &step.top {
                let p = probability(&logits[read - 1], choice.id);
                assert_close("a likely token", &[choice.probability], &[p], SAME_TOLERANCE);
            }
        }
    }
}

#[test]
fn influences_are_the_derivative_of_the_log_odds_along_the_way_to_unknown() {
    let (beginning, target) = ([EOS, 4, 5], [6, 7, 8]);
    for mixer in [MixerKind::Attention, MixerKind::MinGru] {
        let (_, model) = tiny(mixer);
        let asked = [Contrast { place: 0, other: 8 }, Contrast { place: 2, other: 4 }];
        let found = contrasts_times_text(&model, &beginning, &target, &asked, |_, _| ());
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 5]);
        let text: Vec<u32> = beginning.iter().chain(&target).copied().collect();
        for (contrast, influence) in asked.iter().zip(&found) {
            let read = beginning.len() + contrast.place;
            for (place, influence) in influence.iter().enumerate() {
                // Every token stands there once, so that its row of the table is its vector.
                let at = |share: f32| {
                    let mut weights = collect(&model);
                    let table = weights.get_mut("target_embedding.weight").unwrap();
                    let (own, unknown) = (text[place] as usize * 8, UNK as usize * 8);
                    for i in 0..8 {
                        let difference = table.values[own + i] - table.values[unknown + i];
                        table.values[own + i] += share * difference;
                    }
                    let moved = apply(model.clone(), &weights, Path::new("moved")).unwrap();
                    let logits = forward(&moved, &text[..read]).1.pop().unwrap();
                    f64::from(logits[text[read] as usize] - logits[contrast.other as usize])
                };
                let derivative = (at(0.01) - at(-0.01)) / 0.02;
                let what = format!("{mixer:?}: token {place} on place {}", contrast.place);
                assert_close(&what, &[*influence], &[derivative], 2e-3);
            }
        }
    }
}

#[test]
fn recurrences_show_what_they_keep() {
    for mixer in MixerKind::RECURRENT {
        let (model, explanation) = example(mixer, Some("cde"));
        let (trace, _) = forward(&model, &[EOS, 4, 5, 6, 7]);
        for step in &explanation.steps {
            assert!(step.self_attention.is_empty());
            assert_eq!(step.recurrences.iter().map(|layer| layer.layer).collect::<Vec<_>>(), [1, 2], "{mixer:?}");
            for layer in &step.recurrences {
                let place = format!("decoder.{}.recurrence", layer.layer - 1);
                let row = step.step + 1;
                let states = trace.get(&format!("{place}.states")).unwrap();
                assert_close("state", &layer.state, &states.values[row * 8..][..8], SAME_TOLERANCE);
                let of = |what: &str| -> Vec<f32> {
                    let Some(entry) = trace.get(&format!("{place}.forward.{what}")) else { return Vec::new() };
                    let width = *entry.shape.last().unwrap();
                    // `[1, len, d]`, or `[1, heads, len, d]`.
                    let heads = entry.values.chunks(5 * width);
                    heads.flat_map(|head| head[row * width..][..width].to_vec()).collect()
                };
                let factor = if mixer.cell().is_some() { "gate" } else { "kept" };
                assert_close(&format!("{mixer:?}: kept"), &layer.kept, &of(factor), SAME_TOLERANCE);
                assert_close(&format!("{mixer:?}: replaced"), &layer.replaced, &of("replaced"), SAME_TOLERANCE);
            }
        }
        for (l, layer) in explanation.encoder.layers.iter().enumerate() {
            let place = format!("decoder.{l}.recurrence.forward");
            let factor = ["kept", "gate"].iter().find_map(|factor| trace.get(&format!("{place}.{factor}")));
            let Some(entry) = factor else { continue };
            let width = *entry.shape.last().unwrap();
            for (i, state) in layer.states.iter().enumerate() {
                let heads = entry.values.chunks(5 * width).flat_map(|head| &head[i * width..][..width]);
                let n = entry.values.len() / 5;
                let mean = heads.sum::<f32>() / n as f32;
                assert_close(&format!("{mixer:?}: kept at token {i}"), &state.kept, &[mean], SAME_TOLERANCE);
            }
        }
        let layer = &explanation.steps[0].recurrences[0];
        let has_decay = !matches!(mixer, MixerKind::Vanilla | MixerKind::Linear | MixerKind::Delta);
        assert_eq!(!layer.kept.is_empty(), has_decay, "{mixer:?}");
        assert!(layer.kept.iter().all(|kept| (0.0..=1.0).contains(kept)), "{mixer:?}");
        assert_eq!(!layer.replaced.is_empty(), matches!(mixer, MixerKind::Delta | MixerKind::GatedDelta), "{mixer:?}");
    }
}

#[test]
fn explain_shows_a_text_as_a_page_as_numbers_and_in_the_terminal() {
    let (dir, out) = (TRAINED.path(), TempDir::new().unwrap());
    let explain = |rest: &[&str]| succeed(dir, &[&["explain", "--run", "run"], rest].concat());
    let shown = explain(&["abc"]);
    let said = ["abc   ->   def", "Language model with 1 layer of 2 heads", "2. The beginning is read", "text so far"];
    assert_says(&shown, &said);
    assert_says(&shown, &["the softmax over the positions of the text so far", "the word after \"c\" is \"d\""]);
    assert!(!shown.contains("source") && !shown.contains("translation"), "{shown}");
    assert_says(&explain(&["abc", "--step", "2", "--layer", "1", "--head", "2"]), &["attention to the text so far"]);
    let json: Value = serde_json::from_str(&explain(&["abc", "--json"])).unwrap();
    let generated = succeed(dir, &["generate", "--run", "run", "abc", "--lines", "1", "--json"]);
    let generated: Value = serde_json::from_str(&generated).unwrap();
    assert_eq!(json["target"], generated["tokens"]);
    assert_eq!(json["mechanism"]["is_text"], true);
    let last = json["steps"].as_array().unwrap().last().unwrap();
    let log_p = generated["token_log_probabilities"].as_array().unwrap().last().unwrap().as_f64().unwrap();
    let p = last["chosen"]["probability"].as_f64().unwrap();
    assert_close("the last step", &[p.ln()], &[log_p], 1e-4);
    let weights = last["self_attention"][0]["weights"].as_array().unwrap();
    assert_eq!(weights.len(), 7, "</s> a b c d e f");
    let sum: f64 = weights.iter().map(|weight| weight.as_f64().unwrap()).sum();
    assert_close("the row", &[sum], &[1.0], 1e-5);
    let forced = explain(&["abc", "--target", "gad"]);
    assert_says(&forced, &["abc   given:  gad", "the model would rather have \"d\""]);
    let one = explain(&["ab", "--max-tokens", "1", "--json"]);
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(one["target"], serde_json::json!(["c"]));
    let page = out.path().join("x.html");
    assert_says(&explain(&["abc", "--html", page.to_str().unwrap()]), &["4 steps"]);
    assert_says(&read(&page), &["\"is_text\":true", "text so far"]);
    assert_says(&explain(&["abq", "--max-tokens", "1"]), &["the vocabulary lacks \"abq\" of the beginning"]);
}

#[test]
fn a_text_goes_on_with_the_tokens_of_the_whole_as_far_as_the_cut_allows() {
    let tokenizers = letters();
    let ids = |text: &str| tokenizers.target().encode(text);
    assert_eq!(continuation_ids("ab", "cd", tokenizers.target()), ids("cd"));
    assert_eq!(continuation_ids("", "a", tokenizers.target()), ids("a"));
    assert_eq!(continuation_ids("ab", "\nc", tokenizers.target()), [&[EOS], &ids("c")[..]].concat());
    let config: TokenizerConfig = serde_json::from_str(r#"{"kind": "word"}"#).unwrap();
    let words = Tokenizers::train_text(&["a man sleeps"], &TokenizersConfig::Same(config), false).unwrap();
    let expected = words.target().encode("sleeps");
    assert_eq!(continuation_ids("a man", " sleeps", words.target()), expected);
    // "man" and "sleeps" without a space between them would be one unknown word.
    assert_eq!(continuation_ids("a man", "sleeps", words.target()), expected);
}
