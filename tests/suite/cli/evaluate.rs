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
        assert_eq!((finished.code, finished.stdout.lines().count()), (Some(0), 1), "{}", finished.stderr);
        let scores: Value = serde_json::from_str(&finished.stdout).unwrap();
        // Of the answers that were cut standard error speaks, and of nothing else.
        let n_warnings = usize::from(scores["cut"].as_u64().unwrap() > 0);
        assert_eq!(finished.stderr.matches("answers were cut").count(), n_warnings, "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), n_warnings, "{}", finished.stderr);
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
fn what_is_blank_is_not_scored() {
    let dir = TempDir::new().unwrap();
    let (path, out) = (dir.path().join("pairs.tsv"), dir.path().join("out"));
    let scores = |text: &str| -> (Value, String, usize) {
        fs::write(&path, text).unwrap();
        let setting = format!("data.test.tsv={}", path.display());
        let output = out.display().to_string();
        let arguments = ["evaluate", "--run", "run", "--json", "--set", &setting, "--output", &output];
        let finished = finish(trained(), &arguments);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        (serde_json::from_str(&finished.stdout).unwrap(), finished.stderr, read(&out).lines().count())
    };
    let (mut without, said, _) = scores("a b\ta b\nd e\tno way\n");
    assert_eq!((&without["sequence_accuracy"], said.as_str()), (&0.5.into(), ""));
    let (mut with, said, n_lines) = scores("a b\ta b\n\t\nd e\tno way\nb\t\n\tb\n");
    assert_eq!(n_lines, 5, "lines stay side by side");
    assert_says(&said, &["3 of 5 sentences have no source or no reference, and are not scored"]);
    // Batches are others, so that sums are added in another order.
    let [one, other] = [&mut without, &mut with].map(|scores| scores["perplexity"].take().as_f64().unwrap());
    assert!((one / other - 1.0).abs() < 1e-5, "{one} {other}");
    assert_eq!(without, with);
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
    let finished = finish(trained(), &["evaluate", "--run", "run", "--split", "dev"]);
    assert_eq!(finished.code, Some(2));
    assert_says(&finished.stderr, &["invalid value 'dev'", "[possible values: train, valid, test]"]);
}

#[test]
fn a_score_can_be_asked_for_by_name() {
    let text = succeed(trained(), &["evaluate", "--run", "run", "--metric", "sequence-error", "--metric", "per"]);
    assert_says(&text, &["sequence error (sequences)", "PER (phones)", "answers cut at the length cap"]);
    assert!(!text.contains("BLEU") && !text.contains("perplexity"), "{text}");
    assert!(text.find("sequence error") < text.find("PER"), "{text}");
    // Without the option, the score of the config comes first.
    let text = succeed(trained(), &["evaluate", "--run", "run"]);
    assert_says(text.lines().nth(1).unwrap(), &["sequence accuracy (sequences)"]);
    let finished = finish(trained(), &["evaluate", "--run", "run", "--metric", "blue"]);
    assert_eq!(finished.code, Some(2));
    assert_says(&finished.stderr, &["invalid value 'blue'", "[possible values: bleu, chrf"]);
}

#[test]
fn cut_answers_are_counted() {
    let finished = finish(
        trained(),
        &[
            "evaluate",
            "--run",
            "run",
            "--split",
            "valid",
            "--json",
            "--set",
            "decoding.max_len_factor=0",
            "--set",
            "decoding.max_len_extra=1",
        ],
    );
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let scores: Value = serde_json::from_str(&finished.stdout).unwrap();
    // A token and the end symbol do not fit: all seven are cut.
    assert_eq!(scores["cut"], 7);
    assert_says(
        &finished.stderr,
        &["warning: 7 of 7 answers were cut at the length cap of 0 tokens for each source token and 1 more"],
    );
}

#[test]
fn several_references_come_from_files_and_from_pairs_with_one_source() {
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    fs::write(at("hypotheses"), "a b\nc d\n").unwrap();
    fs::write(at("first"), "x y\nc d\n").unwrap();
    fs::write(at("second"), "a b\nx y\n").unwrap();
    let files = ["evaluate", "--hypotheses", &at("hypotheses"), "--references", &at("first"), "--json"];
    let accuracy = |arguments: &[&str]| -> f64 {
        let scores: Value = serde_json::from_str(&succeed(trained(), arguments)).unwrap();
        scores["sequence_accuracy"].as_f64().unwrap()
    };
    assert_eq!(accuracy(&files), 0.5);
    assert_eq!(accuracy(&[&files[..], &["--references", &at("second")]].concat()), 1.0);
    // The model copies; its word for "b" is the second of two.
    fs::write(at("pairs.tsv"), "b\tno way\nc\tc\nb\tb\n").unwrap();
    let setting = format!("data.test.tsv={}", at("pairs.tsv"));
    let run = ["evaluate", "--run", "run", "--json", "--set", &setting];
    assert!((accuracy(&run) - 2.0 / 3.0).abs() < 1e-9);
    let merged = [&run[..], &["--set", "data.several_references=true"]].concat();
    assert_eq!(accuracy(&merged), 1.0);
    // What it wrote for them is scored again from files, with the lines of the pairs.
    assert_eq!(accuracy(&[&merged[..], &["--output", &at("written")]].concat()), 1.0);
    fs::write(at("sources"), "b\nc\nb\n").unwrap();
    fs::write(at("targets"), "no way\nc\nb\n").unwrap();
    let written = ["evaluate", "--hypotheses", &at("written"), "--references", &at("targets"), "--json"];
    assert_eq!(accuracy(&[&written[..], &["--sources", &at("sources")]].concat()), 1.0);
    fs::write(at("sources"), "b\nc\nd\n").unwrap();
    let message = fail(trained(), &[&written[..], &["--sources", &at("sources")]].concat());
    assert_says(&message, &["2 hypothesis lines but 3 source lines, 3 of them different"]);
    assert_says(&fail(trained(), &written), &["targets: there are 2 hypothesis lines but 3 reference lines"]);
}

#[test]
fn batches_do_not_matter_and_sampling_from_one_word_is_greedy() {
    let with = |more: &[&'static str]| {
        let text = succeed(trained(), &[&["evaluate", "--run", "run", "--json"], more].concat());
        let mut scores: serde_json::Value = serde_json::from_str(&text).unwrap();
        // Another batch rounds the loss in another way.
        let perplexity = scores["perplexity"].take().as_f64().unwrap();
        let is_sampled = scores["decoding"].take() == "sampled";
        assert_eq!(is_sampled, more.contains(&"--sample"), "it says how answers were looked for");
        (scores, (1e4 * perplexity).round())
    };
    let expected = with(&[]);
    assert_eq!(with(&["--batch-tokens", "7"]), expected);
    assert_eq!(with(&["--sample", "--top-p", "0.000001"]), expected);
    let dir = TempDir::new().unwrap();
    let drawn = |seed: &str| {
        let at = dir.path().join(seed).to_str().unwrap().to_string();
        let sample = ["--sample", "--temperature", "9", "--seed", seed, "--output", &at];
        succeed(trained(), &[&["evaluate", "--run", "run", "--json"][..], &sample].concat());
        read(&at)
    };
    assert_ne!(drawn("1"), drawn("2"), "the seed decides what is drawn");
}

#[test]
fn options_without_effect_are_refused() {
    let message = fail(trained(), &["evaluate", "--run", "run", "--beam", "3", "--n-best", "3"]);
    assert_says(&message, &["--n-best has no effect here"]);
    let message = fail(trained(), &["evaluate", "--run", "run", "--set", "model.d_model=32"]);
    assert_says(&message, &["model.d_model: has no effect here"]);
    let dir = TempDir::new().unwrap();
    let at = dir.path().join("lines");
    fs::write(&at, "a\n").unwrap();
    let at = at.to_str().unwrap();
    let files = ["evaluate", "--hypotheses", at, "--references", at];
    assert_says(&fail(trained(), &[&files[..], &["--beam", "3"]].concat()), &["--beam has no effect"]);
    for more in [["--split", "valid"], ["--backend", "flex"], ["--set", "seed=2"]] {
        assert_eq!(finish(trained(), &[&files[..], &more].concat()).code, Some(2), "{more:?}");
    }
}

#[test]
fn data_that_have_moved_are_asked_for() {
    let message = fail(trained(), &["evaluate", "--run", "run", "--set", "data.test.tsv=gone/test.tsv"]);
    assert_says(&message, &["gone/test.tsv: is not there", "--set data.dir=FOLDER", "--set data.test.tsv=FILE"]);
}
