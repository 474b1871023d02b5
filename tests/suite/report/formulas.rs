//! The formulas of every mechanism, computed as they are printed with the model's parameters, give the numbers beside them.

mod board;
mod evaluate;

use super::examples::{configs, example, softmax};
use crate::support::assert_close;
use board::{Board, floats};
use evaluate::Value;
use lookback::data::BOS;
use lookback::models::ModelConfig;
use lookback::models::weights::collect;
use lookback::report::explanation::{AttentionRow, Explanation, Formula, Part, Step};
use std::collections::HashMap;

const TOLERANCE: f64 = 2e-5;

/// `k_i = A, v_i = B` as two equations; what is no equation, such as a condition, stays with the one before it.
fn equations(text: &str) -> Vec<(&str, &str)> {
    let mut starts: Vec<usize> = text
        .match_indices(", ")
        .map(|(at, _)| at + 2)
        .filter(|at| text[*at..].find(" = ").is_some_and(|to| to < 6))
        .collect();
    starts.insert(0, 0);
    let ends: Vec<usize> = starts[1..].iter().map(|start| start - 2).chain([text.len()]).collect();
    starts.iter().zip(ends).map(|(start, end)| text[*start..end].split_once(" = ").expect("an equation")).collect()
}

/// The lines of one head, in order, checked against its row.
fn head(board: &mut Board, lines: &[&Formula], row: &AttentionRow, what: &str) {
    let (t, n, head, part) = board.place;
    let memory = board.explanation.memory(row).expect("keys and values");
    board.range = (1..=row.weights.len()).collect();
    let all = board.range.clone();
    for line in lines {
        let what = format!("{what}: {}", line.text);
        match line.makes {
            "query" => {
                let query = board.compute(equations(&line.text)[0].1, 0);
                assert_close(&what, &row.query, query.vector(), TOLERANCE);
                board.known.insert(format!("q_{t}"), query);
            }
            "memory" => {
                for (name, text) in equations(&line.text) {
                    let shown = if name == "k_i" { &memory.keys } else { &memory.values };
                    for i in all.iter().copied() {
                        let key = format!("{}_{i}", &name[..1]);
                        // The target's later positions have been computed at their own steps.
                        let value = board.compute(text, i);
                        assert_close(&what, &shown[i - 1], value.vector(), TOLERANCE);
                        board.known.insert(key, value);
                    }
                }
            }
            "score" => {
                let scores: Vec<f64> =
                    all.iter().map(|i| board.compute(equations(&line.text)[0].1, *i).number()).collect();
                assert_close(&what, &row.scores, &scores, TOLERANCE);
                for (i, score) in all.iter().zip(&scores) {
                    board.known.insert(format!("e_{t},{i}"), Value::Number(*score));
                }
                board.known.insert(format!("e_{t}"), Value::Vector(scores));
            }
            "window" => {
                let (centre, condition) = line.text.split_once(", |i").expect("a centre and a width");
                let half_width: f64 = condition.rsplit(' ').next().unwrap().parse().unwrap();
                let centre = board.compute(centre.split_once(" = ").unwrap().1, 0);
                assert_close(&what, &[row.center.unwrap()], &[centre.number()], TOLERANCE);
                let is_inside = |i: &usize| (*i as f64 - centre.number()).abs() <= half_width;
                board.range.retain(is_inside);
                let scores = board.known[&format!("e_{t}")].vector().to_vec();
                let hidden =
                    all.iter().zip(scores).map(|(i, score)| if is_inside(i) { score } else { f64::NEG_INFINITY });
                let hidden = Value::Vector(hidden.collect());
                board.known.insert(format!("e_{t}"), hidden);
                board.known.insert(format!("p_{t}"), centre);
            }
            "weights" => {
                let weight = |i: &usize| match board.range.contains(i) {
                    true => board.compute(equations(&line.text)[0].1, *i).number(),
                    false => 0.0,
                };
                let weights: Vec<f64> = all.iter().map(weight).collect();
                assert_close(&what, &row.weights, &weights, TOLERANCE);
                for (i, weight) in all.iter().zip(weights) {
                    board.known.insert(format!("a_{t},{i}"), Value::Number(weight));
                }
            }
            "context" => {
                board.range = all.clone();
                let context = board.compute(equations(&line.text)[0].1, 0);
                assert_close(&what, &row.context, context.vector(), TOLERANCE);
                board.known.insert(format!("c_{t}"), context.clone());
                board.known.insert(format!("z_{t}"), context.clone());
                board.known.insert(format!("z_{t}^{head}"), context);
            }
            other => panic!("{what}: a head has no {other}"),
        }
    }
    board.place = (t, n, head, part);
}

