//! Pages of explanations: what they show, what is computed for them, and what their numbers are beside.

use super::examples::{configs, example, tokenizers};
use crate::support::{assert_close, flex};
use lookback::decoding::DecodingConfig;
use lookback::experiment::run::vocabularies;
use lookback::models::weights::{apply, collect};
use lookback::report::explanation::terminal::{Look, render};
use lookback::report::explanation::{
    Detail, Explanation, Formula, Given, Question, Selection, Stage, Step, explain, html,
};
use std::path::Path;

/// Rounding of a few sums in 32 bits.
const TOLERANCE: f64 = 1e-5;

/// A Bahdanau model whose logits are `scale` times as large: it is sure of every word.
fn sure(scale: f32, detail: Detail) -> Explanation {
    let (_, config) = configs().swap_remove(0);
    let (model, tokenizers, _) = example(&config, None);
    let mut weights = collect(&model);
    for name in ["output.projection.weight", "output.projection.bias"] {
        weights.get_mut(name).unwrap().values.iter_mut().for_each(|value| *value *= scale);
    }
    // Padding and the start symbol, which are never written.
    weights.get_mut("output.projection.bias").unwrap().values[..2].fill(-1e6);
    let model = apply(model, &weights, Path::new("sure")).unwrap();
    let decoding = DecodingConfig::default();
    let question = Question { source_text: "two one five one", target: None, decoding: &decoding, seed: 1, detail };
    explain(&model, &config, &tokenizers, &question, |_, _, _| ())
}

#[test]
fn a_sure_model_still_shows_what_its_words_depend_on() {
    let explanation = sure(1000.0, Detail::Step(1));
    let step = &explanation.steps[0];
    assert!(step.chosen.probability > 0.9999, "{:?}", step.chosen);
    assert!(step.influence.iter().any(|value| value.abs() > 0.1), "{:?}", step.influence);
    let page = render(&explanation, &Selection { step: Some(1), ..Selection::default() }, &Look::default());
    let contrast = format!("the log-odds of \"{}\" against \"{}\"", step.chosen.token, step.contrast.token);
    assert!(page.split_whitespace().collect::<Vec<_>>().join(" ").contains(&contrast), "{page}");
}

#[test]
fn what_rounds_to_zero_has_no_bar() {
    let (name, config) = configs().into_iter().find(|(name, _)| name == "fixed").unwrap();
    let (_, _, mut explanation) = example(&config, Some("drei eins"));
    explanation.steps.iter_mut().for_each(|step| step.influence = vec![0.0004, -0.0001, 0.0, 0.0, 0.0003]);
    let page = render(&explanation, &Selection::default(), &Look::default());
    let zeros: Vec<&str> = page.lines().filter(|line| line.contains(" 0.000")).collect();
    assert_eq!(zeros.len(), 3 * 5, "{name}:\n{page}");
    assert!(zeros.iter().all(|line| !line.contains(['█', '▏', '▌'])), "{name}:\n{page}");
}

/// A step without its gradients, whose batches depend on which steps are computed, and without numbers that are not shown.
fn comparable(step: &Step) -> serde_json::Value {
    let mut value = serde_json::to_value(step).unwrap();
    value.as_object_mut().unwrap().remove("influence");
    value
}

#[test]
fn what_is_not_shown_is_not_computed_and_what_is_shown_is_the_same() {
    let text = "drei eins vier zwei drei eins vier zwei drei eins vier zwei drei";
    let tokenizers = tokenizers();
    let decoding = DecodingConfig::default();
    for wanted in ["Sinusoidal", "fixed", "initial", "Shaw", "Cosine"] {
        let (name, config) = configs().into_iter().find(|(name, _)| name.contains(wanted)).unwrap();
        let model = config.init(vocabularies(&tokenizers), 1, &flex()).unwrap();
        let of = |detail| {
            let source_text = "two one five one";
            let question =
                Question { source_text, target: Some(Given::Text(text)), decoding: &decoding, seed: 1, detail };
            let mut gradients = 0;
            let count = |stage, _, total| gradients = if stage == Stage::Gradients { total } else { gradients };
            (explain(&model, &config, &tokenizers, &question, count), gradients)
        };
        let (all, n_all) = of(Detail::Everything);
        assert_eq!((all.steps.len(), n_all), (14, 14), "{name}");
        let (one, n_one) = of(Detail::Step(5));
        assert_eq!((one.steps.len(), n_one), (1, 1), "{name}");
        assert_eq!(comparable(&one.steps[0]), comparable(&all.steps[4]), "{name}");
        assert_close(&name, &one.steps[0].influence, &all.steps[4].influence, TOLERANCE);
        assert!(of(Detail::Step(99)).0.steps.is_empty(), "{name}");
        let (overview, n_overview) = of(Detail::Overview);
        assert_eq!(n_overview, if all.mechanism.has_attention { 2 } else { 14 }, "{name}");
        assert_eq!(overview.steps.len(), all.steps.len(), "{name}");
        for (t, (found, full)) in overview.steps.iter().zip(&all.steps).enumerate() {
            assert_eq!(found.mean_weights(), full.mean_weights(), "{name}");
            assert_eq!((&found.chosen, &found.top), (&full.chosen, &full.top), "{name}");
            assert_eq!(found.logits.is_empty(), t >= 2, "{name}: step {t}");
        }
        let page = |explanation: &Explanation| render(explanation, &Selection::default(), &Look::default());
        assert_eq!(page(&overview), page(&all), "{name}");
    }
}

