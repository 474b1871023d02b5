//! `evaluate`.

use super::trained;
use crate::training::{assert_says, fail, finish, read, succeed};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const KEYS: [&str; 8] =
    ["bleu", "chrf", "token_accuracy", "sequence_accuracy", "perplexity", "sentences", "signature", "by_length"];

#[test]
fn evaluate_prints_one_json_object_with_the_promised_keys() {
    for split in ["train", "valid", "test"] {
        let finished = finish(trained(), &["evaluate", "--run", "run", "--split", split, "--json"]);
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
        assert_eq!(finished.stdout.lines().count(), 1);
        let scores: Value = serde_json::from_str(&finished.stdout).unwrap();
        for key in KEYS {
            assert!(!scores[key].is_null(), "{key} is missing: {scores}");
        }
        let n = match split {
            "train" => 400,
            "valid" => 7,
            _ => 3,
        };
        assert_eq!(scores["sentences"], n);
        let buckets = scores["by_length"].as_array().unwrap();
        assert_eq!(buckets.iter().map(|bucket| bucket["sentences"].as_u64().unwrap()).sum::<u64>(), n);
        for key in ["bleu", "chrf", "token_accuracy", "sequence_accuracy"] {
            assert!(buckets.iter().all(|bucket| bucket[key].is_number()), "{key} by length");
        }
        assert_says(scores["signature"].as_str().unwrap(), &["tok:13a"]);
        assert!(scores["perplexity"].as_f64().unwrap() >= 1.0);
    }
}

#[test]
fn the_validation_loss_is_the_one_that_training_saw() {
    let scores: Value =
        serde_json::from_str(&succeed(trained(), &["evaluate", "--run", "run", "--split", "valid", "--json"])).unwrap();
    let seen = crate::training::numbers(&trained().join("run"), "valid", "perplexity")[0];
    // Sums of the same numbers in batches of another size.
    assert!((scores["perplexity"].as_f64().unwrap() / seen - 1.0).abs() < 1e-5, "{scores}, in training {seen}");
}

#[test]
fn a_file_takes_the_place_of_a_task_s_test_pairs() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("pairs.tsv");
    fs::write(&path, "a b\ta b\nc\tc\nd e\tno way\nb\tb\n").unwrap();
    let setting = format!("data.test.tsv={}", path.display());
    let scores: Value =
        serde_json::from_str(&succeed(trained(), &["evaluate", "--run", "run", "--json", "--set", &setting])).unwrap();
    assert_eq!((&scores["sentences"], &scores["sequence_accuracy"]), (&4.into(), &0.75.into()));
}

#[test]
fn the_hypotheses_are_written_where_asked_and_score_the_same_as_files() {
    let dir = TempDir::new().unwrap();
    let hypotheses = dir.path().join("hypotheses");
    let hypotheses = hypotheses.to_str().unwrap();
    let of_run =
        succeed(trained(), &["evaluate", "--run", "run", "--split", "valid", "--json", "--output", hypotheses]);
    let samples = read(trained().join("run/samples/000150.txt"));
    let references: Vec<&str> = samples.lines().filter_map(|line| line.strip_prefix("reference  ")).collect();
    let lines = read(hypotheses);
    assert_eq!((lines.lines().count(), references.len()), (7, 3));
    let first: String = lines.lines().take(3).map(|line| format!("{line}\n")).collect();
    let pairs = crate::training::tiny(crate::training::TRANSFORMER).data.task.unwrap();
    let pairs = pairs.generate(lookback::data::Split::Valid, 7, 5).unwrap();
    assert_eq!(pairs.iter().map(|pair| pair.target.as_str()).take(3).collect::<Vec<_>>(), references);
    assert!(!first.is_empty());
    let write = |name: &str, pick: fn(&lookback::data::Pair) -> &str| {
        let text: String = pairs.iter().map(|pair| format!("{}\n", pick(pair))).collect();
        fs::write(dir.path().join(name), text).unwrap();
    };
    write("references", |pair| &pair.target);
    write("sources", |pair| &pair.source);
    let arguments =
        ["evaluate", "--hypotheses", "hypotheses", "--references", "references", "--sources", "sources", "--json"];
    let of_files: Value = serde_json::from_str(&succeed(dir.path(), &arguments)).unwrap();
    let of_run: Value = serde_json::from_str(&of_run).unwrap();
    for key in KEYS.into_iter().filter(|key| *key != "perplexity") {
        assert_eq!(of_files[key], of_run[key], "{key}");
    }
    assert!(of_files["perplexity"].is_null(), "there is no model");
}

#[test]
fn files_score_the_bleu_that_is_known() {
    let dir = TempDir::new().unwrap();
    // Papineni's precisions by hand: 7/8, 5/6, 3/4, 1/2 over both lines, brevity exp(1 - 9/8).
    fs::write(dir.path().join("hyp"), "the cat sat on the mat\na dog\n").unwrap();
    fs::write(dir.path().join("ref"), "the cat sat on a mat\na dog barks\n").unwrap();
    let arguments = ["evaluate", "--hypotheses", "hyp", "--references", "ref", "--json"];
    let scores: Value = serde_json::from_str(&succeed(dir.path(), &arguments)).unwrap();
    let precisions = [7.0 / 8.0, 4.0 / 6.0, 2.0 / 4.0, 1.0 / 3.0f64];
    let expected = 100.0 * (1.0 - 9.0 / 8.0f64).exp() * precisions.iter().map(|p| p.ln() / 4.0).sum::<f64>().exp();
    assert!((scores["bleu"].as_f64().unwrap() - expected).abs() < 1e-9, "{scores}, by hand {expected}");
    assert_eq!(scores["sequence_accuracy"], 0.0);
    assert_eq!(scores["sentences"], 2);
    assert_eq!(scores["by_length"], serde_json::json!([]));
    fs::write(dir.path().join("same"), "THE CAT SAT ON A MAT\nA DOG BARKS\n").unwrap();
    let lower =
        ["evaluate", "--hypotheses", "same", "--references", "ref", "--lowercase", "--tokenize", "none", "--json"];
    let scores: Value = serde_json::from_str(&succeed(dir.path(), &lower)).unwrap();
    assert!((scores["bleu"].as_f64().unwrap() - 100.0).abs() < 1e-9, "{scores}");
    assert_says(scores["signature"].as_str().unwrap(), &["case:lc", "tok:none"]);
}

#[test]
fn files_of_unequal_length_and_unknown_splits_are_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("two"), "a\nb\n").unwrap();
    fs::write(dir.path().join("one"), "a\n").unwrap();
    let message = fail(dir.path(), &["evaluate", "--hypotheses", "two", "--references", "one"]);
    assert_says(&message, &["2", "1"]);
    let message = fail(trained(), &["evaluate", "--run", "run", "--split", "dev"]);
    assert_says(&message, &["unknown split \"dev\"; there are train, valid and test"]);
}