/// A line beside the heads; `shown` is what the explanation has for it, if anything.
fn other(board: &mut Board, line: &Formula, step: &Step, what: &str) {
    let what = format!("{what}: {}", line.text);
    let (t, n, _, _) = board.place;
    let (name, text) = equations(&line.text)[0];
    // Cells other than one layer of GRU are taken as they are.
    let is_given = |cell: &str| text.starts_with(cell);
    if line.makes == "cell" || ["LSTM(", "RNN("].into_iter().any(is_given) || text.starts_with("s_t^") {
        board.known.insert(format!("s_{t}"), Value::Vector(floats(&step.state)));
        return;
    }
    let value = board.compute(text, 0);
    let (shown, key): (&[f32], String) = match line.makes {
        "input" => (&step.input, format!("x_{t}^0")),
        "state" if step.layers.is_empty() => (&step.state, format!("s_{t}")),
        "state" => (&step.layers[n - 1], format!("x_{t}^{n}")),
        "attentional" => (&step.attentional, format!("s~_{t}")),
        "readout" => (&step.readout, format!("r_{t}")),
        "residual" => (&[], format!("{}_{t}", &name[..1])),
        "output" => {
            let shown = softmax(step.logits.iter().map(|logit| f64::from(*logit)));
            assert_close(&what, value.vector(), &shown, TOLERANCE);
            return;
        }
        other => panic!("{what}: what is a {other}?"),
    };
    if line.makes != "residual" {
        assert_close(&what, shown, value.vector(), TOLERANCE);
    }
    board.known.insert(key, value);
}

