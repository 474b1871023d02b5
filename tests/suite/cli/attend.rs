//! `lookback attend`: numbers that can be checked on paper.

use crate::support::assert_close;
use crate::training::{assert_says, finish, succeed};
use serde_json::Value;
use std::path::Path;

const KEYS: &str = "0,1,1;5,0,1;1,1,0;0,5,1";

fn json(args: &[&str]) -> Value {
    let text = succeed(Path::new("."), &[&["attend", "--json"], args].concat());
    serde_json::from_str(&text).expect("one object")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Scores, weights and context of one query.
fn row(value: &Value, query: usize) -> [Vec<f64>; 3] {
    ["scores", "weights", "context"].map(|key| numbers(&value["queries"][query][key]))
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let sum: f64 = scores.iter().map(|score| score.exp()).sum();
    scores.iter().map(|score| score.exp() / sum).collect()
}

#[test]
fn the_example_of_the_articles() {
    let value = json(&["--query", "10,5,10", "--keys", KEYS]);
    let [scores, weights, context] = row(&value, 0);
    assert_eq!(scores, [15.0, 60.0, 15.0, 35.0]);
    assert!(weights[1] > 0.999);
    assert_close("context", &context, &[5.0, 0.0, 1.0], 1e-6);
    let page = succeed(Path::new("."), &["attend", "--query", "10,5,10", "--keys", KEYS]);
    assert_says(&page, &["e_1i = q_1 . h_i", "60.000", "c_1    =   5.00   0.00   1.00"]);
}

#[test]
fn every_score_is_that_of_its_formula() {
    let (query, keys) = ([1.0f64, -2.0], [[0.5, 1.0], [2.0, -1.0], [-1.0, 0.25]]);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let times = |m: [[f64; 2]; 2], x: &[f64; 2]| [dot(&m[0], x), dot(&m[1], x)];
    let (w, u, v) = ([[1.0, 2.0], [0.0, -1.0]], [[0.5, 0.0], [1.0, 1.0]], [2.0, -1.0]);
    let additive = |h: &[f64; 2]| {
        let (q, k) = (times(w, &query), times(u, h));
        (0..2).map(|i| v[i] * (q[i] + k[i]).tanh()).sum::<f64>()
    };
    type Score<'a> = Box<dyn Fn(&[f64; 2]) -> f64 + 'a>;
    let matrices = ["--score-matrix", "1,2;0,-1", "--score-key-matrix", "0.5,0;1,1", "--score-vector=2,-1"];
    let cases: [(&str, &[&str], Score); 5] = [
        ("dot", &[], Box::new(|h| dot(&query, h))),
        ("scaled-dot", &[], Box::new(|h| dot(&query, h) / 2f64.sqrt())),
        ("cosine", &[], Box::new(|h| dot(&query, h) / (dot(&query, &query) * dot(h, h)).sqrt())),
        ("general", &matrices[..2], Box::new(|h| dot(&query, &times(w, h)))),
        ("additive", &matrices, Box::new(additive)),
    ];
    for (name, more, score) in cases {
        let args = [&["--query=1,-2", "--keys", "0.5,1;2,-1;-1,0.25", "--score", name], more].concat();
        let [scores, weights, context] = row(&json(&args), 0);
        let expected: Vec<f64> = keys.iter().map(&score).collect();
        assert_close(name, &scores, &expected, 1e-6);
        assert_close(name, &weights, &softmax(&expected), 1e-6);
        let mean = |i: usize| weights.iter().zip(&keys).map(|(weight, key)| weight * key[i]).sum::<f64>();
        assert_close(name, &context, &[mean(0), mean(1)], 1e-6);
    }
}

#[test]
fn values_of_their_own_are_averaged() {
    let [_, weights, context] = row(&json(&["--query", "1,0", "--keys", "1,0;0,1", "--values", "3;7"]), 0);
    assert_close("context", &context, &[3.0 * weights[0] + 7.0 * weights[1]], 1e-6);
}

#[test]
fn a_sequence_looks_at_itself_with_and_without_matrices_and_into_the_past_alone() {
    let plain = json(&["--sequence", "1,0;0,1;1,1"]);
    // X X^T.
    let scores: Vec<Vec<f64>> = (0..3).map(|i| row(&plain, i)[0].clone()).collect();
    assert_eq!(scores, [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]]);
    // Queries with their numbers swapped: Q K^T is not symmetric, X X^T is.
    let projected = json(&["--sequence", "1,0;0,1;1,1", "--query-matrix", "0,2;1,0", "--value-matrix", "1,1"]);
    let scores: Vec<Vec<f64>> = (0..3).map(|i| row(&projected, i)[0].clone()).collect();
    assert_eq!(scores, [[0.0, 1.0, 1.0], [2.0, 0.0, 2.0], [2.0, 1.0, 3.0]]);
    assert_eq!(numbers(&projected["values"][2]), [2.0]);
    let causal = json(&["--sequence", "1,0;0,1;1,1", "--causal"]);
    let lengths: Vec<usize> = (0..3).map(|i| row(&causal, i)[1].len()).collect();
    assert_eq!(lengths, [1, 2, 3]);
    assert_eq!(row(&causal, 0)[1], [1.0]);
    let page = succeed(Path::new("."), &["attend", "--sequence", "1,0;0,1", "--key-matrix", "1,0;0,3"]);
    assert_says(&page, &["Step 1 of 2", "Step 2 of 2", "k_i = W^K x_i", "e_2i = q_2 . k_i", "x_2"]);
}

#[test]
fn what_does_not_go_together_is_said() {
    let says = |args: &[&str], parts: &[&str]| {
        let finished = finish(Path::new("."), &[&["attend"], args].concat());
        assert!(matches!(finished.code, Some(1 | 2)), "{args:?}: {}", finished.stdout);
        assert_says(&finished.stderr, parts);
    };
    says(&["--query", "1,2", "--keys", "1,2,3"], &["queries have 2 numbers and keys 3", "--score general or additive"]);
    says(&["--query", "1,2", "--keys", "1,2;3"], &["row 2 has 1 numbers, and row 1 has 2"]);
    says(&["--query", "1,x", "--keys", "1,2"], &["row 1: \"x\" is no number"]);
    says(&["--query", "1,inf", "--keys", "1,2"], &["row 1: \"inf\" is no number"]);
    for large in ["1e30", "-1e308"] {
        let query = format!("--query={large}");
        says(&[&query, "--keys", "1"], &[&format!("row 1: {large} is not between -1e9 and 1e9")]);
    }
    says(&["--query", "1,2", "--keys", "1,2", "--values", "1;2"], &["--values has 2 rows, and --keys 1"]);
    says(
        &["--query", "1,2", "--keys", "1,2", "--score-vector", "1,1"],
        &["--score-vector has no place in the score \"dot\""],
    );
    says(
        &["--query", "1,2", "--keys", "1,2,3", "--score", "general"],
        &["--score-matrix is missing: it has 2 rows of 3 numbers"],
    );
    says(&["--sequence", "1,2", "--key-matrix", "1,2,3"], &["--key-matrix takes vectors of 3 numbers"]);
    says(&["--query", "1,2"], &["--keys"]);
}