#[test]
fn the_page_has_the_norms_that_the_terminal_prints() {
    let (_, config) = configs().swap_remove(0);
    let (_, _, explanation) = example(&config, Some("drei eins"));
    let page = html::page(&explanation, &Selection::default());
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let n = |key: &str| data[key].as_array().unwrap().len();
    assert_eq!((n("words"), n("steps")), (explanation.source_words.len(), explanation.steps.len()));
    assert!(n("words") > 1 && n("steps") > 1, "there is something to compare");
    for (word, shown) in explanation.source_words.iter().zip(data["words"].as_array().unwrap()) {
        assert_eq!(shown["vector"]["norm"].as_f64().unwrap(), f64::from(word.norm));
    }
    for (row, shown) in explanation.steps.iter().zip(data["steps"].as_array().unwrap()) {
        let scores = shown["rows"][0]["scores"].as_array().unwrap();
        assert_eq!(scores.len(), row.attention[0].scores.len());
        for (score, shown) in row.attention[0].scores.iter().zip(scores) {
            assert!((shown.as_f64().unwrap() - f64::from(*score)).abs() < 1e-6, "{shown} for {score}");
        }
    }
}

#[test]
fn self_attention_is_shown_with_its_own_formulas() {
    let (name, config) = configs().into_iter().find(|(name, _)| name == "one layer of one head").unwrap();
    let (_, _, explanation) = example(&config, Some("drei eins"));
    let page = render(&explanation, &Selection::default(), &Look::default());
    assert_eq!(page.matches("target so far").count(), 3, "{name}: a table for each step\n{page}");
    let (_, config) = configs().into_iter().find(|(name, _)| name.contains("post-norm")).unwrap();
    let (_, _, explanation) = example(&config, Some("drei eins"));
    let head = Selection { step: Some(2), layer: Some(2), head: Some(1) };
    let page = render(&explanation, &head, &Look::default());
    let (own, cross) = page.split_once("attention to the source\n").unwrap();
    for (part, has, lacks) in [
        (own, ["W^Q x_2^1 + b^Q", "target position up to t", "- m |2 - i|"], "source position"),
        (cross, ["q_2 = W^Q u_2 + b^Q", "each source position", "k_i = W^K h_i"], "|2 - i|"),
    ] {
        assert!(has.iter().all(|text| part.contains(text)) && !part.contains(lacks), "{part}");
    }
}

#[test]
fn a_formula_of_a_step_has_its_number_in_place_of_t() {
    for (text, expected) in [
        ("s_t = GRU([y_(t-1); c_t], s_(t-1)^1)", "s_12 = GRU([y_11; c_12], s_11^1)"),
        ("e_ti = q_t . k_i / sqrt(8) - m |t - i|", "e_12i = q_12 . k_i / sqrt(8) - m |12 - i|"),
        ("a_ti = exp(e_ti) / sum_j exp(e_tj) + b_(i-t)", "a_12i = exp(e_12i) / sum_j exp(e_12j) + b_(i-12)"),
        ("p_t = min(t, S), tanh(x_t^(n-1))", "p_12 = min(12, S), tanh(x_12^(n-1))"),
    ] {
        assert_eq!(Formula { text: text.into(), ..Formula::default() }.at(12), expected);
    }
}

#[test]
fn what_the_decoder_sees_of_one_vector_depends_on_the_model() {
    for (wanted, expected) in
        [("fixed", "Every step sees this vector and nothing else"), ("initial", "the readout of every step sees it")]
    {
        let (_, config) = configs().into_iter().find(|(name, _)| name == wanted).unwrap();
        let (_, _, explanation) = example(&config, Some("drei"));
        let page = render(&explanation, &Selection::default(), &Look::default());
        assert!(page.contains(expected), "{wanted}:\n{page}");
        assert_eq!(page.contains("Every step sees"), wanted == "fixed", "{wanted}:\n{page}");
    }
}

#[test]
fn every_page_fits_its_width() {
    for (name, config) in configs() {
        let (_, _, explanation) = example(&config, Some("drei eins vier"));
        for width in [60, 100] {
            for step in [None, Some(2)] {
                let selection = Selection { step, ..Selection::default() };
                let page = render(&explanation, &selection, &Look { width, color: false });
                let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= width, "{name}: a line of {widest} columns on a page of {width}:\n{page}");
                assert!(!page.contains('\u{1b}') && page.contains("Step 2 of 4"), "{name}:\n{page}");
            }
        }
    }
}