/// Computes every line of every step of a model, after `change` to its text, and compares.
fn check(name: &str, config: &ModelConfig, change: impl Fn(String) -> String) {
    let (model, tokenizers, mut explanation) = example(config, Some("drei eins vier"));
    for line in &mut explanation.mechanism.formulas {
        line.text = change(std::mem::take(&mut line.text));
    }
    let explanation = explanation;
    let weights = collect(&model);
    let mut board = Board {
        config,
        weights: &weights,
        explanation: &explanation,
        known: HashMap::new(),
        place: (1, 1, 1, Part::Model),
        range: Vec::new(),
    };
    let n_source = explanation.source.len();
    board.known.insert("S".into(), Value::Number(n_source as f64));
    let n_layers = match &config {
        ModelConfig::Transformer(config) => config.n_decoder_layers,
        ModelConfig::Rnn(_) => 1,
        ModelConfig::DecoderOnly(config) => config.n_layers,
        ModelConfig::EncoderOnly(config) => config.n_layers,
    };
    match &explanation.encoder.context {
        Some(context) => drop(board.known.insert("c".into(), Value::Vector(floats(context)))),
        None => encode(&mut board, &explanation),
    }
    let target = tokenizers.target().encode("drei eins vier");
    for step in &explanation.steps {
        let t = step.step;
        let what = format!("{name}, step {t}");
        board.place = (t, 1, 1, Part::Model);
        let previous = if t == 1 { BOS } else { target[t - 2] } as usize;
        let word = board.row("target_embedding.weight", previous);
        board.known.insert(format!("y_{}", t - 1), Value::Vector(word));
        if !step.previous_state.is_empty() {
            board.known.insert(format!("s_{}", t - 1), Value::Vector(floats(&step.previous_state)));
        }
        if t == 1 {
            board.known.insert("s~_0".into(), Value::Vector(vec![0.0; step.state.len()]));
        }
        let lines = &explanation.mechanism.formulas;
        let of = |part: Part| -> Vec<&Formula> {
            let lines = lines.iter().filter(|line| line.part == part && line.makes != "residual");
            lines.collect()
        };
        // The lines between the input and the output are those of a layer.
        for layer in 1..=n_layers {
            let mut parts_done = Vec::new();
            for line in lines {
                board.place = (t, layer, 1, line.part);
                match (line.part, line.makes) {
                    (Part::Model, "start") => {
                        start(&board, line, &explanation, &what);
                    }
                    (Part::Model, "context") => {}
                    (Part::Model, "input") if layer > 1 => {}
                    (Part::Model, "output" | "readout") if layer < n_layers => {}
                    (Part::Model, "output") if board.transformer().is_some() => {
                        board.place.1 = 0;
                        other(&mut board, line, step, &what);
                    }
                    (Part::Model, _) | (_, "residual") => other(&mut board, line, step, &what),
                    (part, _) if parts_done.contains(&part) => {}
                    (part, _) => {
                        parts_done.push(part);
                        let rows = if part == Part::SelfAttention { &step.self_attention } else { &step.attention };
                        for row in rows.iter().filter(|row| row.layer == layer) {
                            board.place = (t, layer, row.head, part);
                            head(&mut board, &of(part), row, &format!("{what}, layer {layer}, head {}", row.head));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_formulas_give_the_numbers_that_are_shown() {
    for (name, config) in configs() {
        check(&name, &config, |text| text);
    }
}

#[test]
fn a_wrong_formula_is_found() {
    let cases = [
        ("Sinusoidal", "norm(x_i^(n-1))", "x_i^(n-1)"),
        ("Sinusoidal", "norm(x_t^2)", "x_t^2"),
        ("Alibi", " - m |t - i|", ""),
        ("post-norm", "softmax(E ", "softmax(W^O "),
        ("T5", " + b_(i-t)", ""),
        ("grouped heads", "sqrt(4)", "sqrt(16)"),
        ("Rotary", "R_t (W^Q norm(x_t^(n-1)) + b^Q)", "W^Q norm(x_t^(n-1)) + b^Q"),
        ("Shaw", " + r'_(i-t)", ""),
        ("fixed", "[y_(t-1); c]", "y_(t-1)"),
        ("Concat", "W [q_t; h_i]", "W [h_i; q_t]"),
    ];
    for (wanted, right, wrong) in cases {
        let (name, config) = configs().into_iter().find(|(name, _)| name.contains(wanted)).unwrap();
        let found = std::panic::catch_unwind(|| check(&name, &config, |text| text.replace(right, wrong)));
        assert!(found.is_err(), "{name}: {right} became {wrong}, and nothing was noticed");
        assert!(
            example(&config, Some("drei")).2.mechanism.formulas.iter().any(|line| line.text.contains(right)),
            "{name} has no {right}"
        );
    }
}

/// The decoder's first state, where one layer of one kind of state has it.
fn start(board: &Board, line: &Formula, explanation: &Explanation, what: &str) {
    let (text, shown) = (line.text.split_once(" = ").unwrap().1, &explanation.steps[0].previous_state);
    if board.known.contains_key("c") && !board.weights.contains_key("bridge.1.hidden.weight") {
        let value = if text == "0" { Value::Vector(vec![0.0; shown.len()]) } else { board.compute(text, 0) };
        assert_close(&format!("{what}: {}", line.text), shown, value.vector(), TOLERANCE);
    }
}

/// The encoder's states as the decoder reads them: a Transformer's by the last line of the encoder, others' as they are shown.
fn encode(board: &mut Board, explanation: &Explanation) {
    let states = &explanation.encoder.layers.last().unwrap().states;
    let last = explanation.mechanism.encoder.last().unwrap();
    for (i, state) in (1..).zip(states) {
        let state = Value::Vector(floats(&state.vector));
        let value = match board.transformer() {
            None => state,
            Some(config) => {
                board.known.insert(format!("x_{i}^{}", config.n_encoder_layers), state);
                board.known.insert("norm of".into(), Value::Number(0.0));
                board.compute(last.text.split_once(" = ").unwrap().1, i)
            }
        };
        board.known.insert(format!("h_{i}"), value);
    }
    board.known.retain(|name, _| name == "S" || name.starts_with("h_"));
}
